"""Kernels: responses of small kernels, and how often they exceed thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import njit
from tinykernel.base.hadamard import run_on_rows, useful_threads
from tinykernel.base.text import count
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage, dot_ends, prove
from tinykernel.pieces.proof import Range
from tinykernel.pieces.record import limits

_MOST_COUNTS = 65536
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Kernels(Stage):
    """The stage *kernels*: counts of threshold crossings of small kernels.

    After MiniRocket (Dempster, Schmidt, Webb, KDD 2021): a count is the number of positions at
    which the response of a kernel exceeds a threshold. It takes a signal of levels f, from 0 to
    ``top``; `Levels` makes one. ``//`` rounds down.

    **1. Responses.** Kernel k of dilation d looks at channel ``channel[k]``. At every row ``y >= 8
    d``::

        r = sum over i of taps[k, i] * f[y - (8 - i) d]

    Row y is the newest that the response needs, so that a stream can compute it at once.

    **2. Counts.** The positions of kernel k are cut into ``cells[0]`` cells: with R rows of
    positions, ``y' = y - 8 d`` is in cell ``y' * cells[0] // R``. The count number ``k * cells[0] +
    cell of y`` is the number of positions there with ``r > threshold[k]``.

    It gives a table of counts: uint8, or uint16 where a cell has more than 255 positions.

    >>> taps = np.array([[[0]] * 8 + [[1]]])  # the newest sample
    >>> kernels = Kernels(taps, dilation=[1], channel=[0], threshold=[4], cells=(2, 1))
    >>> signal = np.array([[0] * 8 + [5, 1, 6, 7]], dtype=np.uint8)
    >>> kernels.run(signal, Grid(12, 1, 1, "uint8", 0, 15)).tolist()
    [[1, 2]]
    """

    KIND = "kernels"
    TAKES = ("levels",)
    GIVES = "counts"
    NAMES = True

    # three 2 and six -1 (MiniRocket's), nine 1, or a 1 for the newest sample alone
    taps: NDArray[np.int8] = field(metadata=limits(None, None, "kernels", 9, 1))
    dilation: NDArray[np.uint8] = field(metadata=limits(1, 255, "kernels"))
    channel: NDArray[np.uint8] = field(metadata=limits(0, 255, "kernels"))
    threshold: NDArray[np.int32] = field(metadata=limits(None, None, "kernels"))
    cells: tuple[int, int]  # 1 to 255 rows of cells, and 1

    def check(self) -> None:
        """Check the kernels, as far as no grid is needed."""
        flat = self.taps.reshape(self.n_kernels, 9)
        newest = np.zeros(9, dtype=np.int8)
        newest[-1] = 1
        known = (
            (np.sort(flat, axis=1) == [-1] * 6 + [2] * 3).all(axis=1)
            | (flat == 1).all(axis=1)
            | (flat == newest).all(axis=1)
        )
        if not known.all():
            raise self.refuse("taps holds a kernel that is of no known kind")
        if len(self.cells) != 2 or not 1 <= self.cells[0] <= 255 or self.cells[1] != 1:
            raise self.refuse("cells is no pair of 1 to 255 and 1")
        if self.n_counts > _MOST_COUNTS:
            raise self.refuse(f"more than {_MOST_COUNTS} counts")

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return int(self.taps.shape[0])

    def in_words(self, view: str, inputs: str) -> str:
        return f"{count(self.n_kernels, 'kernel')} on {view}"

    @property
    def firmware_order(self) -> NDArray[np.int64]:
        kernels, cells = np.lexsort((self.channel, self.dilation)).astype(np.int64), self.cells[0]
        return np.ravel(kernels[:, None] * cells + np.arange(cells))

    def reorder(self, order: NDArray[np.int64]) -> Kernels:
        kernels = order[: self.n_counts : self.cells[0]] // self.cells[0]
        names = ("taps", "dilation", "channel", "threshold")
        return replace(self, **{name: getattr(self, name)[kernels] for name in names})

    @property
    def n_counts(self) -> int:
        """Number of counts: kernels times cells."""
        return self.n_kernels * self.cells[0]

    def spans(self) -> NDArray[np.int64]:
        """Return how many rows before the newest each kernel reaches back, shape (n_kernels,)."""
        rows: NDArray[np.int64] = 8 * self.dilation.astype(np.int64)
        return rows

    def largest_count(self, grid: Grid) -> int:
        """Return the positions of the largest cell: no count is larger."""
        return -(-(grid.rows - int(self.spans().min())) // self.cells[0])

    def gives(self, grid: Grid) -> Grid:
        if grid.low != 0 or grid.columns != 1:
            raise self.refuse(f"takes a signal, not {grid.title}")
        if self.channel.max() >= grid.channels:
            raise self.refuse("a channel does not exist")
        span = int(self.spans().max())
        if grid.rows - span < self.cells[0]:
            raise self.refuse(
                f"kernels of {span + 1} rows leave fewer positions than cells in {grid.rows} rows"
            )
        most = self.largest_count(grid)
        return Grid(1, 1, self.n_counts, "uint8" if most < 256 else "uint16", 0, most)

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        out = np.zeros((len(values), self.n_counts), dtype=self.gives(grid).dtype)
        work = grid.rows * int(self._tap_table[0][-1])
        seen = self.dilation.astype(np.int64), self.channel.astype(np.int64)
        kernels = *self._tap_table, *seen, self.threshold
        for first in range(0, len(values), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            level = values[part].reshape(-1, grid.rows, grid.channels)
            level = np.ascontiguousarray(level.transpose(0, 2, 1), dtype=np.int32)
            n, n_cells = len(level), self.cells[0]
            run_on_rows(
                count_windows, n, useful_threads(work * n), level, kernels, n_cells, out[part]
            )
        return out

    @cached_property
    def _tap_table(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Return the taps that are not 0, kernel by kernel: ends, rows, values."""
        k, i, _ = np.nonzero(self.taps)
        ends = np.searchsorted(k, np.arange(self.n_kernels + 1)).astype(np.int64)
        return ends, i.astype(np.int64), self.taps[k, i, 0].astype(np.int32)

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        low, high = dot_ends(self.taps.reshape(self.n_kernels, 9), grid.high)
        above = self.threshold.astype(np.int64) + 1
        made, half = self.gives(grid), 1 << 15
        ends = int((low - above).min()), int((high - above).max())
        ranges = (
            Range("level", 0, grid.high, 0, 2 * half - 1),
            Range("response", int(low.min()), int(high.max()), -(1 << 31), (1 << 31) - 1),
            Range("response less threshold", *ends, -half, half - 1),
            Range("count", 0, made.high, 0, int(np.iinfo(made.dtype).max)),
        )
        return prove(ranges, self.OWNER, "use fewer levels or smaller taps")


@njit(nogil=True)
def count_windows(begin, end, levels, kernels, n_cells, out):  # type: ignore[no-untyped-def]
    """Add up steps 1 and 2 of windows (n, n_mixed, rows)."""
    ends, places, taps, dilations, channels, thresholds = kernels
    rows = levels.shape[2]
    responses = np.empty(rows, dtype=np.int32)
    for n in range(begin, end):
        for k in range(dilations.shape[0]):
            d, level = dilations[k], levels[n, channels[k]]
            n_rows = rows - 8 * d
            response = responses[:n_rows]
            response[:] = 0
            for t in range(ends[k], ends[k + 1]):
                tap, moved = taps[t], level[places[t] * d :]
                for y in range(n_rows):
                    response[y] += tap * moved[y]
            # Cell by cell: to divide for each position takes longer than all taps.
            for cell in range(n_cells):
                count, first = np.int32(0), -(-cell * n_rows // n_cells)
                for y in range(first, -(-(cell + 1) * n_rows // n_cells)):
                    count += np.int32(response[y] > thresholds[k])
                out[n, k * n_cells + cell] = count
