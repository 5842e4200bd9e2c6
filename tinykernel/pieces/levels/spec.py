"""Levels: raw values to a few bits; of signals and images averaged, their channels mixed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.proof import Range
from tinykernel.pieces.record import Matrix, limits
from tinykernel.pieces.scale.spec import Scale


@dataclass(frozen=True, eq=False)
class Levels(Stage):
    """The stage *levels*: the input of kernels, integers from 0 to `top`.

    It takes a signal (one column), an image, or a table (whose values are channels) of raw values.
    ``>>`` rounds down.

    **1. Levels.** ``e = (q + 2**(bits - 1)) >> level_shift`` where q is what `scaler` makes of a
    raw value. So e is in ``0..top``, ``top = 2**(bits - level_shift) - 1``.

    **2. Averaging.** With `average` 2, two by two neighbours become ``(e + e + e + e) >> 2``, two
    samples of a signal ``(e + e) >> 1``; a last odd row or column is left out.

    **3. Channels.** Mixed channel m has ``f_mc = e_c`` where ``mix[m, c] == 1`` and ``top - e_c``
    where it is -1; with one such term it is that, with two ``(f + f) >> 1``.

    It gives a grid of the averaged rows and columns, with one channel a row of `mix`.

    >>> levels = Levels(Scale("uint8", 8, [0], [65536], [255]), 4, 2, [[1], [-1]])
    >>> image = np.array([[16, 32, 0, 0, 48, 64, 255, 255]], dtype=np.uint8)  # 2 rows of 4
    >>> levels.run(image, Grid.raw("uint8", 2, 4)).tolist()  # for each position both channels
    [[2, 13, 7, 8]]
    """

    KIND = "levels"
    TAKES = ("samples", "rows", "image")
    GIVES = "levels"

    scaler: Scale  # one entry a channel in each array, or one for all; none constant
    level_shift: int
    average: int = field(metadata=limits(1, 2))
    # (n_mixed, channels); one or two entries of a row are not 0
    mix: Matrix[np.int8] = field(metadata=limits(-1, 1))

    def check(self) -> None:
        self.require("level_shift", 0, self.scaler.bits - 1)
        channels = self.mix.shape[1]
        most = 64 if np.any(self.mix != np.eye(*self.mix.shape)) else 1024
        if channels > most:
            raise self.refuse(f"{channels} channels; {most} are the most")
        if any(array.shape[0] not in (1, channels) for array in self.scaler.arrays.values()):
            raise self.refuse(f"scaler does not fit {channels} channels")
        if np.any(self.scaler.multiplier == 0):
            raise self.refuse("a channel is constant; leave it out")
        terms = np.count_nonzero(self.mix, axis=1)
        if terms.min() < 1 or terms.max() > 2:
            raise self.refuse("mix has one or two entries of +-1 in each row")

    @property
    def step(self) -> int:
        return self.average

    def check_stream(self, grid: Grid) -> None:
        if grid.rows % self.average:
            raise self.refuse("the rows of a window are not a multiple of the averaging")

    @property
    def raw_scaler(self) -> Scale:
        return self.scaler

    def calls(self, grid: Grid) -> int:
        """Return the samples of a level, over which its kernels are counted; see `Stage`."""
        return min(self.average, 2)

    @property
    def top(self) -> int:
        """Largest level."""
        return int((1 << (self.scaler.bits - self.level_shift)) - 1)

    def gives(self, grid: Grid) -> Grid:
        if grid.dtype != self.scaler.raw_dtype or grid.channels != self.mix.shape[1]:
            raise self.refuse(
                f"the scaler takes {self.mix.shape[1]} channels of {self.scaler.raw_dtype}, not "
                f"{grid.channels} of {grid.dtype}"
            )
        is_signal = grid.columns == 1
        columns = 1 if is_signal else grid.columns // self.average
        rows = grid.rows // self.average
        if rows < 1 or columns < (1 if is_signal else 2):
            raise self.refuse("the input is too small to average")
        if grid.rows > 65535 or grid.columns > 4096 or grid.size > 65536:
            raise self.refuse("an input has more than 65536 values, 65535 rows or 4096 columns")
        dtype = "uint8" if self.top < 256 else "uint16"
        return Grid(rows, columns, self.mix.shape[0], dtype, 0, self.top)

    def run(self, values: NDArray[np.generic], grid: Grid) -> NDArray[np.generic]:
        made = self.gives(grid)
        half = 1 << (self.scaler.bits - 1)
        by_channel = values.reshape(-1, grid.channels)
        level = (self.scaler.quantize(by_channel).astype(np.int32) + half) >> self.level_shift
        level = level.reshape(-1, grid.rows, grid.columns, grid.channels)
        if self.average == 2:
            level = level[:, : 2 * made.rows]
            level = level[:, ::2] + level[:, 1::2]
            if grid.columns > 1:
                level = level[:, :, : 2 * made.columns]
                level = level[:, :, ::2] + level[:, :, 1::2]
            level >>= 1 if grid.columns == 1 else 2
        mixed = np.stack([self._mix(level, row) for row in self.mix], axis=-1)
        return mixed.reshape(len(values), made.size).astype(made.dtype)

    def _mix(self, level: NDArray[np.int32], mix: NDArray[np.int8]) -> NDArray[np.int32]:
        used = np.flatnonzero(mix)
        terms = [level[..., c] if mix[c] > 0 else self.top - level[..., c] for c in used]
        return terms[0] if len(terms) == 1 else (terms[0] + terms[1]) >> 1

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        """Return none: no sum of levels is above ``4 * top``, and kernels bound their lanes."""
        return ()
