"""Scaled: values times a constant. Copy this folder; put your stage in the place of this."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage, prove
from tinykernel.pieces.proof import INT32_LIMIT, Range
from tinykernel.pieces.record import limits


@dataclass(frozen=True, eq=False)
class Scaled(Stage):
    """The stage *scaled*: each value times a constant.

    It takes maps or units, uint8 from 0 up, and gives as many units. ``>>`` rounds down. Of a value
    v it makes::

        min((v * factor) >> shift, 255)

    >>> Scaled(factor=3, shift=1).run(np.array([[2, 5, 255]], np.uint8), Grid.table("uint8", 3))
    array([[  3,   7, 255]], dtype=uint8)
    """

    #: The name of the folder, of the structure in C and in errors.
    KIND = "scaled"
    # `PORTS` of piece.py has what stages give, `Stage` what else one may say of itself.
    TAKES = ("maps", "units")
    GIVES = "units"
    INPUTS = ("image", "table")

    # The fields are what a model file holds, checked against these limits.
    factor: int = field(metadata=limits(1, 255))
    shift: int = field(metadata=limits(0, 15))

    @property
    def title(self) -> str:
        return f"values times {self.factor / (1 << self.shift):.3g}"

    def gives(self, grid: Grid) -> Grid:
        if grid.dtype != "uint8" or grid.low != 0:
            raise self.refuse(f"takes uint8 from 0 up, not {grid.dtype} from {grid.low}")
        return Grid(1, 1, grid.size, "uint8", 0, max(1, self._high(grid)))

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        products = values.astype(np.int32) * self.factor >> self.shift
        return np.asarray(np.minimum(products, 255), dtype=np.uint8)

    def _high(self, grid: Grid) -> int:
        return min(grid.high * self.factor >> self.shift, 255)

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        ranges = (
            Range("product with a constant", 0, grid.high * self.factor, 0, INT32_LIMIT),
            Range("scaled value", 0, self._high(grid), 0, 255),
        )
        return prove(ranges, self.OWNER, "use a smaller factor")

    def work(self, grid: Grid) -> dict[str, float]:
        """Return one product a value."""
        return {"product": float(grid.size)}
