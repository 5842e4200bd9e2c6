"""Sums: how large, how peaked and how fast each channel of a window swings, beside its counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.compiled import njit
from tinykernel.model.grid import Grid
from tinykernel.model.proof import Range
from tinykernel.model.stage import Stage
from tinykernel.model.stages.beside import MOST_ENTRIES, Beside, as_counts, joined
from tinykernel.model.stages.frames import log2_of
from tinykernel.model.stages.offset import less_means, mean_ranges, require_window

#: Numbers of a channel, in this order; "fourths" are fourth powers.
NUMBERS = ("squares", "magnitudes", "fourths", "peak", "crossings")
# Digits of log2 behind the point, and levels an octave of amplitude.
_DIGITS, _OCTAVE = 6, 16
_UINT32 = (0, (1 << 32) - 1)


@dataclass(frozen=True, eq=False)
class Sums(Stage):
    """The stage *sums*: five numbers of each channel of a window, which it hands on as it is.

    It takes whole numbers of 8 or 16 bits. With the mean m of the stage ``Offset``, ``a[t] = |x[t]
    - m|`` and their peak P, ``>>`` that rounds down, and z such that ``P << z`` is in 2**15 to
    2**16 - 1::

        b = a << z,  q = b b >> 16                        each below 2**16
        A = sum of b,  S = sum of q,  F = sum of q q >> 16    over the N samples of the window
        C = how often x[t] > m differs from x[t - 1] > m

    ``L(v) = floor(64 log2 v)`` is found digit by digit, as in step 6 of ``Spectrum``. The numbers
    are log2 of the roots of means in sixteenths, rounded down and held within 0..255::

        squares       8 log2 of the mean of squares           L(S) - L(N) + 1024 - 128 z >> 3
        magnitudes   16 log2 of the mean of magnitudes        L(A) - L(N) - 64 z >> 2
        fourths       4 log2 of the mean of fourth powers     L(F) - L(N) + 3072 - 256 z >> 4
        peak         16 log2 of the largest magnitude         L(P << z) - 64 z >> 2
        crossings    16 log2(1 + C)                           L(1 + C) >> 2

    All are 0 where P is 0. A difference of two is a ratio: peak less squares the crest factor,
    fourths less squares the kurtosis. They reach the counts by the stage ``Summed``.

    Raises
    ------
    TinykernelError
        From `gives`, if the input is no such signal, or has more than 65535 samples.

    Examples
    --------
    >>> window = np.array([[-4, 4, -4, 4]], dtype=np.int8)
    >>> Sums().numbers(window, Grid.raw("int8", 4, 1)).tolist()  # 16 log2 of 4, four times
    [[32, 32, 32, 32, 32]]
    """

    KIND = "sums"
    OWNER = "sums"
    WHOLE = True

    def gives(self, given: Grid) -> Grid:
        """Return the grid itself; see `Stage`."""
        require_window(self, given)
        return given

    def run(self, values: NDArray[Any], given: Grid) -> NDArray[Any]:
        """Hand on rows of samples; see `Stage`."""
        return values

    def numbers(self, values: NDArray[Any], given: Grid) -> NDArray[np.uint8]:
        """Return the numbers of rows of samples, shape (n, 5 * channels), channel by channel."""
        less = less_means(values, given).astype(np.int64)
        size = np.abs(less)
        peak = size.max(axis=1)
        zeros = 16 - np.frexp(peak)[1].astype(np.int64)
        shifted = size << zeros[:, np.newaxis]
        square = shifted * shifted >> 16
        above = less > 0
        crossings = np.count_nonzero(above[:, 1:] != above[:, :-1], axis=1)
        sums = (square.sum(axis=1), shifted.sum(axis=1), (square * square >> 16).sum(axis=1))
        rows = log2_of(given.rows, _DIGITS)
        squares, magnitudes, fourths = (_logarithms(each) - rows for each in sums)
        taken = zeros << _DIGITS
        levels = (
            (squares + (16 << _DIGITS) - 2 * taken) >> 3,
            (magnitudes - taken) >> 2,
            (fourths + (48 << _DIGITS) - 4 * taken) >> 4,
            (_logarithms(peak << zeros) - taken) >> 2,
            _logarithms(1 + crossings) >> 2,
        )
        held = np.clip(np.stack(levels, axis=2), 0, 255) * (peak > 0)[:, :, np.newaxis]
        found: NDArray[np.uint8] = held.reshape(len(values), -1).astype(np.uint8)
        return found

    def ranges(self, given: Grid) -> tuple[Range, ...]:
        """Return the bounds of sums, and of a logarithm less what is taken off; see `Stage`."""
        most = 65535
        square = most * most >> 16
        fourth = square * square >> 16
        return (
            *mean_ranges(given),
            Range("sum of magnitudes", 0, given.rows * most, *_UINT32),
            Range("square of a magnitude", 0, most * most, *_UINT32),
            Range("sum of squares", 0, given.rows * square, *_UINT32),
            Range("sum of fourth powers", 0, given.rows * fourth, *_UINT32),
            Range("logarithm", 0, (32 << _DIGITS) - 1, 0, 32767),
        )

    def work(self, given: Grid) -> dict[str, float]:
        """Return the samples, which are read three times, and the channels; see `Stage`."""
        return {"sample": given.size, "channel": given.channels}


@njit(nogil=True)
def _fill(values, out):  # type: ignore[no-untyped-def]
    """Fill out with the logarithms of values, of which 0 counts as 1."""
    for i in range(values.size):
        out[i] = log2_of(max(values[i], 1), _DIGITS)


def _logarithms(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``L`` of an array, as it is."""
    out = np.empty(values.size, dtype=np.int64)
    _fill(values.ravel(), out)
    return out.reshape(values.shape)


@dataclass(frozen=True, eq=False)
class Summed(Stage):
    """The stage *summed*: the numbers of ``Sums`` become counts behind all others.

    It takes a table of counts, uint8 or uint16 from 0 up, which it hands on. Entry i looks at
    number n = ``source[i]`` of ``Sums``, and counts for::

        min(max(n - low, 0) * factor >> 4, 255) * (top + 1) >> 8

    So a count is in ``0..top``, and a factor spreads the levels that there are over all of them.
    Several entries of one number are ramps. All counts are uint8 where these are below 256, else
    uint16.

    Parameters
    ----------
    source : ndarray of uint8, shape (n_entries,)
        Number 5 c + k is k of `NUMBERS` of channel c. There are 1 to 256 entries.
    low : ndarray of uint8, shape (n_entries,)
    factor : ndarray of uint8, shape (n_entries,)
        From 1, in sixteenths.
    top : int
        1 to 65535.

    Raises
    ------
    TinykernelError
        If a field has the wrong type, shape or range, or there are no counts to join.

    Examples
    --------
    >>> summed = Summed([0, 0, 3], [30, 0, 0], [128, 16, 16], 99)
    >>> summed.run(np.array([[7, 9, 40, 32, 50, 255, 9]]), Grid(1, 1, 2, "uint8", 0, 50)).tolist()
    [[7, 9, 31, 15, 99]]
    """

    KIND = "summed"
    OWNER = "summed"

    source: NDArray[np.uint8]
    low: NDArray[np.uint8]
    factor: NDArray[np.uint8]
    top: int

    def check(self) -> None:
        """Check the entries."""
        self.require("top", 1, 65535)
        if len({self.source.size, self.low.size, self.factor.size}) > 1:
            raise self.refuse("takes a source, a low and a factor of each entry")
        if self.source.size > MOST_ENTRIES or not self.factor.all():
            raise self.refuse(f"takes at most {MOST_ENTRIES} entries, of factors from 1")

    @property
    def words(self) -> str:
        """What people call it; see `Stage`."""
        return "sums"

    def gives(self, given: Grid) -> Grid:
        """Return the table of all counts; see `Stage`."""
        return joined(self, given, self.source.size)

    def run(self, values: NDArray[Any], given: Grid) -> NDArray[Any]:
        """Join counts and numbers, which follow them in a row; see `Stage`."""
        counts = as_counts(self.levels(values[:, given.size :]), self.top)
        return np.hstack([values[:, : given.size], counts]).astype(self.gives(given).dtype)

    def levels(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Return the levels of entries, 0 to 255, shape (n, n_entries), of numbers."""
        above = np.maximum(numbers[:, self.source].astype(np.int32) - self.low, 0)
        levels: NDArray[np.int32] = np.minimum(above * self.factor >> 4, 255)
        return levels

    def ranges(self, given: Grid) -> tuple[Range, ...]:
        """Return the range of a level times its factor, and of a count; see `Stage`."""
        return (
            Range("sum, scaled", 0, 255 * (self.top + 1), *_UINT32),
            Range("count of a sum", 0, self.top, 0, np.iinfo(self.gives(given).dtype).max),
        )

    def work(self, given: Grid) -> dict[str, float]:
        """Return one copy a count, and one scaling an entry; see `Stage`."""
        return {"copy": float(given.size), "scale": float(self.source.size)}


def check_sums(stages: tuple[Stage, ...], given: Grid) -> None:
    """Refuse sums that reach no counts, or those of another input; TinykernelError."""
    summed = [stage for stage in stages if isinstance(stage, Summed)]
    if isinstance(stages[0], Sums) != bool(summed):
        raise Sums().refuse("sums and summed come together")
    if len({stage.top for stage in stages if isinstance(stage, Beside | Summed)}) > 1:
        raise Sums().refuse("numbers beside a window count otherwise")
    if summed and summed[0].source.max() >= len(NUMBERS) * given.channels:
        raise summed[0].refuse(f"looks at more than {len(NUMBERS)} numbers a channel")
