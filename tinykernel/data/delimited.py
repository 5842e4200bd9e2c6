"""Text tables, .csv and .tsv, separated by commas, semicolons, bars or tabs."""

import csv
import itertools
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import (
    Column,
    column_of,
    has_decimal_commas,
    is_missing,
    joined,
    kinds_of,
    number_of,
    packed,
)
from tinykernel.base.errors import FormatError
from tinykernel.base.text import count
from tinykernel.data import tables

_Array = NDArray[Any]
_LONGEST_LINE = 4_000_000  # 65,536 numbers of 60 digits
_ROWS_AT_ONCE = 8192
_MARKS = (",", ";", "\t", "|")
# Excel writes the separator before the header.
_MARK_LINE = re.compile(r"sep=(.)")
# Missing values elsewhere, but possible labels.
_ANSWERS = ("none", "na", "n/a")


@dataclass(frozen=True, eq=False)
class TextTable:
    """The cells of a file of text."""

    path: Path
    names: tuple[str, ...]  # of the columns.
    columns: list[_Array]  # cells of each column, as `packed` returns them.
    lines: Sequence[int]  # (n_rows,): line numbers, counted from 1.
    mark: str  # separator of the columns.
    notes: tuple[str, ...] = ()

    def inputs(
        self, places: Sequence[int], as_text: Collection[str], label: int | None, y: _Array | None
    ) -> tuple[list[Column], _Array | None]:
        """Return columns as numbers or text, and labels; decimal commas are detected here."""
        cells = [self.columns[i] for i in (*places, *([] if label is None else [label]))]
        commas = has_decimal_commas(cells, are_likely=self.mark != ",")
        columns = [
            column_of(self.columns[i], as_text=self.names[i] in as_text, decimal_comma=commas)
            for i in places
        ]
        return columns, _with_points(y) if commas and y is not None else y

    def labels(self, place: int) -> tuple[_Array, NDArray[np.bool_]]:
        """Return the labels of a column, and a mask of rows without one."""
        kinds, places = kinds_of(self.columns[place])
        there = [kind for kind in kinds if not is_missing(kind) or kind.lower() in _ANSWERS]
        label = dict(zip(there, text_labels(there).tolist(), strict=True))
        missing = np.array([kind not in label for kind in kinds], bool)
        filled = next(iter(label.values()), "")
        return np.array([label.get(kind, filled) for kind in kinds])[places], missing[places]

    def groups(self, place: int) -> tuple[_Array, NDArray[np.bool_]]:
        """Return the groups of a column, and a mask of rows without one."""
        groups = self.texts(place)
        return groups, groups == ""

    def texts(self, place: int) -> NDArray[np.str_]:
        """Return the cells of a column without blanks around them."""
        kinds, places = kinds_of(self.columns[place])
        return np.array(kinds, np.str_)[places]

    def numbers(self, place: int) -> Column:
        """Return a column of a recording."""
        return column_of(self.columns[place], decimal_comma=True)

    def at(self, rows: NDArray[np.bool_]) -> "TextTable":
        """Return some of the rows."""
        lines = np.asarray(self.lines)[rows].tolist()
        return replace(self, columns=[cells[rows] for cells in self.columns], lines=lines)


def _open(path: Path) -> Any:
    """Open a file as text: UTF-16 if it has its byte order mark, else UTF-8."""
    with path.open("rb") as stream:
        start = stream.read(2)
    encoding = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return path.open(encoding=encoding, newline="")


def _first(lines: Iterator[str]) -> list[str]:
    """Return the first line that is not blank, after the blank lines before it."""
    first = [""]
    for line in lines:
        first = [line] if first == [""] else [*first, line]
        if line.strip():
            break
    return first


def _mark(path: Path, first: str) -> str:
    """Return the separator of the columns: the most frequent candidate in the first line."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    declared = _MARK_LINE.fullmatch(first.strip("\r\n"))
    if declared is not None:
        return declared[1]
    unquoted = re.sub(r'"[^"]*"', "", first)
    return max(_MARKS, key=unquoted.count)


def _lines(path: Path, stream: Any) -> Iterator[str]:
    """Yield lines; refuse too long ones, such as that of a file of zeros."""
    for number in itertools.count(1):
        line = stream.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise FormatError(
                f"{path}: line {number} is longer than {_LONGEST_LINE} characters; give a table"
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
            raise FormatError(f"{path}: line {last + 1}: a quote is not closed; close it") from None
        raise FormatError(f"{path}: line {reader.line_num}: {error}") from None


def _is_header(cells: Sequence[str], known: frozenset[str]) -> bool:
    """Whether the first line has a known name, or no number."""
    folded = [cell.casefold() for cell in cells]
    if any(folded.count(name.casefold()) == 1 for name in known):
        return True
    filled = [name for name in folded if name]
    if len(set(filled)) < len(filled):
        return False
    return not any(number_of(cell) is not None for cell in cells if any(map(str.isdigit, cell)))


def _names(
    path: Path, rows: Iterator[tuple[int, list[str]]], known: Iterable[str]
) -> tuple[tuple[str, ...], Iterator[tuple[int, list[str]]], bool]:
    """Return the names of the columns, the data rows, and whether there is a header."""
    line, cells = next(rows, (0, []))
    names = [" ".join(cell.split()) for cell in cells]
    if not any(names):
        raise FormatError(f"{path}: is empty; it needs a header line and rows of numbers")
    is_header = _is_header(names, frozenset({*tables.LABEL_NAMES, *known}))
    if not is_header:
        rows, names = chain([(line, cells)], rows), [""] * len(names)
    unique = tuple(name or f"column{i}" for i, name in enumerate(names, start=1))
    tables.refuse_doubles(path, unique)
    return unique, rows, is_header


def read_table(path: Path, known: Iterable[str] = ()) -> TextTable:
    """Read the cells of a file; `known` are names that identify a header."""
    try:
        with _open(path) as stream:
            lines = _lines(path, stream)
            first = _first(lines)
            mark = _mark(path, first[-1])
            names, rows, has_header = _names(path, _rows(path, chain(first, lines), mark), known)
            called = f"its columns are called {names[0]} to {names[-1]}"
            notes = () if has_header else (f"the file has no header line; {called}",)
            return _table(path, names, rows, mark, notes)
    except UnicodeError:
        raise FormatError(
            f"{path}: is not text in UTF-8; save it as CSV UTF-8, or write a copy with iconv -f "
            f"cp1252 -t utf-8 {path.name} > utf8_{path.name}"
        ) from None


def _table(
    path: Path,
    names: tuple[str, ...],
    rows: Iterator[tuple[int, list[str]]],
    mark: str,
    notes: tuple[str, ...],
) -> TextTable:
    numbers, n = array("q"), len(names)
    blocks: list[list[_Array]] = [[] for _ in names]
    while block := list(islice(rows, _ROWS_AT_ONCE)):
        for line, cells in block:
            numbers.append(line)
            if len(cells) > n and not any(cell.strip() for cell in cells[n:]):
                del cells[n:]  # marks at the end of a line
            if len(cells) != n:
                raise FormatError(
                    f"{path}: row {len(numbers)} (line {line}): has {count(len(cells), 'value')}, "
                    f"the header has {n}; correct or remove it"
                )
        columns = zip(*(cells for _, cells in block), strict=True)
        for parts, column in zip(blocks, columns, strict=True):
            parts.append(packed(column))
    return TextTable(path, names, [joined(each) for each in blocks], numbers.tolist(), mark, notes)


def _with_points(labels: _Array) -> _Array:
    """Replace decimal commas of labels if all of them are numbers."""
    kinds, places = kinds_of(labels)
    if labels.dtype.kind != "U" or any(number_of(kind, True) is None for kind in kinds):
        return labels
    return text_labels([kind.replace(",", ".") for kind in kinds])[places]


def text_labels(labels: list[str]) -> _Array:
    """Return labels as integers if all of them are, else as text."""
    if all(re.fullmatch(r"[+-]?\d{1,18}", label) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    if all(re.fullmatch(r"[+-]?\d{1,15}\.0*", label) for label in labels):
        return np.array([int(float(label)) for label in labels], dtype=np.int64)
    return np.array(labels, dtype=np.str_)
