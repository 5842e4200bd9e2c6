"""Convolutions of images: mixed ones, and separable ones of a single and a point layer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.text import count
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.layers import MIXED, POINT, SINGLE, Layer
from tinykernel.pieces.piece import Stage, prove
from tinykernel.pieces.proof import INT32_LIMIT, Range
from tinykernel.pieces.record import Matrix, limits

_VALUES_AT_ONCE = 1 << 22
_MOST_BLOCKS = 16
#: Of a block.
MOST_CHANNELS = 256
_LARGEST_BIAS = (1 << 19) - 1
#: Columns of bytes whose sum has 16 bits.
MOST_SUMMED = 257
#: Sides of patches that are pooled; of averages, for which a factor of 20 bits is exact.
MOST_POOLED, MOST_AVERAGED = 15, 8


@dataclass(frozen=True, eq=False)
class Separable(Stage):
    """The stage *separable*: a mixed layer, then blocks of a single and a point layer, or of one.

    After MobileNets (Howard et al. 2017). It takes an image of any channels, uint8 from 0 up; f is
    the input of a layer, with zeros around it, or `border` around the image. ``>>`` rounds down.
    At row y and column x of every stride-th position, with w the weights of channel c::

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
    ``(sum of a channel over all positions) * (65536 // n) >> 16``. If `flat`, it gives that image.

    A row of `forms` says of a block other than these: whether it is one mixed layer, whether zeros
    are around its input (without them ``y + i`` and ``x + j`` are read), the rows p and the columns
    q of patches side by side, and whether a mean or the largest value of g replaces each. The mean
    is the sum over the rows r of a patch of ``(their sum + r * q + q // 2) // (p * q)``.

    >>> weights = np.zeros((1, 3, 3, 1), np.int8)
    >>> weights[0, 1, 1, 0] = 3
    >>> stage = Separable([1], [1], 1, weights.ravel(), [1], [1], [1])
    >>> stage.run(np.array([[5, 6, 1, 0]], dtype=np.uint8), Grid(2, 2, 1, "uint8", 0, 15)).tolist()
    [[4]]
    """

    KIND = "separable"
    TAKES = ("levels",)
    GIVES = "units"
    NAMES = True

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
    # of blocks of an image: mixed, zeros, rows and columns of patches, mean
    forms: Matrix[np.uint8] | None = field(
        default=None, metadata=limits(0, MOST_POOLED, "blocks", 5)
    )
    flat: bool = field(default=False, metadata={"later": True})
    border: int = field(default=0, metadata=limits(0, 255) | {"later": True})

    def check(self) -> None:
        if self.channels.size > _MOST_BLOCKS:
            raise self.refuse(f"{self.channels.size} blocks, allowed are 1..{_MOST_BLOCKS}")
        if self.forms is not None:
            flags, pools = self.forms[:, [0, 1, 4]], self.forms[:, 2:4]
            most = np.where(self.forms[:, 4:] > 0, MOST_AVERAGED, MOST_POOLED)
            if flags.max() > 1 or not flags[0, 0] or np.any((pools < 1) | (pools > most)):
                raise self.refuse("forms hold no forms of blocks, the first of which is mixed")
        if self.row_strides is not None and (self.forms is not None or self.flat or self.border):
            raise self.refuse("a stream has no forms of blocks, border or flat image")
        shapes = [shape for block in self._shapes() for _, shape in block]
        units, weights = sum(shape[0] for shape in shapes), sum(map(prod, shapes))
        self.require_shape("weights", (weights,))
        self.require_shape("biases", (units,))

    @property
    def step(self) -> int:
        return 1 if self.row_strides is None else int(np.prod(self.row_strides))

    @property
    def block_forms(self) -> list[list[int]]:
        """The forms of all blocks, also of those that are as usual."""
        if self.forms is not None:
            return [list(map(int, form)) for form in self.forms]
        return [[int(block == 0), 1, 1, 1, 0] for block in range(self.channels.size)]

    def _shapes(self) -> list[list[tuple[str, tuple[int, ...]]]]:
        """Return kind and shape of the weights of each layer, by block."""
        sides = pairwise([self.given, *map(int, self.channels)])
        return [
            [(MIXED, (after, 3, 3, before))]
            if form[0]
            else [(SINGLE, (before, 3, 3)), (POINT, (after, before))]
            for (before, after), form in zip(sides, self.block_forms, strict=True)
        ]

    @property
    def blocks(self) -> list[list[Layer]]:
        """The layers of each block."""
        blocks, weight, unit = list[list[Layer]](), 0, 0
        rows = self.strides if self.row_strides is None else self.row_strides
        steps = list(zip(rows.tolist(), self.strides.tolist(), strict=True))
        shapes = zip(self._shapes(), self.block_forms, steps, strict=True)
        for shapes_of, (_, zeros, high, wide, averages), step in shapes:
            layers, around = [], (zeros if self.row_strides is None else 0, zeros)
            for kind, shape in shapes_of:
                weights = self.weights[weight : weight + prod(shape)].reshape(shape)
                units = slice(unit, unit + shape[0])
                parts = self.biases[units], self.multipliers[units], self.shifts[units]
                pool = ((1, 1), False) if kind == SINGLE else ((high, wide), bool(averages))
                layers.append(Layer(kind, step, around, weights, *parts, *pool))
                weight, unit = weight + prod(shape), unit + shape[0]
            blocks.append(layers)
        if self.border:
            blocks[0] = [replace(blocks[0][0], border=self.border)]
        return blocks

    @property
    def layers(self) -> list[Layer]:
        """All layers, in their order."""
        return [layer for block in self.blocks for layer in block]

    @property
    def streams(self) -> bool:
        return self.row_strides is not None

    @property
    def title(self) -> str:
        kind = "" if all(form[0] for form in self.block_forms) else "separable "
        streams = " that stream" * (self.row_strides is not None)
        blocks = f"{count(self.channels.size, 'block')} of {kind}convolutions{streams}"
        return f"{blocks}, {self.channels[-1]} channels"

    def sizes(self, grid: Grid) -> list[tuple[int, int]]:
        """Return the rows and columns after each layer."""
        sizes, size = [], (grid.rows, grid.columns)
        for layer in self.layers:
            size = layer.size(*size)
            sizes.append(size)
        return sizes

    def largest_step(self, grid: Grid, of_all: bool) -> int:
        """Return the products of a row of the largest block, or of a row of all blocks."""
        columns, blocks = [columns for _, columns in self.sizes(grid)], list[int]()
        for layers in self.blocks:
            blocks.append(sum(columns.pop(0) * layer.weights.size for layer in layers))
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
        if grid.columns < 2 or min(grid.rows - 1, *map(min, sizes)) < 1 or prod(sizes[-1]) > 65536:
            raise self.refuse("takes an image, of which 1 to 65536 positions are left")
        if self.row_strides is not None and sizes[-1][1] > MOST_SUMMED:
            raise self.refuse(f"at most {MOST_SUMMED} columns of a stream may be left")
        shape = sizes[-1] if self.flat else (1, 1)
        return Grid(*shape, int(self.channels[-1]), "uint8", 0, max(1, self._ends(grid)[-1][2]))

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        out = np.empty((len(values), self.gives(grid).size), dtype=np.uint8)
        at_once = max(1, _VALUES_AT_ONCE // (grid.rows * grid.columns * int(max(self.channels))))
        for first in range(0, len(values), at_once):
            part = values[first : first + at_once]
            maps = self._maps(part.reshape(-1, grid.rows, grid.columns, grid.channels))
            if self.flat:
                out[first : first + at_once] = maps.reshape(len(part), -1)
                continue
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
            maps = layer.run(maps)
        return maps

    def _ends(self, grid: Grid) -> list[tuple[int, int, int]]:
        """Return of each layer the least and largest ``a * multiplier``, and the largest value."""
        highs = np.full(self.given, max(grid.high, self.border), dtype=np.int64)
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
        return prove(ranges, self.OWNER, "use smaller multipliers")

    def work(self, grid: Grid) -> dict[str, float]:
        """Return products by the kind of layer, units, what is laid out for them, and rows.

        Patches are left out: their values take far less than the sums.
        """
        work, size = defaultdict[str, float](float), (grid.rows, grid.columns)
        for layer in self.layers:
            (rows, columns), size = layer.summed(*size), layer.size(*size)
            work[f"{layer.kind} product"] += rows * columns * layer.weights.size
            work["unit"] += rows * columns * layer.biases.size
            work["row"] += rows
            work["position"] += rows * columns
            if layer.kind == MIXED:
                work["neighbour"] += rows * columns * layer.weights[0].size
        return dict(work)
