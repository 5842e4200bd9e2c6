"""Cut recordings into windows.

A window never spans a gap in time nor the end of a recording: window w of a stretch without gaps
starts at sample w * hop of it, which is when the firmware decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.data.recordings.files import Columns, Ready
from tinykernel.data.recordings.tracks import (
    Track,
    agreed,
    choose_channels,
    clean_labels,
    majority,
    matrix,
    smallest_type,
    without,
)
from tinykernel.errors import TinykernelError


@dataclass(frozen=True, eq=False)
class Stretch:
    """Samples that follow each other: no gap, no missing value, one group."""

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
    groups : ndarray of str, shape (n,), or None
        What must not stand on both sides of a split: the file, or the value of the column or array
        that was named. None for ready windows without groups.
    recordings : tuple of str
        Names of the files that were read.
    recording : ndarray of int64, shape (n,)
        Which of them a window comes from.
    segments : ndarray of int64, shape (n,)
        Which stretch without gaps it comes from, counted through all recordings.
    starts : ndarray of int64, shape (n,)
        Its first sample, counted from the beginning of the recording.
    start_times, end_times : ndarray of float64, shape (n,), or None
        Times of its first and its last sample in seconds, by the clock of the recording. A stream
        decides at the end. None where neither times nor a rate are known.
    channels : tuple of str
    rate : float or None
        Samples a second.
    hop : int or None
        Samples from one window to the next; None for ready windows.
    dropped : dict of str to int
        Windows left out, by reason: ``"mixed"`` (several labels), ``"missing"`` (a value or label
        is missing), ``"short"`` (stretches between gaps that hold no window).
    time : str or None
        The column of times, which is no channel.
    source : str
        The name of the file or folder.
    stretches : tuple of Stretch
        All samples that windows could be cut from, whatever their labels: what a stream sees.
        Empty for ready windows.
    padded : int
        Recordings that were shorter than a window, and got zeros after their end.
    beside : tuple of str
        Channels of sounds that were not taken.
    resampled : int
        Sounds that were brought to `rate` from another one.
    numbers : tuple of str
        Columns that are no channels but numbers beside a window, the last ones of X.
    """

    X: NDArray[Any]
    y: NDArray[Any] | None
    groups: NDArray[np.str_] | None
    recordings: tuple[str, ...]
    recording: NDArray[np.int64]
    segments: NDArray[np.int64]
    starts: NDArray[np.int64]
    start_times: NDArray[np.float64] | None
    end_times: NDArray[np.float64] | None
    channels: tuple[str, ...]
    rate: float | None
    hop: int | None
    dropped: dict[str, int]
    time: str | None
    source: str
    stretches: tuple[Stretch, ...] = ()
    padded: int = 0
    beside: tuple[str, ...] = ()
    resampled: int = 0
    numbers: tuple[str, ...] = ()

    @property
    def inputs(self) -> NDArray[Any]:
        """What a model takes: X, or rows of a window and of the numbers at its end."""
        if not self.numbers:
            return self.X
        from tinykernel.model.stages.beside import as_rows  # errors about columns need no numba

        return as_rows(self.X, len(self.numbers))

    def __str__(self) -> str:
        """Say in one line what was cut from what."""
        n, samples, _ = self.X.shape
        shape = f"{samples} samples x {count(len(self.channels), 'channel')}"
        if self.numbers:
            shape += f" and {count(len(self.numbers), 'number')} beside"
        words = f"{self.source}: {count(n, 'window')} of {shape}"
        if self.hop is not None:
            words += f", hop {self.hop}"
        if self.rate is not None:
            words += f", {self.rate:g} Hz"
        words += f", from {count(len(self.recordings), 'file')}"
        return "; ".join([words, *self.notes])

    @property
    def notes(self) -> tuple[str, ...]:
        """What was resampled, padded and left out, windows and channels; a line each."""
        resampled = ""
        if self.resampled:
            resampled = f"resampled to {self.rate:g} Hz: {count(self.resampled, 'sound')}"
        padded = f"padded to a window: {count(self.padded, 'recording')}" if self.padded else ""
        left_out = f"left out: {self.left_out}" if self.left_out else ""
        beside = ""
        if self.beside:
            taken = ", ".join(self.channels)
            beside = f"of the sounds {taken} is taken, and not {', '.join(self.beside)}"
        return tuple(line for line in (resampled, padded, left_out, beside) if line)

    @property
    def left_out(self) -> str:
        """What was left out and why, in words; empty where nothing was."""
        reasons = (
            ("mixed", "window", "of several labels"),
            ("missing", "window", "with missing values"),
            ("short", "stretch", "too short for a window"),
        )
        return ", ".join(
            f"{count(self.dropped[key], unit)} {reason}"
            for key, unit, reason in reasons
            if self.dropped[key]
        )


def count(n: int, unit: str) -> str:
    """Return ``1 file`` or ``3 files``."""
    return f"{n} {unit}" + ("" if n == 1 else "es" if unit.endswith("ch") else "s")


def window_starts(
    segments: Sequence[tuple[int, int]], window: int, hop: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where windows start, in samples, and the index of the segment each is in.

    Segments (first, end) are stretches of samples without a gap; window and hop are at least 1.

    >>> starts, segment = window_starts([(0, 10), (10, 15)], 4, 2)
    >>> starts.tolist(), segment.tolist()
    ([0, 2, 4, 6, 10], [0, 0, 0, 0, 1])
    """
    starts = [np.arange(first, end - window + 1, hop, dtype=np.int64) for first, end in segments]
    segment = [np.full(len(s), i, np.int64) for i, s in enumerate(starts)]
    empty = np.empty(0, np.int64)
    return np.concatenate([empty, *starts]), np.concatenate([empty, *segment])


def long_enough(
    tracks: Sequence[Track], window: int, short: str | None, source: str
) -> tuple[list[Track], int]:
    """Pad or leave out recordings that are shorter than a window; also say how many were padded.

    With `short` None, sounds are padded, and others are an error of those who cut them.
    """
    kept, padded = list[Track](), 0
    for track in tracks:
        n = window - len(track.X)
        if n <= 0 or (short is None and not track.table.is_sound):
            kept.append(track)
        elif short != "drop":
            kept.append(_padded(track, n))
            padded += 1
    if not kept:
        raise TinykernelError(
            f"{source}: every recording is shorter than a window; give --set short=pad"
        )
    return kept, padded


def _padded(track: Track, n: int) -> Track:
    """Put n rows of zeros after the end of a recording; the last label and group go on."""

    def longer(values: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if values is None else np.pad(values, (0, n), mode="edge")

    def zeros(values: NDArray[Any]) -> NDArray[Any]:
        return np.pad(values, ((0, n), (0, 0)))

    times = track.times
    if times is not None:
        step = (times[-1] - times[0]) / max(1, len(times) - 1)
        times = np.concatenate([times, times[-1] + step * np.arange(1, n + 1)])
    return replace(
        track,
        table=replace(track.table, group=longer(track.table.group)),
        X=zeros(track.X),
        holes=None if track.holes is None else zeros(track.holes),
        y=longer(track.y),
        unlabelled=longer(track.unlabelled),
        times=times,
    )


def _segments(track: Track) -> list[tuple[int, int]]:
    """Return the stretches of a recording without gaps and of one group."""
    group = track.table.group
    breaks = set(track.breaks.tolist())
    if group is not None:
        breaks |= set((np.flatnonzero(group[1:] != group[:-1]) + 1).tolist())
    ends = [0, *sorted(breaks), len(track.X)]
    return list(pairwise(ends))


@dataclass(eq=False)
class _Piece:
    """The windows of one recording; segments are counted within it."""

    X: NDArray[Any]
    y: NDArray[Any] | None
    groups: NDArray[np.str_]
    segments: NDArray[np.int64]
    starts: NDArray[np.int64]
    times: tuple[NDArray[np.float64], NDArray[np.float64]] | None


def cut(
    tracks: Sequence[Track], window: int, hop: int, mixed: str, missing: str, source: str
) -> Windows:
    """Cut all recordings and join the pieces."""
    dropped = {"mixed": 0, "missing": 0, "short": 0}
    pieces = [_piece(track, window, hop, mixed, missing, dropped) for track in tracks]
    counts = [len(piece.starts) for piece in pieces]
    if not sum(counts):
        raise TinykernelError(
            f"{source}: no window is left: {dropped['mixed']} have several labels, "
            f"{dropped['missing']} missing values; take a shorter window"
        )
    before = np.cumsum([0] + [len(_segments(track)) for track in tracks])
    labels = [piece.y for piece in pieces if piece.y is not None]
    times = [piece.times for piece in pieces if piece.times is not None]
    timed, labelled = len(times) == len(pieces), len(labels) == len(pieces)
    return Windows(
        X=np.concatenate([piece.X for piece in pieces]),
        y=np.concatenate(labels) if labelled else None,
        groups=np.concatenate([piece.groups for piece in pieces]),
        recordings=tuple(track.name for track in tracks),
        recording=np.repeat(np.arange(len(pieces), dtype=np.int64), counts),
        segments=np.concatenate([p.segments + n for p, n in zip(pieces, before[:-1], strict=True)]),
        starts=np.concatenate([piece.starts for piece in pieces]),
        start_times=np.concatenate([first for first, _ in times]) if timed else None,
        end_times=np.concatenate([end for _, end in times]) if timed else None,
        channels=tracks[0].channels,
        rate=tracks[0].rate,
        hop=hop,
        dropped=dropped,
        time=tracks[0].time,
        source=source,
        stretches=tuple(s for track in tracks for s in _stretches(track) if len(s.X) >= window),
    )


def _stretches(track: Track) -> Iterator[Stretch]:
    """List the stretches of a recording without missing values."""
    group = track.table.group
    for first, end in _segments(track):
        holes = track.X[first:end, :0] if track.holes is None else track.holes[first:end]
        edges = [first - 1, *(first + np.flatnonzero(holes.any(axis=1))).tolist(), end]
        for before, after in pairwise(edges):
            if after > before + 1:
                name = track.name if group is None else str(group[first])
                yield Stretch(track.X[before + 1 : after], name)


def _piece(
    track: Track, window: int, hop: int, mixed: str, missing: str, dropped: dict[str, int]
) -> _Piece:
    """Cut one recording, and count what is left out of it."""
    segments = _segments(track)
    starts, segment = window_starts(segments, window, hop)
    if not len(starts):
        longest = max(end - first for first, end in segments)
        gaps = f" (at most {longest} between gaps)" if len(segments) > 1 else ""
        raise TinykernelError(
            f"{track.table.file}: a window of {window} samples is longer than the recording, "
            f"which has {len(track.X)} samples{gaps}"
        )
    y, several = _window_labels(track.y, starts, window)
    keep = ~several if mixed == "drop" else np.ones(len(starts), bool)
    holed = _holed(track, starts, window) & keep
    if missing == "error" and holed.any():
        raise TinykernelError(_first_hole(track, int(starts[holed.argmax()]), window))
    dropped["short"] += len(segments) - len(np.unique(segment))
    dropped["mixed"] += int((~keep).sum())
    dropped["missing"] += int(holed.sum())
    keep &= ~holed
    starts = starts[keep]
    view = np.lib.stride_tricks.sliding_window_view(track.X, window, axis=0)
    group = track.table.group
    return _Piece(
        np.ascontiguousarray(view[starts].transpose(0, 2, 1)),
        None if y is None else y[keep],
        group[starts] if group is not None else np.full(len(starts), track.name),
        segment[keep],
        starts,
        _times(track, starts, window),
    )


def _times(
    track: Track, starts: NDArray[np.int64], window: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return when windows begin and end; without a column of times, the rate tells it."""
    ends = starts + window - 1
    if track.times is not None:
        return track.times[starts], track.times[ends]
    if track.time is not None or track.rate is None:
        return None
    return starts / track.rate, ends / track.rate


def _window_labels(
    y: NDArray[Any] | None, starts: NDArray[np.int64], window: int
) -> tuple[NDArray[Any] | None, NDArray[np.bool_]]:
    """Return the label of most samples of every window, and which windows have several."""
    if y is None:
        return None, np.zeros(len(starts), bool)
    changes = np.concatenate(([0], np.cumsum(y[1:] != y[:-1])))
    several = changes[starts + window - 1] != changes[starts]
    labels = y[starts + window - 1].copy()
    for i in np.flatnonzero(several):
        labels[i] = majority(y[starts[i] : starts[i] + window])
    return labels, several


def _holed(track: Track, starts: NDArray[np.int64], window: int) -> NDArray[np.bool_]:
    """Return which windows lack a value or a label."""
    lost = np.zeros(len(track.X), bool)
    if track.holes is not None:
        lost |= track.holes.any(axis=1)
    if track.unlabelled is not None:
        lost |= track.unlabelled
    before = np.concatenate(([0], np.cumsum(lost)))
    return np.asarray(before[starts + window] > before[starts])


def _first_hole(track: Track, start: int, window: int) -> str:
    """Say where the first missing value of a window is, and what to do."""
    end = "is missing inside a window; fill it, or leave such windows out with --missing drop"
    for row in range(start, start + window):
        if track.holes is not None and track.holes[row].any():
            name = track.channels[int(track.holes[row].argmax())]
            return f"{track.table.place(row, name)}: the value {end}"
        if track.unlabelled is not None and track.unlabelled[row]:
            return f"{track.table.place(row)}: the label {end}"
    raise AssertionError("a window without holes")


def ready_windows(
    ready: Ready,
    window: str | int | None,
    hop: str | int | None,
    inputs: Sequence[str] | None,
    drop: Sequence[str],
    rate: float | None,
    missing: str,
    source: str,
) -> Windows:
    """Take the windows of a file as they are."""
    n, samples, _ = ready.X.shape
    if hop is not None or (window is not None and str(window).strip() != str(samples)):
        raise TinykernelError(
            f"{ready.file}: holds windows of {samples} samples that are ready; leave out window "
            "and hop"
        )
    # As a recording of n * samples rows it gets the checks of every other.
    flat = dict(zip(ready.names, ready.X.reshape(-1, ready.X.shape[2]).T, strict=True))
    table = Columns(ready.file, flat, rate=ready.rate, keeps_type=True)
    columns = without(table, drop)
    channels = choose_channels(table, columns, None, inputs, None)
    X, holes = matrix(table, columns, channels)
    known = ready.rate if rate is None else agreed(table, "the file says", ready.rate, rate)
    [(y, unlabelled)] = clean_labels([ready])
    track = Track(
        source, table, X, holes, y, unlabelled, channels, known, None, np.empty(0, np.intp), None
    )
    smallest_type([track])
    lost = np.zeros(n, bool) if unlabelled is None else unlabelled
    if holes is not None:
        lost = lost | holes.reshape(n, -1).any(axis=1)
    if missing == "error" and lost.any():
        raise TinykernelError(
            f"{ready.file}: a value or the label of window {int(lost.argmax())} is missing; fill "
            "it, or leave such windows out with --missing drop"
        )
    if lost.all():
        raise TinykernelError(f"{ready.file}: no window is left: all have missing values")
    keep = np.flatnonzero(~lost)
    return Windows(
        X=track.X.reshape(n, samples, len(channels))[keep],
        y=None if y is None else y[keep],
        groups=None if ready.group is None else ready.group[keep],
        recordings=(source,),
        recording=np.zeros(len(keep), np.int64),
        segments=keep.astype(np.int64),
        starts=keep * samples,
        start_times=None,
        end_times=None,
        channels=channels,
        rate=known,
        hop=None,
        dropped={"mixed": 0, "missing": int(lost.sum()), "short": 0},
        time=None,
        source=source,
    )
