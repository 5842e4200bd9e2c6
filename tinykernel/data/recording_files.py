"""Recordings: the files of a folder, and a reader for each format."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tinykernel.base.errors import DataError, FileError, FormatError, OptionError, TinykernelError
from tinykernel.base.text import count
from tinykernel.data.formats.acquisitions import is_acquisition, label_in_project, read_acquisition
from tinykernel.data.formats.apps import read_session, session_of
from tinykernel.data.formats.arrays import read_arrays
from tinykernel.data.formats.edf import read_edf
from tinykernel.data.formats.rows import read_rows
from tinykernel.data.formats.series import read_ts
from tinykernel.data.formats.wfdb import read_record
from tinykernel.data.labels import NamePattern, is_background, read_label_file
from tinykernel.data.paths import (
    ARCHIVE,
    RECORDINGS,
    SOUNDS,
    as_packed,
    data_folder,
    files_with,
    find_data,
    name_below,
    unpacked,
)
from tinykernel.data.reading import Columns, Reading, of_all
from tinykernel.data.wav import read_sound

#: A reader for each format but sounds, whose samples may be left out; see `paths.RECORDINGS`.
_READERS: dict[str, Callable[[Path, Reading], Columns]] = {
    **dict.fromkeys((".csv", ".tsv", ".parquet"), read_rows),
    ".npz": read_arrays,
    ".hea": read_record,
    **dict.fromkeys((".edf", ".bdf"), read_edf),
    **dict.fromkeys((".json", ".cbor"), read_acquisition),
    ".ts": read_ts,
}

_UNREAD = (".mp3", ".m4a", ".aac", ".opus", ".wma", ".amr", ".3gp", ".caf", ".au")
# Formats with labels of their own, and no columns of labels or groups.
_WITHOUT_COLUMNS = (".edf", ".bdf", ".json", ".cbor", ".ts")


def find_recordings(path: str | os.PathLike[str]) -> tuple[list[Path], list[str]]:
    """Return the files of a recording, a folder or an archive, sorted, and their names."""
    folder = data_folder(path)
    if folder is None:
        file = find_data(path)
        return [file], [file.name]
    files = files_with(folder, RECORDINGS)
    for archive in files_with(folder, (ARCHIVE,)):
        files += _packed(archive)
    sounds = [file for file in files if file.suffix.lower() in SOUNDS]
    labels = {file.with_suffix(suffix) for file in sounds for suffix in (".csv", ".json")}
    files = [file for file in files if file not in labels]
    files = [file for file in files if file.suffix.lower() != ".json" or is_acquisition(file)]
    # The files of an app are one recording, and have the place of their folder.
    above = folder.parent if session_of(folder / "*") == folder else folder
    by_name = {name_below(above, whole): whole for whole in map(_whole, files)}
    if not files:
        raise FileError(f"{path}: holds no recordings or pictures ({', '.join(RECORDINGS)})")
    names = sorted(by_name, key=lambda name: Path(name).parts)
    return [by_name[name] for name in names], names


def find_all(
    recordings: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[list[Path], list[str], str]:
    """Return the files, their names, and a name for all."""
    paths = [recordings] if isinstance(recordings, (str, os.PathLike)) else list(recordings)
    if not paths:
        raise DataError("no recordings are given; give at least one")
    files, names = list[Path](), list[str]()
    for path in paths:
        below, called = find_recordings(path)
        files += below
        names += called
    if len(set(names)) < len(names):
        names = [str(file) for file in files]
    places = {(at.st_dev, at.st_ino) for at in map(os.stat, filter(os.path.exists, files))}
    if len(places) < len(files):  # one file may have several names
        n_times = Counter(file.resolve() for file in files)
        repeated = [file for file, n in n_times.items() if n > 1]
        if repeated:
            raise DataError(f"{repeated[0]}: is given twice; give it once")
    source = Path(paths[0]).name or str(paths[0])
    return files, names, source if len(paths) == 1 else f"{source} and {len(paths) - 1} more"


def note_on_unread(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return a note on sounds of a format that is not read, in any of the folders."""
    folders = filter(None, map(data_folder, paths))
    unread = [file for folder in folders for file in files_with(folder, _UNREAD)]
    if not unread:
        return []
    return [f"not read: {count(len(unread), 'sound')}, such as {unread[0].name}; convert to .wav"]


def _packed(archive: Path) -> list[Path]:
    """Return the recordings of an archive, none where they lie unpacked beside it."""
    folder = unpacked(archive)
    files = files_with(folder, RECORDINGS)
    is_beside = all((archive.parent / file.relative_to(folder)).is_file() for file in files)
    return [] if archive.with_suffix("").is_dir() or is_beside else files


def _whole(file: Path) -> Path:
    """Return the folder of an app that a table belongs to, else the file."""
    return (session_of(file) if file.suffix.lower() == ".csv" else None) or file


def read_recording(path: Path, reading: Reading, *, samples: bool = True) -> Columns:
    """Read one file; label and group in its name replace those in the file.

    A .wav may be read without its samples, which then are 0.
    """
    try:
        table = _labelled(path, reading, samples)
    except TinykernelError as error:
        raise type(error)(as_packed(error.problem), **error.options) from None
    table.file = Path(as_packed(str(table.file)))  # for later messages
    return table


def _labelled(path: Path, reading: Reading, samples: bool) -> Columns:
    if reading.name is None:
        table = _read(path, reading, samples)
        label_in_project(table, reading.labels_needed)
        return table
    pattern = NamePattern(reading.name, reading.label, reading.groups)
    has_label, has_group = pattern.label is not None, pattern.group is not None
    inside = replace(
        reading,
        label=None if has_label else reading.label,
        groups=None if has_group else reading.groups,
        labels_needed=reading.labels_needed and not has_label,
        labels_said=has_label,
    )
    table = _read(path, inside, samples)
    label, group = pattern.find(path, needed=reading.labels_needed) or (None, None)
    if label is None and table.is_sound and is_background(path.resolve().parent.name):
        label = path.resolve().parent.name  # a folder of background has other names
    if has_label and (table.spans is None or table.label is not None):
        _choose_labels(table, reading, label)
    if group is not None:
        table.group = of_all(group, table.n_rows)
    return table


def _choose_labels(table: Columns, reading: Reading, named: str | None) -> None:
    """Take the label in a name; for a finished model, a column that holds one of its classes."""
    if table.label is not None and (named is None or table.labels() & {*reading.classes}):
        table.notes[f"the labels are those of column {table.label!r}, and not of --name"] = 0
        return
    if table.label is not None:
        table.notes[f"column {table.label!r} is not used: --name says the labels"] = 0
    if named is None and reading.classes:
        table.notes[f"without a label: names are not like {reading.name!r}"] = 0
    table.y = None if named is None else of_all(named, table.n_rows)
    table.label = table.spans = None


def _read(path: Path, reading: Reading, samples: bool) -> Columns:
    suffix = path.suffix.lower()
    if suffix in SOUNDS or (suffix in _WITHOUT_COLUMNS and reading.labels_needed):
        _refuse_columns(path, reading)
    try:
        if path.is_dir():
            return read_session(path, reading)
        if suffix in SOUNDS:
            return _from_sound(path, reading, samples)
        if suffix in _READERS:
            return _READERS[suffix](path, reading)
    except OSError as error:
        reason = error.strerror or "damaged or cut short"
        raise FormatError(f"{path}: cannot be read ({reason})") from None
    raise FormatError(
        f"{path}: cannot be read as a recording; give a file that ends in {', '.join(RECORDINGS)}"
    )


def _refuse_columns(path: Path, reading: Reading) -> None:
    for option, value in (("--label", reading.label), ("--groups", reading.groups)):
        if value is not None:
            raise OptionError(
                f"{path}: such a file has no column {value!r}; leave out {option}, or give its "
                f"place in the file name, as in --name '{{{value}}}_*'"
            )


@lru_cache
def _real_name(folder: str) -> str:
    """Return the name of a folder behind links."""
    return Path(folder).resolve().name


def _from_sound(path: Path, reading: Reading, samples: bool) -> Columns:
    X, rate, notes = read_sound(path, samples)
    if not len(X):
        raise DataError(f"{path}: holds no samples; remove it")
    columns = {f"channel {i + 1}": X[:, i] for i in range(X.shape[1])}
    y = of_all(_real_name(os.path.abspath(path.parent)), len(X))
    spans = read_label_file(path, rate, len(X))
    table = Columns(path, columns, y, rate=rate, keeps_type=True, is_sound=True, notes=notes)
    return table if spans is None else replace(table, y=None, spans=spans)
