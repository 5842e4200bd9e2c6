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
#: Columns of bytes whose sum has 16 bits.
MOST_SUMMED = 257
MIXED, SINGLE, POINT = "mixed", "single", "point"


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of `Separable`."""

    kind: str  # "mixed", "single" or "point"
    steps: tuple[int, int]  # strides of rows and of columns
    above: int  # rows of zeros above and below: 1, or 0 in a stream
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

    With `row_strides` the rows are time: these are the strides of rows, and `strides` those of
    columns. No zeros are above and below: ``y + i`` takes the place of ``y + i - 1``, so that a row
    depends on the input rows ``y .. y + 2`` alone. A stream computes each row of each block once,
    however many windows it lies in; its state are three rows of each block, and the sums of as many
    last rows as a window has.

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
    # of a stream
    row_strides: NDArray[np.uint8] | None = field(default=None, metadata=limits(1, 2, "blocks"))

    def check(self) -> None:
        if self.channels.size > _MOST_BLOCKS:
            raise self.refuse(f"{self.channels.size} blocks, allowed are 1..{_MOST_BLOCKS}")
        shapes = [shape for _, _, shape in self._shapes()]
        units, weights = sum(shape[0] for shape in shapes), sum(map(prod, shapes))
        self.require_shape("weights", (weights,))
        self.require_shape("biases", (units,))

    @property
    def step(self) -> int:
        return 1 if self.row_strides is None else int(np.prod(self.row_strides))

    def _shapes(self) -> Iterator[tuple[str, tuple[int, int], tuple[int, ...]]]:
        """Yield kind, strides and shape of the weights of each layer."""
        numbers = [self.given, *map(int, self.channels)]
        rows = self.strides if self.row_strides is None else self.row_strides
        steps = list(zip(rows.tolist(), self.strides.tolist(), strict=True))
        yield MIXED, steps[0], (numbers[1], 3, 3, numbers[0])
        for block in range(1, len(self.channels)):
            yield SINGLE, steps[block], (numbers[block], 3, 3)
            yield POINT, (1, 1), (numbers[block + 1], numbers[block])

    @property
    def layers(self) -> list[Layer]:
        """All layers, in their order."""
        layers, weight, unit = [], 0, 0
        for kind, steps, shape in self._shapes():
            weights = self.weights[weight : weight + prod(shape)].reshape(shape)
            units = slice(unit, unit + shape[0])
            parts = self.biases[units], self.multipliers[units], self.shifts[units]
            layers.append(Layer(kind, steps, int(self.row_strides is None), weights, *parts))
            weight, unit = weight + prod(shape), unit + shape[0]
        return layers

    @property
    def title(self) -> str:
        return (
            f"{self.channels.size} blocks of separable convolutions, {self.channels[-1]} channels"
        )

    def sizes(self, grid: Grid) -> list[tuple[int, int]]:
        """Return the rows and columns after each layer."""
        sizes, size = [], (grid.rows, grid.columns)
        for layer in self.layers:
            size = size_after(layer.kind, layer.steps, layer.above, *size)
            sizes.append(size)
        return sizes

    def largest_step(self, grid: Grid, of_all: bool) -> int:
        """Return the products of a row of the largest block, or of a row of all blocks."""
        layers = zip(self.layers, self.sizes(grid), strict=True)
        products = [columns * layer.weights.size for layer, (_, columns) in layers]
        blocks = [products[0], *map(sum, zip(products[1::2], products[2::2], strict=True))]
        return (sum if of_all else max)(blocks)

    def factor(self, grid: Grid) -> int:
        """Return the multiplier of the sum of all positions, over 65536."""
        rows, columns = self.sizes(grid)[-1]
        return 65536 // (rows * columns)

    def gives(self, grid: Grid) -> Grid:
        if grid.channels != self.given or grid.dtype != "uint8" or grid.low != 0:
            raise self.refuse(
                f"takes {self.given} channels of uint8, not {grid.channels} of {grid.dtype}"
            )
        sizes = [(grid.rows, grid.columns), *self.sizes(grid)]
        if grid.columns < 2 or min(grid.rows - 1, *map(min, sizes)) < 1 or self.factor(grid) < 1:
            raise self.refuse("takes an image, of which 1 to 65536 positions are left")
        if self.row_strides is not None and sizes[-1][1] > MOST_SUMMED:
            raise self.refuse(f"at most {MOST_SUMMED} columns of a stream may be left")
        return Grid(1, 1, int(self.channels[-1]), "uint8", 0, max(1, self._ends(grid)[-1][2]))

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        out = np.empty((len(values), self.gives(grid).size), dtype=np.uint8)
        at_once = max(1, _VALUES_AT_ONCE // (grid.rows * grid.columns * int(max(self.channels))))
        for first in range(0, len(values), at_once):
            part = values[first : first + at_once]
            maps = self._maps(part.reshape(-1, grid.rows, grid.columns, grid.channels))
            sums = maps.sum(axis=(1, 2), dtype=np.int64)
            out[first : first + at_once] = sums * self.factor(grid) >> 16
        return out

    def run_windows(self, rows: NDArray[Any], grid: Grid, hop: int) -> NDArray[Any]:
        """Run on all windows of a stream; each row of a block is computed once if it streams."""
        if self.row_strides is None:
            return super().run_windows(rows, grid, hop)
        maps = self._maps(rows.reshape(1, -1, grid.columns, grid.channels))
        sums = maps[0].sum(axis=1, dtype=np.int64)
        sums = np.cumsum(np.vstack([0 * sums[:1], sums]), axis=0)
        window, apart = self.sizes(grid)[-1][0], hop // self.step
        sums = sums[window::apart] - sums[:-window:apart]
        means: NDArray[np.uint8] = (sums * self.factor(grid) >> 16).astype(np.uint8)
        return means

    def _maps(self, maps: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the output of the last layer for images (n, rows, columns, channels)."""
        for layer in self.layers:
            maps = values_of(layer, maps)
        return maps

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


def size_after(
    kind: str, steps: tuple[int, int], above: int, rows: int, columns: int
) -> tuple[int, int]:
    """Return the rows and columns that a layer makes of others; none where there are too few.

    >>> size_after(SINGLE, (2, 2), 1, 9, 8), size_after(SINGLE, (2, 1), 0, 9, 8)
    ((5, 4), (4, 8))
    """
    if kind == POINT:
        return rows, columns
    return max(0, (rows + 2 * above - 3) // steps[0] + 1), -(-columns // steps[1])


def values_of(layer: Layer, maps: NDArray[Any]) -> NDArray[np.uint8]:
    """Return what a layer makes of images (n, rows, columns, channels)."""
    (down, across), n = layer.steps, len(layer.biases)
    # Whole numbers below 2**24 or 2**53, whatever the order of additions.
    largest = 255 * int(np.abs(layer.weights.astype(np.int64)).reshape(n, -1).sum(axis=1).max())
    exact: type[np.floating[Any]] = np.float32 if largest < 1 << 24 else np.float64
    weights = layer.weights.astype(exact)
    if layer.kind == POINT:
        total = maps.astype(exact) @ weights.T
    else:
        high, wide = size_after(layer.kind, layer.steps, layer.above, *maps.shape[1:3])
        around = (layer.above, layer.above)
        padded = np.pad(maps, ((0, 0), around, (1, 1), (0, 0))).astype(exact)
        total = np.zeros((len(maps), high, wide, n), exact)
        for i, j in np.ndindex(3, 3):
            seen = padded[:, i::down, j::across][:, :high, :wide]
            part = weights[:, i, j]
            total += seen @ part.T if layer.kind == MIXED else seen * part
    kind = np.int32 if exact is np.float32 else np.int64
    products: NDArray[Any] = total.astype(kind)
    # `ranges` proves that products have 31 bits.
    np.add(products, layer.biases, out=products)
    np.multiply(products, layer.multipliers, out=products)
    np.right_shift(products, layer.shifts, out=products)
    return np.clip(products, 0, 255, out=products).astype(np.uint8)
