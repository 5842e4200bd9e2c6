"""Signals of one recording that have rates or times of their own, on one clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, ToolError
from tinykernel.base.text import join
from tinykernel.data.labels import Span, names_say
from tinykernel.data.reading import NO_BREAKS
from tinykernel.data.tables import told_apart

# A sensor that is slower than this share of the fastest one is left out.
_SLOWEST = 0.2
# Rounded times may lack so much of the last sample.
_ROUNDED = 0.1


@dataclass(frozen=True, eq=False)
class Sampled:
    """Samples of one sensor, and when they were taken."""

    X: NDArray[np.float64]  # (samples, columns)
    columns: tuple[str, ...]
    rate: float
    times: NDArray[np.float64]  # seconds
    # Samples before which there is a gap.
    breaks: NDArray[np.intp] = field(default_factory=lambda: NO_BREAKS)


def join_signals(
    path: Path, signals: Mapping[str, Sampled], rate: float | None = None
) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64], float, dict[str, int]]:
    """Return columns on the clock of the fastest signal, their times and rate, and notes.

    Values between two samples are on a straight line. Only the time that all signals have is taken,
    and none within a gap of one.
    """
    fastest = max(signal.rate for signal in signals.values())
    slow = [name for name, signal in signals.items() if signal.rate < _SLOWEST * fastest]
    fast = {name: signal for name, signal in signals.items() if name not in slow}
    rate = rate or fastest
    begin = max(float(signal.times[0]) for signal in fast.values())
    end = min(float(signal.times[-1]) for signal in fast.values())
    if end <= begin:
        raise DataError(
            f"{path}: {join(list(fast))} have no time in common; remove the files of one"
        )
    times = begin + np.arange(int((end - begin) * rate + _ROUNDED) + 1) / rate
    for signal in fast.values():
        for at in signal.breaks.tolist():
            times = times[(times <= signal.times[at - 1]) | (times >= signal.times[at])]
    columns = dict[str, NDArray[Any]]()
    for name, signal in fast.items():
        for column, values in zip(signal.columns, signal.X.T, strict=True):
            called = column if len(fast) == 1 else f"{name} {column}".strip()
            columns[called] = np.interp(times, signal.times, values)
    notes = {f"joined by time at {rate:.4g} Hz: {join(list(fast), 8)}": 0}
    notes |= {f"left out: {name} ({signals[name].rate:.3g} Hz)": 0 for name in slow}
    return columns, times, rate, notes if len(signals) > 1 else {}


def on_one_clock(
    path: Path, names: Iterable[str], parts: Sequence[NDArray[Any]], rates: Sequence[float]
) -> tuple[dict[str, NDArray[Any]], float, dict[str, int]]:
    """Return the signals of a file as columns, their rate, and notes if their rates differ."""
    names = told_apart(names)
    if len(set(rates)) == 1:
        return dict(zip(names, parts, strict=True)), rates[0], {}
    signals = {
        name: Sampled(x.reshape(-1, 1), ("",), rate, np.arange(len(x)) / rate)
        for name, x, rate in zip(names, parts, rates, strict=True)
    }
    columns, _, rate, notes = join_signals(path, signals)
    return columns, rate, notes


def checked_spans(
    path: Path, spans: list[Span], n: int, notes: dict[str, int]
) -> tuple[Span, ...] | None:
    """Return labelled spans in their order, None without any; refuse those past the end.

    Where some overlap, the one that begins later counts, and the other one goes on behind it.
    """
    spans = sorted(spans, key=lambda span: (span.first, -span.end))
    for span in spans:
        if span.first >= n or span.end > n + 1:
            raise DataError(
                f"{path}: the annotation {str(span.label)!r} is past the end, sample {span.end} of "
                f"{n}; correct it"
            )
    within = sum(b.first + 1 < a.end and a.label != b.label for a, b in pairwise(spans))
    if within:
        notes["where annotations overlap, the one that begins later counts: {n} of them"] = within
    owner = np.full(n + 1, -1, np.int32)
    for i, span in enumerate(spans):
        owner[max(span.first, 0) : min(max(span.end, 0), n)] = i
    edges = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist()]
    parts = [(a, b, int(owner[a])) for a, b in pairwise(edges)]
    return tuple(Span(a, b, spans[i].label) for a, b, i in parts if i >= 0) or None


def needs(path: Path, package: str) -> ToolError:
    """Return the error about a package that a format needs."""
    return ToolError(f"{path}: needs {package}; install it (pip install 'tinykernel-mcu[formats]')")


def unlabelled(path: Path, labels: str = "labels") -> DataError:
    """Return the error about a file without labels, which its path may say."""
    return DataError(f"{path}: has no {labels}; say the labels with {names_say(path)}")
