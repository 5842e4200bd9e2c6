"""Columns that are not inputs: times, counters, identifiers, and columns without information."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import MOST_TEXTS, number_of
from tinykernel.base.errors import DataError
from tinykernel.base.files import MOST_ROWS
from tinykernel.base.text import count, join, visible
from tinykernel.data.tables import FilePart

GAP = 1.5  # a step of more median steps is a gap
#: Words for units of time, the usual one last, by their number in a second.
UNITS_OF_TIME = {
    1: ("s", "sec", "secs", "second", "seconds"),
    10**3: ("ms", "msec", "millisec", "millis", "millisecond", "milliseconds"),
    10**6: ("us", "usec", "microsec", "micros", "microsecond", "microseconds"),
    10**9: ("ns", "nsec", "nanosec", "nanosecs", "nsecs", "nanos", "nanosecond", "nanoseconds"),
}
_UNITS = {name: count for count, names in UNITS_OF_TIME.items() for name in names}
_TIMES = ("t", "ts", "time", "timestamp", "datetime", "elapsed", "clock", "zeit")
_WHICH = ("epoch", "unix", "local", "system", "utc", "since", "relative")  # beside one of them
#: Words of a line of units below a header.
UNITS = frozenset(
    [
        *_UNITS,
        *("g", "mg", "v", "mv", "uv", "μv", "µv", "a", "ma", "w", "n", "nm", "m", "mm", "cm", "km"),
        *("rad", "deg", "degree", "degrees", "dps", "°", "c", "°c", "k", "f", "%", "hz", "khz"),
        *("ut", "μt", "µt", "gauss", "lux", "lx", "pa", "kpa", "hpa", "mbar", "bar", "db", "rpm"),
        *("lsb", "count", "counts", "adc", "adu", "raw", "none", "unit", "units", "bpm", "ppm"),
        *("h", "hh", "mm", "ss", "mmm", "min", "µs", "μs"),
    ]
)
_IDENTIFIERS = ("id", "idx", "index", "uuid", "guid", "key", "row", "serial")
# Fewer values may increase by chance.
_FEW = 12
_ROWS_FIRST = 64
_OUT_OF_ORDER = 0.01
_SHORTEST = 10  # values of a session
# Floats of 32 bits have fewer levels in the range of a column, and keep less of its values.
_LEVELS, _MOST_LOST = 4096, 0.9
# Repeated values that stand for missing ones lie beyond the others by so many times their range.
_FEWEST_CODES, _FEWEST_VALUES, _FAR = 3, 20, 3.0
# A column is nearly empty if fewer than one in this number of cells has a value.
_NEARLY_EMPTY = 200


def _words(name: str) -> list[str]:
    """Split a name such as ``TimeStamp (ms)`` or ``sampleId`` into lower-case words."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.replace("TimeStamp", "Timestamp"))
    return re.findall(r"[a-zµ]+|\d+", apart.lower().replace("µ", "u"))


def is_time_name(name: str) -> bool:
    """Whether a name is that of a time: ``t``, ``time_ms``, ``seconds_elapsed``, ``millis``."""
    parts = _words(name)
    alone = len(parts) == 1 and len(parts[0]) > 4 and parts[0] in _UNITS
    times = [part for part in parts if part in _TIMES]
    units = [part for part in parts if part in _UNITS]
    others = [part for part in parts if part in _WHICH]
    return alone or (
        len(parts) == len(times) + len(units) + len(others)
        and (bool(times) or others[:1] == ["epoch"])
        and max(len(times), 2 * len(units)) <= 2
    )


def gives_unit(name: str, unit: str) -> bool:
    """Whether a text is the unit of a time, whose name has none."""
    is_open = is_time_name(name) and _UNITS.keys().isdisjoint(_words(name))
    return is_open and "".join(_words(unit)) in _UNITS


def ticks_per_second(name: str, first: float) -> int | None:
    """Return the ticks per second of a time column, from its name or as time since 1970."""
    units = [_UNITS[part] for part in _words(name) if part in _UNITS]
    if units:
        return units[-1]
    # Only the right unit gives a date from 2001 to 2096.
    return next((count for count in UNITS_OF_TIME if 1e9 <= first / count < 4e9), None)


def strictly_monotone(values: NDArray[Any]) -> bool:
    """Whether numbers strictly increase, or strictly decrease."""
    if values.dtype.kind not in "iuf" or len(values) < _FEW:
        return False
    for part in (values[:_ROWS_FIRST], values):  # a few rows decide nearly all columns
        before, after = part[:-1], part[1:]
        if not ((after > before).all() or (after < before).all()):
            return False
    return True


def mostly_increasing(values: NDArray[Any], is_start: NDArray[np.bool_] | None = None) -> bool:
    """Whether numbers usually rise and rarely fall, as times of several sessions do."""
    # Falls do not count where `is_start`, shape (n - 1,), says that something else begins, if that
    # has ten values on average.
    rises = np.count_nonzero(values[1:] > values[:-1])
    fall = values[1:] < values[:-1]
    falls = np.count_nonzero(fall)
    if is_start is not None and _SHORTEST * falls <= len(values):
        falls = np.count_nonzero(fall & ~is_start)
    return bool(2 * rises > len(values) - 1 and falls <= max(1, _OUT_OF_ORDER * len(values)))


def suspicious_inputs(X: NDArray[Any], names: Sequence[str]) -> dict[str, str]:
    """Find columns of a table that are not measurements; return a reason by name.

    With times, counters or identifiers as inputs a model looks excellent on this file and is
    worthless on any other. X has all rows of the file, in its order. A column is reported if

    - it is strictly increasing or strictly decreasing (12 rows at least);
    - it holds whole numbers, all different and nearly consecutive: a shuffled counter;
    - its name is that of a time or an identifier and it never repeats, or its name is that of a
      time and it rarely falls.

    >>> X = np.column_stack([np.arange(100) * 20, np.sin(np.arange(100))])
    >>> suspicious_inputs(X, ["time_ms", "ax"])
    {'time_ms': 'is strictly increasing, like a time or a counter'}
    """
    reasons = {name: _suspicion(values, name) for name, values in zip(names, X.T, strict=True)}
    return {name: reason for name, reason in reasons.items() if reason}


def _suspicion(values: NDArray[Any], name: str) -> str:
    """Return why a column is not an input, or an empty text; missing values are ignored."""
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
    n = len(values)
    if values.dtype.kind not in "iuf" or n < _FEW:
        return ""
    if strictly_monotone(values):
        way = "increasing" if values[1] > values[0] else "decreasing"
        return f"is strictly {way}, like a time or a counter"
    time, parts = is_time_name(name), _words(name)
    named = time or (bool(parts) and parts[-1] in _IDENTIFIERS)
    if time and mostly_increasing(values):
        return "has the name of a time and increases"
    low, high = float(values.min()), float(values.max())
    if not named and not n <= high - low + 1 <= 2 * n:
        return ""  # not a counter: saves sorting nearly all columns
    if named or bool((values == np.floor(values)).all()):
        ordered = np.sort(values)
        if (ordered[1:] > ordered[:-1]).all():
            return "has a different value in every row, like an identifier"
    return ""


def lost_digits(X: NDArray[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Say of columns of 64-bit floats that their values hardly differ as the firmware's float32.

    >>> (line,) = lost_digits(101325000 + np.array([[0.25], [0.5], [0.75]]), ["height"])
    >>> "its 3 different values become 1 as float32" in line
    True
    """
    lines: list[str] = []
    if X.dtype != np.float64:
        return ()
    for name, column in zip(names, X.T, strict=True):
        values = np.unique(column[np.isfinite(column)])
        if len(values) < 2:
            continue
        low, high = values[0], values[-1]
        step = float(np.spacing(np.float32(max(-low, high))))
        left = len(np.unique(values.astype(np.float32))) if high - low < _LEVELS * step else None
        if left is not None and left < _MOST_LOST * len(values):
            lines.append(
                f"column {visible(name)!r}: its {len(values)} different values become {left} as "
                f"float32; subtract a number near {(low + high) / 2:.10g}, here and in the firmware"
            )
    return tuple(lines)


def placeholders(X: NDArray[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Name columns whose least or largest value repeats far from all others, like a code.

    >>> rows = np.array([[-999.0]] * 3 + [[number / 20] for number in range(60)])
    >>> placeholders(rows, ["flow"])[0][:54]
    "column 'flow': -999 in 3 of 63 rows is far from all ot"
    """
    lines = list[str]()
    for name, column in zip(names, X.T, strict=True):
        values = column[np.isfinite(column)].astype(np.float64)
        for end in (values.min(), values.max()) if len(values) else ():
            rest = values[values != end]
            n = len(values) - len(rest)
            if n < _FEWEST_CODES or len(rest) < _FEWEST_VALUES:
                continue
            low, high = float(rest.min()), float(rest.max())
            is_far = max(low - end, end - high) > _FAR * (high - low)
            if is_far and len(np.unique(rest)) >= _FEWEST_VALUES:
                lines.append(
                    f"column {visible(name)!r}: {end:g} in {n} of {len(column)} rows is far from "
                    f"all others, {low:g} to {high:g}; where it says that a value is missing, "
                    "leave the cell empty"
                )
    return tuple(lines)


def similar_labels(labels: Sequence[object]) -> tuple[str, ...]:
    """Name labels that differ in capitals, spaces or signs between words alone.

    >>> similar_labels(["ok", "Bad", "OK", "0.5", "05"])
    ("labels 'OK', 'ok' are 2 classes; where they mean one, write them alike",)
    """
    alike: dict[str, list[str]] = {}
    for label in sorted({label for label in labels if isinstance(label, str)}):
        alike.setdefault(re.sub(r"[\s_-]+", " ", label.casefold()).strip(), []).append(label)
    return tuple(
        f"labels {join(group, show=repr)} are {len(group)} classes; where they mean one, write "
        "them alike"
        for group in alike.values()
        if len(group) > 1
    )


def without_needless(part: FilePart) -> tuple[FilePart, tuple[str, ...]]:
    """Drop nearly empty, constant and suspicious columns and unique text; return notes."""
    assert part.columns is not None
    X = part.X[:MOST_ROWS]
    if not len(X) or X.dtype.kind not in "biuf":
        return part, ()
    reasons = {name: _reason(part, X[:, j], j) for j, name in enumerate(part.columns)}
    reasons = {name: reason for name, reason in reasons.items() if reason}
    if not reasons:
        return part, ()
    which = join([f"{visible(name)} ({reason})" for name, reason in reasons.items()], 8)
    if len(reasons) == len(part.columns):
        raise DataError(
            f"{part.file}: no column is left as input: {which}; choose columns with --set "
            f"inputs={','.join(part.columns[:2])}"
        )
    inputs = [j for j, name in enumerate(part.columns) if name not in reasons]
    smaller = replace(
        part,
        X=part.X[:, inputs],
        columns=tuple(part.columns[j] for j in inputs),
        texts={name: texts for name, texts in part.texts.items() if name not in reasons},
    )
    n_columns = count(len(reasons), "column")
    return smaller, (f"left out: {n_columns}, {which}; --set inputs=NAMES keeps them",)


def _reason(part: FilePart, values: NDArray[Any], j: int) -> str:
    """Return why a column is not an input, or an empty text."""
    assert part.columns is not None
    n, name = len(values), part.columns[j]
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
    if len(values) <= n // _NEARLY_EMPTY or not len(values):
        return f"nearly empty: a value in {len(values)} of {n} rows"
    if n > 1 and len(values) == n and (values == values[0]).all():
        return "the same in all rows"
    texts = part.texts.get(name)
    if texts is None:
        return _suspicion(values, name)
    if len(texts) <= min(MOST_TEXTS, max(2, len(values) // 2)):
        return ""
    wrong = [code for code, text in enumerate(texts) if number_of(text) is None]
    where = np.flatnonzero(np.isin(part.X[:, j], wrong))
    if 2 * len(where) < len(values):
        first = visible(texts[int(part.X[where[0], j])])[:40]
        return (
            f"{len(where)} of {n} cells are not numbers, the first {first!r} in "
            f"{part.place(int(where[0]))}: correct them to use it"
        )
    return f"text, {len(texts)} distinct values in {n} rows"
