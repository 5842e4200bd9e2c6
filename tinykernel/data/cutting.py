"""Cut recordings into windows.

A window never spans a gap in time nor the end of a recording. Window w of a stretch without gaps
starts at its sample w * hop, as in the firmware.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError
from tinykernel.base.text import count
from tinykernel.data.recording_files import Reading
from tinykernel.data.tracks import Track, majority


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive samples of one group, without gaps or missing values."""

    X: NDArray[Any]  # (samples, channels)
    group: str


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
    stretches : tuple of Stretch
        All samples of stretches with windows, whatever their labels.
    padded : int
        Number of recordings shorter than a window, which were padded with zeros.
    not_taken : tuple of str
        Channels of sounds that were not used.
    resampled : int
        Number of sounds that were resampled.
    numbers : tuple of str
        Columns of numbers beside a window, the last ones of X.
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
    stretches: tuple[Stretch, ...] = ()
    padded: int = 0
    not_taken: tuple[str, ...] = ()
    resampled: int = 0
    numbers: tuple[str, ...] = ()

    @property
    def inputs(self) -> NDArray[Any]:
        """Inputs of a model: X, or rows of a window and the numbers at its end."""
        if not self.numbers:
            return self.X
        from tinykernel.pieces.beside.spec import as_rows

        return as_rows(self.X, len(self.numbers))

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
        return notes_on(counts, self.rate, self.channels, self.not_taken, self.time)


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


def window_starts(
    segments: Sequence[tuple[int, int]], window: int, hop: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first sample of each window, and the index of its segment (first, end)."""
    starts = [np.arange(first, end - window + 1, hop, dtype=np.int64) for first, end in segments]
    segment = [np.full(len(s), i, np.int64) for i, s in enumerate(starts)]
    empty = np.empty(0, np.int64)
    return np.concatenate([empty, *starts]), np.concatenate([empty, *segment])


def long_enough(
    tracks: Sequence[Track], window: int, reading: Reading, source: str
) -> tuple[list[Track], int]:
    """Pad or drop recordings shorter than a window; also return the number of padded ones."""
    long, padded = list[Track](), 0
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


def _padded(track: Track, n: int) -> Track:
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


def segments_of(track: Track) -> list[tuple[int, int]]:
    """Return the stretches of a recording without gaps and of one group."""
    group, breaks = track.table.group, track.breaks
    if group is not None:
        breaks = np.union1d(breaks, np.flatnonzero(group[1:] != group[:-1]) + 1)
    return list(pairwise([0, *breaks.tolist(), len(track.X)]))


class _Piece(NamedTuple):
    """The windows of one recording; segments are counted within it."""

    X: NDArray[Any]
    y: NDArray[Any] | None
    groups: NDArray[np.str_]
    starts: NDArray[np.int64]
    end_times: NDArray[np.float64] | None
    segments: NDArray[np.int64]
    n_segments: int


def cut(tracks: Sequence[Track], window: int, hop: int, reading: Reading, source: str) -> Windows:
    """Cut all recordings and join the pieces."""
    dropped = {"mixed": 0, "missing": 0, "short": 0}
    pieces = [_piece(track, window, hop, reading, dropped) for track in tracks]
    if not any(len(piece.starts) for piece in pieces):
        raise DataError(
            f"{source}: no window is left: {dropped['mixed']} have several labels, "
            f"{dropped['missing']} missing values; give a shorter --window"
        )
    *columns, segments, n_segments = zip(*pieces, strict=True)
    # Where one recording lacks labels or times, no window has any.
    joined: list[Any] = [
        None if any(part is None for part in parts) else np.concatenate(parts) for parts in columns
    ]
    X, y, groups, starts, end_times = joined
    before = np.cumsum([0, *n_segments[:-1]])
    first = tracks[0]
    return Windows(
        X=X,
        y=y,
        groups=groups,
        recordings=tuple(track.name for track in tracks),
        recording=np.repeat(np.arange(len(pieces), dtype=np.int64), list(map(len, columns[3]))),
        segments=np.concatenate([inside + n for inside, n in zip(segments, before, strict=True)]),
        starts=starts,
        end_times=end_times,
        channels=first.channels[: len(first.channels) - len(reading.beside)],
        rate=first.rate,
        hop=hop,
        dropped=dropped,
        time=first.time,
        source=source,
        stretches=tuple(s for t in tracks for s in _stretches(t) if len(s.X) >= window),
        numbers=tuple(reading.beside),
    )


def _stretches(track: Track) -> Iterator[Stretch]:
    """Yield the stretches of a recording without missing values."""
    group = track.table.group
    for first, end in segments_of(track):
        lost = first + np.flatnonzero(track.holes[first:end])
        for before, after in pairwise([first - 1, *lost.tolist(), end]):
            if after > before + 1:
                name = track.name if group is None else str(group[first])
                yield Stretch(track.X[before + 1 : after], name)


def _piece(track: Track, window: int, hop: int, reading: Reading, lost: dict[str, int]) -> _Piece:
    """Cut one recording, and count dropped windows."""
    segments = segments_of(track)
    starts, segment = window_starts(segments, window, hop)
    if not len(starts):
        longest = max(end - first for first, end in segments)
        of_time = f" of column {track.time!r}" * (track.time is not None)
        gaps = f" (at most {longest} between gaps{of_time})" if len(segments) > 1 else ""
        raise DataError(
            f"{track.table.file}: a window of {window} samples is longer than the recording, "
            f"which has {len(track.X)} samples{gaps}; give a shorter --window"
        )
    y, several = window_labels(track.y, starts, window)
    keep = ~several if reading.mixed == "drop" else np.ones(len(starts), bool)
    lost_before = np.concatenate(([0], np.cumsum(track.lost)))
    holed = (lost_before[starts + window] > lost_before[starts]) & keep
    if reading.missing == "error" and holed.any():
        raise DataError(first_hole(track, int(starts[holed.argmax()])))
    lost["short"] += len(segments) - len(np.unique(segment))
    lost["mixed"] += int((~keep).sum())
    lost["missing"] += int(holed.sum())
    keep &= ~holed
    starts = starts[keep]
    view = np.lib.stride_tricks.sliding_window_view(track.X, window, axis=0)
    group = track.table.group
    return _Piece(
        np.ascontiguousarray(view[starts].transpose(0, 2, 1)),
        None if y is None else y[keep],
        group[starts] if group is not None else np.full(len(starts), track.name),
        starts,
        track.times_at(starts + window - 1),
        segment[keep],
        len(segments),
    )


def window_labels(
    y: NDArray[Any] | None, starts: NDArray[np.int64], window: int
) -> tuple[NDArray[Any] | None, NDArray[np.bool_]]:
    """Return the most frequent label of every window, and a mask of those with several."""
    if y is None:
        return None, np.zeros(len(starts), bool)
    changes = np.concatenate(([0], np.cumsum(y[1:] != y[:-1])))
    several = changes[starts + window - 1] != changes[starts]
    labels = y[starts + window - 1].copy()
    for i in np.flatnonzero(several):
        labels[i] = majority(y[starts[i] : starts[i] + window])
    return labels, several


def first_hole(track: Track, start: int) -> str:
    """Return an error about the first missing value or label of a window."""
    row = start + int(track.lost[start:].argmax())
    columns, cell, name = track.table.columns, "label", None
    if track.holes[row]:
        cell = "value"
        name = next(name for name in track.channels if np.isnan(columns[name][row]))
    return (
        f"{track.table.place(row, name)}: the {cell} is missing inside a window; fill it, or train "
        "with --missing drop, which ignores such windows"
    )
