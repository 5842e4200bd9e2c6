"""Squares: distances to the middle of each class, whose squares add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.text import count
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Part, dot_ends
from tinykernel.pieces.proof import Range, range_of
from tinykernel.pieces.record import Matrix, limits

#: Where the distance along a row ends; its square has 31 bits.
MOST_DISTANCE = 46340
#: Where the sum of a class ends.
MOST_SUM = 1 << 30


@dataclass(frozen=True, eq=False)
class Squares(Part):
    """The part *squares*: how far the quantized values are from the middle of each class.

    It reads the values q of the stage `Scale`. Row r of the weights of a class begins with input r,
    and has `width` weights, or as many as inputs are left. Of row r of class c, in int32, proved
    not to overflow, and with ``>>`` that rounds down::

        dot_cr = offset_cr + sum over i of weights_cri * q_(r + i)
        distance_cr = min(|dot_cr >> drop_cr|, 46340)
        sum_c = min(sum over r of (distance_cr**2 >> shift), 2**30)

    From output c it takes sum_c; to the one output of two classes it adds ``sum_0 - sum_1``.

    A width of 1 is the naive Bayes of normal distributions. With a width of all inputs these are
    quadratic discriminants (Hastie, Tibshirani and Friedman, The Elements of Statistical Learning,
    2009, equation 4.12), whose inverse covariances are products of triangular matrices.

    >>> squares = Squares([[1, 2], [1, 1]], [[0, 1], [-5, 0]], [[0, 1], [0, 0]], width=1, shift=0)
    >>> squares.totals(np.array([[3, 4]], dtype=np.int8)).tolist()
    [[5]]
    """

    KIND = "squares"
    READS = "scale"
    NAMES = True

    # (n_classes, weights of all rows); 0 for constant values
    weights: Matrix[np.int16] = field(metadata=limits(-32767, 32767, "classes", None))
    offset: Matrix[np.int32] = field(metadata=limits(None, None, "classes", "rows"))
    drop: Matrix[np.uint8] = field(metadata=limits(0, 31, "classes", "rows"))
    width: int = field(metadata=limits(1, 65536))
    shift: int = field(metadata=limits(0, 31))

    def check_grid(self, grid: Grid, n_outputs: int) -> None:
        (n_classes, rows), n = self.offset.shape, grid.size
        lengths = np.minimum(self.width, n - np.arange(rows))
        if rows > n or grid.dtype == "int32" or n_classes != max(n_outputs, 2):
            raise self.refuse("squares have other classes, too many rows, or weigh raw values")
        self.require_shape("weights", (n_classes, int(lengths.sum())))
        for r, (weights, _) in enumerate(self._rows(n)):
            if np.any(weights[:, [i - r for i in grid.constant if 0 <= i - r < weights.shape[1]]]):
                raise self.refuse("squares weigh a constant feature")

    def _rows(self, n: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield the weights of each row (n_classes, width), and their offsets."""
        end = 0
        for r, offset in enumerate(self.offset.T):
            start, end = end, end + min(self.width, n - r)
            yield self.weights[:, start:end].astype(np.float64), offset

    def _squares(self, r: int, dots: NDArray[Any]) -> NDArray[np.int64]:
        """Return the squares of a row from its dot products."""
        distance = np.abs(dots.astype(np.int64) >> self.drop[:, r])
        return np.asarray(np.minimum(distance, MOST_DISTANCE) ** 2 >> self.shift)

    def totals(self, values: NDArray[Any]) -> NDArray[np.int32]:
        # Whole numbers below 2**53, so that floats, which are faster, are exact in any order.
        wide, sums = values.astype(np.float64), np.zeros((len(values), len(self.offset)), np.int64)
        for r, (weights, offset) in enumerate(self._rows(values.shape[1])):
            dots = wide[:, r : r + weights.shape[1]] @ weights.T + offset
            sums += self._squares(r, dots)
        return np.asarray(self._outputs(np.minimum(sums, MOST_SUM)), dtype=np.int32)

    @staticmethod
    def _outputs(sums: NDArray[Any]) -> NDArray[Any]:
        return sums[..., :1] - sums[..., 1:] if sums.shape[-1] == 2 else -sums

    def in_words(self, view: str, inputs: str) -> str:
        return f"{count(self.offset.size, 'square')} of {inputs}"

    def _ends(self, grid: Grid) -> list[NDArray[np.int64]]:
        """Return the least and the largest dot product of each row of each class."""
        return [
            np.stack(dot_ends(weights.astype(np.int64), grid.high, grid.low)) + offset
            for weights, offset in self._rows(grid.size)
        ]

    def _most(self, grid: Grid) -> NDArray[np.int64]:
        """Return the largest sum of each class."""
        squares = [self._squares(r, ends).max(axis=0) for r, ends in enumerate(self._ends(grid))]
        return np.asarray(np.minimum(np.sum(squares, axis=0), MOST_SUM))

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        ends = np.stack(self._ends(grid))
        return (
            range_of("dot product of a square", ends, ends),
            range_of("sum of squares", 0, self._most(grid)),
        )

    def reach(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        most = self._most(grid)
        if most.size == 2:
            return -most[1:], most[:1]
        return -most, np.zeros_like(most)

    def work(self, grid: Grid) -> dict[str, float]:
        """Return how many inputs are weighted, and how many distances squared."""
        return {"weighted input": float(self.weights.size), "square": float(self.offset.size)}
