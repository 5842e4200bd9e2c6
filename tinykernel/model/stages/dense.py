"""Dense: a hidden layer, sums of all values that are shifted and clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model import reference
from tinykernel.model.grid import Grid
from tinykernel.model.proof import INT32_LIMIT, Range
from tinykernel.model.record import Matrix
from tinykernel.model.stage import Stage, proved


@dataclass(frozen=True, eq=False)
class Dense(Stage):
    """The stage *dense*: a hidden layer of units, each of which looks at all values.

    It takes any grid of uint8 from 0 up, whose values in their order are v. ``>>`` rounds down.
    Unit o is::

        min(max((biases[o] + sum over i of weights[o, i] * v[i]) >> shifts[o], 0), 255)

    It gives a table of units, uint8.

    Parameters
    ----------
    weights : ndarray of int8, shape (n_units, n)
        -127..127; at most 1024 units. The firmware stores them in 1, 2, 4 or 8 bits.
    biases : ndarray of int32, shape (n_units,)
    shift : int
        0 to 30.

    Raises
    ------
    TinykernelError
        If a field has the wrong type, shape or range; and from `gives` and `ranges`, if there are
        other values, or a sum could overflow 32 bits.

    Examples
    --------
    >>> dense = Dense([[1, -1], [1, 1]], biases=[0, 1], shift=1)
    >>> dense.run(np.array([[3, 5]], dtype=np.uint8), Grid(1, 1, 2, "uint8", 0, 15)).tolist()
    [[0, 4]]
    """

    KIND = "dense"
    TAKES = ("maps",)
    GIVES = "units"
    OWNER = "dense"

    weights: Matrix[np.int8]
    biases: NDArray[np.int32]
    shift: int

    def check(self) -> None:
        """Check the units, as far as no grid is needed."""
        self.require_shape("biases", (self.n_units,))
        self.require("shift", 0, 30)
        if self.n_units > 1024 or self.weights.min() < -127:
            raise self.refuse("has more than 1024 units, or a weight of -128")

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.weights.shape[0])

    @property
    def words(self) -> str:
        """What people call it; see `Stage`."""
        return f"hidden layer of {self.n_units} units"

    def gives(self, given: Grid) -> Grid:
        """Return a table of units; see `Stage`."""
        if given.dtype != "uint8" or given.low != 0 or given.size != self.weights.shape[1]:
            raise self.refuse(
                f"takes {self.weights.shape[1]} values of uint8, not {given.size} of {given.dtype}"
            )
        high = max(1, int(self._highs(given).max()))
        return Grid(1, 1, self.n_units, "uint8", 0, high)

    def run(self, values: NDArray[Any], given: Grid) -> NDArray[Any]:
        """Compute the units of rows of values; see `Stage`."""
        sums = (reference.dots(values, self.weights) + self.biases) >> self.shift
        return np.asarray(np.clip(sums, 0, 255), dtype=np.uint8)

    def _sums(self, given: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and the largest sum of each unit."""
        positive = np.maximum(self.weights, 0).sum(axis=1, dtype=np.int64)
        negative = np.minimum(self.weights, 0).sum(axis=1, dtype=np.int64)
        return given.high * negative + self.biases, given.high * positive + self.biases

    def _highs(self, given: Grid) -> NDArray[np.int64]:
        highs: NDArray[np.int64] = np.clip(self._sums(given)[1] >> self.shift, 0, 255)
        return highs

    def ranges(self, given: Grid) -> tuple[Range, ...]:
        """Return the ranges of the sums, and of the units."""
        low, most = self._sums(given)
        found = (
            Range("sum of a unit", int(low.min()), int(most.max()), -INT32_LIMIT, INT32_LIMIT),
            Range("unit", 0, int(self._highs(given).max()), 0, 255),
        )
        return proved(found, self.OWNER, "use smaller biases")

    def work(self, given: Grid) -> dict[str, float]:
        """Return one product a value and unit."""
        return {"multiply": float(self.weights.size), "unit": float(self.n_units)}
