"""Tables of text: .csv and .tsv, with commas, semicolons, bars or tabs between the columns."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.coding.cells import (
    column_of,
    has_decimal_commas,
    is_missing,
    joined,
    kinds_of,
    number_of,
    packed,
)
from tinykernel.data.formats.parts import Part
from tinykernel.data.formats.tables import LABEL_NAMES, ColumnChooser, refuse_doubles
from tinykernel.errors import TinykernelError

#: A line of 65,536 numbers of 60 digits.
_LONGEST_LINE = 4_000_000
_ROWS_AT_ONCE = 8192
_MARKS = (",", ";", "\t", "|")
# Excel writes the mark in front of the header.
_MARK_LINE = re.compile(r"sep=(.)")
_YEARS = range(1900, 2101)


@dataclass(frozen=True, eq=False)
class TextTable:
    """The cells of a file of text."""

    path: Path
    names: tuple[str, ...]  # of the columns.
    columns: list[NDArray[Any]]  # cells of each column, as `packed` returns them.
    lines: Sequence[int]  # (n_rows,): line numbers, counted from 1.
    mark: str  # between the columns.
    has_header: bool

    def place(self, row: int, column: int) -> str:
        """Say where a cell is."""
        return f"{self.path}: row {row + 1} (line {self.lines[row]}), column {self.names[column]!r}"


def _open(path: Path) -> Any:
    """Open a file as text: UTF-16 where it begins with its mark, else UTF-8."""
    with path.open("rb") as stream:
        start = stream.read(2)
    encoding = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return path.open(encoding=encoding, newline="")


def _first(lines: Iterator[str]) -> list[str]:
    """Return the blank lines that a file begins with, and the line behind them."""
    first = [""]
    for line in lines:
        first = [line] if first == [""] else [*first, line]
        if line.strip():
            break
    return first


def _mark(path: Path, first: str) -> str:
    """Return what parts the columns: of the usual marks that which the first line has most of."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    said = _MARK_LINE.fullmatch(first.strip("\r\n"))
    if said is not None:
        return said[1]
    unquoted = re.sub(r'"[^"]*"', "", first)
    return max(_MARKS, key=unquoted.count)


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


def _rows(path: Path, lines: Iterable[str], mark: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every line that is not blank, the header first."""
    reader, last = csv.reader(lines, delimiter=mark, strict=True), 0
    try:
        for cells in reader:
            is_mark = not last and _MARK_LINE.fullmatch(mark.join(cells)) is not None
            last = reader.line_num
            if any(cells) and any(cell.strip() for cell in cells) and not is_mark:
                yield last, cells
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise TinykernelError(f"{path}: line {last + 1}: a quote is not closed") from None
        raise TinykernelError(f"{path}: line {reader.line_num}: {error}") from None


def _is_header(cells: Sequence[str], known: frozenset[str]) -> bool:
    """Say whether the first line names the columns.

    It does where one cell is a name that is `known`, or none is a number, or all numbers count on
    from 0, 1 or a year.
    """
    folded = [cell.casefold() for cell in cells]
    if any(folded.count(name.casefold()) == 1 for name in known):
        return True
    filled = [name for name in folded if name]
    if len(set(filled)) < len(filled):
        return False
    numbers = [
        cell for cell in cells if any(map(str.isdigit, cell)) and number_of(cell) is not None
    ]
    if not numbers:
        return True
    first = int(numbers[0]) if re.fullmatch(r"\d{1,4}", numbers[0]) else -1
    counted = numbers == [str(first + i) for i in range(len(numbers))]
    return counted and len(numbers) > 1 and (first in (0, 1) or first in _YEARS)


def _names(
    path: Path, rows: Iterator[tuple[int, list[str]]], known: Iterable[str]
) -> tuple[tuple[str, ...], Iterator[tuple[int, list[str]]], bool]:
    """Return the names of the columns, the other rows, and whether there is a header."""
    line, cells = next(rows, (0, []))
    names = [" ".join(cell.split()) for cell in cells]
    if not any(names):
        raise TinykernelError(f"{path}: is empty; it needs a header line and rows of numbers")
    is_header = _is_header(names, frozenset({*LABEL_NAMES, *known}))
    if not is_header:
        rows, names = chain([(line, cells)], rows), [""] * len(names)
    found = tuple(name or f"column{i}" for i, name in enumerate(names, start=1))
    refuse_doubles(path, found)
    return found, rows, is_header


def names_of(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a file."""
    with _open(path) as stream:
        lines = _lines(path, stream)
        first = _first(lines)
        rows = _rows(path, chain(first, lines), _mark(path, first[-1]))
        return _names(path, rows, ())[0]


def read_table(path: Path, known: Iterable[str] = ()) -> TextTable:
    """Read the cells of a file; `known` are names that tell a header."""
    try:
        with _open(path) as stream:
            lines = _lines(path, stream)
            first = _first(lines)
            mark = _mark(path, first[-1])
            names, rows, has_header = _names(path, _rows(path, chain(first, lines), mark), known)
            return _table(path, names, rows, mark, has_header)
    except UnicodeError:
        raise TinykernelError(
            f"{path}: is not text in UTF-8; save it as CSV UTF-8, or write a copy with iconv -f "
            f"cp1252 -t utf-8 {path.name} > utf8_{path.name}"
        ) from None


def _table(
    path: Path,
    names: tuple[str, ...],
    rows: Iterator[tuple[int, list[str]]],
    mark: str,
    has_header: bool,
) -> TextTable:
    line_numbers, n = array("q"), len(names)
    blocks: list[list[NDArray[Any]]] = [[] for _ in names]
    while block := list(islice(rows, _ROWS_AT_ONCE)):
        for line, cells in block:
            line_numbers.append(line)
            if len(cells) > n and not any(cell.strip() for cell in cells[n:]):
                del cells[n:]  # marks at the end of a line
            if len(cells) != n:
                raise TinykernelError(
                    f"{path}: row {len(line_numbers)} (line {line}): has {len(cells)} values, the "
                    f"header has {n}; mend or remove line {line}"
                )
        for found, column in zip(
            blocks, zip(*(cells for _, cells in block), strict=True), strict=True
        ):
            found.append(packed(column))
    return TextTable(path, names, [joined(each) for each in blocks], line_numbers, mark, has_header)


def read_csv(path: Path, chooser: ColumnChooser) -> Part:
    """Read numbers, text as numbers, labels and groups of every line."""
    table = read_table(path, chooser.known)
    at, group_at, inputs = chooser.positions(table.names)
    notes = [] if table.has_header else [_no_header(table.names)]
    y, rows = None, np.ones(len(table.lines), bool)
    if at is not None:
        y, rows, note = _labels(table, at, chooser)
        notes += [note] if note else []
    lines = np.asarray(table.lines)[rows].tolist()
    cells = [table.columns[i][rows] for i in inputs]
    others = [] if at is None else [table.columns[at]]
    commas = has_decimal_commas([*cells, *others], are_likely=table.mark != ",")
    if y is not None and commas and y.dtype.kind == "U":
        y = _with_points(y)
    names = tuple(table.names[i] for i in inputs)
    columns = [
        column_of(column, as_text=name in chooser.texts, decimal_comma=commas)
        for name, column in zip(names, cells, strict=True)
    ]
    X = np.column_stack([c.values for c in columns]) if columns else np.empty((len(lines), 0))
    texts = {n: c.texts for n, c in zip(names, columns, strict=True) if c.texts is not None}
    group = None if group_at is None else _groups(table, group_at, rows)
    label = None if at is None else table.names[at]
    return Part(path, "", X, y, group, names, lines, label, texts, notes=tuple(notes))


def _no_header(names: Sequence[str]) -> str:
    return f"the file has no header line; its columns are called {names[0]} to {names[-1]}"


def _labels(
    table: TextTable, at: int, chooser: ColumnChooser
) -> tuple[NDArray[Any] | None, NDArray[np.bool_], str]:
    """Return the labels, which rows count, and in words why others do not.

    Rows without a label do not count, such as totals below a table. With `keep_all` all rows do,
    and there are no labels where one is missing.
    """
    kinds, places = kinds_of(table.columns[at])
    there = np.array([not is_missing(kind) or kind.lower() in _ANSWERS for kind in kinds], bool)
    rows = there[places]
    n, lacking = len(rows), int(np.count_nonzero(~rows))
    if lacking and (chooser.keep_all or (lacking == n and not chooser.needed)):
        return None, np.ones(n, bool), ""
    if lacking and lacking == n:
        raise TinykernelError(f"{table.path}: column {table.names[at]!r}: every label is missing")
    labels = text_labels([kind for kind, is_there in zip(kinds, there, strict=True) if is_there])
    y = labels[(np.cumsum(there) - 1)[places[rows]]] if n else labels
    if not lacking:
        return y, rows, ""
    first = table.lines[int(np.flatnonzero(~rows)[0])]
    return y, rows, f"left out: {lacking} of {n} rows have no label, the first in line {first}"


# A missing value elsewhere; of a label it may be the answer.
_ANSWERS = ("none", "na", "n/a")


def _groups(table: TextTable, at: int, rows: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the groups of the rows that count; a line of totals has none."""
    kinds, places = kinds_of(table.columns[at])
    if "" in kinds:
        lacking = np.flatnonzero(rows & (places == kinds.index("")))
        if lacking.size:
            raise TinykernelError(f"{table.place(int(lacking[0]), at)}: the group is missing")
    return np.array(kinds, np.str_)[places][rows] if kinds else np.empty(0, np.str_)


def _with_points(labels: NDArray[Any]) -> NDArray[Any]:
    """Write labels that are numbers with decimal commas as numbers with points."""
    kinds, places = kinds_of(labels)
    if any(number_of(kind, True) is None for kind in kinds):
        return labels
    return np.array([kind.replace(",", ".") for kind in kinds], np.str_)[places]


def text_labels(labels: list[str]) -> NDArray[Any]:
    """Labels of a CSV file: integers where every one of them is, text otherwise."""
    if all(re.fullmatch(r"[+-]?\d{1,18}", label) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    if all(re.fullmatch(r"[+-]?\d{1,15}\.0*", label) for label in labels):
        return np.array([int(float(label)) for label in labels], dtype=np.int64)
    return np.array(labels, dtype=np.str_)
