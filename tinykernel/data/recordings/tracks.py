"""Tell the channels, the times and the labels of recordings, and that recordings match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.coding.cells import number_of
from tinykernel.data.columns import (
    GAP,
    is_time_name,
    mostly_increasing,
    regular,
    suspicious_inputs,
    ticks_per_second,
)
from tinykernel.data.formats.delimited import text_labels
from tinykernel.data.formats.tables import shown
from tinykernel.data.recordings.files import Columns, Ready
from tinykernel.errors import TinykernelError

_RATE_TOLERANCE = 0.02
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(eq=False)
class Track:
    """One recording: what its columns mean."""

    name: str
    table: Columns
    X: NDArray[Any]  # (samples, channels)
    holes: NDArray[np.bool_] | None  # (samples, channels): which values are missing
    y: NDArray[Any] | None
    unlabelled: NDArray[np.bool_] | None
    channels: tuple[str, ...]
    rate: float | None
    times: NDArray[np.float64] | None
    breaks: NDArray[np.intp]  # samples before which there is a gap
    time: str | None


def read_tracks(
    tables: Sequence[Columns],
    names: Sequence[str],
    inputs: Sequence[str] | None,
    drop: Sequence[str],
    rate: float | None,
    time: str | None,
) -> list[Track]:
    """Tell channels from times in every file, and refuse files that do not belong together."""
    tracks = list[Track]()
    labels = clean_labels(tables)
    for table, name, (y, unlabelled) in zip(tables, names, labels, strict=True):
        columns = without(table, drop)
        clock = _time_column(table, columns, inputs, tracks[0].time if tracks else time)
        channels = choose_channels(
            table, columns, clock, inputs, tracks[0].channels if tracks else None
        )
        if tracks and set(channels) != set(tracks[0].channels):
            raise TinykernelError(
                f"{table.file}: has the channels {_listed(channels)}, {tracks[0].table.file} has "
                f"{_listed(tracks[0].channels)}; choose common ones with --set inputs=NAMES"
            )
        if tracks:
            channels = tracks[0].channels
        X, holes = matrix(table, columns, channels)
        known = table.rate if rate is None else agreed(table, "the file says", table.rate, rate)
        times, breaks = None, np.empty(0, np.intp)
        if clock is not None:
            times, known, breaks = _clock(table, clock, columns[clock], known)
        tracks.append(
            Track(name, table, X, holes, y, unlabelled, channels, known, times, breaks, clock)
        )
    _same_rates(tracks)
    if inputs is None:
        _refuse_counters(tracks)
    smallest_type(tracks)
    return tracks


def without(table: Columns, drop: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the columns that are not dropped."""
    unknown = [name for name in drop if name not in table.columns]
    if unknown:
        raise TinykernelError(
            f"{table.file}: has no column {unknown[0]!r} to drop; columns: {_listed(table.columns)}"
        )
    return {name: values for name, values in table.columns.items() if name not in drop}


def _time_column(
    table: Columns,
    columns: dict[str, NDArray[Any]],
    inputs: Sequence[str] | None,
    named: str | None,
) -> str | None:
    """Return the name of the column of times."""
    if named is not None and named not in columns:
        raise TinykernelError(
            f"{table.file}: has no column {named!r} of times; columns: {_listed(columns)}"
        )
    if named is None:
        named = next((name for name in columns if is_time_name(name)), None)
    if named is None and table.rate is not None:
        return None  # a sound may rise steadily
    if named is None:
        measured = {n: v for n, v in columns.items() if inputs is None or n not in inputs}
        named = next((n for n, v in measured.items() if v.dtype.kind in "iuf" and regular(v)), None)
        return named
    values = columns[named]
    where = f"{table.file}: the column {named!r} is taken for the time"
    if values.dtype.kind not in "iufM":
        texts = [str(value) for value in values.tolist()]
        row = next((i for i, text in enumerate(texts) if number_of(text) is None), 0)
        cell = table.faults.get(named, (0, texts[row]))[1]
        raise TinykernelError(
            f"{where}, but row {row + 1} holds {cell[:40]!r}; leave it out with --set drop={named}"
        )
    lost = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if lost.any():
        raise TinykernelError(f"{table.place(int(lost.argmax()), named)}: the time is missing")
    if len(values) > 1 and not mostly_increasing(values):
        raise TinykernelError(
            f"{where}, but does not increase; leave it out with --set drop={named}"
        )
    return named


def choose_channels(
    table: Columns,
    columns: dict[str, NDArray[Any]],
    clock: str | None,
    inputs: Sequence[str] | None,
    before: tuple[str, ...] | None,
) -> tuple[str, ...]:
    """Return the names of the channels, all of which hold numbers."""
    if inputs is None:
        chosen = tuple(name for name in columns if name != clock)
    else:
        chosen = tuple(inputs)
        absent = [name for name in chosen if name not in columns]
        if absent:
            raise TinykernelError(
                f"{table.file}: has no column {absent[0]!r} to take as an input; columns: "
                f"{_listed(columns)}"
            )
        if len(set(chosen)) < len(chosen):
            raise TinykernelError(f"inputs names a column twice: {_listed(chosen)}")
    if not chosen:
        raise TinykernelError(f"{table.file}: has no channels; columns: {_listed(columns)}")
    if before is None or set(before) == set(chosen):
        for name in chosen:
            if name in table.faults or columns[name].dtype.kind not in "biuf":
                row, cell = table.faults.get(name, (0, str(columns[name][0])))
                raise TinykernelError(
                    f"{table.place(row, name)}: {cell[:40]!r} is not a number; name the labels "
                    f"with --label, or leave the column out with --set drop={name}"
                )
    return chosen


def matrix(
    table: Columns, columns: dict[str, NDArray[Any]], channels: Sequence[str]
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return samples x channels, 0 where a value is missing, and where that is."""
    X = np.column_stack([columns[name] for name in channels])
    if X.dtype.kind != "f":
        return X, None
    for row, column in np.argwhere(np.isinf(X))[:1]:
        raise TinykernelError(f"{table.place(row, channels[column])}: is infinite; correct it")
    holes = np.isnan(X)
    if not holes.any():
        return X, None
    return np.where(holes, 0, X), holes


def check_numbers(names: Sequence[str], inputs: Sequence[str] | None) -> None:
    """Refuse a number beside a window that is named twice, or is a channel, too."""
    for i, name in enumerate(names):
        if name in names[:i]:
            raise TinykernelError(f"beside names the column {name!r} twice")
        if name in (inputs or ()):
            raise TinykernelError(f"inputs and beside both name the column {name!r}; choose one")


def numbers_last(track: Track, names: Sequence[str]) -> None:
    """Put the columns that are numbers beside a window behind the channels."""
    if not names:
        return
    file, listed = track.table.file, _listed(track.channels)
    lacking = [name for name in names if name not in track.channels]
    if lacking:
        if track.table.is_sound:
            raise TinykernelError(
                f"{file}: a sound has no numbers beside it; leave out --set beside, or give "
                "recordings as tables with such a column"
            )
        raise TinykernelError(
            f"{file}: has no column {lacking[0]!r} of numbers beside a window; columns: {listed}"
        )
    channels = tuple(name for name in track.channels if name not in names)
    if not channels:
        raise TinykernelError(f"{file}: beside leaves no channel; columns: {listed}")
    order = [track.channels.index(name) for name in (*channels, *names)]
    track.X, track.channels = track.X[:, order], (*channels, *names)
    track.holes = None if track.holes is None else track.holes[:, order]


def _clock(
    table: Columns, name: str, values: NDArray[Any], rate: float | None
) -> tuple[NDArray[np.float64] | None, float | None, NDArray[np.intp]]:
    """Return times in seconds, the rate, and the samples before which there is a gap."""
    where = f"{table.file}: the column {name!r}"
    ticks: float | None = None  # a second
    if values.dtype.kind == "M":
        values, ticks = values.astype("datetime64[us]").astype(np.int64), 10**6
    values = values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
    steps = np.diff(values)
    if not len(steps):
        return None, rate, np.empty(0, np.intp)
    median = float(np.median(steps))
    if median <= 0:
        raise TinykernelError(
            f"{where} repeats most of its times, so gaps cannot be told; leave it out with "
            f"--set drop={name} and --set rate=HZ"
        )
    gap = (steps > GAP * median) | (steps < 0)
    # The mean of the steps: those of 60 Hz in whole milliseconds are 16 and 17.
    step = float(steps[~gap].mean())
    if ticks is None:
        ticks = ticks_per_second(name, float(values[0]))
    if ticks is not None:
        rate = agreed(table, f"the steps of {name!r} say", float(f"{ticks / step:.6g}"), rate)
    elif rate is not None:
        close = [n for n in (1, 10**3, 10**6, 10**9) if alike(n / step, rate)]
        ticks = close[0] if close else rate * step
    times = None if ticks is None else values / ticks
    return times, rate, np.flatnonzero(gap) + 1


def alike(rate: float, other: float) -> bool:
    """Whether two rates are taken for the same."""
    return abs(rate - other) <= _RATE_TOLERANCE * max(rate, other)


def agreed(table: Columns, who: str, found: float | None, given: float | None) -> float | None:
    """Return the rate that was found, or the given one where none was."""
    if found is None or given is None or alike(found, given):
        return given if found is None else found
    raise TinykernelError(f"{table.file}: {who} {found:g} Hz, but {given:g} Hz is given")


def _same_rates(tracks: Sequence[Track]) -> None:
    first = tracks[0]
    for track in tracks[1:]:
        if (track.rate is None) != (first.rate is None):
            one, other = (track, first) if track.rate is None else (first, track)
            raise TinykernelError(
                f"{one.table.file}: does not tell its sampling rate, {other.table.file} has "
                f"{other.rate:g} Hz; give --set rate=HZ"
            )
        if track.rate is not None and first.rate is not None and not alike(track.rate, first.rate):
            way = "; give --set rate=HZ" if track.table.is_sound else ""
            raise TinykernelError(
                f"{track.table.file}: has {track.rate:g} Hz, {first.table.file} has "
                f"{first.rate:g} Hz; all recordings must have one sampling rate{way}"
            )


def _refuse_counters(tracks: Sequence[Track]) -> None:
    """Refuse channels that are a counter or an identifier in every recording."""
    suspects: dict[str, str] | None = None
    for track in tracks:
        found = suspicious_inputs(track.X, track.channels)
        suspects = {n: r for n, r in found.items() if suspects is None or n in suspects}
        if not suspects:
            return
    for name, reason in (suspects or {}).items():
        raise TinykernelError(
            f"{tracks[0].table.file}: the column {name!r} {reason}; leave it out with --set "
            f"drop={name}, or ask for it with --set inputs=NAMES"
        )


def smallest_type(tracks: Sequence[Track]) -> None:
    """Give all recordings the smallest type that the firmware has for their values."""
    kind = np.result_type(*(track.X.dtype for track in tracks))
    own = all(track.table.keeps_type for track in tracks)
    low, high = min(t.X.min() for t in tracks), max(t.X.max() for t in tracks)
    if kind.kind == "b":
        kind = np.dtype(np.uint8)
    elif not (own and kind.kind in "iu" and (kind.itemsize <= 2 or kind == np.int32)):
        whole = kind.kind in "iu" or (not own and all(not (track.X % 1).any() for track in tracks))
        fits = (
            t for t in (np.int16, np.int32) if np.iinfo(t).min <= low <= high <= np.iinfo(t).max
        )
        kind = np.dtype(next(fits, np.float32) if whole else np.float32)
    if kind == np.float32:
        for track in tracks:
            for row, column in np.argwhere(np.abs(track.X.astype(np.float64)) > _LARGEST)[:1]:
                place = track.table.place(row, track.channels[column])
                raise TinykernelError(f"{place}: does not fit in a 32-bit float")
    for track in tracks:
        track.X = track.X.astype(kind, copy=False)


# ----------------------------------------------------------------------------------------- labels


def clean_labels(
    files: Sequence[Columns | Ready],
) -> list[tuple[NDArray[Any] | None, NDArray[np.bool_] | None]]:
    """Return labels of one type for all files, and where they are missing."""
    found = list[tuple[NDArray[Any] | None, NDArray[np.bool_] | None]]()
    kinds = dict[str, tuple[Path, str]]()
    for item in files:
        if item.y is None:
            found.append((None, None))
            continue
        shared = not any(item.y.strides)  # by all samples
        texts, where = np.unique(item.y[: 1 if shared else None], return_inverse=True)
        lost = np.array([text.lower() in ("", "nan", "na", "null") for text in texts])
        known = texts[~lost]
        values = text_labels(known.tolist()) if len(known) else np.zeros(0, np.int64)
        if values.dtype.kind == "U" and all(map(_is_float, known.tolist())):
            numbers = known.tolist()
            # Where all are whole, one has more digits than the integers of labels hold.
            largest = max(numbers, key=lambda text: abs(float(text)))
            broken = next((text for text in numbers if not float(text).is_integer()), largest)
            raise TinykernelError(
                f"{item.file}: the labels are not classes: one is {broken}; give integers or text"
            )
        if len(known):
            kinds.setdefault(values.dtype.kind, (item.file, str(values[0])))
        full = np.zeros(len(texts), values.dtype)
        full[~lost] = values
        y, missing = full[where], lost[where]
        if shared:
            y, missing = (np.broadcast_to(each, len(item.y)) for each in (y, missing))
        if len(known) and lost.any():
            # The label before stands in for a missing one, so that it is no change of label.
            known_at = np.where(missing, (~missing).argmax(), np.arange(len(y)))
            y = y[np.maximum.accumulate(known_at)]
        found.append((y, missing if lost.any() else None))
    if len(kinds) == 2:
        (one, a), (other, b) = kinds["i"], kinds["U"]
        raise TinykernelError(
            f"{other}: the labels are text (one is {b!r}), those of {one} are numbers (one is "
            f"{a}); give both the same"
        )
    return found


def _is_float(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def majority(values: NDArray[Any]) -> Any:
    """Return the commonest value; of equally common ones that which comes last."""
    kinds, last, counts = np.unique(values[::-1], return_index=True, return_counts=True)
    return kinds[np.lexsort((last, -counts))[0]]


def _listed(names: Iterable[str]) -> str:
    return shown(list(names))
