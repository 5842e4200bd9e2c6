"""Text and missing values in the columns of tables, and the numbers that stand for them."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError
from tinykernel.base.files import row_blocks
from tinykernel.base.text import count, join, visible

# What stands for a missing value.
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_INT32 = np.iinfo(np.int32)
# One value of so many may be absurd: so many times the range of the others away from them. Of fewer
# rows nothing is said.
_RARE, _ABSURD, _FEWEST_TO_JUDGE = 1000, 1000.0, 20
#: Types of raw input that the firmware can take.
RAW_DTYPES = ("float32", "uint8", "int8", "uint16", "int16", "int32")
# Longer cells are kept one by one: all others would take as much room.
_SHORT = 64
_THOUSANDS = re.compile(r"[+-]?\d{1,3},\d{3}")


@dataclass(frozen=True, eq=False)
class Column:
    """The values of a column: numbers (of text the place in `texts`), NaN for missing ones."""

    values: NDArray[Any]  # (n_rows,)
    texts: tuple[str, ...] | None = None
    is_ordered: bool = False  # whether the texts have an order of their own.


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
            return Column(np.fromiter(map(float, cells.tolist()), np.float64, len(cells)))
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
    limits = ((name, np.iinfo(name)) for name in RAW_DTYPES[1:])
    return next(name for name, each in limits if each.min <= low and high <= each.max)


#: More different texts than this are names, not categories.
MOST_TEXTS = 255
_MOST_SHOWN = 6
# More may be names or dates, of which others come later.
_MANY_TEXTS = 32
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Coding:
    """The numbers that stand for text and for missing values in a table."""

    # texts of each column; the number of a text is its place, from 0
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # the number for a missing value of each column that lacked some
    gaps: Mapping[str, float] = field(default_factory=dict)
    # the same for each other column: its usual number, as the model has not learned what a gap says
    usual: Mapping[str, float] = field(default_factory=dict)

    def written(self) -> dict[str, Any]:
        """Return it as plain types, for a model file."""
        texts = {k: list(v) for k, v in self.texts.items()}
        written: dict[str, Any] = {"texts": texts, "gaps": dict(self.gaps)}
        return written | {"usual": dict(self.usual)} if self.usual else written

    def named(self, columns: Sequence[str]) -> "Coding":
        """Return it for these columns, where training had an array, whose columns are numbers."""
        own = {*self.texts, *self.gaps, *self.usual}
        names = {str(j): name for j, name in enumerate(columns)}
        if not own.isdisjoint(columns) or not own <= names.keys():
            return self
        texts = {names[j]: each for j, each in self.texts.items()}
        gaps, usual = ({names[j]: v for j, v in part.items()} for part in (self.gaps, self.usual))
        return Coding(texts, gaps, usual)

    @classmethod
    def read(cls, written: object) -> "Coding | None":
        """Return the coding of a model file, None for other content."""
        if not isinstance(written, dict) or set(written) - {"usual"} != {"texts", "gaps"}:
            return None
        texts, gaps, usual = written["texts"], written["gaps"], written.get("usual", {})
        if not all(isinstance(part, dict) for part in (texts, gaps, usual)):
            return None
        plain = all(
            isinstance(each, list) and all(isinstance(text, str) for text in each)
            for each in texts.values()
        )
        if (
            not plain
            or any(len(set(each)) < len(each) for each in texts.values())
            or not all(type(v) in (int, float) for v in (*gaps.values(), *usual.values()))
        ):
            return None
        numbers = ({k: float(v) for k, v in part.items()} for part in (gaps, usual))
        return cls({k: tuple(v) for k, v in texts.items()}, *numbers)


def coding_of(
    X: NDArray[Any],
    columns: Sequence[str],
    texts: Mapping[str, tuple[str, ...]],
    lacking: NDArray[np.bool_],
    ordered: Container[str] = (),
) -> Coding:
    """Choose the numbers that stand for text and for missing values of training rows.

    Texts of `ordered` columns stay in their order. Two others are in that of the alphabet, more
    in the order of how often they occur: neither uses a label, so held-out rows leak nothing.
    Missing values are one number below all others, but absurd ones, where no column loses much
    resolution by it, else one below those of the column. A column that lacks none has its median,
    or its most frequent text, for rows to come.

    X (n, n_columns) has text as the numbers of `texts`, and NaN where a value is missing. `lacking`
    marks columns that lack values in any row of the file.

    >>> X, texts = np.array([[0.0], [2.0], [1.0], [2.0], [np.nan]]), {"size": ("l", "m", "s")}
    >>> coding_of(X, ["size"], texts, np.array([True]))
    Coding(texts={'size': ('s', 'l', 'm')}, gaps={'size': -1.0}, usual={})
    """
    orders = {}
    for name in filter(texts.__contains__, columns):
        codes, order = X[:, columns.index(name)], sorted(texts[name])
        if name in ordered:
            order = list(texts[name])
        elif len(order) > 2:
            counts = np.bincount(codes[~np.isnan(codes)].astype(np.intp), minlength=len(order))
            count = dict(zip(texts[name], counts.tolist(), strict=True))
            order.sort(key=lambda text, count=count: -count[text])  # type: ignore[misc]
        orders[name] = tuple(order)
    gaps = _gap_numbers(X, columns, texts, np.flatnonzero(lacking))
    usual = {}
    for name in (name for name in columns if name not in gaps):
        codes = X[:, columns.index(name)]
        if name in texts:
            numbers, counts = np.unique(codes, return_counts=True)
            most = texts[name][int(numbers[np.argmax(counts)])]
            usual[name] = float(orders[name].index(most))
        else:
            usual[name] = float(np.partition(codes, (len(codes) - 1) // 2)[(len(codes) - 1) // 2])
    return Coding(orders, gaps, usual)


def find_absurd(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark the few values that are absurdly far from all others of a column."""
    n = len(column)
    if n < _FEWEST_TO_JUDGE:
        return np.zeros(n, bool)
    ends = [1 + n // _RARE, n - 2 - n // _RARE]
    low, high = np.partition(column, ends)[ends].astype(np.float64)
    reach = _ABSURD * (high - low)
    return np.asarray(((column < low - reach) | (column > high + reach)) & (reach > 0))


def _gap_numbers(
    X: NDArray[Any],
    columns: Sequence[str],
    texts: Mapping[str, tuple[str, ...]],
    gaps: NDArray[np.intp],
) -> dict[str, float]:
    if not gaps.size:
        return {}
    # Training rows need not hold every text.
    values = [
        np.arange(float(len(texts[columns[j]]) or 1))
        if columns[j] in texts
        else X[~np.isnan(X[:, j]), j]
        for j in gaps
    ]
    values = [v[~find_absurd(v)] for v in values]
    low = np.array([v.min() if v.size else 0.0 for v in values])
    spread = np.array([np.ptp(v) if v.size else 0.0 for v in values])
    common = _just_below(np.floor(np.minimum(low.min(), 0.0)), 1.0)
    if np.all(low - common <= np.maximum(spread, 1)):
        return {columns[j]: float(common) for j in gaps}
    whole = [bool(np.all(v == np.rint(v))) for v in values]
    below = _just_below(low, np.where(whole, 1.0, np.maximum(spread / 64, 2.0**-10)))
    return {columns[j]: float(np.float32(value)) for j, value in zip(gaps, below, strict=True)}


def _just_below(low: _Floats, step: _Floats | float) -> _Floats:
    """Return numbers a step below, in float32 too, where a large one less 1 can be itself."""
    return np.minimum(low - step, np.nextafter(low.astype(np.float32), np.float32(-np.inf)))


def recode(
    X: NDArray[Any],
    columns: Sequence[str],
    texts: Mapping[str, tuple[str, ...]],
    coding: Coding,
    file: object,
    *,
    may_lack: bool = False,
) -> NDArray[Any]:
    """Give text and missing values (NaN) of X (n, n_columns) the numbers of a coding."""
    # `texts` are those of X, in the order of its numbers. Other missing values are refused, or stay
    # NaN where a model may lack them.
    X = X.copy()
    for name, own_texts in texts.items():
        j, place = columns.index(name), {text: i for i, text in enumerate(coding.texts[name])}
        there = ~np.isnan(X[:, j])
        numbers = np.array([place[text] for text in own_texts], X.dtype)
        X[there, j] = numbers[X[there, j].astype(np.intp)]
    if X.dtype.kind == "f":
        for j, name in enumerate(columns):
            X[np.isnan(X[:, j]), j] = coding.gaps.get(name, coding.usual.get(name, np.nan))
    if not may_lack:
        _refuse_new_gaps(X, columns, file)
    return X


def gaps_in_words(gaps: NDArray[np.bool_], columns: Sequence[str] | None) -> str:
    """Count missing values by column."""
    per = gaps.sum(axis=0)
    named = [
        f"{visible(columns[i]) if columns is not None else i} {per[i]}"
        for i in np.flatnonzero(per).tolist()
    ]
    n_rows = int(gaps.any(axis=1).sum())
    return f"{count(int(per.sum()), 'missing value')} in {count(n_rows, 'row')} ({join(named)})"


def _refuse_new_gaps(X: NDArray[Any], columns: Sequence[str], file: object) -> None:
    """Refuse rows that still lack a value: training had none missing in that column."""
    if X.dtype.kind != "f" or not np.isnan(X).any():
        return
    row, column = (int(i) for i in np.argwhere(np.isnan(X))[0])
    way = "--missing drop" if file != "X" else "rows that lack it"
    raise DataError(
        f"{file}: row {row + 1}, column {columns[column]!r}: the value is missing, which the model "
        f"does not take there; fill it, remove the row, or train with {way}"
    )


def in_words(
    coding: Coding, gaps: NDArray[np.bool_] | None, columns: Sequence[str]
) -> tuple[str, ...]:
    """Describe in lines how text and missing values were coded."""
    said = []
    if coding.texts:
        shown = [_one(name, known) for name, known in list(coding.texts.items())[:_MOST_SHOWN]]
        more = ", ..." if len(coding.texts) > _MOST_SHOWN else ""
        said.append(
            f"{count(len(coding.texts), 'column')} of text became numbers: {'; '.join(shown)}{more}"
        )
    many = [name for name, known in coding.texts.items() if len(known) > _MANY_TEXTS]
    if many:
        said.append(
            f"more than {_MANY_TEXTS} texts: {visible(', '.join(many))}; rows with another one, "
            "such as a new date or id, are refused (--set drop=NAMES leaves columns out)"
        )
    if gaps is not None:
        learned = gaps & np.array([name in coding.gaps for name in columns])
        new = gaps & np.array([name in coding.usual for name in columns])
        values = sorted(set(coding.gaps.values()))
        stand = f"{join(values, 3, '{:g}'.format)} stand{'s' * (len(values) == 1)}"
        if learned.any():
            of = gaps_in_words(learned, columns)
            said.append(f"{of}: kept, {stand} for a missing value, on the chip too")
        if new.any():
            said.append(
                f"{gaps_in_words(new, columns)}: training had none there, so the median of its "
                "rows, or the most frequent text, stands for them"
            )
    return tuple(said)


def _one(name: str, texts: Sequence[str]) -> str:
    if len(texts) > 3:
        return f"{visible(name)} 0 to {len(texts) - 1}"
    return visible(f"{name} " + ", ".join(f"{text} {i}" for i, text in enumerate(texts)))
