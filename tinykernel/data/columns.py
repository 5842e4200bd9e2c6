"""Columns that are no measurement: times, counters and identifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

GAP = 1.5  # a step of more than this many usual ones is a gap
_PER_SECOND = {
    1: ("s", "sec", "secs", "second", "seconds"),
    10**3: ("ms", "msec", "millis", "millisecond", "milliseconds"),
    10**6: ("us", "usec", "micros", "microsecond", "microseconds"),
    10**9: ("ns", "nsec", "nanos", "nanosecond", "nanoseconds"),
}
_UNITS = {name: count for count, names in _PER_SECOND.items() for name in names}
_TIMES = ("t", "ts", "time", "timestamp", "datetime", "elapsed", "clock")
_IDENTIFIERS = ("id", "idx", "index", "uuid", "guid", "key", "row", "serial")
# Fewer rows than this increase by chance, or say too little.
_FEW = 12
_ROWS_FIRST = 64
_OUT_OF_ORDER = 0.01


def _words(name: str) -> list[str]:
    """Split ``TimeStamp (ms)`` or ``sampleId`` into lower-case words."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.replace("TimeStamp", "Timestamp"))
    return re.findall(r"[a-zµ]+|\d+", apart.lower().replace("µ", "u"))


def is_time_name(name: str) -> bool:
    """Whether a column is called like a time: ``t``, ``time_ms``, ``Timestamp [s]``, ``millis``."""
    words = _words(name)
    alone = len(words) == 1 and len(words[0]) > 4 and words[0] in _UNITS
    return alone or (
        len(words) in (1, 2) and words[0] in _TIMES and (len(words) == 1 or words[1] in _UNITS)
    )


def ticks_per_second(name: str, first: float) -> int | None:
    """Return how many units of a time column are a second: by its name, or for times since 1970."""
    words = _words(name)
    if words and words[-1] in _UNITS:
        return _UNITS[words[-1]]
    # From 2001 to 2096; no other unit gives a number of this size.
    return next((count for count in _PER_SECOND if 1e9 <= first / count < 4e9), None)


def strictly_monotone(values: NDArray[Any]) -> bool:
    """Whether numbers rise from each to the next, or fall from each to the next."""
    if values.dtype.kind not in "iuf" or len(values) < _FEW:
        return False
    for some in (values[:_ROWS_FIRST], values):  # nearly all columns are told by a few rows
        before, after = some[:-1], some[1:]
        if not ((after > before).all() or (after < before).all()):
            return False
    return True


def mostly_increasing(values: NDArray[Any]) -> bool:
    """Whether numbers usually rise and hardly ever fall, as times of several sessions do."""
    rises = np.count_nonzero(values[1:] > values[:-1])
    falls = np.count_nonzero(values[1:] < values[:-1])
    return bool(2 * rises > len(values) - 1 and falls <= max(1, _OUT_OF_ORDER * len(values)))


def regular(values: NDArray[Any]) -> bool:
    """Whether numbers rise by equal steps, but for gaps."""
    if not strictly_monotone(values) or values[1] < values[0]:
        return False
    steps = np.diff(values.astype(np.float64) if values.dtype.kind == "u" else values)
    median = np.median(steps)
    return bool(np.ptp(steps[steps <= GAP * median]) <= 0.01 * median)


def suspicious_inputs(X: NDArray[Any], names: Sequence[str]) -> dict[str, str]:
    """Find columns of a table that are no measurement: times, counters, identifiers.

    A model that takes one of them as an input looks excellent on rows of the same file and is
    worthless on any other. Measured floats are all different, too, so that alone is no sign. A
    column is reported if

    - it is strictly increasing or strictly decreasing (12 rows at least);
    - it holds whole numbers, as many different ones as rows, without much room between them: a
      counter whose rows were shuffled;
    - it is called like a time or an identifier (``time_ms``, ``t``, ``id``, ``sampleIndex``) and
      never repeats, or is called like a time and hardly ever goes back.

    Parameters
    ----------
    X : ndarray, shape (n_rows, n_columns)
        All rows of the file, in its order.
    names : sequence of str, length n_columns

    Returns
    -------
    dict of str to str
        From the name of a column to what it looks like, to be put behind "the column NAME".

    Examples
    --------
    >>> X = np.column_stack([np.arange(100) * 20, np.sin(np.arange(100))])
    >>> suspicious_inputs(X, ["time_ms", "ax"])
    {'time_ms': 'is strictly increasing, like a time or a counter'}
    """
    found = {}
    for name, values in zip(names, X.T, strict=True):
        reason = _suspicion(values, name)
        if reason is not None:
            found[name] = reason
    return found


def _suspicion(values: NDArray[Any], name: str) -> str | None:
    """Say in words why a column is no input, or None; missing values do not count."""
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
    n = len(values)
    if values.dtype.kind not in "iuf" or n < _FEW:
        return None
    if strictly_monotone(values):
        way = "increasing" if values[1] > values[0] else "decreasing"
        return f"is strictly {way}, like a time or a counter"
    time, words = is_time_name(name), _words(name)
    named = time or (bool(words) and words[-1] in _IDENTIFIERS)
    if time and mostly_increasing(values):
        return "is called like a time and increases"
    low, high = float(values.min()), float(values.max())
    if not named and not n <= high - low + 1 <= 2 * n:
        return None  # no counter: spares the sorting of nearly all columns
    if named or bool((values == np.floor(values)).all()):
        ordered = np.sort(values)
        if (ordered[1:] > ordered[:-1]).all():
            return "has another value in every row, like an identifier"
    return None
