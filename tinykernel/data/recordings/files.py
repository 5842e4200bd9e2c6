"""Read recordings: tables, .npz and sounds, each as columns of samples."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.coding.cells import column_of, kinds_of, number_of
from tinykernel.data.columns import is_time_name
from tinykernel.data.formats.delimited import read_table
from tinykernel.data.formats.numpy_files import npz_array, open_npz
from tinykernel.data.formats.parquet import parquet_table
from tinykernel.data.formats.tables import ColumnChooser, shown
from tinykernel.data.paths import SOUNDS, data_folder, find_data
from tinykernel.data.recordings.wav import read_coded, read_wav, resampled
from tinykernel.errors import TinykernelError

SUFFIXES = (".csv", ".tsv", ".parquet", ".npz", *SOUNDS)
_MOST_TIMES = 64  # as many samples, or as few, when a sound gets another rate
_ZONE = re.compile(r"(:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:?\d\d)$")
_ONE_GROUP = ("group", "groups")


@dataclass(eq=False)
class Columns:
    """One recording as it stands in a file.

    `columns` holds the candidates for channels and times, in the order of the file: numbers, or
    text where they are none. `faults` tells, of a column that was to be numbers, the first row and
    cell that is none. A missing number is NaN, a missing label or group an empty text.
    """

    file: Path
    columns: dict[str, NDArray[Any]]
    y: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    lines: Sequence[int] | None = None
    rate: float | None = None
    keeps_type: bool = False  # arrays and sounds have a type of their own, texts have not
    is_sound: bool = False
    own_rate: float | None = None  # of a sound that was brought to another one
    faults: dict[str, tuple[int, str]] = field(default_factory=dict)

    def at_rate(self, rate: float) -> Columns:
        """Return a sound at another rate; it has one label, and no group of its own."""
        assert self.rate is not None
        if not self.rate / _MOST_TIMES <= rate <= self.rate * _MOST_TIMES:
            raise TinykernelError(f"{self.file}: has {self.rate:g} Hz, too far from rate={rate:g}")
        samples = np.column_stack(list(self.columns.values()))
        made = resampled(samples, self.rate, rate)
        y = None if self.y is None else of_all(self.y[0], len(made))
        group = None if self.group is None else of_all(self.group[0], len(made))
        columns = dict(zip(self.columns, made.T, strict=True))
        return replace(self, columns=columns, y=y, group=group, rate=rate, own_rate=self.rate)

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return len(next(iter(self.columns.values())))

    def place(self, row: int, name: str | None = None) -> str:
        """Say where a value is, as a person who opens the file would look for it."""
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        column = "" if name is None else f", column {name!r}"
        return f"{self.file}: row {row + 1}{line}{column}"


@dataclass(frozen=True, eq=False)
class Ready:
    """Windows that were cut before: X has shape (n, samples, channels)."""

    file: Path
    X: NDArray[Any]
    y: NDArray[Any] | None
    group: NDArray[Any] | None
    names: tuple[str, ...]
    rate: float | None


def of_all(text: str, n: int) -> NDArray[Any]:
    """Return a label or group that n samples share: the same memory for each."""
    return np.broadcast_to(np.array([text]), n)


def find_recordings(path: str | os.PathLike[str]) -> tuple[list[Path], Path]:
    """Return the files of a recording or of a folder of recordings, in order, and the folder."""
    given = data_folder(path)
    if given is None:
        file = find_data(path)
        return [file], file.parent
    files = sorted(
        file
        for file in given.rglob("*")
        if file.suffix.lower() in SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(given).parts)
    )
    if not files:
        raise TinykernelError(f"{given}: holds no recordings ({', '.join(SUFFIXES)}) or pictures")
    return files, given


def read_recording(
    path: Path,
    *,
    label: str | None,
    groups: str | None,
    labels_needed: bool,
    time: str | None = None,
) -> Columns | Ready:
    """Read one file by its suffix; label, groups and time name columns or arrays."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".npz":
            return _from_npz(path, label, groups, labels_needed, time)
        if suffix in SOUNDS:
            return _from_sound(path, label, groups)
        chooser = ColumnChooser(path, label, labels_needed, None, groups)
        if suffix in (".csv", ".tsv"):
            return _from_csv(path, chooser, time)
        if suffix == ".parquet":
            return parquet_table(path, lambda table: _from_table(path, table, chooser))
    except OSError as error:
        reason = error.strerror or "damaged or cut short"
        raise TinykernelError(f"{path}: cannot be read ({reason})") from None
    raise TinykernelError(
        f"{path}: unknown kind of recording {suffix or path.name!r}; known are "
        f"{', '.join(SUFFIXES)}"
    )


def _positions(chooser: ColumnChooser, names: Sequence[str]) -> tuple[int | None, int | None]:
    """Return where labels and groups stand; labels that are not needed may be missing."""
    if not chooser.needed and chooser.label is not None and chooser.label not in names:
        chooser = ColumnChooser(chooser.path, None, False, None, chooser.groups)
    return chooser.positions(names)[:2]


# ----------------------------------------------------------------------------------- text tables


def _from_csv(path: Path, chooser: ColumnChooser, time: str | None) -> Columns:
    table = read_table(path, chooser.known)
    label, group = _positions(chooser, table.names)
    if not len(table.lines):
        raise TinykernelError(f"{path}: has no rows below its header")
    data, faults = {}, {}
    for i, (name, cells) in enumerate(zip(table.names, table.columns, strict=True)):
        if i in (label, group):
            continue
        if name == time or is_time_name(name):
            data[name] = _times(cells)
            continue
        column = column_of(cells, decimal_comma=True)
        data[name] = column.values
        if column.texts is not None:
            wrong = [code for code, text in enumerate(column.texts) if not _is_plain(text)]
            row = int(np.flatnonzero(np.isin(column.values, wrong))[0])
            cell = column.texts[int(column.values[row])]
            faults[name], data[name] = (row, cell), np.full(len(cells), cell[:1] or " ")
    y, groups = (None if i is None else _stripped(table.columns[i]) for i in (label, group))
    return Columns(path, data, y, groups, table.lines, faults=faults)


def _is_plain(text: str) -> bool:
    return text.lower() == "none" or number_of(text, decimal_comma=True) is not None


def _stripped(cells: NDArray[Any]) -> NDArray[Any]:
    kinds, places = kinds_of(cells)
    return np.array(kinds)[places]


def _times(cells: NDArray[Any]) -> NDArray[Any]:
    """Read numbers or dates of ISO 8601; texts stay as they are where they are neither."""
    column = column_of(cells, decimal_comma=True)
    if column.texts is None:
        try:  # nanoseconds since 1970 are more than floats can tell
            return cells.astype(np.int64)
        except (ValueError, OverflowError):
            return column.values
    texts = _stripped(cells)
    try:
        return np.array([_ZONE.sub(r"\1", text) for text in texts.tolist()], "datetime64[us]")
    except ValueError:
        return texts


# --------------------------------------------------------------------------------------- parquet


def _from_table(path: Path, table: Any, chooser: ColumnChooser) -> Columns:
    """Turn a table of pyarrow into columns."""
    import pyarrow as pa

    names = [name for name in table.column_names if name != "__index_level_0__"]
    label, group = _positions(chooser, names)
    if not table.num_rows:
        raise TinykernelError(f"{path}: has no rows")
    data, faults = {}, {}
    texts: dict[int | None, NDArray[Any]] = {}
    for i, name in enumerate(names):
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if i in (label, group):
            texts[i] = _words(path, name, column)
            continue
        values = column.to_numpy()
        if values.dtype.kind not in "biufM":
            faults[name] = (0, str(column[0].as_py()))
            values = np.full(len(values), " ")
        data[name] = values
    return Columns(path, data, texts.get(label), texts.get(group), faults=faults)


def _words(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return labels or groups as text, empty where they are missing."""
    values = column.to_pylist()
    if any(not isinstance(v, (str, int, float, bool, type(None))) for v in values):
        raise TinykernelError(
            f"{path}: column {name!r} holds values of type {column.type}; "
            "give one number or text a row"
        )
    return np.array(["" if v is None or v != v else str(v).strip() for v in values])


# ---------------------------------------------------------------------------------------- arrays


def _from_npz(
    path: Path, label: str | None, groups: str | None, labels_needed: bool, time: str | None
) -> Columns | Ready:
    with open_npz(path) as archive:
        arrays = {name: npz_array(path, archive, name) for name in archive.files}
    lower = {name.lower(): name for name in arrays}
    if "x" not in lower:
        raise TinykernelError(
            f"{path}: has no array X, of shape (samples, channels) for a recording or "
            f"(n, samples, channels) for windows; it holds {shown(list(arrays)) or 'nothing'}"
        )
    if "beside" in lower:
        raise TinykernelError(
            f"{path}: numbers beside windows are an array beside only with --window-shape; those "
            "of a recording are columns of X, named in channels: --set beside=NAMES"
        )
    X = _samples(path, arrays[lower["x"]])
    y = _one_a_row(path, arrays, label or lower.get("y"), len(X), label is not None)
    if y is None and labels_needed:
        raise TinykernelError(f"{path}: has no labels; add the array y or name one with --label")
    name = groups or next((lower[g] for g in _ONE_GROUP if g in lower), None)
    group = _one_a_row(path, arrays, name, len(X), groups is not None)
    names, rate = _channel_names(path, arrays, X.shape[-1]), _rate(path, arrays)
    y, group = _as_text(y), _as_text(group)
    if X.ndim == 3:
        return Ready(path, X, y, group, names, rate)
    data = dict(zip(names, X.T, strict=True))
    for key, values in arrays.items():
        if (key == time or is_time_name(key)) and values.shape == (len(X),):
            data = {key: values, **data}
    return Columns(path, data, y, group, rate=rate, keeps_type=True)


def _samples(path: Path, X: NDArray[Any]) -> NDArray[Any]:
    """Return samples x channels, or windows x samples x channels."""
    X = X[:, np.newaxis] if X.ndim == 1 else X
    if X.ndim not in (2, 3) or X.dtype.kind not in "biuf" or not X.size:
        kind = f"shape {X.shape}" if X.dtype.kind in "biuf" else f"type {X.dtype}"
        raise TinykernelError(
            f"{path}: X has {kind}; it must hold numbers of shape (samples, channels) or "
            "(n, samples, channels)"
        )
    return X


def _channel_names(path: Path, arrays: dict[str, NDArray[Any]], n: int) -> tuple[str, ...]:
    """Return the names in the array channels, or numbers."""
    if "channels" not in arrays:
        return tuple(f"channel {i}" for i in range(1, n + 1))
    names = tuple(map(str, arrays["channels"].ravel()))
    if len(names) != n:
        raise TinykernelError(f"{path}: has {n} channels but {len(names)} names of them")
    return names


def _as_text(values: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if values is None else values.astype(np.str_)


def _rate(path: Path, arrays: dict[str, NDArray[Any]]) -> float | None:
    """Return the array called rate, one number in Hz, if there is one."""
    if "rate" not in arrays:
        return None
    rate = arrays["rate"]
    if rate.size != 1 or rate.dtype.kind not in "iuf" or not 0 < float(rate.ravel()[0]) < np.inf:
        raise TinykernelError(f"{path}: rate must be one positive number, in Hz")
    return float(rate.ravel()[0])


def _one_a_row(
    path: Path, arrays: dict[str, NDArray[Any]], name: str | None, rows: int, named: bool
) -> NDArray[Any] | None:
    """Return the labels or groups called `name`, checked."""
    if name is None or (name not in arrays and not named):
        return None
    if name not in arrays:
        raise TinykernelError(f"{path}: has no array {name!r}; it holds {shown(list(arrays))}")
    values = arrays[name]
    if values.shape != (rows,) or values.dtype.kind not in "biufU":
        raise TinykernelError(
            f"{path}: {name} has shape {values.shape} and type {values.dtype}; X needs {rows} "
            "numbers or texts"
        )
    return values


# ---------------------------------------------------------------------------------------- sounds


def _from_sound(path: Path, label: str | None, groups: str | None) -> Columns:
    for option, value in (("--label", label), ("--groups", groups)):
        if value is not None:
            raise TinykernelError(
                f"{path}: a sound has no column {value!r}; leave out {option}, or say with --name "
                f"where it stands in the name of the file, as in '{{{value}}}_*'"
            )
    X, rate = read_wav(path) if path.suffix.lower() == ".wav" else read_coded(path)
    if not len(X):
        raise TinykernelError(f"{path}: holds no samples")
    names = [f"channel {i + 1}" for i in range(X.shape[1])]
    y = of_all(path.resolve().parent.name, len(X))
    columns = dict(zip(names, X.T, strict=True))
    return Columns(path, columns, y, rate=rate, keeps_type=True, is_sound=True)
