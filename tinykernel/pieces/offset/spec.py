"""Offset: each channel of a window of a signal less its own mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.proof import Range

#: The types that it takes.
NARROW = ("uint8", "int8", "uint16", "int16")
_MOST_ROWS = 65535


@dataclass(frozen=True, eq=False)
class Offset(Stage):
    """The stage *offset*: ``y[t, c] = x[t, c] - m[c]`` with the mean m of the same window.

    ``m[c] = (sum of x[(i * rows) >> k, c] for i in 0..2**k - 1) >> k`` with the largest k for which
    ``2**k <= rows``: of windows of 2**k samples it is their mean, rounded down, of others that of
    2**k samples that are evenly spread. It takes whole numbers of 8 or 16 bits and gives 32 bits.

    >>> Offset().run(np.array([[3, 5, 4, 5]]), Grid.raw("uint8", 4, 1)).tolist()  # less 17 >> 2
    [[-1, 1, 0, 1]]
    """

    KIND = "offset"
    TAKES = ("samples",)
    GIVES = "rows"

    @property
    def title(self) -> str:
        return "means removed"

    def hop_behind(self, hop: int) -> int:
        return 0

    def gives(self, grid: Grid) -> Grid:
        if not grid.is_signal or grid.dtype not in NARROW or grid.rows > _MOST_ROWS:
            raise self.refuse(
                f"it takes signals of at most {_MOST_ROWS} whole numbers of 8 or 16 bits"
            )
        span = grid.high - grid.low
        return Grid(grid.rows, 1, grid.channels, "int32", -span, span)

    def run(self, values: NDArray[np.generic], grid: Grid) -> NDArray[np.generic]:
        shift = mean_shift(grid)
        samples = values.reshape(len(values), grid.rows, grid.channels).astype(np.int32)
        spread = samples[:, np.arange(1 << shift) * grid.rows >> shift]
        means = spread.sum(axis=1, keepdims=True, dtype=np.int32) >> shift
        return np.asarray((samples - means).reshape(len(values), grid.size), np.int32)

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        shift, kind, span = mean_shift(grid), np.iinfo(np.int32), grid.high - grid.low
        ends = int(kind.min), int(kind.max)
        return (
            Range("sum of samples", grid.low << shift, grid.high << shift, *ends),
            Range("sample less the mean", -span, span, *ends),
        )

    def work(self, grid: Grid) -> dict[str, float]:
        """Return one addition a sample of the mean, and one difference a value; see `Stage`."""
        return {"addition": grid.channels << mean_shift(grid), "difference": grid.size}


def mean_shift(grid: Grid) -> int:
    """Return log2 of the number of samples in the mean."""
    return grid.rows.bit_length() - 1
