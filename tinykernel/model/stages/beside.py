"""Beside: numbers that stand beside a window join its counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.grid import Grid
from tinykernel.model.proof import Range
from tinykernel.model.record import Field, limits
from tinykernel.model.stage import Stage
from tinykernel.model.stages.scale import Scale

#: Counts that numbers may become.
MOST_ENTRIES = 256


@dataclass(frozen=True, eq=False)
class Beside(Stage):
    """The stage *beside*: numbers that pass no kernel become counts behind those of a window.

    It takes a table of counts, uint8 or uint16 from 0 up, which it hands on. The numbers follow the
    values of a window in an input, and have their type. Entry i looks at number ``source[i]``: with
    ``q`` that `scaler` makes of it, and ``>>`` that rounds down, its count is::

        ((q + 128) * (top + 1)) >> 8

    So it is in ``0..top``. Several entries of one number are ramps, as each has a range of its own:
    together the linear part then bends where ranges meet. All counts are uint8 where these are
    below 256, else uint16.

    Parameters
    ----------
    scaler : Scale
        Of 8 bits, with a value an entry in each array; none is constant (multiplier 0).
    source : ndarray of uint8, shape (n_entries,)
        1 to 256 entries. The numbers are 0 to the largest, and each is looked at.
    top : int
        1 to 65535: the count of the largest number.

    Raises
    ------
    TinykernelError
        If a field has the wrong type, shape or range, or there are no counts to join.

    Examples
    --------
    >>> scaler = Scale("int16", 8, [0, 300], [65536, 65536], [255, 255], [0, 0])
    >>> beside = Beside(scaler, [0, 1], 255)
    >>> beside.run(np.array([[7, 9, -5, 310]]), Grid(1, 1, 2, "uint8", 0, 50)).tolist()
    [[7, 9, 0, 10]]
    """

    KIND = "beside"
    TAKES = ("counts",)
    GIVES = "counts"
    OWNER = "beside"
    FIELDS = (Field("scaler", "Scale"), Field("source", "uint8", 1), Field("top", "int"))

    scaler: Scale
    source: NDArray[np.uint8]
    top: int = field(metadata=limits(1, 65535))

    def check(self) -> None:
        """Check the entries."""
        lengths = {array.shape[0] for array in self.scaler.arrays.values()}
        if (
            self.scaler.bits != 8
            or lengths != {self.n_entries}
            or not 0 < self.n_entries <= MOST_ENTRIES
        ):
            raise self.refuse(
                f"takes a scaler of 8 bits, with a value for each of 1 to {MOST_ENTRIES} entries"
            )
        if np.unique(self.source).size != self.n_numbers:
            raise self.refuse("no entry looks at one of the numbers")
        if np.any(self.scaler.multiplier == 0):
            raise self.refuse("a number is constant; leave it out")

    @property
    def n_entries(self) -> int:
        """How many counts are made."""
        return int(self.source.shape[0])

    @property
    def n_numbers(self) -> int:
        """How many numbers there are."""
        return int(self.source.max()) + 1

    @property
    def side_input(self) -> tuple[str, Grid]:
        """The numbers; see `Stage`."""
        return "numbers", Grid.table(self.scaler.raw_dtype, self.n_numbers)

    @property
    def words(self) -> str:
        """What people call it; see `Stage`."""
        return f"{self.n_numbers} number{'s' if self.n_numbers > 1 else ''} beside"

    def gives(self, grid: Grid) -> Grid:
        """Return the table of all counts; see `Stage`."""
        if grid.dtype not in ("uint8", "uint16") or grid.low != 0 or not grid.is_table:
            raise self.refuse(f"takes counts, not {grid.words} of {grid.dtype}")
        high = max(grid.high, self.top)
        return Grid(1, 1, grid.size + self.n_entries, "uint8" if high < 256 else "uint16", 0, high)

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        """Join counts and numbers, which follow them in a row; see `Stage`."""
        counts = as_counts(self.levels(values[:, grid.size :]), self.top)
        return np.hstack([values[:, : grid.size], counts]).astype(self.gives(grid).dtype)

    def levels(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Return the levels of entries, 0 to 255, shape (n, n_entries), of raw numbers."""
        raw = numbers[:, self.source].astype(self.scaler.raw_dtype)
        return self.scaler.quantize(raw).astype(np.int32) + 128

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        """Return the range of a level times its factor, and of a count of a number."""
        return (
            Range("level of a number, scaled", 0, 255 * (self.top + 1), 0, (1 << 32) - 1),
            Range("count of a number", 0, self.top, 0, np.iinfo(self.gives(grid).dtype).max),
        )

    def work(self, grid: Grid) -> dict[str, float]:
        """Return one copy a count, and one scaling an entry."""
        return {"copy": float(grid.size), "scale": float(self.n_entries)}


def as_counts(levels: NDArray[Any], top: int) -> NDArray[np.int32]:
    """Return what levels 0..255 count for, 0 to `top`."""
    return (levels.astype(np.int32) * (top + 1)) >> 8


def as_rows(windows: NDArray[Any], n_numbers: int) -> NDArray[Any]:
    """Return inputs of windows whose last channels are numbers: those of the last sample count.

    >>> as_rows(np.arange(8).reshape(1, 2, 4), 1).tolist()  # 3 channels and a number
    [[0, 1, 2, 4, 5, 6, 7]]
    """
    channels = windows.shape[2] - n_numbers
    samples = windows[:, :, :channels].reshape(len(windows), -1)
    return np.hstack([samples, windows[:, -1, channels:]])


def as_windows(rows: NDArray[Any], grid: Grid) -> NDArray[Any]:
    """Return windows of such inputs; every sample has the numbers of its window.

    >>> as_windows(np.array([[0, 1, 2, 4, 5, 6, 7]]), Grid.raw("int16", 2, 1, 3)).tolist()
    [[[0, 1, 2, 7], [4, 5, 6, 7]]]
    """
    windows = rows[:, : grid.size].reshape(len(rows), grid.rows, grid.channels)
    numbers = np.repeat(rows[:, np.newaxis, grid.size :], grid.rows, axis=1)
    return np.concatenate([windows, numbers], axis=2)
