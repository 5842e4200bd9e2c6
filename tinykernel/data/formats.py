"""Read the data files that the command line takes: .npz, .npy pairs, .csv and .parquet."""

from __future__ import annotations

import csv
import lzma
import math
import os
import re
import tokenize
import zipfile
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tinykernel.data.selection import MISSING, Selection
from tinykernel.errors import TinykernelError

__all__ = ["FORMATS", "Part", "Parts", "names_in", "read_parts"]

FORMATS = (".npz", ".npy", ".csv", ".tsv", ".parquet")
_TEXTS = (".csv", ".tsv")
LABEL_NAMES = ("label", "target", "class", "y")
# What NumPy and zipfile raise for damaged files, beside ValueError. RuntimeError and
# NotImplementedError stand for encryption and unknown compression.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OverflowError,
    tokenize.TokenError,
    RuntimeError,
)


@dataclass(frozen=True, eq=False)
class Part:
    """One table of rows as it stands in a file, not yet checked.

    Parameters
    ----------
    file : pathlib.Path
        The file it came from, for messages.
    name : str
        What the features are called in the file, e.g. ``X_train``; empty for a table.
    X : ndarray
        Features, any shape or type.
    y : ndarray, optional
        Labels.
    group : ndarray, optional
        Which person, record or batch a row belongs to.
    columns : tuple of str, optional
        Names of the feature columns of a table.
    lines : sequence of int, optional
        Line numbers of the rows in a text file, counted from 1.
    label : str, optional
        Name of the column of labels of a table.
    """

    file: Path
    name: str
    X: NDArray[Any]
    y: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    columns: tuple[str, ...] | None = None
    lines: Sequence[int] | None = None
    label: str | None = None

    def place(self, row: int, column: int | None = None) -> str:
        """Say where a value is, as a person who opens the file would look for it.

        Parameters
        ----------
        row, column : int
            Indices, counted from 0.

        Returns
        -------
        str
            For example ``row 6 (line 7), column 'ax'``.
        """
        if self.columns is None:
            where = f"{self.name} row {row}"
            return where if column is None else f"{where}, column {column} (counted from 0)"
        where = f"row {row + 1}"
        if self.lines is not None:
            where += f" (line {self.lines[row]})"
        return where if column is None else f"{where}, column {self.columns[column]!r}"


@dataclass(frozen=True, eq=False)
class Parts:
    """What a data file holds: rows to train on, rows to test on, or both."""

    train: Part | None
    test: Part | None


def read_parts(
    path: Path,
    *,
    label: str | None,
    labels_needed: bool,
    n_features: int | None = None,
    groups: str | None = None,
    selection: Selection | None = None,
) -> Parts:
    """Read a data file by its suffix.

    Parameters
    ----------
    path : pathlib.Path
        An existing file.
    label : str or None
        The column (tables), array (.npz) or file (.npy) that holds the labels.
    labels_needed : bool
        Whether a file without labels is an error.
    n_features : int, optional
        The number of features that the model takes, which tells whether a table with a column
        called ``class`` has it as its labels or as a feature.
    groups : str, optional
        The column (tables), array (.npz) or file (.npy) that tells the group of each training row.
    selection : Selection, optional
        Which columns are inputs, and whether values may be missing (NaN).

    Returns
    -------
    Parts

    Raises
    ------
    TinykernelError
        If the file cannot be read or does not hold what is needed.
    """
    suffix = path.suffix.lower()
    selection = selection or Selection()
    if selection.names_columns and suffix in (".npz", ".npy"):
        raise TinykernelError(f"{path}: only tables have columns that --inputs and --drop can name")
    try:
        if suffix == ".npz":
            return _read_npz(path, label, groups)
        if suffix == ".npy":
            return _read_npy(path, label, labels_needed, groups)
        chooser = _ColumnChooser(path, label, labels_needed, n_features, groups, selection)
        if suffix in _TEXTS:
            return Parts(_read_csv(path, chooser), None)
        if suffix == ".parquet":
            return Parts(_read_parquet(path, chooser), None)
    except OSError as error:
        reason = error.strerror or "damaged or cut short"
        raise TinykernelError(f"{path}: cannot be read ({reason})") from None
    raise TinykernelError(
        f"{path}: unknown kind of data file {suffix or path.name!r}; known are {', '.join(FORMATS)}"
    )


def names_in(path: Path) -> frozenset[str]:
    """Return the names that a file gives its columns or arrays; none where it cannot be read.

    Parameters
    ----------
    path : pathlib.Path
        An existing file.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return frozenset(name.removesuffix(".npy") for name in archive.namelist())
        if suffix in _TEXTS:
            with path.open(encoding="utf-8-sig", newline="") as stream:
                return frozenset(_header(path, _csv_rows(path, stream)))
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            return frozenset(pq.read_schema(path).names)
    # Reading the rows says what is wrong with the file.
    except (OSError, ImportError, ValueError, *_DAMAGED):
        pass
    return frozenset()


# ---------------------------------------------------------------------------------- NumPy files


def _array(path: Path, name: str, stream: Any, length: int) -> NDArray[Any]:
    """Load one array of a stream of this length without unpickling anything."""
    try:
        _check_length(stream, length)
        stream.seek(0)
        return np.asarray(np.load(stream, allow_pickle=False))
    except ValueError as error:
        if "pickle" in str(error):
            raise TinykernelError(
                f"{path}: {name} is an array of Python objects, which is not loaded; "
                "save it with a number or string dtype"
            ) from None
        raise TinykernelError(f"{path}: {name} cannot be read (damaged or cut short)") from None
    except _DAMAGED:
        raise TinykernelError(f"{path}: {name} cannot be read (damaged or cut short)") from None


def _check_length(stream: Any, length: int) -> None:
    """Raise ValueError if an array is longer than its file: NumPy reserves what a header says."""
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        return  # for names of fields, which the checks refuse
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > length - stream.tell():
        raise ValueError("cut short")


def _read_npz(path: Path, label: str | None, groups: str | None) -> Parts:
    with path.open("rb") as stream:
        try:
            archive = np.load(stream, allow_pickle=False)
        except (ValueError, *_DAMAGED):
            raise TinykernelError(f"{path}: is not a readable .npz file") from None
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise TinykernelError(f"{path}: is not an .npz file; rename it if it is an .npy file")
        with archive:
            return _npz_parts(path, archive, label, groups)


def _npz_parts(path: Path, archive: Any, label: str | None, groups: str | None) -> Parts:
    keys = {key.lower(): key for key in archive.files}

    def get(*names: str) -> NDArray[Any] | None:
        key = next((keys[name.lower()] for name in names if name.lower() in keys), None)
        if key is None:
            return None
        member = f"{key}.npy" if f"{key}.npy" in archive.zip.namelist() else key
        try:
            with archive.zip.open(member) as stream:
                return _array(path, key, stream, archive.zip.getinfo(member).file_size)
        except _DAMAGED:
            raise TinykernelError(f"{path}: {key} cannot be read (damaged or cut short)") from None

    def part(suffix: str, labels: str) -> Part | None:
        X = get(f"X{suffix}")
        if X is None:
            return None
        group = get(f"group{suffix}", f"groups{suffix}")
        if groups is not None and suffix != "_test":
            group = _one_a_row(path, groups, get(groups))
        return Part(path, keys[f"x{suffix}"], X, get(labels), group)

    for name in (label, groups):
        if name is not None and name.lower() not in keys:
            raise TinykernelError(
                f"{path}: has no array {name!r}; it holds {', '.join(archive.files)}"
            )
    test = part("_test", "y_test")
    train = part("_train", "y_train") or part("", label or "y")
    if train is None and test is None:
        raise TinykernelError(
            f"{path}: needs the arrays X_train, y_train, X_test, y_test or X, y; "
            f"it holds {', '.join(archive.files) or 'nothing'}"
        )
    return Parts(train, test)


def _one_a_row(path: Path, name: str, group: NDArray[Any] | None) -> NDArray[Any] | None:
    """Refuse an array that cannot be one group a row."""
    if group is not None and group.ndim != 1:
        raise TinykernelError(
            f"{path}: {name} has shape {group.shape}; --groups needs one dimension, one group a row"
        )
    return group


def _label_file(path: Path) -> Path | None:
    """Find the labels of ``X.npy``, ``gesture_X.npy`` or ``X_train.npy``: y in place of X."""
    stem = re.sub(r"(^|_)X(_|$)", r"\1y\2", path.stem)
    return None if stem == path.stem else path.with_name(stem + path.suffix)


def _read_npy(path: Path, label: str | None, labels_needed: bool, groups: str | None) -> Parts:
    def load(file: Path) -> NDArray[Any]:
        with file.open("rb") as stream:
            return _array(file, "the array", stream, os.fstat(stream.fileno()).st_size)

    labels = Path(label) if label is not None else _label_file(path)
    if labels is not None and label is not None and not labels.exists():
        labels = path.with_name(label)
    if labels is None or not labels.exists():
        if labels_needed or label is not None:
            what = f"no file {labels}" if labels is not None else "no file of labels"
            raise TinykernelError(
                f"{path}: {what}; name the labels with --label FILE.npy, or call the two files "
                "NAME_X.npy and NAME_y.npy"
            )
        return Parts(Part(path, "X", load(path)), None)
    group = None
    if groups is not None:
        file = Path(groups) if Path(groups).exists() else path.with_name(groups)
        if not file.exists():
            raise TinykernelError(f"{path}: no file {groups} of groups")
        group = _one_a_row(file, "the array", load(file))
    train = Part(path, "X", load(path), load(labels), group)
    test_file = path.with_name(path.name.replace("X_train", "X_test"))
    test_labels = _label_file(test_file)
    if label is not None or test_file == path or not test_file.exists():
        return Parts(train, None)
    if test_labels is None or not test_labels.exists():
        return Parts(train, None)
    return Parts(train, Part(test_file, "X", load(test_file), load(test_labels)))


# --------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class _ColumnChooser:
    """Decides which columns of a table hold the labels and the groups."""

    path: Path
    label: str | None
    needed: bool
    n_features: int | None
    groups: str | None = None
    selection: Selection = field(default_factory=Selection)

    def positions(self, columns: Sequence[str]) -> tuple[int | None, int | None, list[int]]:
        """Return the positions of labels and groups, None where there are none, and of inputs."""
        group = None if self.groups is None else self._named(self.groups, columns)
        label = self._label(columns, group)
        if group is not None and label == group:
            raise TinykernelError(f"{self.path}: column {self.groups!r} cannot be both label "
                                  "and group")  # fmt: skip
        others = [position for position in (label, group) if position is not None]
        return label, group, self.selection.positions(self.path, columns, others)

    def _named(self, name: str, columns: Sequence[str]) -> int:
        if columns.count(name) != 1:
            count = "two columns" if name in columns else "no column"
            raise TinykernelError(
                f"{self.path}: has {count} called {name!r}; columns: {_shown(columns)}"
            )
        return columns.index(name)

    def _label(self, columns: Sequence[str], group: int | None) -> int | None:
        if self.label is not None:
            return self._named(self.label, columns)
        taken = {*self.selection.drop, *(self.selection.inputs or ())}
        found = [
            i for i, name in enumerate(columns)
            if name.lower() in LABEL_NAMES and i != group and name not in taken
        ]  # fmt: skip
        width = len(columns) - (group is not None) - len(self.selection.drop)
        if not self.needed and self.selection.inputs is None and self.n_features == width:
            return None
        if len(found) == 1:
            return found[0]
        if not self.needed and not found:
            return None
        raise TinykernelError(
            f"{self.path}: say which column holds the labels with --label COLUMN; columns: "
            f"{_shown(columns)}"
        )


def _shown(columns: Sequence[str]) -> str:
    more = f", ... ({len(columns)} in all)" if len(columns) > 12 else ""
    return ", ".join(columns[:12]) + more


#: A line of 65,536 numbers of 60 digits.
_LONGEST_LINE = 4_000_000


def _delimiter(path: Path) -> str:
    """Return what the first line of a text file parts its columns with."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        first = stream.readline(_LONGEST_LINE)
    return next((mark for mark in (",", ";", "\t") if mark in first), ",")


def _lines(path: Path, stream: Any) -> Iterator[str]:
    """Yield lines; a file of zeros would be one line of its whole length."""
    for number in count(1):
        line = stream.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise TinykernelError(
                f"{path}: line {number} is longer than {_LONGEST_LINE} characters; is it a table?"
            )
        if not line:
            return
        yield line


def _csv_rows(path: Path, stream: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every line that is not blank, the header first."""
    try:
        reader = csv.reader(_lines(path, stream), delimiter=_delimiter(path))
        last = 0
        for cells in reader:
            if any("\n" in cell or "\r" in cell for cell in cells):
                raise TinykernelError(
                    f"{path}: line {last + 1}: a quote is not closed on the line where it opens"
                )
            last = reader.line_num
            if cells:
                yield last, cells
    except csv.Error as error:
        raise TinykernelError(f"{path}: line {reader.line_num}: {error}") from None
    except UnicodeDecodeError:
        raise TinykernelError(f"{path}: is not text in UTF-8; save it as CSV UTF-8") from None


def _header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> list[str]:
    _, cells = next(rows, (0, []))
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise TinykernelError(f"{path}: is empty; it needs a header line and rows of numbers")
    if "" in names:
        raise TinykernelError(
            f"{path}: column {names.index('') + 1} has no name in the header (a row index? write "
            "the file without it)"
        )
    _refuse_doubles(path, names)
    numbers = list(map(str, range(len(names))))
    if names != numbers and all(_is_number(name) for name in names):
        raise TinykernelError(
            f"{path}: the first line holds numbers; it needs a header line with column names"
        )
    return names


def _refuse_doubles(path: Path, names: Sequence[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise TinykernelError(f"{path}: two columns are called {name!r}; rename one")
        seen.add(name)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _read_csv(path: Path, chooser: _ColumnChooser) -> Part:
    lines, labels, groups = array("q"), list[str](), list[str]()
    values = _Numbers(may_have_commas=_delimiter(path) != ",")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = _csv_rows(path, stream)
        names = _header(path, rows)
        at, group_at, inputs = chooser.positions(names)
        columns = tuple(names[i] for i in inputs)
        for line, cells in rows:
            place = f"{path}: row {len(lines) + 1} (line {line})"
            if len(cells) != len(names):
                raise TinykernelError(
                    f"{place}: has {len(cells)} values, the header has {len(names)}"
                )
            texts = list(cells)
            for i, kind, kept in ((at, "label", labels), (group_at, "group", groups)):
                if i is None:
                    continue
                kept.append(texts[i].strip())
                if not kept[-1]:
                    raise TinykernelError(f"{place}, column {names[i]!r}: the {kind} is missing")
            cells = [texts[i] for i in inputs]
            if chooser.selection.missing is not None:
                cells = ["nan" if cell.strip().lower() in MISSING else cell for cell in cells]
            try:
                values.extend(cells)
            except ValueError:
                raise TinykernelError(_not_a_number(place, columns, cells)) from None
            lines.append(line)
    X = np.asarray(values.values).reshape(len(lines), len(columns))
    y = None if at is None else _text_labels(labels)
    group = None if group_at is None else np.array(groups)
    label = None if at is None else names[at]
    return Part(path, "", X, y, group, columns=columns, lines=lines, label=label)


class _Numbers:
    """Collects cells as integers for as long as every one is an integer, then as floats."""

    def __init__(self, *, may_have_commas: bool) -> None:
        self.values: array[Any] = array("q")
        self.may_have_commas = may_have_commas
        self.points, self.commas = False, False

    def extend(self, cells: list[str]) -> None:
        """Append the numbers of one row; ValueError if a cell is not a number.

        A comma is the decimal sign where no number of the file has a point: 1,234 and 1.234 in one
        file may be a thousand.
        """
        text = "".join(cells)
        self.points |= "." in text
        self.commas |= "," in text
        if "_" in text:  # Python takes 1_000 for a number
            raise ValueError
        if self.commas and (self.points or not self.may_have_commas):
            raise ValueError
        if self.commas:
            cells = [cell.replace(",", ".") for cell in cells]
        if self.values.typecode == "q":
            before = len(self.values)
            try:
                self.values.extend(map(int, cells))
                return
            except (ValueError, OverflowError):
                self.values = array("d", self.values[:before])
        self.values.extend(map(float, cells))


_LEAVE_OUT = "mend the cell, or leave the column out (train: --drop)"


def _not_a_number(place: str, columns: Sequence[str], cells: Sequence[str]) -> str:
    pairs = list(zip(columns, cells, strict=True))
    worst = sorted(pairs, key=lambda pair: _is_number(pair[1].replace(",", ".", 1)))
    wrong = ((name, cell) for name, cell in worst if not _is_number(cell) or "," in cell)
    column, cell = next(wrong, ("", ""))
    if not column:
        return f"{place}: has decimal points where other rows have decimal commas; use one of them"
    if not cell.strip():
        return (
            f"{place}, column {column!r}: the value is missing; fill it or remove the row (train: "
            "--missing drop or median)"
        )
    if len(cell) > 40:
        cell = cell[:37] + "..."
    return f"{place}, column {column!r}: {cell!r} is not a number; {_LEAVE_OUT}"


def _text_labels(labels: list[str]) -> NDArray[Any]:
    """Labels of a CSV file: integers where every one of them is, text otherwise."""
    if all(re.fullmatch(r"[+-]?\d{1,18}", label) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    if all(re.fullmatch(r"[+-]?\d{1,15}\.0*", label) for label in labels):
        return np.array([int(float(label)) for label in labels], dtype=np.int64)
    return np.array(labels, dtype=np.str_)


def _read_parquet(path: Path, chooser: _ColumnChooser) -> Part:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise TinykernelError(
            f"{path}: reading .parquet needs pyarrow; install it (pip install pyarrow) or save "
            "the data as .npz or .csv"
        ) from None
    try:
        # read_table calls a file damaged in which two columns have one name.
        _refuse_doubles(path, pq.read_schema(path).names)
        return _table_part(path, pq.read_table(path), chooser)
    except (pa.ArrowException, UnicodeError):
        raise TinykernelError(f"{path}: is not a readable .parquet file") from None


def _table_part(path: Path, table: Any, chooser: _ColumnChooser) -> Part:
    """Turn a table of pyarrow into a part."""
    names = [name for name in table.column_names if name != "__index_level_0__"]
    at, group_at, inputs = chooser.positions(names)
    columns = tuple(names[i] for i in inputs)

    def read(i: int) -> NDArray[Any]:
        name, column = names[i], table.column(names[i])
        if column.null_count and (i not in inputs or chooser.selection.missing is None):
            row = int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1
            raise TinykernelError(f"{path}: row {row}, column {name!r}: the value is missing")
        return (_numbers if i in inputs else _names)(path, name, column)

    y, group = (None if i is None else read(i) for i in (at, group_at))
    features = [read(i) for i in inputs]
    X = np.column_stack(features) if features else np.empty((table.num_rows, 0))
    return Part(path, "", X, y, group, columns=columns)


def _numbers(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return a column of inputs."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        shown = repr(column[0].as_py()) if len(column) else "''"
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        raise TinykernelError(
            f"{path}: row 1, column {name!r}: {shown} is not a number (type {kind}); {_LEAVE_OUT}"
        )
    if column.null_count:
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy())


def _names(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return a column of labels or groups: numbers as they are, all else that is plain as text."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):
        raise TinykernelError(
            f"{path}: column {name!r} holds values of type {column.type}; give one number or text "
            "a row"
        )
    values: NDArray[Any] = column.to_numpy()
    if values.dtype != object:
        return values
    try:
        texts = [v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist()]
    except UnicodeDecodeError:
        raise TinykernelError(
            f"{path}: column {name!r} holds bytes that are no text in UTF-8"
        ) from None
    return np.array(texts, dtype=np.str_)
