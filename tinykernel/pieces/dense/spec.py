"""Dense: a hidden layer, sums of all values that are shifted and clipped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces import reference
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage, dot_ends, prove
from tinykernel.pieces.proof import INT32_LIMIT, Range
from tinykernel.pieces.record import Matrix, limits


@dataclass(frozen=True, eq=False)
class Dense(Stage):
    """The stage *dense*: a hidden layer of units, each of which reads all values.

    It takes any grid of uint8 from 0 up, whose values in their order are v. ``>>`` rounds down.
    It gives a table of units, uint8. Unit o is::

        min(max((biases[o] + sum over i of weights[o, i] * v[i]) >> shift, 0), 255)

    >>> dense = Dense([[1, -1], [1, 1]], biases=[0, 1], shift=1)
    >>> dense.run(np.array([[3, 5]], dtype=np.uint8), Grid(1, 1, 2, "uint8", 0, 15)).tolist()
    [[0, 4]]
    """

    KIND = "dense"
    TAKES = ("maps", "levels", "units")
    GIVES = "units"
    INPUTS = ("image", "table")
    READS_WORDS = True

    weights: Matrix[np.int8] = field(metadata=limits(-127, 127, "units", None))
    biases: NDArray[np.int32] = field(metadata=limits(None, None, "units"))
    shift: int = field(metadata=limits(0, 30))

    def check(self) -> None:
        if self.n_units > 1024:
            raise self.refuse(f"has {self.n_units} units; 1024 are the most")

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.weights.shape[0])

    @property
    def title(self) -> str:
        return f"hidden layer of {self.n_units} units"

    def gives(self, grid: Grid) -> Grid:
        if grid.dtype != "uint8" or grid.low != 0 or grid.size != self.weights.shape[1]:
            raise self.refuse(
                f"takes {self.weights.shape[1]} values of uint8, not {grid.size} of {grid.dtype}"
            )
        return Grid(1, 1, self.n_units, "uint8", 0, max(1, int(self._highs(grid).max())))

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        sums = (reference.dots(values, self.weights) + self.biases) >> self.shift
        return np.asarray(np.clip(sums, 0, 255), dtype=np.uint8)

    def _sums(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and the largest sum of each unit."""
        low, high = dot_ends(self.weights, grid.high)
        return low + self.biases, high + self.biases

    def _highs(self, grid: Grid) -> NDArray[np.int64]:
        return np.asarray(np.clip(self._sums(grid)[1] >> self.shift, 0, 255))

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        low, most = self._sums(grid)
        ranges = (
            Range("sum of a unit", int(low.min()), int(most.max()), -INT32_LIMIT, INT32_LIMIT),
            Range("unit", 0, int(self._highs(grid).max()), 0, 255),
        )
        return prove(ranges, self.OWNER, "use smaller biases")

    def work(self, grid: Grid) -> dict[str, float]:
        """Return one product a value and unit."""
        return {"multiply": float(self.weights.size), "unit": float(self.n_units)}
