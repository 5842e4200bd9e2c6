"""Cut recordings into windows.

A window never spans a gap in time nor the end of a recording. Window w of a stretch without gaps
starts at its sample w * hop, as in the firmware.
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, OptionError
from tinykernel.base.text import count, join
from tinykernel.base.windows import as_rows, hop_within
from tinykernel.data.columns import UNITS_OF_TIME
from tinykernel.data.labels import background_among, is_background
from tinykernel.data.reading import NO_BREAKS, NO_FILE, Reading, Recording, any_of, of_all_alike
from tinykernel.data.resting import take_peaks, without_rest
from tinykernel.data.tracks import majority

#: Samples, label and name of a whole recording.
Clip = tuple[NDArray[Any], Any, str]
# Seconds between the decisions of a model that learns from clips.
_BETWEEN_DECISIONS = 0.1
# The same where a word is somewhere in a longer clip, which is found as in a stream.
_BETWEEN_IN_STREAMS = 0.04


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of recordings, in the order of recordings and time.

    Parameters
    ----------
    X : ndarray, shape (n, samples, channels + numbers)
        int16 or int32 where all channels hold whole numbers (arrays and sounds keep a smaller
        type), else float32.
    y : ndarray of int64 or str, shape (n,), or None
        Labels.
    groups : ndarray of str, shape (n,)
        Windows of a group must not be split: the file, or the value of `groups`.
    recordings : tuple of str
        Names of the files that were read.
    recording : ndarray of int64, shape (n,)
        Index of the recording of a window.
    segments : ndarray of int64, shape (n,)
        Index of its stretch without gaps, through all recordings.
    starts : ndarray of int64, shape (n,)
        Its first sample, counted from the beginning of the recording.
    end_times : ndarray of float64, shape (n,), or None
        Time of its last sample in seconds, by the clock of the recording. None where neither times
        nor a rate are known.
    channels : tuple of str
    rate : float or None
        Samples a second.
    hop : int
        Samples from one window to the next.
    dropped : dict of str to int
        Dropped windows by reason: ``"mixed"`` (several labels), ``"missing"`` (a missing value or
        label), ``"short"`` (stretches shorter than a window).
    time : str or None
        The column of times.
    source : str
        The name of the file or folder.
    stretches : tuple of Recording
        All samples of stretches with windows, whatever their labels.
    padded : int
        Number of recordings shorter than a window, which were padded with zeros.
    not_taken : tuple of str
        Channels of sounds that were not used.
    resampled : int
        Number of sounds that were resampled.
    numbers : tuple of str
        Columns of numbers beside a window, the last ones of X.
    remarks : tuple of str
        What was done with files, for people.
    words : tuple of str
        Labels that are somewhere in their recordings, of which only the loudest window is there.
    """

    X: NDArray[Any]
    y: NDArray[Any] | None
    groups: NDArray[np.str_]
    recordings: tuple[str, ...]
    recording: NDArray[np.int64]
    segments: NDArray[np.int64]
    starts: NDArray[np.int64]
    end_times: NDArray[np.float64] | None
    channels: tuple[str, ...]
    rate: float | None
    hop: int
    dropped: dict[str, int]
    time: str | None
    source: str
    stretches: tuple[Recording, ...] = ()
    padded: int = 0
    not_taken: tuple[str, ...] = ()
    resampled: int = 0
    numbers: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def at(self, rows: NDArray[np.int64]) -> "Windows":
        """Return some of the windows, in this order."""
        names = ("X", "y", "groups", "recording", "segments", "starts", "end_times")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in names}
        some: dict[str, Any] = {k: None if v is None else v[rows] for k, v in arrays.items()}
        return replace(self, **some)

    @property
    def inputs(self) -> NDArray[Any]:
        """Inputs of a model: X, or rows of a window and the numbers at its end."""
        if not self.numbers:
            return self.X
        return as_rows(self.X, len(self.numbers))

    def as_cut(self, reading: Reading) -> Reading:
        """Return the reading that cuts other recordings into windows like these."""
        lengths = {"window": self.X.shape[1], "hop": self.hop, "rate": self.rate}
        channels: dict[str, Any] = {"inputs": self.channels, "beside": self.numbers}
        # What is background to the finished model must not make words of its other classes.
        clips = reading.clips if self.words else "windows"
        return replace(reading, **lengths, **channels, clips=clips)

    def clips(self, groups: Container[str], inside: bool = True) -> tuple[Clip, ...]:
        """Return the whole recordings of groups, or of the others, but silent ones."""
        return tuple(
            (each.X, each.y[0].item(), each.name)
            for each in self.stretches
            if (each.group in groups) == inside and each.y is not None and np.ptp(each.X)
        )

    def adjacent(self, n: int) -> NDArray[Any]:
        """Return n adjacent windows with the most labels; if none are adjacent, the first n."""
        window = self.X.shape[1]
        place = {key: i for i, key in enumerate(zip(self.segments, self.starts, strict=True))}
        best, most = np.arange(min(n, len(self.X))), 0
        for segment, start in place:
            places = [place.get((segment, start + k * window)) for k in range(n)]
            if None in places:
                continue
            rows = np.array(places)
            labels = 1 if self.y is None else len(np.unique(self.y[rows]))
            if labels > most:
                best, most = rows, labels
        return self.inputs[best]

    def __str__(self) -> str:
        """Describe the windows in one line."""
        n, samples, _ = self.X.shape
        shape = f"{count(samples, 'sample')} x {count(len(self.channels), 'channel')}"
        if self.numbers:
            shape += f" and {count(len(self.numbers), 'number')} beside"
        line = f"{self.source}: {count(n, 'window')} of {shape}, hop {self.hop}"
        if self.rate is not None:
            line += f", {self.rate:g} Hz"
        line += f", from {count(len(self.recordings), 'file')}"
        return "; ".join([line, *self.notes])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on resampled, padded and dropped recordings, windows and channels."""
        counts = {"resampled": self.resampled, "padded": self.padded, **self.dropped}
        notes = notes_on(counts, self.rate, self.channels, self.not_taken, self.time)
        return (*self.remarks, *notes)


def notes_on(
    counts: Mapping[str, int],
    rate: float | None,
    channels: Sequence[str],
    others: Sequence[str],
    time: str | None,
) -> tuple[str, ...]:
    """Return notes for people: `counts` are of sounds and recordings, and as `Windows.dropped`."""
    gaps = "" if time is None else f" between gaps of column {time!r}"
    reasons = (
        ("mixed", "window", "of several labels"),
        ("missing", "window", "with missing values"),
        ("silent", "recording", "of silence alone"),
        ("short", "stretch", f"too short for a window{gaps}"),
    )
    dropped = ", ".join(
        f"{count(counts[key], unit)} {reason}" for key, unit, reason in reasons if counts.get(key)
    )
    n_resampled, n_padded = counts["resampled"], counts["padded"]
    lines = {
        f"resampled to {rate or 0:g} Hz: {count(n_resampled, 'sound')}": n_resampled,
        f"padded to a window: {count(n_padded, 'recording')}": n_padded,
        f"left out: {dropped}": dropped,
        f"of the sounds {', '.join(channels)} is taken, and not {', '.join(others)}": others,
    }
    return tuple(line for line, holds in lines.items() if holds)


def often_within(tracks: Sequence[Recording], window: int) -> int:
    """Return the hop of words in a stream."""
    often = hop_within(tracks[0].rate, window, _BETWEEN_IN_STREAMS)
    return often or hop_within(tracks[0].rate, window, _BETWEEN_DECISIONS) or max(1, window // 2)


def lengths(tracks: Sequence[Recording], reading: Reading) -> tuple[int, int]:
    """Return window and hop in samples; clips of a window each have one window at any hop."""
    track, window, hop = tracks[0], reading.window, reading.hop
    if window is None:
        raise DataError(
            f"{track.table.file}: is a recording; give the window length, as in --window 2s"
        )
    samples = _samples("window", window, track)
    if hop is None:
        are_clips = all(each.table.is_sound and len(each.X) <= samples for each in tracks)
        half = max(1, samples // 2)
        often = hop_within(track.rate, samples, _BETWEEN_DECISIONS) if are_clips else None
        return samples, min(half, often or half)
    step = _samples("hop", hop, track)
    if step > samples:
        raise OptionError(
            f"hop: {step} samples are longer than the window of {samples}; give a shorter one"
        )
    return samples, step


def _samples(name: str, length: str | int, track: Recording) -> int:
    """Convert a length in seconds, milliseconds or samples to samples."""
    text = str(length) if isinstance(length, (str, int, np.integer)) else ""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d*)?|\.\d+)\s*(s|ms|)\s*", text)
    if match is None or isinstance(length, bool) or (not match[2] and not match[1].isdecimal()):
        raise OptionError(
            f"{name} must be a time like '2.56s' or '2560ms', or a number of samples; got "
            f"{length!r}"
        )
    if not match[2]:
        count = int(match[1])
    elif track.rate is None:
        raise OptionError(
            f"{track.table.file}: the sampling rate is not known; give --set rate=HZ"
            f"{_if_in_unit(track)}, add the unit to the name of the column of times "
            f"(time_ms), or give {name} in samples"
        )
    else:
        count = round(float(match[1]) * (1 if match[2] == "s" else 1e-3) * track.rate)
    if count < 1:
        raise OptionError(f"{name} must be at least one sample; got {length!r}")
    return count


def _if_in_unit(track: Recording) -> str:
    """Say the rate that times without a unit would have in the one that is likely."""
    values = None if track.time is None else track.table.columns[track.time]
    step = 0.0 if values is None else float(np.median(np.diff(values.astype(np.float64))))
    if step <= 0:
        return ""
    ticks = next((n for n in UNITS_OF_TIME if n >= step), max(UNITS_OF_TIME))
    return f" (--set rate={ticks / step:.6g} if {track.time!r} is in {UNITS_OF_TIME[ticks][-1]})"


def window_starts(
    segments: Sequence[tuple[int, int]], window: int, hop: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first sample of each window, and the index of its segment (first, end)."""
    starts = [np.arange(first, end - window + 1, hop, dtype=np.int64) for first, end in segments]
    segment = [np.full(len(s), i, np.int64) for i, s in enumerate(starts)]
    empty = np.empty(0, np.int64)
    return np.concatenate([empty, *starts]), np.concatenate([empty, *segment])


def long_enough(
    tracks: Sequence[Recording], window: int, reading: Reading, source: str
) -> tuple[list[Recording], int]:
    """Pad or drop recordings shorter than a window; also return the number of padded ones."""
    long, padded = list[Recording](), 0
    for track in tracks:
        if window <= len(track.X) or (reading.short is None and not track.table.is_sound):
            long.append(track)
        elif reading.short != "drop":
            long.append(_padded(track, window - len(track.X)))
            padded += 1
    if not long:
        raise DataError(f"{source}: every recording is shorter than a window; give --set short=pad")
    if reading.beside and padded:
        raise DataError(
            f"{source}: a recording is shorter than a window, and cannot be padded with numbers "
            "beside it; give --set short=drop"
        )
    return long, padded


def short_in_words(tracks: Sequence[Recording], window: int, reading: Reading) -> tuple[str, ...]:
    """Say how many recordings, and stretches of a label, are shorter than a window, by class."""
    total, short = Counter[str](), Counter[str]()
    of_files = True
    for track in tracks:
        if track.y is None:
            continue
        ends, y = [len(track.y)], track.y
        if not of_all_alike(y):
            ends = [*(np.flatnonzero(y[1:] != y[:-1]) + 1).tolist(), len(y)]
        of_files &= len(ends) == 1
        for first, end in pairwise([0, *ends]):
            if not is_background(y[first]) and not any_of(track.unlabelled[first:end]):
                total[str(y[first])] += 1
                short[str(y[first])] += end - first < window
    fate = "padded" if of_files and reading.short != "drop" else "left out"
    fate = "labelled where they peak" if reading.label_at == "peak" and not of_files else fate
    unit = "recordings" if of_files else "stretches"
    parts = [f"{name} {n} of {total[name]} {unit}" for name, n in short.items() if n]
    return (f"shorter than a window, {fate}: {join(parts, 8)}",) if parts else ()


def _padded(track: Recording, n: int) -> Recording:
    """Append n rows of zeros to a recording, with its last label and group."""

    def longer(values: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if values is None else np.pad(values, (0, n), mode="edge")

    times = track.times
    if times is not None:
        step = (times[-1] - times[0]) / max(1, len(times) - 1)
        times = np.concatenate([times, times[-1] + step * np.arange(1, n + 1)])
    return replace(
        track,
        table=replace(track.table, group=longer(track.table.group)),
        X=np.pad(track.X, ((0, n), (0, 0))),
        holes=np.pad(track.holes, (0, n)),
        y=longer(track.y),
        unlabelled=np.pad(track.unlabelled, (0, n), mode="edge"),
        times=times,
    )


def segments_of(track: Recording) -> list[tuple[int, int]]:
    """Return the stretches of a recording without gaps and of one group."""
    group, breaks = track.table.group, track.breaks
    if group is not None:
        breaks = np.union1d(breaks, np.flatnonzero(group[1:] != group[:-1]) + 1)
    return list(pairwise([0, *breaks.tolist(), len(track.X)]))


def cut(
    tracks: Sequence[Recording], window: int, hop: int, reading: Reading, source: str
) -> Windows:
    """Cut all recordings and join their windows."""
    dropped = {"mixed": 0, "missing": 0, "short": 0}
    parts = [_cut(track, window, hop, reading, dropped) for track in tracks]
    n_windows = [len(part["starts"]) for part in parts]
    if not any(n_windows):
        raise DataError(
            f"{source}: no window is left: {dropped['mixed']} have several "
            f"labels{tracks[0].table.labels_are}, {dropped['missing']} missing values; give a "
            "shorter --window"
        )
    # Where one recording lacks labels or times, no window has any.
    whole: dict[str, Any] = {}
    for name in parts[0]:
        values = [part[name] for part in parts]
        whole[name] = None if any(each is None for each in values) else np.concatenate(values)
    n_before = np.cumsum([0, *(len(segments_of(track)) for track in tracks[:-1])])
    whole["segments"] += np.repeat(n_before, n_windows)
    first, remarks = tracks[0], tuple[str, ...]()
    if reading.label_at == "peak" and whole["y"] is not None:
        clips = np.repeat(np.arange(len(parts)), n_windows)
        still = background_among(np.unique(whole["y"]).tolist(), reading.background)
        whole["y"], remarks = without_rest(whole["X"], whole["y"], clips, still, source)
    if whole["y"] is not None:
        moves = (whole["X"].max(axis=1) > whole["X"].min(axis=1)).any(axis=1)
        lively = set(whole["y"][moves].tolist())
        dull = sorted({str(label) for label in set(whole["y"].tolist()) - lively})
        alike = f"all windows of {join(dull)} hold one value: is the sensor connected?"
        remarks = (*remarks, *([alike] if dull and lively else []))
    return Windows(
        **whole,
        remarks=remarks,
        recordings=tuple(track.name for track in tracks),
        recording=np.repeat(np.arange(len(parts), dtype=np.int64), n_windows),
        channels=first.channels[: len(first.channels) - len(reading.beside)],
        rate=first.rate,
        hop=hop,
        dropped=dropped,
        time=first.time,
        source=source,
        stretches=tuple(s for t in tracks for s in _stretches(t) if len(s.X) >= window),
        numbers=tuple(reading.beside),
    )


def _stretches(track: Recording) -> Iterator[Recording]:
    """Yield the stretches of a recording without missing values."""
    for first, end in segments_of(track):
        holes = track.holes[first:end]
        lost = first + (np.flatnonzero(holes) if any_of(holes) else NO_BREAKS)
        for before, after in pairwise([first - 1, *lost.tolist(), end]):
            if after > before + 1:
                # Without the file, which may be large.
                yield replace(track.part(before + 1, after), table=NO_FILE)


def _cut(
    track: Recording, window: int, hop: int, reading: Reading, lost: dict[str, int]
) -> dict[str, Any]:
    """Return fields of the `Windows` of one recording, and count dropped ones."""
    segments = segments_of(track)
    starts, segment = window_starts(segments, window, hop)
    if not len(starts):
        longest = max(end - first for first, end in segments)
        of_time = f" of column {track.time!r}" * (track.time is not None)
        gaps = f" (at most {longest} between gaps{of_time})" if len(segments) > 1 else ""
        pad = ", or --set short=pad" * (len(track.X) < window)
        raise DataError(
            f"{track.table.file}: a window of {window} samples is longer than the recording, "
            f"which has {len(track.X)} samples{gaps}; give a shorter --window{pad}"
        )
    y, several = window_labels(track.y, starts, window)
    if reading.label_at == "peak" and several.any():
        several &= ~take_peaks(track, y, starts, window)
    keep = ~several if reading.mixed == "drop" else np.ones(len(starts), bool)
    holed = np.zeros(len(starts), bool)
    if any_of(track.holes) or any_of(track.unlabelled):
        lost_before = np.concatenate(([0], np.cumsum(track.lost)))
        holed = (lost_before[starts + window] > lost_before[starts]) & keep
    if reading.missing == "error" and holed.any():
        raise DataError(first_hole(track, int(starts[holed.argmax()])))
    lost["short"] += len(segments) - len(np.unique(segment))
    lost["mixed"] += int((~keep).sum())
    lost["missing"] += int(holed.sum())
    keep &= ~holed
    starts = starts[keep]
    X = np.empty((len(starts), window, track.X.shape[1]), track.X.dtype)
    for rows, first in zip(X, starts.tolist(), strict=True):
        rows[:] = track.X[first : first + window]
    group = track.table.group
    return {
        "X": X,
        "y": None if y is None else y[keep],
        "groups": group[starts] if group is not None else np.full(len(starts), track.name),
        "starts": starts,
        "end_times": track.times_at(starts + window - 1),
        "segments": segment[keep],
    }


def window_labels(
    y: NDArray[Any] | None, starts: NDArray[np.int64], window: int
) -> tuple[NDArray[Any] | None, NDArray[np.bool_]]:
    """Return the most frequent label of every window, and a mask of those with several."""
    if y is None:
        return None, np.zeros(len(starts), bool)
    if of_all_alike(y):
        return np.repeat(y[:1], len(starts)), np.zeros(len(starts), bool)
    changes = np.concatenate(([0], np.cumsum(y[1:] != y[:-1])))
    several = changes[starts + window - 1] != changes[starts]
    labels = y[starts + window - 1].copy()
    for i in np.flatnonzero(several):
        labels[i] = majority(y[starts[i] : starts[i] + window])
    return labels, several


def first_hole(track: Recording, start: int) -> str:
    """Return an error about the first missing value or label of a window."""
    place = start + int(track.lost[start:].argmax())
    columns, cell, name, row = track.table.columns, "label", None, track.first + place
    if track.holes[place]:
        cell = "value"
        name = next(name for name in track.channels if np.isnan(columns[name][row]))
    return (
        f"{track.table.place(row, name)}: the {cell} is missing inside a window; fill it, or train "
        "with --missing drop, which ignores such windows"
    )
