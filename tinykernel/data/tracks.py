"""Channels, times and labels of recordings, and checks that recordings match."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import repeat
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import number_of
from tinykernel.base.errors import DataError, ShapeError
from tinykernel.base.text import count, join, visible
from tinykernel.data import columns as kinds
from tinykernel.data.clock import (
    IN_FRONT,
    agreed,
    alike,
    at_rate,
    blank_lines,
    read_clock,
    refuse_lacking,
    time_column,
)
from tinykernel.data.delimited import text_labels
from tinykernel.data.reading import NO_BREAKS, NO_LABEL, Columns, Reading, Recording, of_all_alike

_CONSTANT = "never varies"
_LARGEST = float(np.finfo(np.float32).max)


def read_tracks(
    tables: Sequence[Columns], names: Sequence[str], inputs: Sequence[str] | None, reading: Reading
) -> list[Recording]:
    """Find channels and times in every file, and refuse files that do not match."""
    tracks = list[Recording]()
    needless = _needless(tables, reading) if inputs is None else ()
    for table, name, (y, unlabelled) in zip(tables, names, clean_labels(tables), strict=True):
        refuse_lacking(table, reading.drop, table.columns, "to drop")
        left_out = {*reading.drop, *needless}
        columns = {name: x for name, x in table.columns.items() if name not in left_out}
        _refuse_words(table, columns)
        first = tracks[0] if tracks else None
        clock = time_column(table, columns, first.time if first else reading.time)
        channels = _channels(table, columns, clock, inputs, first)
        X, holes = _matrix(table, columns, channels)
        rate, times, breaks = table.rate or reading.rate, None, NO_BREAKS
        if clock is not None:
            times, rate, breaks = read_clock(table, clock, columns[clock], rate)
        else:
            rate = agreed(table, "the file says", table.rate, reading.rate)
        if table.lines is not None:
            breaks = np.union1d(breaks, blank_lines(table))
        track = Recording(
            name,
            X,
            table=table,
            holes=holes,
            y=y,
            unlabelled=unlabelled,
            channels=channels,
            rate=rate,
            times=times,
            breaks=breaks,
            time=clock,
        )
        if times is not None and rate and reading.rate and not alike(rate, reading.rate):
            track = at_rate(track, reading.rate)
        tracks.append(_numbers_last(track, reading.beside))
    _same_rates(tracks)
    if inputs is None:
        _refuse_counters(tracks)
    _give_type(tracks)
    return tracks


def _needless(tables: Sequence[Columns], reading: Reading) -> list[str]:
    """Name columns that are empty in each row, or times beside the times; notes say so."""
    held: dict[str, list[NDArray[Any]]] = {}
    for table in tables:
        for name, values in table.columns.items():
            held.setdefault(name, []).append(values)
    for name in (*reading.drop, *reading.beside, *([reading.time] if reading.time else [])):
        held.pop(name, None)
    needless = dict[str, str]()
    is_training = reading.labels_needed and not reading.classes
    clocks = [n for n, parts in held.items() if _may_be_time(n) and all(map(_is_clock, parts))]
    clock = min(clocks, key=IN_FRONT.__eq__, default=None) if reading.time is None else reading.time
    for name, parts in held.items():
        if all(part.dtype.kind == "f" and np.isnan(part).all() for part in parts):
            needless[name] = "empty in every row"
        elif is_training and all(map(_is_constant, parts, repeat(parts[0][0]))):
            needless[name] = _CONSTANT
        elif name in clocks and name != clock and not tables[0].is_sound:
            needless[name] = f"increases as the time, {clock}, does"
    if not set(held) - {clock, *needless}:  # a sensor that says the same all the time
        needless = {name: reason for name, reason in needless.items() if reason != _CONSTANT}
    for name, reason in needless.items():
        tables[0].notes[f"left out: {visible(name)} ({reason})"] = 0
    return list(needless)


def _is_constant(values: NDArray[Any], value: object) -> bool:
    is_number = values.dtype.kind in "biuf"
    return is_number and bool((values[:99] == value).all() and (values == value).all())


def _may_be_time(name: str) -> bool:
    """Whether a column has the name of a time, or is the first one and has none."""
    return kinds.is_time_name(name) or name == IN_FRONT


def _is_clock(values: NDArray[Any]) -> bool:
    """Whether values are times, also of several sessions."""
    return values.dtype.kind == "M" or (
        values.dtype.kind in "iuf" and len(values) > 1 and kinds.mostly_increasing(values)
    )


def check_channels(source: str, channels: Sequence[str], n: int) -> None:
    """Check that recordings have the channels that a model takes, and its numbers beside."""
    if len(channels) != n:
        raise ShapeError(
            f"{source}: has {count(len(channels), 'channel')} ({join(channels, 9)}), but the "
            f"model takes {n}; give those of its training"
        )


def _refuse_words(table: Columns, columns: dict[str, NDArray[Any]]) -> None:
    """Refuse a file whose first row has no number in any column."""
    texts = [x for name, x in columns.items() if name not in table.faults and x.dtype.kind == "U"]
    faulty = [name for name in columns if table.faults.get(name, (1, ""))[0] == 0]
    if len(columns) > 1 and len(faulty) + len(texts) == len(columns):
        raise DataError(
            f"{table.place(0)} has no number; where it holds units or a title, remove it"
        )


def _channels(
    table: Columns,
    columns: dict[str, NDArray[Any]],
    clock: str | None,
    inputs: Sequence[str] | None,
    first: Recording | None,
) -> tuple[str, ...]:
    """Return the names of the channels, in the order of the first recording."""
    chosen = tuple(name for name in columns if name != clock) if inputs is None else tuple(inputs)
    refuse_lacking(table, chosen, columns, "to take as an input")
    if not chosen:
        raise DataError(f"{table.file}: has no channels; columns: {_listed(columns)}")
    if first is not None and set(chosen) != set(first.channels):
        raise DataError(
            f"{table.file}: has the channels {_listed(chosen)}, {first.table.file} has "
            f"{_listed(first.channels)}; choose common ones with --set inputs=NAMES"
        )
    for name in chosen:
        if name in table.faults or columns[name].dtype.kind not in "biuf":
            row, cell = table.faults.get(name, (0, str(columns[name][0])))
            raise DataError(
                f"{table.place(row, name)}: {cell[:40]!r} is not a number; name the labels "
                f"with --label, or leave the column out with --set drop={quote(name)}"
            )
    return chosen if first is None else first.channels


def _matrix(
    table: Columns, columns: dict[str, NDArray[Any]], channels: Sequence[str]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return samples x channels, 0 where a value is missing, and a mask of such samples."""
    parts = [columns[name] for name in channels]
    X = np.column_stack(parts) if len(parts) > 1 else parts[0].reshape(-1, 1)
    if X.dtype.kind != "f":
        return X, _all_false(X)
    for row, column in np.argwhere(np.isinf(X))[:1]:
        raise DataError(f"{table.place(row, channels[column])}: is infinite; correct it")
    holes = np.isnan(X).any(axis=1)
    return np.nan_to_num(X) if holes.any() else X, holes


def _all_false(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return False for each row, in constant memory."""
    return np.broadcast_to(np.zeros((), bool), len(rows))


def _numbers_last(track: Recording, names: Sequence[str]) -> Recording:
    """Move the columns of numbers beside a window behind the channels."""
    refuse_lacking(track.table, names, track.channels, "of numbers beside a window")
    channels = tuple(name for name in track.channels if name not in names)
    if not channels:
        raise DataError(
            f"{track.table.file}: beside leaves no channel; columns: {_listed(track.channels)}"
        )
    order = [track.channels.index(name) for name in (*channels, *names)]
    return replace(track, X=track.X[:, order], channels=(*channels, *names)) if names else track


def _same_rates(tracks: Sequence[Recording]) -> None:
    first = tracks[0]
    for track in tracks[1:]:
        if (track.rate is None) != (first.rate is None):
            lacking, other = (track, first) if track.rate is None else (first, track)
            raise DataError(
                f"{lacking.table.file}: has no sampling rate, but {other.table.file} has "
                f"{other.rate:g} Hz; give --set rate=HZ"
            )
        if track.rate is not None and first.rate is not None and not alike(track.rate, first.rate):
            raise DataError(
                f"{track.table.file}: has {track.rate:g} Hz, {first.table.file} has "
                f"{first.rate:g} Hz; all recordings must have one sampling rate; "
                f"--set rate={first.rate:g} resamples the others"
            )


def _refuse_counters(tracks: Sequence[Recording]) -> None:
    """Refuse a channel that is a counter or an identifier in every recording."""
    suspects = dict.fromkeys(tracks[0].channels, "")
    for track in tracks:
        reasons = kinds.suspicious_inputs(track.X, track.channels)
        suspects = {name: reason for name, reason in reasons.items() if name in suspects}
        if not suspects:
            return
    name, reason = next(iter(suspects.items()))
    raise DataError(
        f"{tracks[0].table.file}: the column {name!r} {reason}; leave it out with --set "
        f"drop={quote(name)}, say with --set time={quote(name)} that it holds times, or keep it "
        "with --set inputs=NAMES"
    )


def _give_type(tracks: Sequence[Recording]) -> None:
    """Convert all recordings to the smallest type of the firmware for their values."""
    kind = np.result_type(*(track.X.dtype for track in tracks))
    keeps = all(track.table.keeps_type for track in tracks)
    if kind.kind == "b":
        kind = np.dtype(np.uint8)
    elif not (keeps and kind.kind in "iu" and (kind.itemsize <= 2 or kind == np.int32)):
        whole = kind.kind in "iu" or not (keeps or any((t.X % 1).any() for t in tracks))
        low, high = min(t.X.min() for t in tracks), max(t.X.max() for t in tracks)
        fit = (t for t in (np.int16, np.int32) if np.iinfo(t).min <= low <= high <= np.iinfo(t).max)
        kind = np.dtype(next(fit, np.float32) if whole else np.float32)
    if kind == np.float32:
        for track in tracks:
            for row, column in np.argwhere(np.abs(track.X.astype(np.float64)) > _LARGEST)[:1]:
                place = track.table.place(row, track.channels[column])
                raise DataError(f"{place}: does not fit in a 32-bit float; rescale it")
    for track in tracks:
        track.X = track.X.astype(kind, copy=False)


def clean_labels(tables: Sequence[Columns]) -> list[tuple[NDArray[Any] | None, NDArray[np.bool_]]]:
    """Return labels of one type for all files, and masks of samples without a label."""
    codes = list[tuple[NDArray[Any], NDArray[Any]] | None]()
    for table in tables:
        y = table.y
        alike_all = y is not None and of_all_alike(y)
        one = (y[:1], np.zeros(1, np.intp)) if y is not None and alike_all else None
        codes.append(one if y is None or one else np.unique(y, return_inverse=True))
    texts = sorted({text for code in codes if code for text in code[0].tolist()})
    known = [text for text in texts if text.lower() not in NO_LABEL]
    values = text_labels(known) if known else np.zeros(0, np.int64)
    numbers = np.array(list(map(number_of, known)), np.float64)
    if known and values.dtype.kind == "U" and np.isfinite(numbers).all():
        # If all are whole, one has more digits than integer labels.
        largest = max(known, key=lambda text: abs(float(text)))
        broken = next((text for text in known if not float(text).is_integer()), largest)
        pairs = zip(tables, codes, strict=True)
        file = next(t for t, code in pairs if code is not None and broken in code[0])
        raise DataError(
            f"{file.file}: the labels{file.labels_are} are not classes: one is {broken}; give "
            "integers or text, or say with --label or --name where the labels are"
        )
    value = dict(zip(known, values.tolist(), strict=True))
    empty = values.dtype.type()
    cleaned = list[tuple[NDArray[Any] | None, NDArray[np.bool_]]]()
    for table, code in zip(tables, codes, strict=True):
        if code is None or table.y is None:
            cleaned.append((None, _all_false(next(iter(table.columns.values())))))
            continue
        y = np.array([value.get(text, empty) for text in code[0].tolist()], values.dtype)[code[1]]
        missing = np.array([text not in value for text in code[0].tolist()])[code[1]]
        y, missing = (
            np.broadcast_to(each, len(table.y)) if len(each) < len(table.y) else each
            for each in (y, missing)
        )
        if missing.any() and not missing.all():
            # The label before fills a missing one, so that it is not a change of label.
            place = np.where(missing, (~missing).argmax(), np.arange(len(y)))
            y = y[np.maximum.accumulate(place)]
        cleaned.append((y, missing))
    return cleaned


def majority(values: NDArray[Any]) -> Any:
    """Return the commonest value; of a tie the last one."""
    kinds_of, last, counts = np.unique(values[::-1], return_index=True, return_counts=True)
    return kinds_of[np.lexsort((last, -counts))[0]]


def _listed(names: Iterable[str]) -> str:
    return join(list(names), 12)
