"""Recordings as tables with a row for each sample, and as lines that are signals."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import Column, number_of
from tinykernel.base.errors import DataError
from tinykernel.data.binary import ArrowTable, parquet_table
from tinykernel.data.clock import IN_FRONT
from tinykernel.data.columns import is_time_name
from tinykernel.data.delimited import TextTable, read_table
from tinykernel.data.formats.series import read_tsv
from tinykernel.data.labels import names_say, says_group
from tinykernel.data.reading import Columns, Reading, of_all
from tinykernel.data.tables import ColumnChooser, Selection

_NANOSECONDS = ("nanosec", "nanosecs", "nsec", "nsecs")
_WIDE = 24  # columns without a name: more channels than a sensor has
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]")
_CLOCK = re.compile(r"'?(?:(\d+):)?(\d+):(\d\d(?:\.\d+)?)'?$")
_ZONE = re.compile(r"(:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:?\d\d)$")


def read_rows(path: Path, reading: Reading) -> Columns:
    """Read a table with a row for each sample."""
    chooser = ColumnChooser(
        path,
        Selection(label=reading.label, groups=reading.groups),
        reading.labels_needed,
        other_way=f", or where they are in the path, as in {names_say(path)}",
        channels=[*(reading.inputs or ()), *reading.beside],
        is_said=reading.labels_said,
    )
    if path.suffix.lower() != ".parquet":
        table = read_table(path, chooser.known, numbers_doubles=True)
        usual = tuple(f"column{i}" for i in range(1, len(table.names) + 1))
        is_wide = len(usual) >= _WIDE and table.names == usual
        if is_wide and path.suffix.lower() == ".tsv" and reading.axes is None:
            return read_tsv(table, reading)
        if reading.axes is not None or is_wide:
            return _from_lines(table, reading.axes)
        return _from_table(table, chooser, reading)
    return parquet_table(path, lambda held: _from_table(ArrowTable(path, held), chooser, reading))


def _from_table(table: TextTable | ArrowTable, chooser: ColumnChooser, reading: Reading) -> Columns:
    """Convert a table to columns of numbers, or of text with its first fault."""
    time, taken = reading.time, (*chooser.channels, *reading.drop, reading.time, reading.label)
    usual = [name for name in table.names if says_group(name) and name not in taken]
    if reading.groups is None and usual:
        chooser = replace(chooser, selection=replace(chooser.selection, groups=usual[0]))
    label, group, _ = chooser.positions(table.names)
    data, faults = {}, {}
    for i, name in enumerate(table.names):
        if i in (label, group):
            continue
        column = table.numbers(i)
        is_date = name == IN_FRONT and column.texts and _DATE.match(column.texts[0])
        if name == time or is_time_name(name) or is_date:
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
        plain = [_ZONE.sub(r"\1", text.replace(",", ".")) for text in texts.tolist()]
        return np.array(plain, "datetime64[us]")
    except ValueError:
        return texts
