"""Layers of convolutions of images with channels: sizes and arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIXED, SINGLE, POINT = "mixed", "single", "point"


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of the stage *separable*, which specifies it."""

    kind: str  # "mixed", "single" or "point"
    steps: tuple[int, int]  # strides of rows and of columns
    around: tuple[int, int]  # zeros above and below, before and behind: 1 or 0 of each
    # (channels, 3, 3, channels before), (channels, 3, 3) or (channels, channels before)
    weights: NDArray[np.int8]
    biases: NDArray[np.int32]  # (channels,), as multipliers and shifts
    multipliers: NDArray[np.uint8]
    shifts: NDArray[np.uint8]
    pool: tuple[int, int] = (1, 1)  # rows and columns of patches that become one value
    averages: bool = False  # whether that is their mean, not the largest
    border: int = 0  # in the place of zeros around

    def summed(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the rows and columns before the pooling."""
        return size_after(self.kind, self.steps, self.around, rows, columns)

    def size(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the rows and columns that it makes of others."""
        rows, columns = self.summed(rows, columns)
        return rows // self.pool[0], columns // self.pool[1]

    def run(self, maps: NDArray[Any]) -> NDArray[np.uint8]:
        """Return what it makes of images (n, rows, columns, channels)."""
        n = len(self.biases)
        # Whole numbers below 2**24 or 2**53, whatever the order of additions.
        largest = 255 * int(np.abs(self.weights.astype(np.int64)).reshape(n, -1).sum(axis=1).max())
        exact: type[np.floating[Any]] = np.float32 if largest < 1 << 24 else np.float64
        sums = self._sums(maps, exact)
        products: NDArray[Any] = sums.astype(np.int32 if exact is np.float32 else np.int64)
        # `ranges` proves that products have 31 bits.
        np.add(products, self.biases, out=products)
        np.multiply(products, self.multipliers, out=products)
        np.right_shift(products, self.shifts, out=products)
        values = np.clip(products, 0, 255, out=products).astype(np.uint8)
        return values if self.pool == (1, 1) else self._pool(values)

    def _sums(self, maps: NDArray[Any], exact: type[np.floating[Any]]) -> NDArray[Any]:
        weights = self.weights.astype(exact)
        if self.kind == POINT:
            return np.asarray(maps.astype(exact) @ weights.T)
        (down, across), (high, wide) = self.steps, self.summed(*maps.shape[1:3])
        sides = (0, 0), *((n, n) for n in self.around), (0, 0)
        padded = np.pad(maps, sides, constant_values=self.border).astype(exact)
        total = np.zeros((len(maps), high, wide, len(weights)), exact)
        for i, j in np.ndindex(3, 3):
            shifted = padded[:, i::down, j::across][:, :high, :wide]
            part = weights[:, i, j]
            total += shifted @ part.T if self.kind == MIXED else shifted * part
        return total

    def _pool(self, values: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Replace patches side by side; rows and columns that fill none are left out."""
        (n, high, wide, channels), (rows, columns) = values.shape, self.pool
        high, wide = high // rows, wide // columns
        cut = values[:, : high * rows, : wide * columns]
        cut = cut.reshape(n, high, rows, wide, columns, channels)
        if not self.averages:
            return np.asarray(cut.max(axis=(2, 4)))
        sums = cut.sum(axis=4, dtype=np.int32) + mean_offsets(self.pool)[:, None, None]
        return np.asarray((sums // (rows * columns)).sum(axis=2), dtype=np.uint8)


def mean_offsets(pool: tuple[int, int]) -> NDArray[np.int32]:
    """Return what is added to the sum of each row of a patch before its division.

    Patches of equal values keep the value (Hermite's identity), so no mean is above 255.

    >>> ((2 * 7 + mean_offsets((3, 2))) // 6).sum()
    np.int64(7)
    """
    rows, columns = pool
    return np.arange(rows, dtype=np.int32) * columns + columns // 2


def size_after(
    kind: str, steps: tuple[int, int], around: tuple[int, int], rows: int, columns: int
) -> tuple[int, int]:
    """Return the rows and columns of the sums of a layer; none where there are too few.

    >>> size_after(SINGLE, (2, 2), (1, 1), 9, 8), size_after(SINGLE, (2, 1), (0, 1), 9, 8)
    ((5, 4), (4, 8))
    """
    if kind == POINT:
        return rows, columns
    sides = zip((rows, columns), around, steps, strict=True)
    rows, columns = (max(0, (side + 2 * zeros - 3) // step + 1) for side, zeros, step in sides)
    return rows, columns
