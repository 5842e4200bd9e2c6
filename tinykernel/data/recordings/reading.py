"""From files of recordings to windows, what a classifier of signals is trained and tested on."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinykernel.checks import check_choice, check_positive
from tinykernel.data.recordings.cutting import Windows, cut, ready_windows
from tinykernel.data.recordings.files import Columns, Ready, find_recordings, read_recording
from tinykernel.data.recordings.tracks import Track, read_tracks
from tinykernel.errors import TinykernelError


def windows(
    recordings: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    window: str | int | None = None,
    hop: str | int | None = None,
    *,
    label: str | None = None,
    groups: str | None = None,
    inputs: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    rate: float | None = None,
    time: str | None = None,
    mixed: str = "drop",
    missing: str = "error",
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
    ``.wav``      16 bit PCM; the label is the name of the folder
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
    inputs : sequence of str, optional
        The columns to take as channels, in this order; all that are left if not given.
    drop : sequence of str
        Columns to treat as if they were not in the file. Without its times a file has no gaps.
    rate : float, optional
        Samples a second, where the file does not tell it. Where it does, both must agree within
        2 %.
    time : str, optional
        The column of times, where its name does not say so.
    mixed : {"drop", "majority"}
        What becomes of a window with several labels: it is left out, or it takes the label of most
        of its samples; of equally many, the one that comes last.
    missing : {"error", "drop"}
        What becomes of a window in which a value or a label is missing.
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
    check_choice("mixed", mixed, ("drop", "majority"))
    check_choice("missing", missing, ("error", "drop"))
    rate = None if rate is None else check_positive("rate", rate)
    for name, value in (("inputs", inputs), ("drop", drop)):
        if isinstance(value, str):
            raise TinykernelError(f"{name} must be a list of names; got the text {value!r}")
    files, names, source = _files(recordings)
    read = [
        read_recording(file, label=label, groups=groups, time=time, labels_needed=labels_needed)
        for file in files
    ]
    ready = next((item for item in read if isinstance(item, Ready)), None)
    if ready is not None:
        if len(read) > 1:
            raise TinykernelError(
                f"{ready.file}: holds ready windows; give it alone, or recordings only"
            )
        if time is not None:
            raise TinykernelError(f"{ready.file}: holds windows that are ready, without times")
        found = ready_windows(ready, window, hop, inputs, drop, rate, missing, source)
    else:
        tables = [item for item in read if isinstance(item, Columns)]
        tracks = read_tracks(tables, names, inputs, drop, rate, time)
        lengths = _lengths(tracks[0], window, hop)
        found = cut(tracks, *lengths, mixed, missing, source)
    if labels_needed and found.y is not None and (found.y == found.y[0]).all():
        raise TinykernelError(
            f"{source}: one class only, all {len(found.y)} windows have the label {found.y[0]}; "
            "training needs two"
        )
    return found


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
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|ms|)\s*", text)
    if match is None or isinstance(length, bool) or (not match[2] and not match[1].isdigit()):
        raise TinykernelError(
            f"{what} must be a time like '2.56s' or '2560ms', or a number of samples; got "
            f"{length!r}"
        )
    if not match[2]:
        count = int(match[1])
    elif track.rate is None:
        raise TinykernelError(
            f"{track.table.file}: the sampling rate is not known, so {text!r} cannot be turned "
            "into samples; give --rate, name the unit of the times (time_ms), or give samples"
        )
    else:
        count = round(float(match[1]) * (1 if match[2] == "s" else 1e-3) * track.rate)
    if count < 1:
        raise TinykernelError(f"{what} must be at least one sample; got {length!r}")
    return count
