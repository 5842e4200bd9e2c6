"""Text tables, .csv and .tsv, separated by commas, semicolons, bars or tabs."""

import csv
import itertools
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
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
from tinykernel.data.columns import UNITS, gives_unit

_Array = NDArray[Any]
_LONGEST_LINE = 4_000_000  # 65,536 numbers of 60 digits
_ROWS_AT_ONCE = 8192
_MARKS = (",", ";", "\t", "|")
# Excel writes the separator before the header.
_MARK_LINE = re.compile(r"sep=(.)")
_WORDS = re.compile(r"[^\W\d_]+|[%°]")
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


def _above(lines: Iterator[str]) -> tuple[int, str, str | None, list[str]]:
    """Read up to the first two lines of a table.

    Return how many blank lines, comments and declared separators stand above them, the last
    comment, the separator, and these two lines.
    """
    comment, mark = "", None
    for n_above, line in enumerate(lines):
        declared = _MARK_LINE.fullmatch(line.strip("\r\n"))
        if declared and mark is None:
            mark = declared[1]
        elif line.startswith("#"):
            comment = line.strip()[1:]
        elif line.strip():
            return n_above, comment, mark, [line, *islice(lines, 1)]
    return 0, "", mark, []


def _mark(path: Path, lines: Sequence[str]) -> str:
    """Return the separator of the columns: the most frequent candidate in the first line.

    Blanks separate numbers where there is no other candidate.
    """
    if path.suffix.lower() == ".tsv":
        return "\t"
    unquoted = re.sub(r'"[^"]*"', "", lines[0] if lines else "")
    mark = max(_MARKS, key=unquoted.count)
    cells = [line.split() for line in lines]
    is_blank = mark not in unquoted and len(set(map(len, cells))) == 1 < len(cells[-1])
    return " " if is_blank and all(number_of(cell) is not None for cell in cells[-1]) else mark


def _rows(
    path: Path, lines: Iterable[str], mark: str, above: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every line that is not blank; `above` lines are before."""
    if mark == " ":
        yield from ((i, line.split()) for i, line in enumerate(lines, above + 1) if line.strip())
        return
    reader, last = csv.reader(lines, delimiter=mark, strict=True), 0
    try:
        for cells in reader:
            last = reader.line_num
            if any(cells) and any(cell.strip() for cell in cells):
                yield last + above, cells
    except csv.Error as error:
        if "unexpected end" in str(error):
            line = last + above + 1
            raise FormatError(f"{path}: line {line}: a quote is not closed; close it") from None
        raise FormatError(f"{path}: line {reader.line_num + above}: {error}") from None


def _has_number(cells: Sequence[str]) -> bool:
    return any(number_of(cell) is not None for cell in cells if any(map(str.isdigit, cell)))


def _is_header(cells: Sequence[str], known: frozenset[str], below: Sequence[str]) -> bool:
    """Whether the first line has a known name, or no number; `below` is the next one."""
    folded = [cell.casefold() for cell in cells]
    numbers = [*map(str, range(len(folded)))]
    is_of_pandas = len(folded) > 2 and folded in (numbers, ["", *numbers[:-1]])
    if is_of_pandas or any(folded.count(name.casefold()) == 1 for name in known):
        return True
    pairs = zip(folded, below, strict=False)
    repeated = [cell for name, cell in pairs if name and folded.count(name) > 1]
    return not _has_number(cells) and all(number_of(cell) is not None for cell in repeated)


def _is_of_units(cells: Sequence[str], below: Sequence[str]) -> bool:
    """Whether a line has a unit above each number of the next one."""
    pairs = zip(cells, below, strict=False)
    words = [
        _WORDS.findall(cell.lower()) for cell, number in pairs if number_of(number) is not None
    ]
    return bool(words) and all(each and UNITS.issuperset(each) for each in words)


def _header(
    path: Path,
    rows: Sequence[Sequence[str]],
    above: list[str],
    known: Iterable[str],
    numbers_doubles: bool,
) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """Return the names of the columns, the rows that they and their units take, and notes.

    `rows` are the first ones; `above` is a comment above them, as NumPy writes a header.
    """
    first, second, third = [*map(_clean, rows), [], [], []][:3]
    if not any(first):
        raise FormatError(f"{path}: is empty; it needs a header line and rows of numbers")
    is_header = _is_header(first, frozenset({*tables.LABEL_NAMES, *known}), second)
    names, n_taken, notes = first, 1, tuple[str, ...]()
    if len(above) == len(first) > 1 and not (is_header and _has_number(second)):
        names, n_taken = _clean([above[0].strip() or "#", *above[1:]]), 0
    elif not is_header:
        names, n_taken = [""] * len(first), 0
        last = f"column{len(first)}"
        notes = (f"the file has no header line; its columns are called column1 to {last}",)
    elif _is_of_units(second, third):
        pairs = zip(first, [*second, *first], strict=False)
        names = [f"{name} [{unit}]" if gives_unit(name, unit) else name for name, unit in pairs]
        n_taken, notes = 2, ("the line below the header holds units, and is not a row",)
    unique = tuple(name or f"column{i}" for i, name in enumerate(names, start=1))
    doubles = {name for name in unique if unique.count(name) > 1}
    if doubles and numbers_doubles:
        unique = tables.told_apart(unique)
        called = ", ".join(map(repr, sorted(doubles)))
        notes = (*notes, f"columns of one name, {called}, have their number behind it")
    tables.refuse_doubles(path, unique)
    return unique, n_taken, notes


def _clean(cells: Sequence[str]) -> list[str]:
    """Return names with single blanks, and without the quotes of PhysioNet."""
    return [re.sub(r"^'(.*)'$", r"\1", " ".join(cell.split())) for cell in cells]


def read_table(
    path: Path, known: Iterable[str] = (), *, numbers_doubles: bool = False
) -> TextTable:
    """Read the cells of a file; `known` are names that identify a header.

    Two columns of one name are refused, or with `numbers_doubles` have their number behind it.
    """
    try:
        with _open(path) as stream:
            lines = _lines(path, stream)
            n_above, comment, declared, head = _above(lines)
            mark = declared or _mark(path, head)
            rows = list(islice(_rows(path, chain(head, lines), mark, n_above), 3))
            above = next(csv.reader([comment], delimiter=mark), [])
            first = [cells for _, cells in rows]
            names, n_taken, notes = _header(path, first, above, known, numbers_doubles)
            numbers, columns = array("q"), list[list[_Array]]([[] for _ in names])
            for places, block in _blocks(path, rows, n_taken, lines, mark, len(names)):
                numbers.extend(places)
                for parts, cells in zip(columns, block, strict=True):
                    parts.append(packed(cells))
            return TextTable(path, names, [joined(each) for each in columns], numbers, mark, notes)
    except UnicodeError:
        raise FormatError(
            f"{path}: is not text in UTF-8; save it as CSV UTF-8, or write a copy with iconv -f "
            f"cp1252 -t utf-8 {path.name} > utf8_{path.name}"
        ) from None


def _blocks(
    path: Path,
    first: Sequence[tuple[int, list[str]]],
    n_header: int,
    lines: Iterator[str],
    mark: str,
    n: int,
) -> Iterator[tuple[Iterable[int], Sequence[Sequence[str]]]]:
    """Yield line numbers and the cells of n columns; `first` rows, also the header, are read."""
    above, n_rows = first[-1][0], len(first) - n_header
    if n_rows:
        yield _columns(path, first[n_header:], 0, n)
    while block := list(islice(lines, _ROWS_AT_ONCE)):
        cells = _plain_cells(block, mark, n)
        if cells is not None:
            yield range(above + 1, above + 1 + len(block)), [cells[i::n] for i in range(n)]
            n_rows += len(block)
        else:
            # A quoted cell may go on in the next block.
            rest = chain(block, lines) if any('"' in line for line in block) else block
            rows = _rows(path, rest, mark, above)
            while part := list(islice(rows, _ROWS_AT_ONCE)):
                yield _columns(path, part, n_rows, n)
                n_rows += len(part)
        above += len(block)


def _plain_cells(block: list[str], mark: str, n: int) -> list[str] | None:
    """Return the cells of lines, one after the other, if there is nothing special in any."""
    if n == 1 or mark == " " or set(map(str.count, block, repeat(mark))) != {n - 1}:
        return None
    text = "".join(block)
    is_filled = all(map(str.strip, block, repeat(f"{mark} \t\r\n")))
    if '"' in text or not is_filled or max(map(len, block)) > csv.field_size_limit():
        return None
    return (
        text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").replace("\n", mark).split(mark)
    )


def _columns(
    path: Path, rows: Sequence[tuple[int, list[str]]], n_before: int, n: int
) -> tuple[list[int], list[Sequence[str]]]:
    """Return the line numbers and columns of rows, which all need n cells."""
    for row, (line, cells) in enumerate(rows, n_before + 1):
        if len(cells) > n and not any(cell.strip() for cell in cells[n:]):
            del cells[n:]  # marks at the end of a line
        if len(cells) != n:
            raise FormatError(
                f"{path}: row {row} (line {line}): has {count(len(cells), 'value')}, "
                f"the header has {n}; correct or remove it"
            )
    return [line for line, _ in rows], list(zip(*(cells for _, cells in rows), strict=True))


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
