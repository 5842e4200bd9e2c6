"""Beside: numbers that stand beside a window join its counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.text import count
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.proof import Range
from tinykernel.pieces.record import Field, limits
from tinykernel.pieces.scale.spec import Scale

#: Most entries.
MOST_ENTRIES = 256


@dataclass(frozen=True, eq=False)
class Beside(Stage):
    """The stage *beside*: numbers that bypass the kernels become counts behind those of a window.

    It takes a table of counts, uint8 or uint16 from 0 up, which it passes on. The numbers follow
    the values of a window in an input, and have their type. Entry i reads number ``source[i]``.
    With ``q`` that `scaler` makes of it, and ``>>`` that rounds down, its count is::

        ((q + 128) * (top + 1)) >> 8

    So it is in ``0..top``. Several entries of one number are ramps, as each has a range of its own:
    together the linear part then bends where ranges meet. All counts are uint8 where these are
    below 256, else uint16.

    >>> scaler = Scale("int16", 8, [0, 300], [65536, 65536], [255, 255], [0, 0])
    >>> beside = Beside(scaler, [0, 1], 255)
    >>> beside.run(np.array([[7, 9, -5, 310]]), Grid(1, 1, 2, "uint8", 0, 50)).tolist()
    [[7, 9, 0, 10]]
    """

    KIND = "beside"
    TAKES = ("counts",)
    GIVES = "counts"
    INPUTS = ("signal",)
    FIELDS = (Field("scaler", "Scale"), Field("source", "uint8", 1), Field("top", "int"))

    scaler: Scale  # of 8 bits; one value an entry in each array, none constant
    source: NDArray[np.uint8]  # 1 to 256 entries; 0 to the largest number, each used
    top: int = field(metadata=limits(1, 65535))  # count of the largest number

    def check(self) -> None:
        lengths = {array.shape[0] for array in self.scaler.arrays.values()}
        fits = lengths == {self.n_entries} and 0 < self.n_entries <= MOST_ENTRIES
        if self.scaler.bits != 8 or not fits:
            raise self.refuse(
                f"takes a scaler of 8 bits, with a value for each of 1 to {MOST_ENTRIES} entries"
            )
        if np.unique(self.source).size != self.n_numbers:
            raise self.refuse("no entry reads one of the numbers")
        if np.any(self.scaler.multiplier == 0):
            raise self.refuse("a number is constant; leave it out")

    @property
    def n_entries(self) -> int:
        """Number of counts that are added."""
        return int(self.source.shape[0])

    @property
    def n_numbers(self) -> int:
        """Number of input numbers."""
        return int(self.source.max()) + 1

    @property
    def numbers(self) -> Grid:
        """The second input of the model, which it reads."""
        return Grid.table(self.scaler.raw_dtype, self.n_numbers)

    @property
    def title(self) -> str:
        return f"{count(self.n_numbers, 'number')} beside"

    def reorder(self, order: NDArray[np.int64]) -> Beside:
        return self  # its own counts follow those that it takes

    def gives(self, grid: Grid) -> Grid:
        if grid.dtype not in ("uint8", "uint16") or grid.low != 0 or not grid.is_table:
            raise self.refuse(f"takes counts, not {grid.title} of {grid.dtype}")
        high = max(grid.high, self.top)
        return Grid(1, 1, grid.size + self.n_entries, "uint8" if high < 256 else "uint16", 0, high)

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        counts = as_counts(self.levels(values[:, grid.size :]), self.top)
        return np.hstack([values[:, : grid.size], counts]).astype(self.gives(grid).dtype)

    def levels(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Return the levels of entries, 0 to 255, shape (n, n_entries), of raw numbers."""
        raw = numbers[:, self.source].astype(self.scaler.raw_dtype)
        return self.scaler.quantize(raw).astype(np.int32) + 128

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        return (
            Range("level of a number, scaled", 0, 255 * (self.top + 1), 0, (1 << 32) - 1),
            Range("count of a number", 0, self.top, 0, np.iinfo(self.gives(grid).dtype).max),
        )


def as_counts(levels: NDArray[Any], top: int) -> NDArray[np.int32]:
    """Return the counts, 0 to `top`, of levels 0..255."""
    return (levels.astype(np.int32) * (top + 1)) >> 8


def as_windows(rows: NDArray[Any], grid: Grid) -> NDArray[Any]:
    """Reverse `as_rows`: every sample gets the numbers of its window.

    >>> as_windows(np.array([[0, 1, 2, 4, 5, 6, 7]]), Grid.raw("int16", 2, 1, 3)).tolist()
    [[[0, 1, 2, 7], [4, 5, 6, 7]]]
    """
    windows = rows[:, : grid.size].reshape(len(rows), grid.rows, grid.channels)
    numbers = np.repeat(rows[:, np.newaxis, grid.size :], grid.rows, axis=1)
    return np.concatenate([windows, numbers], axis=2)
