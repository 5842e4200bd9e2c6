"""From files of recordings to windows, what a classifier of signals is trained and tested on."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tinykernel.checks import check_choice, check_positive
from tinykernel.data.recordings.cutting import Windows, cut, long_enough, ready_windows
from tinykernel.data.recordings.files import (
    Columns,
    Ready,
    find_recordings,
    of_all,
    read_recording,
)
from tinykernel.data.recordings.names import NamePattern, is_background
from tinykernel.data.recordings.tracks import Track, alike, check_numbers, numbers_last, read_tracks
from tinykernel.errors import TinykernelError
from tinykernel.progress import report as say


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How recordings are read; the fields are parameters of `windows`, which says what they mean.

    Raises
    ------
    TinykernelError
        If a value is none of those allowed.
    """

    label: str | None
    groups: str | None
    name: str | None
    inputs: Sequence[str] | None
    drop: Sequence[str]
    rate: float | None
    time: str | None
    mixed: str
    missing: str
    short: str | None
    labels_needed: bool

    def __post_init__(self) -> None:
        """Check what can be checked without a file."""
        check_choice("mixed", self.mixed, ("drop", "majority"))
        check_choice("missing", self.missing, ("error", "drop"))
        check_choice("short", self.short, (None, "pad", "drop"))
        if self.rate is not None:
            object.__setattr__(self, "rate", check_positive("rate", self.rate))
        for name, value in (("inputs", self.inputs), ("drop", self.drop)):
            if isinstance(value, str):
                raise TinykernelError(f"{name} must be a list of names; got the text {value!r}")

    def pattern(self) -> NamePattern | None:
        """Return where label and group stand in the names of files."""
        return None if self.name is None else NamePattern(self.name, self.label, self.groups)

    def read(self, file: Path) -> Columns | Ready:
        """Read one file; what its name says takes the place of what stands in it."""
        pattern = self.pattern()
        named_label = pattern is not None and pattern.label is not None
        named_group = pattern is not None and pattern.group is not None
        found = read_recording(
            file,
            label=None if named_label else self.label,
            groups=None if named_group else self.groups,
            time=self.time,
            labels_needed=self.labels_needed and not named_label,
        )
        if pattern is None:
            return found
        if isinstance(found, Ready):
            raise TinykernelError(f"{file}: holds windows that are ready; leave out --name")
        said = pattern.find(file)
        if said is None and self.labels_needed:
            raise TinykernelError(
                f"{file}: its name is not of the form {self.name!r}; move it elsewhere or give "
                "another --name"
            )
        label, group = said or (None, None)
        if label is None and found.is_sound and is_background(file.resolve().parent.name):
            label = file.resolve().parent.name  # background beside the others, of another form
        if named_label:
            found.y = None if label is None else of_all(label, found.n_rows)
        if group is not None:
            found.group = of_all(group, found.n_rows)
        return found


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
    labels_needed: bool = True,
) -> Windows:
    r"""Cut recordings into windows.

    ============  ==================================================================
    ``.csv``      a header; columns of channels, one of labels, and possibly one of times; also
                  ``.tsv``; missing values are empty cells, ``NA`` or ``nan``
    ``.parquet``  the same; needs pyarrow
    ``.npz``      ``X`` of shape (samples, channels), ``y`` of shape (samples,), possibly ``time``
                  (``time_ms``, ...), ``group``, ``rate`` (Hz) and ``channels`` (names); or windows
                  that are ready: ``X`` of shape (n, samples, channels), ``y`` and ``group`` (n,)
    ``.wav``      PCM of 8 to 32 bits or floats, all brought to 16 bits; the label is the name of
                  the folder; ``.flac`` and ``.ogg`` need soundfile
    ============  ==================================================================

    Times are the column whose name says so (``time``, ``t``, ``timestamp``, also with a unit:
    ``time_ms``, ``t [s]``), or the first one that rises by equal steps. A step of more than 1.5
    median steps, or backwards, is a gap. The rate is the number of steps a second between gaps.

    Parameters
    ----------
    recordings : path-like or sequence of path-like
        Files or folders; a folder stands for all recordings in it and below it. One file is one
        recording.
    window, hop : str or int
        Length of a window and distance to the next: ``"2.56s"``, ``"2560ms"``, or samples as
        ``128`` or ``"128"``. The hop is half a window if not given. Neither is needed where the
        windows are ready.
    label : str, optional
        The column or array of labels; if not given the one that is called label, target, class or
        y. Where labels are not needed, a file may be without it.
    groups : str, optional
        The column or array that tells which samples belong together (a person, a machine), in
        place of the file. Windows never span two groups.
    name : str, optional
        Where label and group stand in the path of a file, as in ``"{label}_{person}_{n}"`` or
        ``"{person}/{label}/*"``; see `NamePattern`. `label` and `groups` may name its fields.
    inputs : sequence of str, optional
        The columns to take as channels, in this order; all that are left if not given.
    drop : sequence of str, default=()
        Columns to treat as if they were not in the file. Without its times a file has no gaps.
    rate : float, optional
        Samples a second, where the file does not tell it. Where it does, both must agree within
        2 %; sounds are brought to it.
    time : str, optional
        The column of times, where its name does not say so.
    mixed : {"drop", "majority"}, default="drop"
        A window with several labels is left out, or takes the label of most
        of its samples; of equally many, the one that comes last.
    missing : {"error", "drop"}, default="error"
        A window in which a value or a label is missing is an error, or left out.
    short : {"pad", "drop"}, optional
        A recording that is shorter than a window gets zeros after its end, or is left out.
        If not given, sounds are padded and others are an error.
    beside : sequence of str, default=()
        Columns that are no channels but numbers beside a window, such as a temperature: that of its
        last sample counts.
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
    >>> cut.start_times
    array([0. , 0.2, 0.4, 0.6, 1. , 1.2, 1.4, 1.6])
    >>> folder.cleanup()
    """
    reading = Reading(
        label=label,
        groups=groups,
        name=name,
        inputs=inputs,
        drop=drop,
        rate=rate,
        time=time,
        mixed=mixed,
        missing=missing,
        short=short,
        labels_needed=labels_needed,
    )
    check_numbers(beside, inputs)
    files, names, source = _files(recordings)
    read: list[Columns | Ready] = []
    for file, title in zip(files, names, strict=True):
        say("reading", len(read), len(files), title)
        read.append(reading.read(file))
    say("cutting windows", 0, None)
    ready = next((item for item in read if isinstance(item, Ready)), None)
    if ready is not None:
        _check_ready(ready, len(read), beside, time)
        found = ready_windows(ready, window, hop, inputs, drop, reading.rate, missing, source)
    else:
        tables = [_at_rate(item, reading.rate) for item in read if isinstance(item, Columns)]
        found = _cut(tables, names, reading, (window, hop), beside, source)
    if labels_needed and found.y is not None and (found.y == found.y[0]).all():
        raise TinykernelError(
            f"{source}: one class only, all {len(found.y)} windows have the label {found.y[0]}; "
            "training needs two"
        )
    return found


def _check_ready(ready: Ready, n_files: int, beside: Sequence[str], time: str | None) -> None:
    """Refuse what windows that are ready cannot have."""
    if beside:
        raise TinykernelError(f"{ready.file}: holds ready windows, beside which is no column")
    if n_files > 1:
        raise TinykernelError(
            f"{ready.file}: holds ready windows; give it alone, or recordings only"
        )
    if time is not None:
        raise TinykernelError(f"{ready.file}: holds windows that are ready, without times")


def _cut(
    tables: Sequence[Columns],
    names: Sequence[str],
    reading: Reading,
    lengths: tuple[str | int | None, str | int | None],
    beside: Sequence[str],
    source: str,
) -> Windows:
    """Cut recordings; `lengths` are those of a window and of a hop as they were given."""
    inputs = reading.inputs
    taken = _shared(tables) if inputs is None else [*inputs, *beside]
    tracks = read_tracks(tables, names, taken, reading.drop, reading.rate, reading.time)
    for track in tracks:
        numbers_last(track, beside)
    samples = _lengths(tracks[0], *lengths)
    kept, padded = long_enough(tracks, samples[0], reading.short, source)
    if beside and padded:
        raise TinykernelError(
            f"{source}: a recording is shorter than a window, and there are no numbers beside "
            "what is padded; give --set short=drop"
        )
    found = cut(kept, *samples, reading.mixed, reading.missing, source)
    channels = found.channels[: len(found.channels) - len(beside)]
    found = replace(found, channels=channels, numbers=tuple(beside))
    sounds = (table for table in tables if table.is_sound)
    others = {column for table in sounds for column in table.columns} - set(found.channels)
    resampled = sum(table.own_rate is not None for table in tables)
    found = replace(found, padded=padded, beside=tuple(sorted(others)), resampled=resampled)
    found.dropped["short"] += len(tracks) - len(kept)
    return found


def _shared(tables: Sequence[Columns]) -> list[str] | None:
    """Return the channels that all sounds have, where some have more."""
    if not all(table.is_sound for table in tables):
        return None
    found = [name for name in tables[0].columns if all(name in one.columns for one in tables)]
    return found if any(len(one.columns) > len(found) for one in tables) else None


def _at_rate(table: Columns, rate: float | None) -> Columns:
    """Bring a sound to the rate that is asked for, where its own is another."""
    if rate is None or table.rate is None or not table.is_sound or alike(table.rate, rate):
        return table
    return table.at_rate(rate)


def _files(
    recordings: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[list[Path], list[str], str]:
    """Return the files, a name for each, and what to call them all."""
    one = isinstance(recordings, (str, os.PathLike))
    given = [recordings] if one else list(recordings)  # type: ignore[arg-type]
    if not given:
        raise TinykernelError("no recordings are given")
    files, names = list[Path](), list[str]()
    for path in given:
        found, folder = find_recordings(path)  # type: ignore[arg-type]
        files += found
        names += [file.relative_to(folder).as_posix() for file in found]
    if len(set(names)) < len(names):
        names = [str(file) for file in files]
    repeated = [file for file, count in Counter(f.resolve() for f in files).items() if count > 1]
    if repeated:
        raise TinykernelError(f"{repeated[0]}: is given twice")
    source = Path(given[0]).name or str(given[0])  # type: ignore[arg-type]
    return files, names, source if one else f"{source} and {len(given) - 1} more"


def _lengths(track: Track, window: str | int | None, hop: str | int | None) -> tuple[int, int]:
    """Return window and hop in samples."""
    if window is None:
        raise TinykernelError(
            f"{track.table.file}: is a recording; say how long a window is, as in --window 2s"
        )
    samples = _samples("window", window, track)
    if hop is None:
        return samples, max(1, samples // 2)
    step = _samples("hop", hop, track)
    if step > samples:
        raise TinykernelError(
            f"the hop ({step} samples) must not be longer than the window ({samples} samples)"
        )
    return samples, step


def _samples(what: str, length: str | int, track: Track) -> int:
    """Turn a length in seconds, milliseconds or samples into samples."""
    text = str(length) if isinstance(length, (str, int, np.integer)) else ""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d*)?|\.\d+)\s*(s|ms|)\s*", text)
    if match is None or isinstance(length, bool) or (not match[2] and not match[1].isdecimal()):
        raise TinykernelError(
            f"{what} must be a time like '2.56s' or '2560ms', or a number of samples; got "
            f"{length!r}"
        )
    if not match[2]:
        count = int(match[1])
    elif track.rate is None:
        raise TinykernelError(
            f"{track.table.file}: the sampling rate is not known, so {text!r} cannot be turned "
            "into samples; give --set rate=HZ, name the unit of the times (time_ms), or "
            "give samples"
        )
    else:
        count = round(float(match[1]) * (1 if match[2] == "s" else 1e-3) * track.rate)
    if count < 1:
        raise TinykernelError(f"{what} must be at least one sample; got {length!r}")
    return count
