"""Tables of .parquet, read by pyarrow where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tinykernel import stored
from tinykernel.data.formats.parts import Part
from tinykernel.data.formats.tables import LEAVE_OUT, ColumnChooser, refuse_doubles
from tinykernel.data.formats.texts import TextColumns, holds_text, is_missing
from tinykernel.errors import TinykernelError
from tinykernel.stored import StoredRows

_Found = TypeVar("_Found")


def read_parquet(path: Path, chooser: ColumnChooser, in_pieces: bool = False) -> Part:
    """Read numbers, labels and groups of every row."""

    def pieces(file: Any) -> Part | None:
        return _stored_part(path, file, chooser) if in_pieces else None

    return parquet_table(path, lambda table: _table_part(path, table, chooser), pieces)


def parquet_table(
    path: Path, use: Callable[[Any], _Found], pieces: Callable[[Any], _Found | None] | None = None
) -> _Found:
    """Open a file as a table of pyarrow and return what is made of it; faults become one line.

    The table is read where `pieces` makes nothing of the file itself.
    """
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
        refuse_doubles(path, pq.read_schema(path).names)
        found = None if pieces is None else pieces(pq.ParquetFile(path))
        return use(pq.read_table(path)) if found is None else found
    except (pa.ArrowException, UnicodeError):
        raise TinykernelError(f"{path}: is not a readable .parquet file") from None


def _stored_part(path: Path, file: Any, chooser: ColumnChooser) -> Part | None:
    """Write many rows of numbers to a temporary file, some at a time.

    Returns None where there are few, or where columns of text or missing values need all rows.
    """
    import pyarrow as pa

    names = [name for name in file.schema_arrow.names if name != "__index_level_0__"]
    at, group_at, inputs = chooser.positions(names)
    kinds = [file.schema_arrow.field(names[i]).type for i in inputs]
    if not kinds or not all(map(_is_number, kinds)):
        return None
    dtype = np.result_type(*(kind.to_pandas_dtype() for kind in kinds))
    shape = (file.metadata.num_rows, len(inputs))
    if dtype.itemsize * shape[0] * shape[1] <= stored.IN_PIECES or dtype == np.float16:
        return None
    X = StoredRows.temporary(shape, dtype)
    others: dict[int, list[NDArray[Any]]] = {i: [] for i in (at, group_at) if i is not None}
    for batch in file.iter_batches(
        stored.ROWS_AT_ONCE, columns=[names[i] for i in {*inputs, *others}]
    ):
        table = pa.Table.from_batches([batch])
        if any(column.null_count for column in table.columns):
            return None
        rows = [_numbers(path, names[i], table.column(names[i])) for i in inputs]
        X.file.stream.write(np.column_stack(rows).astype(dtype).data)
        for i, found in others.items():
            found.append(_names(path, names[i], table.column(names[i])))
    y, group = (None if i is None else np.concatenate(others[i]) for i in (at, group_at))
    columns = tuple(names[i] for i in inputs)
    return Part(path, "", X, y, group, columns, None, None if at is None else names[at])


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )


def _table_part(path: Path, table: Any, chooser: ColumnChooser) -> Part:
    """Turn a table of pyarrow into a part."""
    names = [name for name in table.column_names if name != "__index_level_0__"]
    at, group_at, inputs = chooser.positions(names)
    columns = tuple(names[i] for i in inputs)
    texts = _texts(path, table, columns, chooser)

    def read(i: int) -> NDArray[Any]:
        name, column = names[i], table.column(names[i])
        if column.null_count and (i not in inputs or not chooser.selection.may_lack):
            row = int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1
            raise TinykernelError(f"{path}: row {row}, column {name!r}: the value is missing")
        if i in inputs and texts.among([name]):
            return _coded(path, name, column, texts)
        return (_numbers if i in inputs else _names)(path, name, column)

    y, group = (None if i is None else read(i) for i in (at, group_at))
    features = [read(i) for i in inputs]
    X = np.column_stack(features) if features else np.empty((table.num_rows, 0))
    label = None if at is None else names[at]
    return Part(path, "", X, y, group, columns, None, label, texts.found())


def _texts(path: Path, table: Any, columns: tuple[str, ...], chooser: ColumnChooser) -> TextColumns:
    """Return the columns of text: those of an earlier training, or those that hold some."""
    import pyarrow as pa

    if chooser.selection.coding is not None:
        return TextColumns(path, chooser.selection.coding)
    found = []
    for name in columns:
        kind = table.column(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            cells = ["" if cell is None else cell for cell in table.column(name).to_pylist()]
            if holds_text(cells):
                found.append(name)
    return TextColumns(path, None, found)


def _coded(path: Path, name: str, column: Any, texts: TextColumns) -> NDArray[Any]:
    """Return a column of text as numbers, NaN where there is none."""
    cells = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    numbers = [texts.number(name, cell, f"{path}: row {i}") for i, cell in enumerate(cells, 1)]
    return np.array([np.nan if is_missing(cell) else float(cell) for cell in numbers])


def _numbers(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return a column of inputs."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if not _is_number(kind):
        shown = repr(column[0].as_py()) if len(column) else "''"
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        raise TinykernelError(
            f"{path}: row 1, column {name!r}: {shown} is not a number (type {kind}); {LEAVE_OUT}"
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
