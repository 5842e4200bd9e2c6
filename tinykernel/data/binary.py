"""NumPy files and Parquet tables."""

import math
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tinykernel.base import files as stored
from tinykernel.base.coding import Column, column_of, joined, packed
from tinykernel.base.errors import DataError, FormatError, ShapeError, ToolError
from tinykernel.base.text import similar
from tinykernel.data.tables import (
    ColumnChooser,
    FilePart,
    Parts,
    Selection,
    part_of,
    refuse_doubles,
)


@contextmanager
def _one_line(problem: str) -> Iterator[None]:
    """Replace the many exceptions of NumPy and zipfile for damaged files; wrap only their calls."""
    try:
        yield
    except (MemoryError, OSError):
        raise
    except Exception:
        raise FormatError(problem) from None


def _array(path: Path, name: str, stream: Any, length: int, in_pieces: bool = False) -> Any:
    """Load one array without unpickling; with `in_pieces` many rows stay in a file (memmap)."""
    where = f"{path}: {name}"
    problem = f"{where} cannot be read (damaged or cut short)"
    rows = _checked_header(where, stream, length, problem)
    with _one_line(problem):
        if rows is None or not in_pieces or length <= stored.IN_PIECES:
            stream.seek(0)
            return np.asarray(np.load(stream, allow_pickle=False))
        shape, dtype = rows
        if not isinstance(stream, zipfile.ZipExtFile):
            return np.memmap(path, dtype, "r", stream.tell(), shape)
        with tempfile.TemporaryFile() as file:
            shutil.copyfileobj(stream, file, 1 << 20)
            return np.memmap(file, dtype, "r", 0, shape)


def _checked_header(
    where: str, stream: Any, length: int, problem: str
) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Return shape and type of rows of numbers, else None; refuse arrays longer than the file."""
    with _one_line(problem):
        first = npy.read_magic(stream) == (1, 0)
        # Versions 2 and 3 differ only in the encoding of field names.
        read = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
    if dtype.hasobject:
        raise FormatError(
            f"{where} is an array of Python objects; save it with a number or string dtype"
        )
    if math.prod(shape) * dtype.itemsize > length - stream.tell():
        raise FormatError(problem)
    is_plain = dtype.kind in "biuf" and dtype != np.float16 and all(n > 0 for n in shape)
    return (shape, dtype) if len(shape) > 1 and not by_columns and is_plain else None


@contextmanager
def open_npz(path: Path) -> Iterator[Any]:
    """Open an archive for `npz_array`."""
    with path.open("rb") as stream:
        with _one_line(f"{path}: is not a readable .npz file"):
            archive = np.load(stream, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise FormatError(f"{path}: is not an .npz file; rename it if it is an .npy file")
        with archive:
            yield archive


def npz_array(path: Path, archive: Any, key: str, in_pieces: bool = False) -> Any:
    """Load one array of an archive."""
    member = f"{key}.npy" if f"{key}.npy" in archive.zip.namelist() else key
    with _one_line(f"{path}: {key} cannot be read (damaged or cut short)"):
        stream = archive.zip.open(member)
    with stream:
        return _array(path, key, stream, archive.zip.getinfo(member).file_size, in_pieces)


def read_npz(path: Path, selection: Selection, needed: bool, in_pieces: bool = False) -> Parts:
    """Read X_train, y_train, X_test, y_test, or X and y, in any case."""
    with open_npz(path) as archive:
        names = {key.lower() for key in archive.files}
        for name in (selection.label, selection.groups):
            if needed and name is not None and name.lower() not in names:
                hint = f"{similar(name, archive.files, repr)} it holds".lstrip()
                raise DataError(f"{path}: has no array {name!r}; {hint} {', '.join(archive.files)}")
        return _npz_parts(path, archive, selection, in_pieces)


def _npz_parts(path: Path, archive: Any, selection: Selection, in_pieces: bool) -> Parts:
    groups = (selection.groups or "").lower()
    keys = {key.lower(): key for key in archive.files}

    def get(*names: str, in_pieces: bool = False) -> Any:
        key = next((keys[name.lower()] for name in names if name.lower() in keys), None)
        return None if key is None else npz_array(path, archive, key, in_pieces)

    def part(suffix: str, labels: str) -> FilePart | None:
        X = get(f"X{suffix}", in_pieces=in_pieces)
        if X is None:
            return None
        beside = get(f"beside{suffix}")
        if beside is not None:
            X = _with_numbers(path, X, beside)
        group = get(f"group{suffix}", f"groups{suffix}")
        if groups in keys and suffix != "_test":
            group = get(groups)
        n_numbers = 0 if beside is None else beside[:1].size
        return FilePart(path, keys[f"x{suffix}"], X, get(labels), group, beside=n_numbers)

    test = part("_test", "y_test")
    train = part("_train", "y_train") or part("", selection.label or "y")
    if train is None and test is None:
        raise DataError(
            f"{path}: needs the arrays X_train, y_train, X_test, y_test or X, y; "
            f"it holds {', '.join(archive.files) or 'nothing'}"
        )
    return Parts(train, test)


def _with_numbers(path: Path, X: Any, beside: NDArray[Any]) -> NDArray[Any]:
    """Append the numbers beside windows to their rows, in the type of these."""
    problem = ""
    if beside.dtype.kind not in "biuf":
        problem = f"beside holds values of type {beside.dtype}; give numbers"
    elif beside.shape[:1] != X.shape[:1] or beside.ndim > 2 or X.ndim < 2:
        problem = f"beside has shape {beside.shape} for X of shape {X.shape}; give a row per window"
    else:
        with np.errstate(invalid="ignore"):
            same = np.array_equal(beside.astype(X.dtype), beside) or X.dtype.kind == "f"
        if not same:
            problem = (
                f"a number of beside does not fit {X.dtype}, the type of X; take another unit, "
                "such as tenths, or a wider type of X"
            )
    if problem:
        raise ShapeError(f"{path}: {problem}")
    return np.hstack([X.reshape(len(X), -1), beside.reshape(len(X), -1).astype(X.dtype)])


def _label_file(path: Path) -> Path | None:
    """Return the file of labels: ``X.npy`` or ``gesture_X.npy`` with y for X."""
    stem = re.sub(r"(^|_)X(_|$)", r"\1y\2", path.stem)
    return None if stem == path.stem else path.with_name(stem + path.suffix)


def read_npy(
    path: Path, selection: Selection, labels_needed: bool, in_pieces: bool = False
) -> Parts:
    """Read an array and its labels."""
    label = selection.label
    if selection.groups is not None:
        raise DataError(f"{path}: has no groups; save X, y and {selection.groups} in an .npz")

    def load(file: Path, in_pieces: bool = False) -> Any:
        with file.open("rb") as stream:
            length = os.fstat(stream.fileno()).st_size
            return _array(file, "the array", stream, length, in_pieces)

    labels = Path(label) if label is not None else _label_file(path)
    if labels is not None and label is not None and not labels.exists():
        labels = path.with_name(label)
    if labels is None or not labels.exists():
        if labels_needed or label is not None:
            raise DataError(
                f"{path}: there is no file {labels or 'of labels'}; name the labels with --label "
                "FILE.npy, or call the two files NAME_X.npy and NAME_y.npy"
            )
        return Parts(FilePart(path, "X", load(path, in_pieces)), None)
    return Parts(FilePart(path, "X", load(path, in_pieces), load(labels)), None)


_Array = NDArray[Any]
_Result = TypeVar("_Result")


def read_parquet(path: Path, chooser: ColumnChooser, in_pieces: bool = False) -> FilePart:
    """Read inputs, labels and groups of every row."""

    def pieces(file: Any) -> FilePart | None:
        return _stored_part(path, file, chooser) if in_pieces else None

    return parquet_table(path, lambda table: part_of(ArrowTable(path, table), chooser), pieces)


def parquet_table(
    path: Path, use: Callable[[Any], _Result], pieces: Callable[[Any], _Result | None] | None = None
) -> _Result:
    """Return `pieces` of the file, or if this is None `use` of its pyarrow table."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ToolError(
            f"{path}: reading .parquet needs pyarrow; install it (pip install pyarrow) or save "
            "the data as .npz or .csv"
        ) from None
    try:
        # read_table reports two columns of one name as damage.
        refuse_doubles(path, pq.read_schema(path).names)
        result = None if pieces is None else pieces(pq.ParquetFile(path))
        if result is None:
            table = pq.read_table(path)
            result = use(table.select(_column_names(table.column_names)))
        return result
    except (pa.ArrowException, UnicodeError):
        raise FormatError(f"{path}: is not a readable .parquet file; save it again") from None


def _stored_part(path: Path, file: Any, chooser: ColumnChooser) -> FilePart | None:
    """Write many rows of numbers to a temporary file; None for few rows, text or missing values."""
    import pyarrow as pa

    names = _column_names(file.schema_arrow.names)
    at, group_at, inputs = chooser.positions(names)
    kinds = [file.schema_arrow.field(names[i]).type for i in inputs]
    if not kinds or not all(map(_is_number, kinds)) or not chooser.texts.isdisjoint(names):
        return None
    dtype = np.result_type(*(kind.to_pandas_dtype() for kind in kinds))
    shape = (file.metadata.num_rows, len(inputs))
    if dtype.itemsize * shape[0] * shape[1] <= stored.IN_PIECES or dtype == np.float16:
        return None
    others: dict[int, list[_Array]] = {i: [] for i in (at, group_at) if i is not None}
    taken = [names[i] for i in {*inputs, *others}]
    with tempfile.TemporaryFile() as stream:
        for batch in file.iter_batches(stored.ROWS_AT_ONCE, columns=taken):
            table = pa.Table.from_batches([batch])
            if any(column.null_count for column in table.columns):
                return None
            rows = [_values(table.column(names[i])).values for i in inputs]
            stream.write(np.column_stack(rows).astype(dtype).data)
            for i, values in others.items():
                values.append(_names(path, names[i], table.column(names[i])))
        stream.flush()
        X = np.memmap(stream, dtype, "r", 0, shape)
    y, group = (None if i is None else np.concatenate(others[i]) for i in (at, group_at))
    columns = tuple(names[i] for i in inputs)
    return FilePart(path, "", X, y, group, columns, None, None if at is None else names[at])


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )


def _column_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the columns without the index of pandas."""
    return tuple(name for name in names if not re.fullmatch(r"__index_level_\d+__", name))


def _decoded(column: Any) -> Any:
    import pyarrow as pa

    is_coded = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_coded else column


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """A table of pyarrow."""

    path: Path
    table: Any
    lines: None = None
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return _column_names(self.table.column_names)

    def inputs(
        self, places: Sequence[int], as_text: Collection[str], label: int | None, y: _Array | None
    ) -> tuple[list[Column], _Array | None]:
        """Return columns as numbers, or as text if `as_text` names them, and the labels."""
        columns = [(self.table.column(i), self.names[i] in as_text) for i in places]
        return [_values(column, as_text=is_text) for column, is_text in columns], y

    def labels(self, place: int) -> tuple[_Array, NDArray[np.bool_]]:
        """Return the values of a column, and a mask of rows without one."""
        column = self.table.column(place)
        lacking = np.asarray(column.is_null().to_numpy(), bool)
        values = _names(self.path, self.names[place], column.filter(column.is_valid()))
        full = np.zeros(len(lacking), values.dtype)
        full[~lacking] = values
        return full, lacking

    groups = labels

    def texts(self, place: int) -> NDArray[np.str_]:
        """Return the values of a column as text, empty where one is missing."""
        values, lacking = self.labels(place)
        return np.where(lacking, "", np.char.strip(values.astype(np.str_)))

    def numbers(self, place: int) -> Column:
        """Return a column of a recording; times stay times."""
        import pyarrow as pa

        column = self.table.column(place)
        is_time = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
        return Column(column.to_numpy()) if is_time else _values(column, decimal_comma=True)

    def at(self, rows: NDArray[np.bool_]) -> "ArrowTable":
        """Return some of the rows."""
        return replace(self, table=self.table.filter(rows))


def _values(column: Any, *, as_text: bool = False, decimal_comma: bool = False) -> Column:
    """Return numbers, NaN where one is missing; other columns as cells of text."""
    import pyarrow as pa

    column = _decoded(column)
    if _is_number(column.type) and not as_text:
        column = column.cast(pa.float64()) if column.null_count else column
        return Column(np.asarray(column.to_numpy()))
    cells = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    packed_cells = packed(cells) if cells else joined([])
    return column_of(packed_cells, as_text=as_text, decimal_comma=decimal_comma)


def _names(path: Path, name: str, column: Any) -> _Array:
    """Return a column of labels or groups as numbers or text."""
    import pyarrow as pa

    column = _decoded(column)
    if pa.types.is_nested(column.type):
        raise DataError(
            f"{path}: column {name!r} holds values of type {column.type}; give one number or text "
            "a row"
        )
    values: _Array = column.to_numpy()
    if values.dtype != object:
        return values
    try:
        texts = [v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist()]
    except UnicodeDecodeError:
        raise DataError(f"{path}: column {name!r} holds bytes but not UTF-8; convert it") from None
    return np.array(texts, dtype=np.str_)
