"""The cells of a column of a table: numbers, or text of which each different one has a number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.stored import row_blocks

# What stands for a missing value.
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_INT32 = np.iinfo(np.int32)
_SMALL = ("uint8", "int8", "uint16", "int16", "int32")
# Longer cells are kept one by one: all others would take as much room.
_SHORT = 64
_THOUSANDS = re.compile(r"[+-]?\d{1,3},\d{3}")


@dataclass(frozen=True, eq=False)
class Column:
    """The values of a column: numbers (of text the place in `texts`), NaN for missing ones."""

    values: NDArray[Any]  # (n_rows,)
    texts: tuple[str, ...] | None = None


def packed(cells: Sequence[str]) -> NDArray[Any]:
    """Return cells as an array of few bytes a cell."""
    if max(map(len, cells)) > _SHORT:
        return np.array(cells, object)
    try:
        return np.array(cells, "S")
    except UnicodeEncodeError:
        return np.array(cells, "U")


def joined(blocks: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the packed cells of several blocks of rows as one array."""
    if not blocks:
        return np.empty(0, "S1")
    if any(block.dtype == object for block in blocks):
        return np.concatenate([block.astype("U").astype(object) for block in blocks])
    return np.concatenate(blocks)


def kinds_of(cells: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """Return the different cells without blanks around them, and which of them each cell is."""
    kinds, places = np.unique(cells, return_inverse=True)
    return [kind.strip() for kind in kinds.astype("U").tolist()], places


def is_missing(cell: str) -> bool:
    """Say whether a cell stands for a missing value, such as ``?`` or ``NA``."""
    return cell.strip().lower() in _MISSING


def number_of(cell: str, decimal_comma: bool = False) -> float | None:
    """Return a cell as a number, or None; 1_000 is none, although Python reads it."""
    if decimal_comma and cell.count(",") == 1 and "." not in cell:
        cell = cell.replace(",", ".")
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def column_of(cells: NDArray[Any], *, as_text: bool = False, decimal_comma: bool = False) -> Column:
    """Read all cells of a column: text where any cell is neither a number nor missing.

    In a column of text "none" is a text, elsewhere a missing value.

    >>> column_of(packed(["3", "?", "1.5"])).values.tolist()
    [3.0, nan, 1.5]
    >>> column = column_of(packed(["red", "7", "", "red"]))
    >>> column.values.tolist(), column.texts
    ([1.0, 0.0, nan, 1.0], ('7', 'red'))
    """
    if not as_text and not _holds(cells, "_"):
        try:
            return Column(cells.astype(np.float64))
        except ValueError:
            pass
    kinds, places = kinds_of(cells)
    if not as_text:
        numbers = [np.nan if is_missing(kind) else number_of(kind, decimal_comma) for kind in kinds]
        if None not in numbers:
            return Column(np.array(numbers, np.float64)[places])
    texts = sorted({kind for kind in kinds if not is_missing(kind) or kind.lower() == "none"})
    code = {text: float(i) for i, text in enumerate(texts)}
    return Column(np.array([code.get(kind, np.nan) for kind in kinds])[places], tuple(texts))


def has_decimal_commas(columns: Sequence[NDArray[Any]], are_likely: bool) -> bool:
    """Say whether numbers of a table have decimal commas."""
    # A column of numbers with points rules them out: 1,234 may then be a thousand. Where commas
    # separate the columns, a number such as 3,5 must show that commas mark no thousands.
    with_commas = [cells for cells in columns if _holds(cells, ",")]
    if not with_commas:
        return False
    if any(_holds(cells, ".") and column_of(cells).texts is None for cells in columns):
        return False
    kinds = [kind for cells in with_commas for kind in kinds_of(cells)[0]]
    numbers = [kind for kind in kinds if "," in kind and number_of(kind, True) is not None]
    if any("." in kind and number_of(kind) is not None for kind in kinds):
        return False
    return bool(numbers) and (are_likely or not all(map(_THOUSANDS.fullmatch, numbers)))


def _holds(cells: NDArray[Any], sign: str) -> bool:
    if cells.dtype.kind == "S":
        return sign.encode() in cells.tobytes()
    return any(sign in cell for cell in cells.tolist())


def whole_numbers(X: NDArray[Any]) -> tuple[int, int] | None:
    """Return the lowest and the highest value where all are whole and fit 32 bits, else None.

    >>> whole_numbers(np.array([[3.0, 16.0]])), whole_numbers(np.array([[0.5]]))
    ((3, 16), None)
    """
    low, high = np.inf, -np.inf
    for _, rows in row_blocks(X):
        low, high = min(low, float(rows.min())), max(high, float(rows.max()))
        if not (low >= _INT32.min and high <= _INT32.max):
            return None
        if rows.dtype.kind == "f" and not np.array_equal(rows, np.rint(rows)):
            return None
    return int(low), int(high)


def smallest_raw_type(low: int, high: int) -> str:
    """Return the smallest raw type that holds a range."""
    return next(name for name in _SMALL if np.iinfo(name).min <= low and high <= np.iinfo(name).max)
