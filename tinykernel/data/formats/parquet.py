"""Parquet tables, read by pyarrow."""

import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tinykernel import stored
from tinykernel.coding.cells import Column, column_of, joined, packed
from tinykernel.data.formats.tables import ColumnChooser, FilePart, part_of, refuse_doubles
from tinykernel.errors import DataError, FormatError, ToolError

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
        return use(pq.read_table(path)) if result is None else result
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
    return tuple(name for name in names if name != "__index_level_0__")


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
