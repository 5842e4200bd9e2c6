"""Recordings: the files of a folder, and a reader for each format."""

import os
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import Column, number_of
from tinykernel.base.errors import DataError, FileError, FormatError, OptionError, ShapeError
from tinykernel.base.text import listed
from tinykernel.data.binary import ArrowTable, npz_array, open_npz, parquet_table
from tinykernel.data.columns import is_time_name
from tinykernel.data.delimited import TextTable, read_table
from tinykernel.data.labels import NamePattern, is_background, read_label_file
from tinykernel.data.paths import RECORDINGS, SOUNDS, data_folder, files_with, find_data
from tinykernel.data.reading import Columns, Reading, of_all
from tinykernel.data.tables import ColumnChooser, Selection
from tinykernel.data.wav import read_sound

_TABLES = (".csv", ".tsv", ".parquet")
_NANOSECONDS = ("nanosec", "nanosecs", "nsec", "nsecs")
_WIDE = 24  # columns without a name: more channels than a sensor has
_CLOCK = re.compile(r"'?(?:(\d+):)?(\d+):(\d\d(?:\.\d+)?)'?$")
_ZONE = re.compile(r"(:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:?\d\d)$")


def find_recordings(path: str | os.PathLike[str]) -> tuple[list[Path], Path]:
    """Return the files of a recording or a folder, sorted, and the folder."""
    folder = data_folder(path)
    if folder is None:
        file = find_data(path)
        return [file], file.parent
    files = files_with(folder, RECORDINGS)
    labels = {file.with_suffix(".csv") for file in files if file.suffix.lower() in SOUNDS}
    files = [file for file in files if file not in labels]
    if not files:
        raise FileError(f"{folder}: holds no recordings or pictures ({', '.join(RECORDINGS)})")
    return files, folder


def read_recording(path: Path, reading: Reading, *, samples: bool = True) -> Columns:
    """Read one file; label and group in its name replace those in the file.

    A .wav may be read without its samples, which then are 0.
    """
    if reading.name is None:
        return _read(path, reading, samples)
    pattern = NamePattern(reading.name, reading.label, reading.groups)
    has_label, has_group = pattern.label is not None, pattern.group is not None
    inside = replace(
        reading,
        label=None if has_label else reading.label,
        groups=None if has_group else reading.groups,
        labels_needed=reading.labels_needed and not has_label,
    )
    table = _read(path, inside, samples, is_said=has_label)
    label, group = pattern.find(path, needed=reading.labels_needed) or (None, None)
    if label is None and table.is_sound and is_background(path.resolve().parent.name):
        label = path.resolve().parent.name  # a folder of background has other names
    if has_label and table.spans is None:
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
    table.y = None if named is None else of_all(named, table.n_rows)
    table.label = None


def _read(path: Path, reading: Reading, samples: bool, is_said: bool = False) -> Columns:
    suffix = path.suffix.lower()
    try:
        if suffix in SOUNDS:
            return _from_sound(path, reading, samples)
        if suffix in _TABLES:
            return _from_rows(path, reading, is_said)
        if suffix == ".npz":
            return _from_npz(path, reading)
    except OSError as error:
        reason = error.strerror or "damaged or cut short"
        raise FormatError(f"{path}: cannot be read ({reason})") from None
    raise FormatError(
        f"{path}: cannot be read as a recording; give a file that ends in {', '.join(RECORDINGS)}"
    )


@lru_cache
def _real_name(folder: str) -> str:
    """Return the name of a folder behind links."""
    return Path(folder).resolve().name


def _from_sound(path: Path, reading: Reading, samples: bool) -> Columns:
    for option, value in (("--label", reading.label), ("--groups", reading.groups)):
        if value is not None:
            raise OptionError(
                f"{path}: a sound has no column {value!r}; leave out {option}, or give its place "
                f"in the file name, as in --name '{{{value}}}_*'"
            )
    X, rate, notes = read_sound(path, samples)
    if not len(X):
        raise DataError(f"{path}: holds no samples; remove it")
    columns = {f"channel {i + 1}": X[:, i] for i in range(X.shape[1])}
    y = of_all(_real_name(os.path.abspath(path.parent)), len(X))
    spans = read_label_file(path, rate, len(X))
    table = Columns(path, columns, y, rate=rate, keeps_type=True, is_sound=True, notes=notes)
    return table if spans is None else replace(table, y=None, spans=spans)


def _from_rows(path: Path, reading: Reading, is_said: bool = False) -> Columns:
    """Read a table with a row for each sample."""
    chooser = ColumnChooser(
        path,
        Selection(label=reading.label, groups=reading.groups),
        reading.labels_needed,
        other_way=", or where they are in the path, as in --name '{label}/*'",
        channels=[*(reading.inputs or ()), *reading.beside],
        is_said=is_said,
    )
    if path.suffix.lower() != ".parquet":
        table = read_table(path, chooser.known)
        usual = tuple(f"column{i}" for i in range(1, len(table.names) + 1))
        if reading.axes is not None or (len(usual) >= _WIDE and table.names == usual):
            return _from_lines(table, reading.axes)
        return _from_table(table, chooser, reading.time)
    return parquet_table(
        path, lambda held: _from_table(ArrowTable(path, held), chooser, reading.time)
    )


def _from_table(table: TextTable | ArrowTable, chooser: ColumnChooser, time: str | None) -> Columns:
    """Convert a table to columns of numbers, or of text with its first fault."""
    label, group, _ = chooser.positions(table.names)
    data, faults = {}, {}
    for i, name in enumerate(table.names):
        if i in (label, group):
            continue
        column = table.numbers(i)
        if name == time or is_time_name(name):
            data[name] = _times(table, i, column)
        elif column.texts is None:
            data[name] = column.values
        else:
            wrong = [code for code, text in enumerate(column.texts) if not _is_plain(text)]
            row = int(np.flatnonzero(np.isin(column.values, wrong))[0])
            faults[name] = row, column.texts[int(column.values[row])]
            data[name] = np.full(len(column.values), faults[name][1][:1] or " ")
    data = _with_one_time(data)
    y, groups = (None if i is None else table.texts(i) for i in (label, group))
    if not all(map(len, data.values())):
        raise DataError(f"{table.path}: has no rows below its header; remove it")
    called, notes = None if label is None else table.names[label], dict.fromkeys(table.notes, 0)
    lines = table.lines
    return Columns(table.path, data, y, groups, lines, faults=faults, label=called, notes=notes)


def _with_one_time(data: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Join columns of seconds and of the nanoseconds in them, as ROS writes a time."""
    parts = {name: re.split(r"[^a-z]+", name.lower())[-1] for name in data}
    whole = next((name for name, end in parts.items() if end in ("sec", "secs")), None)
    rest = next((name for name, end in parts.items() if end in _NANOSECONDS), None)
    if whole is None or rest is None or not all(data[n].dtype.kind in "iuf" for n in (whole, rest)):
        return data
    times = data[whole].astype(np.int64) * 10**9 + data[rest].astype(np.int64)
    return {"time_ns": times} | {n: x for n, x in data.items() if n not in (whole, rest)}


def _from_lines(table: TextTable, axes: int | None) -> Columns:
    """Read a file whose lines are signals, with the values of all axes for each sample."""
    if axes is None:
        raise DataError(
            f"{table.path}: has {len(table.names)} values a line and no header; where each line is "
            "a signal, say how many axes it has, as in --set axes=3"
        )
    columns = [table.numbers(i) for i in range(len(table.names))]
    wrong = next((i for i, column in enumerate(columns) if column.texts is not None), None)
    if wrong is not None:
        raise DataError(f"{table.path}: column {wrong + 1} holds text; axes=N needs numbers alone")
    X = np.column_stack([each.values for each in columns if not np.isnan(each.values).all()])
    n_lines, n = X.shape
    if n % axes:
        raise DataError(f"{table.path}: {n} values a line are no samples of {axes} axes; correct N")
    lines = np.repeat(np.asarray(table.lines), n // axes)
    data = {f"axis {i + 1}": X[:, i::axes].ravel() for i in range(axes)}
    group = np.char.add(f"{table.path.stem}:", lines.astype(np.str_))
    y = of_all(table.path.stem, n_lines * (n // axes))
    return Columns(table.path, data, y, group, lines.tolist())


def _is_plain(text: str) -> bool:
    return text.lower() == "none" or number_of(text, decimal_comma=True) is not None


def _times(table: TextTable | ArrowTable, place: int, column: Column) -> NDArray[Any]:
    """Read numbers or ISO 8601 dates; other texts stay as they are."""
    if column.values.dtype.kind in "iuM":
        return column.values
    texts = table.texts(place)
    try:  # nanoseconds since 1970 are beyond the precision of floats
        return texts.astype(np.int64)
    except (ValueError, OverflowError):
        if column.texts is None:
            return column.values
    clock = [_CLOCK.match(text) for text in texts.tolist()]
    if all(clock):
        parts = [[float(part or 0) for part in match.groups()] for match in clock if match]
        seconds = np.array(parts) @ (3600, 60, 1)
        return np.rint(1e6 * seconds).astype("datetime64[us]")
    try:
        return np.array([_ZONE.sub(r"\1", text) for text in texts.tolist()], "datetime64[us]")
    except ValueError:
        return texts


def _from_npz(path: Path, reading: Reading) -> Columns:
    """Read X, y, and what else an archive has by its name."""
    with open_npz(path) as archive:
        arrays = {name: npz_array(path, archive, name) for name in archive.files}
    lower = {name.lower(): name for name in arrays}
    if "x" not in lower:
        raise DataError(
            f"{path}: has no array X of shape (samples, channels); it holds "
            f"{listed(list(arrays), 12) or 'nothing'}"
        )
    X = arrays[lower["x"]]
    X = X[:, np.newaxis] if X.ndim == 1 else X
    if X.ndim != 2 or X.dtype.kind not in "biuf" or not X.size:
        raise ShapeError(
            f"{path}: X has shape {X.shape} and type {X.dtype}; it must hold numbers of shape "
            "(samples, channels); to train on windows that are cut already, take --window-shape"
        )
    y = _one_a_row(path, arrays, reading.label, lower.get("y"), len(X))
    if y is None and reading.labels_needed:
        raise DataError(f"{path}: has no labels; add the array y or name one with --label")
    usual = next((lower[name] for name in ("group", "groups") if name in lower), None)
    group = _one_a_row(path, arrays, reading.groups, usual, len(X))
    names, rate = _channel_names(path, arrays, X.shape[1]), _rate(path, arrays)
    data = dict(zip(names, X.T, strict=True))
    for key, values in arrays.items():
        if (key == reading.time or is_time_name(key)) and values.shape == (len(X),):
            data = {key: values, **data}
    return Columns(path, data, y, group, rate=rate, keeps_type=True)


def _channel_names(path: Path, arrays: dict[str, NDArray[Any]], n: int) -> tuple[str, ...]:
    """Return the names in the array channels, or numbers."""
    if "channels" not in arrays:
        return tuple(f"channel {i}" for i in range(1, n + 1))
    names = tuple(map(str, arrays["channels"].ravel()))
    if len(names) != n:
        raise DataError(f"{path}: has {n} channels but {len(names)} names; give one each")
    return names


def _rate(path: Path, arrays: dict[str, NDArray[Any]]) -> float | None:
    """Return the array `rate`, one number in Hz, if there is one."""
    if "rate" not in arrays:
        return None
    rate = arrays["rate"]
    if rate.size != 1 or rate.dtype.kind not in "iuf" or not 0 < float(rate.ravel()[0]) < np.inf:
        raise DataError(f"{path}: the array rate is not one positive number; give it in Hz")
    return float(rate.ravel()[0])


def _one_a_row(
    path: Path, arrays: dict[str, NDArray[Any]], named: str | None, usual: str | None, n: int
) -> NDArray[Any] | None:
    """Return labels or groups as text, from the named array, else from the usual one, if any."""
    name = named or usual
    if name is None:
        return None
    if name not in arrays:
        raise DataError(f"{path}: has no array {name!r}; it holds {listed(list(arrays), 12)}")
    values = arrays[name]
    if values.shape != (n,) or values.dtype.kind not in "biufU":
        raise ShapeError(
            f"{path}: {name} has shape {values.shape} and type {values.dtype}; X needs {n} "
            "numbers or texts"
        )
    return values.astype(np.str_)
