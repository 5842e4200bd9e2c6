"""Separable convolutions: 3 x 3 kernels of each channel, and sums that mix the channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.grid import Grid
from tinykernel.model.proof import INT32_LIMIT, Range
from tinykernel.model.record import limits
from tinykernel.model.stage import Stage, proved

_VALUES_AT_ONCE = 1 << 22
_MOST_BLOCKS = 16
#: Of a block.
MOST_CHANNELS = 256
_LARGEST_BIAS = (1 << 19) - 1
MIXED, SINGLE, POINT = "mixed", "single", "point"


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of `Separable`."""

    kind: str  # "mixed", "single" or "point"
    stride: int
    # (channels, 3, 3, channels before), (channels, 3, 3) or (channels, channels before)
    weights: NDArray[np.int8]
    biases: NDArray[np.int32]  # (channels,), as multipliers and shifts
    multipliers: NDArray[np.uint8]
    shifts: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Separable(Stage):
    """The stage *separable*: a mixed layer, then blocks of a single and a point layer.

    After MobileNets (Howard et al. 2017). It takes an image of any channels, uint8 from 0 up; f is
    the input of a layer, with zeros around it. ``>>`` rounds down. At row y and column x of every
    stride-th position, with w the weights of channel c::

        mixed   a = biases[c] + sum over i, j, d of w[i, j, d] * f[y + i - 1, x + j - 1, d]
        single  a = biases[c] + sum over i, j of w[i, j] * f[y + i - 1, x + j - 1, c]
        point   a = biases[c] + sum over d of w[d] * f[y, x, d]

        g[y, x, c] = min(max((a * multipliers[c]) >> shifts[c], 0), 255)

    Block 0 is the mixed layer. Each block after it has a single layer, which has the stride of the
    block, and a point layer. Weights, biases, multipliers and shifts hold the layers one after the
    other. It gives a table of channels: with n positions of the last image
    ``(sum of a channel over all positions) * (65536 // n) >> 16``.

    >>> weights = np.zeros((1, 3, 3, 1), np.int8)
    >>> weights[0, 1, 1, 0] = 3
    >>> stage = Separable([1], [1], 1, weights.ravel(), [1], [1], [1])
    >>> stage.run(np.array([[5, 6, 1, 0]], dtype=np.uint8), Grid(2, 2, 1, "uint8", 0, 15)).tolist()
    [[4]]
    """

    KIND = "separable"
    TAKES = ("levels",)
    GIVES = "units"

    # outputs of each block
    channels: NDArray[np.uint16] = field(metadata=limits(1, MOST_CHANNELS, "blocks"))
    strides: NDArray[np.uint8] = field(metadata=limits(1, 2, "blocks"))
    given: int = field(metadata=limits(1, MOST_CHANNELS))  # channels of the image
    weights: NDArray[np.int8] = field(metadata=limits(-127, 127))
    biases: NDArray[np.int32] = field(metadata=limits(-_LARGEST_BIAS, _LARGEST_BIAS, "units"))
    multipliers: NDArray[np.uint8] = field(metadata=limits(0, 127, "units"))
    shifts: NDArray[np.uint8] = field(metadata=limits(0, 24, "units"))

    def check(self) -> None:
        if self.channels.size > _MOST_BLOCKS:
            raise self.refuse(f"{self.channels.size} blocks, allowed are 1..{_MOST_BLOCKS}")
        shapes = list(self._shapes())
        units, weights = sum(s[0] for _, _, s in shapes), sum(prod(s) for _, _, s in shapes)
        self.require_shape("weights", (weights,))
        self.require_shape("biases", (units,))

    def _shapes(self) -> Iterator[tuple[str, int, tuple[int, ...]]]:
        """Yield kind, stride and shape of the weights of each layer."""
        numbers = [self.given, *map(int, self.channels)]
        yield MIXED, int(self.strides[0]), (numbers[1], 3, 3, numbers[0])
        for block in range(1, len(self.channels)):
            yield SINGLE, int(self.strides[block]), (numbers[block], 3, 3)
            yield POINT, 1, (numbers[block + 1], numbers[block])

    @property
    def layers(self) -> list[Layer]:
        """All layers, in their order."""
        layers, weight, unit = [], 0, 0
        for kind, stride, shape in self._shapes():
            weights = self.weights[weight : weight + prod(shape)].reshape(shape)
            units = slice(unit, unit + shape[0])
            parts = self.biases[units], self.multipliers[units], self.shifts[units]
            layers.append(Layer(kind, stride, weights, *parts))
            weight, unit = weight + prod(shape), unit + shape[0]
        return layers

    @property
    def title(self) -> str:
        return (
            f"{self.channels.size} blocks of separable convolutions, {self.channels[-1]} channels"
        )

    def sizes(self, grid: Grid) -> list[tuple[int, int]]:
        """Return the rows and columns after each layer."""
        sizes, rows, columns = [], grid.rows, grid.columns
        for _, stride, _ in self._shapes():
            rows, columns = -(-rows // stride), -(-columns // stride)
            sizes.append((rows, columns))
        return sizes

    def factor(self, grid: Grid) -> int:
        """Return the multiplier of the sum of all positions, over 65536."""
        rows, columns = self.sizes(grid)[-1]
        return 65536 // (rows * columns)

    def gives(self, grid: Grid) -> Grid:
        if grid.channels != self.given or grid.dtype != "uint8" or grid.low != 0:
            raise self.refuse(
                f"takes {self.given} channels of uint8, not {grid.channels} of {grid.dtype}"
            )
        if grid.columns < 2 or grid.rows < 2 or self.factor(grid) < 1:
            raise self.refuse("takes an image, of which at most 65536 positions are left")
        return Grid(1, 1, int(self.channels[-1]), "uint8", 0, max(1, self._ends(grid)[-1][2]))

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        out = np.empty((len(values), self.gives(grid).size), dtype=np.uint8)
        at_once = max(1, _VALUES_AT_ONCE // (grid.rows * grid.columns * int(max(self.channels))))
        for first in range(0, len(values), at_once):
            maps = values[first : first + at_once]
            maps = maps.reshape(-1, grid.rows, grid.columns, grid.channels)
            for layer in self.layers:
                maps = _values(layer, maps)
            sums = maps.sum(axis=(1, 2), dtype=np.int64)
            out[first : first + at_once] = sums * self.factor(grid) >> 16
        return out

    def _ends(self, grid: Grid) -> list[tuple[int, int, int]]:
        """Return of each layer the least and largest ``a * multiplier``, and the largest value."""
        highs = np.full(self.given, grid.high, dtype=np.int64)
        ends = []
        for layer in self.layers:
            n = len(layer.weights)
            flat = layer.weights.astype(np.int64)
            high = highs[:, None, None] if layer.kind == SINGLE else highs
            multiplier = layer.multipliers.astype(np.int64)
            low, most = (
                (layer.biases + (end(flat, 0) * high).reshape(n, -1).sum(axis=1)) * multiplier
                for end in (np.minimum, np.maximum)
            )
            highs = np.clip(most >> layer.shifts, 0, 255)
            ends.append((int(low.min()), int(most.max()), int(highs.max())))
        return ends

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        ranges = []
        for number, (low, most, high) in enumerate(self._ends(grid)):
            ranges.append(Range(f"product of layer {number}", low, most, -INT32_LIMIT, INT32_LIMIT))
            ranges.append(Range(f"map of layer {number}", 0, high, 0, 255))
        return proved(ranges, self.OWNER, "use smaller multipliers")

    def work(self, grid: Grid) -> dict[str, float]:
        """Return products by the kind of layer, units, what is laid out for them, and rows."""
        work: dict[str, float] = {}
        for layer, (rows, columns) in zip(self.layers, self.sizes(grid), strict=True):
            name = f"{layer.kind} product"
            work[name] = work.get(name, 0.0) + rows * columns * layer.weights.size
            work["unit"] = work.get("unit", 0.0) + rows * columns * layer.biases.size
            work["row"] = work.get("row", 0.0) + rows
            work["position"] = work.get("position", 0.0) + rows * columns
            if layer.kind == MIXED:
                work["neighbour"] = float(rows * columns * layer.weights[0].size)
        return work


def _values(layer: Layer, maps: NDArray[Any]) -> NDArray[np.uint8]:
    """Return what a layer makes of images (n, rows, columns, channels)."""
    stride, n = layer.stride, len(layer.biases)
    # Whole numbers below 2**24 or 2**53, whatever the order of additions.
    largest = 255 * int(np.abs(layer.weights.astype(np.int64)).reshape(n, -1).sum(axis=1).max())
    exact: type[np.floating[Any]] = np.float32 if largest < 1 << 24 else np.float64
    weights = layer.weights.astype(exact)
    if layer.kind == POINT:
        total = maps.astype(exact) @ weights.T
    else:
        rows, columns = maps.shape[1:3]
        padded = np.pad(maps, ((0, 0), (1, 1), (1, 1), (0, 0))).astype(exact)
        high, wide = -(-rows // stride), -(-columns // stride)
        total = np.zeros((len(maps), high, wide, n), exact)
        for i, j in np.ndindex(3, 3):
            seen = padded[:, i : i + rows : stride, j : j + columns : stride]
            part = weights[:, i, j]
            total += seen @ part.T if layer.kind == MIXED else seen * part
    kind = np.int32 if exact is np.float32 else np.int64
    products: NDArray[Any] = total.astype(kind)
    # `ranges` proves that products have 31 bits.
    np.add(products, layer.biases, out=products)
    np.multiply(products, layer.multipliers, out=products)
    np.right_shift(products, layer.shifts, out=products)
    return np.clip(products, 0, 255, out=products).astype(np.uint8)
