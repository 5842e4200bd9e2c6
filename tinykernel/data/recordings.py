"""From files of recordings to windows."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, OptionError, RowsError
from tinykernel.base.progress import report as say
from tinykernel.data.cutting import Windows, cut, long_enough, segments_of
from tinykernel.data.labels import NO_SPAN, Recording, Recordings, Span, background_among
from tinykernel.data.recording_files import Columns, Reading, find_recordings, read_recording
from tinykernel.data.tracks import Track, alike, read_tracks

# Seconds between the decisions of a model that learns from clips.
_BETWEEN_DECISIONS = 0.1


def windows(
    recordings: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    window: str | int | None = None,
    hop: str | int | None = None,
    *,
    label: str | None = None,
    groups: str | None = None,
    name: str | None = None,
    inputs: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    rate: float | None = None,
    time: str | None = None,
    mixed: str = "drop",
    missing: str = "error",
    short: str | None = None,
    beside: Sequence[str] = (),
    background: Sequence[str] = (),
    labels_needed: bool = True,
) -> Windows:
    r"""Cut recordings into windows.

    ============  ==================================================================
    ``.csv``      a header; columns of channels, one of labels, and possibly one of times; also
                  ``.tsv``; missing values are empty cells, ``NA`` or ``nan``
    ``.parquet``  the same; needs pyarrow
    ``.npz``      ``X`` of shape (samples, channels), ``y`` of shape (samples,), possibly ``time``
                  (``time_ms``, ...), ``group``, ``rate`` (Hz) and ``channels`` (names)
    ``.wav``      PCM of 8 to 32 bits or floats, converted to 16 bits; the label is the name of
                  the folder; ``.flac`` and ``.ogg`` need soundfile
    ============  ==================================================================

    Times are the column with such a name (``time``, ``t``, ``timestamp``, also with a unit:
    ``time_ms``, ``t [s]``). A step of more than 1.5 median steps, or backwards, is a gap. The rate
    is the number of steps a second between gaps.

    Parameters
    ----------
    recordings : path-like or sequence of path-like
        Files or folders; a folder stands for all recordings in it and below it. One file is one
        recording.
    window, hop : str or int
        Length of a window and distance to the next: ``"2.56s"``, ``"2560ms"``, or samples as
        ``128`` or ``"128"``. The hop is half a window if not given; of sounds that are no longer
        than a window at most 0.1 s.
    label : str, optional
        The column or array of labels; if not given the one that is called label, target, class or
        y. Where labels are not needed, a file may be without it.
    groups : str, optional
        The column or array of the groups of samples (a person, a machine), instead of the file.
        Windows never span two groups.
    name : str, optional
        Where label and group are in the path of a file, as in ``"{label}_{person}_{n}"`` or
        ``"{person}/{label}/*"``; see `NamePattern`. `label` and `groups` may name its fields.
    inputs : sequence of str, optional
        The columns to take as channels, in this order; all that are left if not given.
    drop : sequence of str, default=()
        Columns to treat as if they were not in the file. Without its times a file has no gaps.
    rate : float, optional
        Samples a second, if the file does not have it. If it does, both must agree within 2 %;
        sounds are resampled.
    time : str, optional
        The column of times, where its name does not say so.
    mixed : {"drop", "majority"}, default="drop"
        A window with several labels is dropped, or takes the label of most of its samples; of a
        tie the last one.
    missing : {"error", "drop"}, default="error"
        A window with a missing value or label is an error, or dropped.
    short : {"pad", "drop"}, optional
        A recording shorter than a window is padded with zeros, or dropped. If not given, sounds
        are padded and others are an error.
    beside : sequence of str, default=()
        Columns that are not channels but numbers beside a window, such as a temperature; the value
        at its last sample is used.
    background : sequence of str, default=()
        Labels of background; if none is given, those whose words say so, as silence or noise do.
        Samples without a label, in recordings where others have one, are background if a label
        is. Where labels are not needed, `background` may hold others than those of the files.
    labels_needed : bool, default=True
        Whether a file without labels, or with one label only, is an error.

    Returns
    -------
    Windows

    Raises
    ------
    TinykernelError
        If a file cannot be read or is without labels, if a window is longer than a recording, if
        channels or rates of two files differ, if seconds are given but no rate is known, if the
        hop is 0 or longer than the window, or if a channel is a counter or an identifier that was
        not asked for with `inputs`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "walk.csv"
    >>> rows = [f"{20 * i},{i % 7},{'up' if i < 50 else 'down'}" for i in range(100)]
    >>> _ = file.write_text("time_ms,ax,label\n" + "\n".join(rows))
    >>> cut = windows(file, "400ms", "200ms")
    >>> print(cut)
    walk.csv: 8 windows of 20 samples x 1 channel, hop 10, 50 Hz, from 1 file;
    left out: 1 window of several labels
    >>> cut.end_times.tolist()
    [0.38, 0.58, 0.78, 0.98, 1.38, 1.58, 1.78, 1.98]
    >>> folder.cleanup()
    """
    options = {option: value for option, value in locals().items() if option != "recordings"}
    reading = Reading(**options)
    tables, names, source = _tables(recordings, reading)
    say("cutting windows", 0, None)
    labels = {each for table in tables for each in table.labels()}
    still = background_among(labels if labels_needed else {*labels, *background}, background)
    if mixed == "majority" and not labels_needed:  # a stream, which has no holes
        still = still or NO_SPAN
    tables = [table.with_labels(still) for table in tables]
    windows = _cut(tables, names, reading, source)
    if labels_needed and windows.y is not None and (windows.y == windows.y[0]).all():
        raise RowsError(
            f"{source}: one class only, all {len(windows.y)} windows have the label "
            f"{windows.y[0]}; training needs two"
        )
    return windows


def labelled_recordings(path: str | os.PathLike[str], reading: Reading) -> Recordings:
    """Read recordings without cutting them; stretches between gaps are recordings of their own."""
    tables, names, source = _tables(path, reading)
    tracks = _tracks(tables, names, reading)
    recordings = tuple(each for track in tracks for each in _of_track(track))
    long = any(
        len(each.spans) != 1 or each.spans[0].end - each.spans[0].first < len(each.X)
        for each in recordings
    )
    return Recordings(recordings, tracks[0].rate, source, long)


def _of_track(track: Track) -> list[Recording]:
    """Cut a track at its gaps."""
    spans = track.table.spans
    if spans is None:
        spans = () if track.y is None else tuple(_runs(track.y, track.unlabelled))
    recordings = []
    for first, end in segments_of(track):
        held = [Span(max(s.first, first), min(s.end, end), s.label) for s in spans]
        inside = tuple(
            Span(s.first - first, s.end - first, s.label) for s in held if s.first < s.end
        )
        group = track.name if track.table.group is None else str(track.table.group[first])
        whole = (Span(0, end - first, group),)
        recordings.append(Recording(track.name, track.X[first:end], inside, whole))
    return recordings


def _runs(y: NDArray[Any], unlabelled: NDArray[np.bool_]) -> list[Span]:
    """List the runs of equal labels; those without a label are no spans."""
    if not any(y.strides):  # all share the memory of one label
        return [] if unlabelled[0] else [Span(0, len(y), y[0].item())]
    changes = (y[1:] != y[:-1]) | (unlabelled[1:] != unlabelled[:-1])
    firsts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    ends = [*firsts[1:], len(y)]
    return [Span(a, b, y[a].item()) for a, b in zip(firsts, ends, strict=True) if not unlabelled[a]]


def _tables(
    recordings: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], reading: Reading
) -> tuple[list[Columns], list[str], str]:
    """Read files, sounds at the rate asked for; also return their names, and one for all."""
    files, names, source = find_all(recordings)
    tables, rate = list[Columns](), reading.rate
    for file, title in zip(files, names, strict=True):
        say("reading", len(tables), len(files), title)
        table = read_recording(file, reading)
        is_other = rate is not None and table.rate is not None and not alike(table.rate, rate)
        tables.append(table.at_rate(rate) if is_other and table.is_sound and rate else table)
    return tables, names, source


def _tracks(tables: Sequence[Columns], names: Sequence[str], reading: Reading) -> list[Track]:
    """Find the channels and times of recordings."""
    inputs = _shared(tables) if reading.inputs is None else [*reading.inputs, *reading.beside]
    return read_tracks(tables, names, inputs, reading)


def _cut(tables: Sequence[Columns], names: Sequence[str], reading: Reading, source: str) -> Windows:
    """Find the channels of recordings and cut them."""
    tracks = _tracks(tables, names, reading)
    window, hop = _lengths(tracks, reading)
    long, padded = long_enough(tracks, window, reading, source)
    windows = cut(long, window, hop, reading, source)
    windows.dropped["short"] += len(tracks) - len(long)
    sounds = (table for table in tables if table.is_sound)
    others = {column for table in sounds for column in table.columns} - set(windows.channels)
    resampled = sum(table.own_rate is not None for table in tables)
    return replace(windows, padded=padded, not_taken=tuple(sorted(others)), resampled=resampled)


def _shared(tables: Sequence[Columns]) -> list[str] | None:
    """Return the channels that all sounds have, if some have more; else None."""
    if not all(table.is_sound for table in tables):
        return None
    shared = [name for name in tables[0].columns if all(name in t.columns for t in tables)]
    return shared if any(len(table.columns) > len(shared) for table in tables) else None


def find_all(
    recordings: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[list[Path], list[str], str]:
    """Return the files, their names, and a name for all."""
    paths = [recordings] if isinstance(recordings, (str, os.PathLike)) else list(recordings)
    if not paths:
        raise DataError("no recordings are given; give at least one")
    files, names = list[Path](), list[str]()
    for path in paths:
        below, folder = find_recordings(path)
        files += below
        names += [file.relative_to(folder).as_posix() for file in below]
    if len(set(names)) < len(names):
        names = [str(file) for file in files]
    repeated = [file for file, count in Counter(f.resolve() for f in files).items() if count > 1]
    if repeated:
        raise DataError(f"{repeated[0]}: is given twice; give it once")
    source = Path(paths[0]).name or str(paths[0])
    return files, names, source if len(paths) == 1 else f"{source} and {len(paths) - 1} more"


def _lengths(tracks: Sequence[Track], reading: Reading) -> tuple[int, int]:
    """Return window and hop in samples; clips of a window each have one window at any hop."""
    track, window, hop = tracks[0], reading.window, reading.hop
    if window is None:
        raise DataError(
            f"{track.table.file}: is a recording; give the window length, as in --window 2s"
        )
    samples = _samples("window", window, track)
    if hop is None:
        from tinykernel.learn.signals.spectrum import hop_within

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


def _samples(name: str, length: str | int, track: Track) -> int:
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
            f"{track.table.file}: the sampling rate is not known; give --set rate=HZ, add the unit "
            f"to the name of the column of times (time_ms), or give {name} in samples"
        )
    else:
        count = round(float(match[1]) * (1 if match[2] == "s" else 1e-3) * track.rate)
    if count < 1:
        raise OptionError(f"{name} must be at least one sample; got {length!r}")
    return count
