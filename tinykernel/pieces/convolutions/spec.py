"""Convolutions: chains of 3 x 3 kernels, one chain a channel, of an image of levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.text import count
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage, dot_ends
from tinykernel.pieces.proof import INT32_LIMIT, Range
from tinykernel.pieces.record import Matrix, limits

_VALUES_AT_ONCE = 1 << 22
_MOST_LAYERS = 8
#: Of a layer.
MOST_CHANNELS = 256
_LARGEST_BIAS = 1 << 24


@dataclass(frozen=True, eq=False)
class Convolutions(Stage):
    """The stage *convolutions*: layers of 3 x 3 kernels that do not mix channels.

    After the networks for small processors of BitNetMCU (T. Boescke, 2024). It takes an image of
    one channel of levels, uint8 from 0 up, with `padding` zeros around it. Each channel c is a
    separate chain: it begins with that image, and each layer l makes a smaller map of the one
    before it, f. ``>>`` rounds down. At every row y and column x where the kernel is inside of f::

        a = biases[l, c] + sum over i, j of weights[l, c, i, j] * f[y + i, x + j]
        g[y, x] = min(max(a >> shifts[l], 0), 255)

    With ``pools[l]`` the largest of two by two neighbours of g replaces them; a last odd row
    or column is left out. It gives the last maps, uint8, as an image with as many channels.

    >>> weights = np.array([[[[0, 0, 0], [-1, 2, 0], [0, 0, 0]]]])
    >>> convolutions = Convolutions(weights, biases=[[3]], shifts=[1], pools=[False])
    >>> image = np.array([[0, 0, 0, 0, 5, 6, 1, 0, 0, 0, 0, 0]], dtype=np.uint8)  # 3 rows of 4
    >>> convolutions.run(image, Grid(3, 4, 1, "uint8", 0, 15)).tolist()
    [[5, 0]]
    """

    KIND = "convolutions"
    TAKES = ("levels",)
    GIVES = "maps"
    NAMES = True

    # the firmware stores -8..7 in 4 bits
    weights: NDArray[np.int8] = field(metadata=limits(-127, 127, "layers", "channels", 3, 3))
    biases: Matrix[np.int32] = field(
        metadata=limits(-_LARGEST_BIAS, _LARGEST_BIAS, "layers", "channels")
    )
    shifts: NDArray[np.uint8] = field(metadata=limits(0, 15, "layers"))
    pools: NDArray[np.bool_] = field(metadata=limits(None, None, "layers"))
    padding: int = field(default=0, metadata=limits(0, 1))

    def check(self) -> None:
        layers, channels = self.weights.shape[:2]
        if layers > _MOST_LAYERS or channels > MOST_CHANNELS:
            raise self.refuse(f"{layers} layers of {channels} channels; 8 of 256 are the most")

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return int(self.weights.shape[1])

    @property
    def title(self) -> str:
        return f"{self.n_channels} channels of {count(self.pools.size, 'convolution')}"

    def sizes(self, grid: Grid) -> list[tuple[int, int]]:
        """Return the rows and columns after each layer, before its pooling; at least 1 each."""
        sizes, around = [], 2 * self.padding
        rows, columns = grid.rows + around, grid.columns + around
        for pool in self.pools:
            rows, columns = rows - 2, columns - 2
            if min(rows, columns) < 1 + pool:
                raise self.refuse(
                    f"an image of {grid.rows} x {grid.columns} is too small for "
                    f"{self.pools.size} layers"
                )
            sizes.append((rows, columns))
            rows, columns = rows >> pool, columns >> pool
        return sizes

    def gives(self, grid: Grid) -> Grid:
        if grid.channels != 1 or grid.dtype != "uint8" or grid.low != 0 or grid.columns < 2:
            raise self.refuse(f"takes one channel of uint8, not {grid.channels} of {grid.dtype}")
        rows, columns = (side >> self.pools[-1] for side in self.sizes(grid)[-1])
        high = max(1, int(self._highs(grid)[-1].max()))
        return Grid(int(rows), int(columns), self.n_channels, "uint8", 0, high)

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        out = np.empty((len(values), self.gives(grid).size), dtype=np.uint8)
        at_once = max(1, _VALUES_AT_ONCE // (grid.size * self.n_channels))
        for first in range(0, len(values), at_once):
            part = values[first : first + at_once]
            maps = part.reshape(-1, 1, grid.rows, grid.columns)
            maps = np.pad(maps, ((0, 0), (0, 0), *[(self.padding, self.padding)] * 2))
            for layer, pool in enumerate(self.pools):
                maps = self._values(maps, layer)
                maps = pooled(maps) if pool else maps
            out[first : first + at_once] = maps.transpose(0, 2, 3, 1).reshape(len(part), -1)
        return out

    def _values(self, maps: NDArray[Any], layer: int) -> NDArray[np.uint8]:
        """Return what a layer makes of maps, shape (n, 1 or channels, rows, columns)."""
        rows, columns = maps.shape[2] - 2, maps.shape[3] - 2
        sums = np.empty((len(maps), self.n_channels, rows, columns), dtype=np.int32)
        sums[...] = self.biases[layer, :, None, None]
        for i, j in np.ndindex(3, 3):
            weights = self.weights[layer, :, i, j, None, None].astype(np.int32)
            sums += weights * maps[:, :, i : i + rows, j : j + columns]
        return np.asarray(np.clip(sums >> self.shifts[layer], 0, 255), dtype=np.uint8)

    def _responses(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and the largest response of each layer and channel."""
        high = np.full(self.n_channels, grid.high, dtype=np.int64)
        ends = []
        for weights, biases, shift in zip(self.weights, self.biases, self.shifts, strict=True):
            ends.append(biases + np.stack(dot_ends(weights.reshape(-1, 9), high)))
            high = np.clip(ends[-1][1] >> shift, 0, 255)
        low, most = np.array(ends).transpose(1, 0, 2)
        return low, most

    def _highs(self, grid: Grid) -> NDArray[np.int64]:
        """Return the largest value of the maps after each layer, shape (layers, channels)."""
        return np.asarray(np.clip(self._responses(grid)[1] >> self.shifts[:, None], 0, 255))

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        ranges = []
        for layer, (low, most) in enumerate(zip(*self._responses(grid), strict=True)):
            ends = int(low.min()), int(most.max())
            ranges.append(Range(f"response of layer {layer}", *ends, -INT32_LIMIT, INT32_LIMIT))
            high = int(self._highs(grid)[layer].max())
            ranges.append(Range(f"map of layer {layer}", 0, high, 0, 255))
        return tuple(ranges)

    def work(self, grid: Grid) -> dict[str, float]:
        """Return responses (groups of 4), pooled values, rows and layers of all channels."""
        sizes = self.sizes(grid)
        groups = [(rows, -(-columns // 4) * 4) for rows, columns in sizes]
        pooled = [
            (r >> 1) * (c >> 1) for (r, c), pool in zip(sizes, self.pools, strict=True) if pool
        ]
        work = {
            "response": sum(rows * columns for rows, columns in groups),
            "pooled value": sum(pooled),
            "row": sum(rows for rows, _ in sizes),
            "layer": len(sizes),
        }
        return {name: float(self.n_channels * number) for name, number in work.items()}


def pooled(maps: NDArray[Any]) -> NDArray[Any]:
    """Return the largest of two by two values of maps (..., rows, columns)."""
    rows, columns = maps.shape[-2] // 2, maps.shape[-1] // 2
    cut = maps[..., : 2 * rows, : 2 * columns].reshape(*maps.shape[:-2], rows, 2, columns, 2)
    return np.asarray(cut.max(axis=(-3, -1)))
