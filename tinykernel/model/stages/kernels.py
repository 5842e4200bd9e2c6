"""Kernels: responses of small kernels, and how often they exceed thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.hadamard import run_on_rows, useful_threads
from tinykernel.model.grid import Grid
from tinykernel.model.proof import Range
from tinykernel.model.record import limits
from tinykernel.model.stage import Stage, dot_ends, proved
from tinykernel.model.stages.counting import count_images, count_signals

#: The firmware has C for cells of images of so many columns at most.
WIDEST_CELL = 255
_MOST_COUNTS = 65536
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Kernels(Stage):
    """The stage *kernels*: counts of threshold crossings of small kernels.

    After MiniRocket (Dempster, Schmidt, Webb, KDD 2021): a count is the number of positions at
    which the response of a kernel exceeds a threshold. It takes a grid of levels f, from 0 to
    ``top``, of a signal (one column) or an image; `Levels` makes one. ``//`` rounds down.

    **1. Responses.** `padding` rows of zeros stand before and after the input. Kernel k of size
    (kh, kw) and dilation d reads channel ``channel[k]``. At every padded row ``y >= (kh -
    1) d`` and every column x, with values outside of the columns 0::

        r = sum over i, j of taps[k, i, j] * f[y - (kh - 1 - i) d, x + (j - kw // 2) d]

    Row y is the newest that the response needs, so that a stream can compute it at once.

    **2. Counts.** The positions of kernel k are cut into ``cells[0]`` by ``cells[1]`` cells: with R
    rows of positions, ``y' = y - (kh - 1) d`` is in cell ``y' * cells[0] // R``, and x in cell ``x
    // ceil(columns / cells[1])``. The count number ``(k * cells[0] + cell of y) * cells[1] + cell
    of x`` is the number of positions there with ``r > threshold[k]``.

    It gives a table of counts: uint8, or uint16 where a cell has more than 255 positions.

    >>> taps = np.array([[[0, 0, 0], [-1, 1, 0], [0, 0, 0]]])  # brighter than the left neighbour
    >>> kernels = Kernels(taps, dilation=[1], channel=[0], threshold=[0], cells=(1, 2), padding=1)
    >>> image = np.array([[0, 5, 5, 12, 0, 0, 0, 0, 1, 1, 0, 0]], dtype=np.uint8)  # 3 rows of 4
    >>> kernels.run(image, Grid(3, 4, 1, "uint8", 0, 15)).tolist()
    [[2, 1]]
    """

    KIND = "kernels"
    TAKES = ("levels",)
    GIVES = "counts"
    OWNER = "kernels"

    # (n_kernels, kh, kw). Images: -1, 0, 1, kh and kw odd and at most 7, no kernel all 0. Signals:
    # kh is 9 and kw 1, with three 2 and six -1 (MiniRocket), nine 1, or a 1 for the newest sample.
    taps: NDArray[np.int8] = field(metadata=limits(None, None, "kernels", None, None))
    dilation: NDArray[np.uint8] = field(metadata=limits(1, 255, "kernels"))
    channel: NDArray[np.uint8] = field(metadata=limits(0, 255, "kernels"))
    threshold: NDArray[np.int32] = field(metadata=limits(None, None, "kernels"))
    cells: tuple[int, int]  # the second is 1 for signals and 1, 2 or 4 for images
    # rows of zeros before and after; 0 for signals
    padding: int = field(default=0, metadata=limits(0, 255))

    def check(self) -> None:
        self._check_taps()
        if len(self.cells) != 2:
            raise self.refuse("cells is not a pair of numbers")
        down, across = self.cells
        if not 1 <= down <= 255 or across not in ((1,) if self.is_signal else (1, 2, 4)):
            raise self.refuse(f"cells is {down} by {across}; 255 by 1, 2 or 4 are the most")
        if self.is_signal and self.padding:
            raise self.refuse("a signal has no padding")
        if self.n_kernels * down * across > _MOST_COUNTS:
            raise self.refuse(f"more than {_MOST_COUNTS} counts")

    def _check_taps(self) -> None:
        """Check that every kernel is of a kind that the firmware computes."""
        flat = self.taps.reshape(self.n_kernels, -1)
        if self.is_signal:
            newest = np.zeros(9, dtype=np.int8)
            newest[-1] = 1
            known = np.all(
                (np.sort(flat, axis=1) == [-1] * 6 + [2] * 3).all(axis=1)
                | (flat == 1).all(axis=1)
                | (flat == newest).all(axis=1)
            )
        else:
            odd = self.taps.shape[1] % 2 == 1 and self.taps.shape[2] % 2 == 1
            small = max(self.taps.shape[1:]) <= 7 and np.abs(flat.astype(int)).max() <= 1
            known = odd and small and flat.any(axis=1).all()
        if not known:
            raise self.refuse("taps holds a kernel that is of no known kind")

    @property
    def is_signal(self) -> bool:
        """Whether the kernels are those of signals."""
        return self.taps.shape[1:] == (9, 1)

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return int(self.taps.shape[0])

    @property
    def n_counts(self) -> int:
        """Number of counts: kernels times cells."""
        return self.n_kernels * self.cells[0] * self.cells[1]

    def spans(self) -> NDArray[np.int64]:
        """Return how many rows before the newest each kernel reaches back, shape (n_kernels,)."""
        return np.asarray((self.taps.shape[1] - 1) * self.dilation.astype(np.int64))

    def cell_columns(self, grid: Grid) -> int:
        """Return the columns of a cell; the last one may have fewer."""
        return -(-grid.columns // self.cells[1])

    def largest_count(self, grid: Grid) -> int:
        """Return the positions of the largest cell: no count is larger."""
        positions = grid.rows + 2 * self.padding - int(self.spans().min())
        return -(-positions // self.cells[0]) * self.cell_columns(grid)

    def lane_bits(self, grid: Grid) -> int:
        """Return the width of the packed integers in C that hold any ``r - threshold``: 8 or 16."""
        # A response is stored as ``r - threshold - 1 + 2**(bits - 1)``: its top bit is ``r >
        # threshold``.
        low, high = self._margins(grid)
        return 8 if low.min() >= -128 and high.max() <= 127 else 16

    def gives(self, grid: Grid) -> Grid:
        if grid.low != 0 or self.is_signal != (grid.columns == 1):
            raise self.refuse(
                f"taps of {self.taps.shape[1]} x {self.taps.shape[2]} for {grid.title}"
            )
        if self.channel.max() >= grid.channels:
            raise self.refuse("a channel does not exist")
        span = int(self.spans().max())
        if grid.rows + 2 * self.padding - span < self.cells[0]:
            raise self.refuse(
                f"kernels of {span + 1} rows leave fewer positions than cells in {grid.rows} rows"
            )
        most = self.largest_count(grid)
        return Grid(1, 1, self.n_counts, "uint8" if most < 256 else "uint16", 0, most)

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        out = np.zeros((len(values), self.n_counts), dtype=self.gives(grid).dtype)
        positions = (grid.rows + 2 * self.padding) * grid.columns
        work = positions * int(self._tap_table[0][-1])
        seen = self.dilation.astype(np.int64), self.channel.astype(np.int64)
        kernels = *self._tap_table, *seen, self.threshold
        count = count_signals if self.is_signal else count_images
        cut = self.taps.shape[1], self.padding, *self.cells, self.cell_columns(grid)
        for first in range(0, len(values), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            level = values[part].reshape(-1, grid.rows, grid.columns, grid.channels)
            level = np.ascontiguousarray(level.transpose(0, 3, 1, 2), dtype=np.int32)
            n = level.shape[0]
            run_on_rows(count, n, useful_threads(work * n), level, kernels, cut, out[part])
        return out

    @cached_property
    def _tap_table(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Return the taps that are not 0, kernel by kernel: ends, places (rows, columns), taps."""
        k, i, j = np.nonzero(self.taps)
        places = np.stack([i - (self.taps.shape[1] - 1), j - self.taps.shape[2] // 2], axis=1)
        ends = np.searchsorted(k, np.arange(self.n_kernels + 1)).astype(np.int64)
        return ends, places.astype(np.int64), self.taps[k, i, j].astype(np.int32)

    def _responses(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the exact range of the responses of each kernel; values outside are 0."""
        return dot_ends(self.taps.reshape(self.n_kernels, -1), grid.high)

    def _margins(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the range of ``r - threshold - 1``."""
        low, high = self._responses(grid)
        above = self.threshold.astype(np.int64) + 1
        return low - above, high - above

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        low, high = self._responses(grid)
        margin_low, margin_high = self._margins(grid)
        made, bits = self.gives(grid), self.lane_bits(grid)
        half, ends = 1 << (bits - 1), (int(margin_low.min()), int(margin_high.max()))
        ranges = (
            Range("level", 0, grid.high, 0, (1 << bits) - 1),
            Range("response", int(low.min()), int(high.max()), -(1 << 31), (1 << 31) - 1),
            Range("response less threshold", *ends, -half, half - 1),
            Range("count", 0, made.high, 0, int(np.iinfo(made.dtype).max)),
        )
        return proved(ranges, self.OWNER, "use fewer levels or smaller taps")

    def work(self, grid: Grid) -> dict[str, float]:
        """Return one tap, and one comparison, a position and kernel."""
        rows = grid.rows + 2 * self.padding - self.spans()
        positions = rows * grid.columns
        taps = np.count_nonzero(self.taps, axis=(1, 2))
        return {"tap": float(positions @ taps), "compare": float(positions.sum())}
