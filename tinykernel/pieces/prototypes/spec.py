"""Distances to prototypes: rows of inputs in 4 bits, in the arithmetic of the firmware."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import RangeError
from tinykernel.base.text import count
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Part
from tinykernel.pieces.proof import Range, range_of
from tinykernel.pieces.record import Matrix, limits

#: No number of a margin line is larger.
LARGEST_MARGIN_LINE = 2**31 - 1


def coarse(Q: NDArray[Any]) -> NDArray[np.int64]:
    """Return the top 8 bits of quantized inputs."""
    wide = Q.astype(np.int64)
    return wide >> 8 if Q.dtype.itemsize == 2 else wide


def centres(prototypes: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the values of levels -8..7 of prototypes, on the scale of 8-bit inputs."""
    return prototypes.astype(np.int64) * 16 + 8


def distances(Q: NDArray[Any], prototypes: NDArray[np.int8]) -> NDArray[np.int32]:
    """Return the squared distance of each row to the nearest prototype."""
    # Whole numbers below 2**53, so that floats, which are faster, are exact in any order.
    rows, means = coarse(Q).astype(np.float64), centres(prototypes).astype(np.float64)
    squares = np.square(rows).sum(axis=1)[:, np.newaxis] + np.square(means).sum(axis=1)
    return np.asarray((squares - 2 * rows @ means.T).min(axis=1), dtype=np.int32)


def farthest(prototypes: NDArray[np.int8]) -> int:
    """Return the largest distance that a row can have to any one of the prototypes."""
    means = centres(prototypes)
    return int(np.square(np.maximum(127 - means, means + 128)).sum(axis=1).max())


def most_steps(gain: int) -> int:
    """Return how many steps of the margin count, so that none times `gain` leaves int32."""
    return LARGEST_MARGIN_LINE // gain


def check_distances(prototypes: NDArray[np.int8]) -> None:
    """Refuse prototypes to which a distance can leave int32."""
    if farthest(prototypes) > LARGEST_MARGIN_LINE:
        raise RangeError(
            "integer model: the distance to a prototype of "
            f"{prototypes.shape[1]} inputs can leave int32"
        )


@dataclass(frozen=True, eq=False)
class Prototypes(Part):
    """The part *prototypes* of a model of one class: the distance to the nearest known row.

    It reads the quantized values q of the stage `Scale`. ``b_i`` is ``q_i`` of 8 bits, ``q_i >> 8``
    of 16 bits, 0 of a constant value. To the one output it adds::

        distance = min over k of sum over i of (b_i - (16 * levels_ki + 8))**2

    >>> Prototypes([[0, 0], [7, 0]]).totals(np.array([[127, 5]], dtype=np.int8)).tolist()
    [[58]]
    """

    KIND = "prototypes"
    READS = "scale"
    NAMES = True
    ONE_CLASS = True
    ZERO = "an input that is a prototype"

    levels: Matrix[np.int8] = field(metadata=limits(-8, 7))  # known rows, (k, n)

    def check(self) -> None:
        check_distances(self.levels)

    def check_grid(self, grid: Grid, n_outputs: int) -> None:
        self.require_shape("levels", (None, grid.size))
        if n_outputs != 1:
            raise self.refuse("prototypes need two classes, the known one first")

    def totals(self, values: NDArray[Any]) -> NDArray[np.int32]:
        return distances(values, self.levels)[:, np.newaxis]

    def in_words(self, view: str, inputs: str) -> str:
        return f"{count(len(self.levels), 'prototype')} of {inputs}"

    def facts(self) -> dict[str, Any]:
        return {"prototypes": len(self.levels)}

    def reorder(self, order: NDArray[np.int64]) -> Prototypes:
        return replace(self, levels=self.levels[:, order])

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        return (range_of("distance", 0, farthest(self.levels)),)

    def reach(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.zeros(1, dtype=np.int64), np.array([farthest(self.levels)])
