"""Times of recordings: their column, rate and gaps, and recordings of another rate."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import pairwise
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import number_of
from tinykernel.base.errors import DataError
from tinykernel.data import columns as kinds
from tinykernel.data.reading import NO_BREAKS, Columns, Recording
from tinykernel.data.tables import those_there

#: The name of a first column that has none, as that of an index of pandas.
IN_FRONT = "column1"
_RATE_TOLERANCE = 0.02
_ROUNDED = 1e-3  # of a rate: more is no rounding of times
_SAME_PLACE = 1e-6  # of a sample
_FARTHEST = 4.0  # ratio of rates in resampling; a unit that is mistaken has a larger one


def refuse_lacking(table: Columns, names: Iterable[str], among: Collection[str], use: str) -> None:
    """Refuse names that are no columns of a file."""
    lacking = next((name for name in names if name not in among), None)
    if lacking is not None:
        which = those_there(lacking, list(among))
        raise DataError(f"{table.file}: has no column {lacking!r} {use}; {which}")


def time_column(table: Columns, columns: dict[str, NDArray[Any]], named: str | None) -> str | None:
    """Return the column of times, that which is named or whose name or place says so."""
    refuse_lacking(table, [] if named is None else [named], columns, "of times")
    if named is None:
        named = next((name for name in columns if kinds.is_time_name(name)), None)
        unnamed = columns.get(IN_FRONT, NO_BREAKS)
        if named is None and (unnamed.dtype.kind == "M" or kinds.strictly_monotone(unnamed)):
            named = IN_FRONT
    if named is None:
        return None
    values = columns[named]
    where = f"{table.file}: the column {named!r} is read as time"
    if values.dtype.kind not in "iufM":
        texts = [str(value) for value in values.tolist()]
        row = next((i for i, text in enumerate(texts) if number_of(text) is None), 0)
        cell = table.faults.get(named, (0, texts[row]))[1]
        raise DataError(
            f"{where}, but row {row + 1} holds {cell[:40]!r}; leave it out with --set "
            f"drop={quote(named)}"
        )
    lost = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if lost.any():
        raise DataError(f"{table.place(int(lost.argmax()), named)}: the time is missing; fill it")
    # Samples of a packet may share one time.
    never_falls = bool((values[1:] >= values[:-1]).all())
    rises = never_falls or kinds.mostly_increasing(values, _begin_again(table, values))
    if len(values) > 1 and not rises:
        raise DataError(
            f"{where}, but does not increase; leave it out with --set drop={quote(named)}"
        )
    return named


def _begin_again(table: Columns, times: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask steps to another group or label, and those back to where the times of a file begin."""
    numbers = times.astype(np.int64) if times.dtype.kind == "M" else times
    steps = np.diff(numbers)
    mask: NDArray[np.bool_] = numbers[1:] <= numbers.min() + np.median(np.abs(steps))
    for texts in (table.group, table.y):
        if texts is not None:
            mask = mask | (texts[1:] != texts[:-1])
    return mask


def blank_lines(table: Columns) -> NDArray[np.intp]:
    """Return the samples before which the file has blank lines, unless they are everywhere."""
    lines = np.asarray(table.lines)
    breaks = np.flatnonzero(np.diff(lines) > 1) + 1
    return breaks if 2 * len(breaks) < len(lines) else NO_BREAKS


def read_clock(
    table: Columns, name: str, values: NDArray[Any], rate: float | None
) -> tuple[NDArray[np.float64] | None, float | None, NDArray[np.intp]]:
    """Return times in seconds, the rate, and the samples before which there is a gap."""
    ticks: float | None = None  # a second
    if values.dtype.kind == "M":
        values, ticks = values.astype("datetime64[us]").astype(np.int64), 10**6
    values = values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
    steps = np.diff(values)
    if not len(steps):
        return None, rate, NO_BREAKS
    if (steps != 0).all():
        gap = (steps > kinds.GAP * np.median(steps)) | (steps < 0)
    else:
        values, gap = _spread(table, name, values)
        steps = np.diff(values)
    # The mean, as steps of 60 Hz in whole milliseconds are 16 and 17.
    step = float(steps[~gap].mean())
    if ticks is None:
        ticks = kinds.ticks_per_second(name, float(values[0]))
    if ticks is not None:
        rate = _without_rounding(ticks / step, int((~gap).sum()))
    elif rate is not None:
        close = [n for n in (1, 10**3, 10**6, 10**9) if alike(n / step, rate)]
        ticks = close[0] if close else rate * step
    times = None if ticks is None else values / ticks
    return times, rate, np.flatnonzero(gap) + 1


def _without_rounding(rate: float, n: int) -> float:
    """Return a whole rate where rounded times of n steps may be of it, else six digits."""
    whole, digits = float(round(rate)), float(f"{rate:.6g}")
    away = abs(rate - whole) / rate
    return whole if away <= _ROUNDED and away * n < 0.5 else digits


def alike(rate: float, other: float) -> bool:
    """Whether two rates agree."""
    return abs(rate - other) <= _RATE_TOLERANCE * max(rate, other)


def agreed(table: Columns, who: str, measured: float | None, asked: float | None) -> float | None:
    """Return the rate of a file, or if it has none that of the user."""
    if measured is None or asked is None or alike(measured, asked):
        return asked if measured is None else measured
    raise DataError(f"{table.file}: {who} {measured:g} Hz, but {asked:g} Hz is given; correct it")


def _spread(
    table: Columns, name: str, values: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Spread samples that have one time, as of a packet, evenly up to the next one; and gaps."""
    firsts = np.append(0, np.flatnonzero(np.diff(values)) + 1)
    steps = np.diff(values[firsts])
    if not len(steps):
        raise DataError(
            f"{table.file}: all times of the column {name!r} are the same; leave it out with --set "
            f"drop={quote(name)} and --set rate=HZ"
        )
    table.notes["several samples have one time: they are spread up to the next one"] = 0
    counts = np.diff(np.append(firsts, len(values)))
    # The first and the last samples may be of a part of a packet.
    pace = float(np.median((steps / counts[:-1])[len(steps) > 1 :]))
    usual = np.maximum(np.median(steps), pace * counts[:-1])
    is_gap = (steps > kinds.GAP * usual) | (steps < 0)
    gap = np.zeros(len(values) - 1, bool)
    gap[firsts[1:] - 1] = is_gap
    lengths = np.append(np.where(is_gap, pace * counts[:-1], steps), pace * counts[-1])
    begins = values[firsts].astype(np.float64)
    if counts[0] < np.median(counts):
        lengths[0] = min(lengths[0], pace * counts[0])
        begins[0] = begins[1] - lengths[0]
    within = np.arange(len(values)) - np.repeat(firsts, counts)
    return np.repeat(begins, counts) + within * np.repeat(lengths / counts, counts), gap


def at_rate(track: Recording, rate: float) -> Recording:
    """Return a recording with times at another rate: straight lines between samples, not gaps."""
    assert track.times is not None
    if track.rate is None or not rate / _FARTHEST <= track.rate <= rate * _FARTHEST:
        agreed(track.table, f"the steps of {track.time!r} say", track.rate, rate)
    times, clocks, places = track.times, list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    for first, end in pairwise([0, *track.breaks.tolist(), len(track.X)]):
        n = int((times[end - 1] - times[first]) * rate + 1e-6) + 1
        clocks.append(times[first] + np.arange(n) / rate)
        places.append(first + np.interp(clocks[-1], times[first:end], np.arange(end - first)))
    place = np.concatenate(places)
    # Each new sample has the label, group and line of the nearest old one, or of a neighbour that
    # lacks a value, so that it lacks one, too.
    near: Any = np.rint(place).astype(np.intp)
    for side in (np.floor(place + _SAME_PLACE), np.ceil(place - _SAME_PLACE)):
        near = np.where(track.holes[side.astype(np.intp)], side.astype(np.intp), near)
    table = track.table
    table.notes[f"resampled to {rate:g} Hz"] = 0
    y, group, lines = (
        None if each is None else np.asarray(each)[near]
        for each in (track.y, table.group, table.lines)
    )
    columns = {name: column[near] for name, column in table.columns.items()}
    return replace(
        track,
        X=np.column_stack([np.interp(place, np.arange(len(x)), x) for x in track.X.T]),
        table=replace(table, columns=columns, group=group, lines=lines),
        holes=track.holes[near],
        unlabelled=track.unlabelled[near],
        y=y,
        rate=rate,
        times=np.concatenate(clocks),
        breaks=np.cumsum([len(clock) for clock in clocks[:-1]], dtype=np.intp),
    )
