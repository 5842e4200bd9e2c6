"""Tables of text: .csv and .tsv, with commas, semicolons or tabs between the columns."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.data.formats.parts import Part
from tinykernel.data.formats.tables import LEAVE_OUT, ColumnChooser, refuse_doubles
from tinykernel.data.formats.texts import TextColumns, holds_text, is_missing, is_number
from tinykernel.errors import TinykernelError

#: A line of 65,536 numbers of 60 digits.
_LONGEST_LINE = 4_000_000
# Rows by which columns of text are told from columns of numbers.
_ROWS_TOLD_BY = 20_000


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


def csv_rows(path: Path, stream: Any) -> Iterator[tuple[int, list[str]]]:
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


def header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> list[str]:
    """Return the names of the columns; refuse what is no header."""
    _, cells = next(rows, (0, []))
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise TinykernelError(f"{path}: is empty; it needs a header line and rows of numbers")
    if "" in names:
        raise TinykernelError(
            f"{path}: column {names.index('') + 1} has no name in the header (a row index? write "
            "the file without it)"
        )
    refuse_doubles(path, names)
    numbers = list(map(str, range(len(names))))
    if names != numbers and all(is_number(name) for name in names):
        raise TinykernelError(
            f"{path}: the first line holds numbers; it needs a header line with column names"
        )
    return names


class _TextFound(Exception):
    """Columns of text came to light, which were read as numbers so far."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        super().__init__(columns)
        self.columns = columns


def read_csv(path: Path, chooser: ColumnChooser) -> Part:
    """Read numbers, text as numbers, labels and groups of every line."""
    try:
        return _read_lines(path, chooser, TextColumns(path, chooser.selection.coding))
    except _TextFound as found:
        return _read_lines(path, chooser, TextColumns(path, None, found.columns))


def _read_lines(path: Path, chooser: ColumnChooser, texts: TextColumns) -> Part:
    lines, labels, groups = array("q"), list[str](), list[str]()
    values = _Numbers(may_have_commas=_delimiter(path) != ",")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv_rows(path, stream)
        names = header(path, rows)
        at, group_at, inputs = chooser.positions(names)
        columns = tuple(names[i] for i in inputs)
        for line, cells in rows:
            place = f"{path}: row {len(lines) + 1} (line {line})"
            if len(cells) != len(names):
                raise TinykernelError(
                    f"{place}: has {len(cells)} values, the header has {len(names)}"
                )
            for i, kind, kept in ((at, "label", labels), (group_at, "group", groups)):
                if i is None:
                    continue
                kept.append(cells[i].strip())
                if not kept[-1]:
                    raise TinykernelError(f"{place}, column {names[i]!r}: the {kind} is missing")
            cells = [cells[i] for i in inputs]
            for i in texts.among(columns):
                cells[i] = texts.number(columns[i], cells[i], place)
            try:
                values.extend(cells)
            except ValueError:
                if chooser.selection.may_lack:
                    cells = ["nan" if is_missing(cell) else cell for cell in cells]
                try:
                    values.extend(cells)
                except ValueError:
                    found = _text_columns(path, names, columns) if texts.may_grow else None
                    wrong = _not_numbers(columns, cells)
                    if found and any(name in found for name, _ in wrong):
                        raise _TextFound(found) from None
                    raise TinykernelError(_not_a_number(place, wrong)) from None
            lines.append(line)
    X = np.asarray(values.values).reshape(len(lines), len(columns))
    y = None if at is None else text_labels(labels)
    group = None if group_at is None else np.array(groups)
    label = None if at is None else names[at]
    return Part(path, "", X, y, group, columns, lines, label, texts.found())


def _text_columns(path: Path, names: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of text: those of few different cells, enough of which are no numbers."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv_rows(path, stream)
        next(rows)
        cells = [row for _, row in islice(rows, _ROWS_TOLD_BY) if len(row) == len(names)]
    return tuple(name for name in columns if holds_text([row[names.index(name)] for row in cells]))


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
                self.values.extend([int(cell) for cell in cells])
                return
            except (ValueError, OverflowError):
                self.values = array("d", self.values[:before])
        self.values.extend([float(cell) for cell in cells])  # all of them, or none


def _not_numbers(columns: Sequence[str], cells: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns and cells of a row that are no numbers, the worst first."""
    pairs = list(zip(columns, cells, strict=True))
    worst = sorted(pairs, key=lambda pair: is_number(pair[1].replace(",", ".", 1)))
    return [(name, cell) for name, cell in worst if not is_number(cell) or "," in cell]


def _not_a_number(place: str, wrong: Sequence[tuple[str, str]]) -> str:
    column, cell = next(iter(wrong), ("", ""))
    if not column:
        return f"{place}: has decimal points where other rows have decimal commas; use one of them"
    if not cell.strip():
        return (
            f"{place}, column {column!r}: the value is missing; fill it or remove the row (train: "
            "--missing keep, drop or median)"
        )
    if len(cell) > 40:
        cell = cell[:37] + "..."
    return f"{place}, column {column!r}: {cell!r} is not a number; {LEAVE_OUT}"


def text_labels(labels: list[str]) -> NDArray[Any]:
    """Labels of a CSV file: integers where every one of them is, text otherwise."""
    if all(re.fullmatch(r"[+-]?\d{1,18}", label) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    if all(re.fullmatch(r"[+-]?\d{1,15}\.0*", label) for label in labels):
        return np.array([int(float(label)) for label in labels], dtype=np.int64)
    return np.array(labels, dtype=np.str_)
