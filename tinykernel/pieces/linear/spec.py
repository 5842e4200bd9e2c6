"""Linear: integer weights of the quantized values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces import reference
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Part, dot_ends
from tinykernel.pieces.proof import Range, range_of
from tinykernel.pieces.record import Matrix, limits
from tinykernel.pieces.tables import weight_bits


@dataclass(frozen=True, eq=False)
class Linear(Part):
    """The part *linear*: a dot product of the quantized values, times one integer an output.

    It reads the values q of the stage `Scale`. To output o it adds, in int32, proved not to
    overflow::

        dot_o = sum over i of weights_oi * q_i
        multiplier_o * dot_o

    >>> Linear([[1, -2]], [3]).totals(np.array([[10, 4]], dtype=np.int8)).tolist()
    [[6]]
    """

    KIND = "linear"
    READS = "scale"
    JOINS = True

    # 0 for constant values
    weights: Matrix[np.int8] = field(metadata=limits(-127, 127, "outputs", None))
    multiplier: NDArray[np.int32] = field(metadata=limits(None, None, "outputs"))

    def check_grid(self, grid: Grid, n_outputs: int) -> None:
        self.require_shape("weights", (n_outputs, grid.size))
        if grid.dtype == "int32":
            raise self.refuse("linear weighs inputs of 8 or 16 bits")
        if np.any(self.weights[:, sorted(grid.constant)]):
            raise self.refuse("linear weighs a constant feature")

    def totals(self, values: NDArray[Any]) -> NDArray[np.int32]:
        return np.asarray(reference.dots(values, self.weights) * self.multiplier)

    def in_words(self, view: str, inputs: str) -> str:
        return f"linear part of {inputs}, {weight_bits(self.weights)} bits"

    def reorder(self, order: NDArray[np.int64]) -> Linear:
        return replace(self, weights=self.weights[:, order])

    def _dots(self, grid: Grid) -> NDArray[np.int64]:
        """Return the least and the largest dot product of each output."""
        return np.stack(dot_ends(self.weights, grid.high, grid.low))

    def _products(self, grid: Grid) -> NDArray[np.int64]:
        return self.multiplier.astype(np.int64) * self._dots(grid)

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        dots, products = self._dots(grid), self._products(grid)
        return (
            range_of("dot product", dots[0], dots[1]),
            range_of("dot product times multiplier", products, products),
        )

    def reach(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        products = self._products(grid)
        return products.min(axis=0), products.max(axis=0)
