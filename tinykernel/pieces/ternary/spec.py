"""Ternary: weights -1, 0, +1 of the components."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces import reference
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Part
from tinykernel.pieces.proof import Range, range_of
from tinykernel.pieces.record import Matrix, limits


@dataclass(frozen=True, eq=False)
class Ternary(Part):
    """The part *ternary*: a weighted sum of the components, times one integer an output.

    It reads the bits of the stage `Components`, z_r = +1 where a bit is set, else -1. To output o
    it adds, in int32, proved not to overflow::

        sum_o = sum over r of weights_or * z_r
        multiplier_o * sum_o

    >>> Ternary([[1, -1, 0]], [5]).totals(np.array([[True, False, True]])).tolist()
    [[10]]
    """

    KIND = "ternary"
    READS = "components"

    weights: Matrix[np.int8] = field(metadata=limits(-1, 1, "outputs", None))
    multiplier: NDArray[np.int32] = field(metadata=limits(None, None, "outputs"))
    # whether the firmware may hold five weights in a byte: less flash, more instructions, the same
    # scores; otherwise a weight takes two bits, or one where none is 0
    packed: bool | None = field(default=None, compare=False)

    def check_grid(self, grid: Grid, n_outputs: int) -> None:
        self.require_shape("weights", (n_outputs, grid.size))

    def totals(self, values: NDArray[np.bool_]) -> NDArray[np.int32]:
        signs = 2 * values.astype(np.int8) - np.int8(1)
        return np.asarray(reference.dots(signs, self.weights) * self.multiplier)

    def _sums(self) -> NDArray[np.int64]:
        """Return the largest sum of each output."""
        return np.asarray(np.count_nonzero(self.weights, axis=1), dtype=np.int64)

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        return (range_of("sum", -self._sums(), self._sums()),)

    def reach(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        radius = np.abs(self.multiplier.astype(np.int64)) * self._sums()
        return -radius, radius
