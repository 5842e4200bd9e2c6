"""Frames and arrays: text and missing values become numbers as those of files do."""

from collections.abc import Sequence, Sized
from numbers import Complex, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import (
    MOST_TEXTS,
    Coding,
    Column,
    coding_of,
    column_of,
    joined,
    packed,
    recode,
    smallest_raw_type,
    whole_numbers,
)
from tinykernel.base.errors import DataError, ShapeError
from tinykernel.base.files import row_blocks
from tinykernel.base.text import column_names, count, join, visible

_Rows = NDArray[np.float64]
_WIDE = ("Int128", "UInt128")  # of polars, which numpy lacks


def is_frame(X: object) -> bool:
    """Say whether rows are a frame of pandas or polars."""
    columns = getattr(X, "columns", None)
    is_polars = hasattr(X, "schema") and all(isinstance(name, str) for name in columns or [0])
    return columns is not None and (hasattr(X, "iloc") or is_polars)


def collect(X: Any) -> Any:
    """Return a lazy frame or a table of Arrow as a frame, whose numbers numpy can hold."""
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        X = X.collect()
    elif hasattr(X, "to_pandas") and hasattr(X, "column_names"):
        try:
            X = X.to_pandas()
        except ImportError:
            raise DataError("X: a table of Arrow needs pandas; pip install pandas") from None
    wide = [name for name, kind in getattr(X, "schema", {}).items() if str(kind) in _WIDE]
    return X.with_columns([X[name].cast(float) for name in wide]) if wide else X


def plain_labels(y: Any) -> Any:
    """Return labels of a nullable type of pandas that lack none by the type of numpy."""
    if hasattr(y, "columns") and hasattr(y, "iloc"):
        return y.apply(plain_labels)
    kind = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    return y if kind is None or y.isna().any() else y.to_numpy(kind)


def with_names(X: Any) -> Any:
    """Return a frame with text as names of columns, and other rows unchanged."""
    # Names that number the columns stay. Empty frames, names that occur twice, dates in an array
    # and complex numbers are a TinykernelError.
    X = collect(X)
    if not is_frame(X):
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        if isinstance(X, np.ma.MaskedArray):  # masked values are missing
            gaps, wide = np.ma.getmaskarray(X), np.result_type(X, np.float32)
            X = np.where(gaps, np.nan, X.data).astype(wide) if np.any(gaps) else X.data
        if kind in ("c", "m", "M"):
            fault = "Complex data not supported" if kind == "c" else "dates are not numbers"
            raise DataError(f"X: {fault}; give real numbers")
        if kind == "O" and any(isinstance(cell, list | tuple | np.ndarray) for cell in X.flat):
            raise ShapeError("X: a value is itself a list; give one number a column")
        return X
    if 0 in X.shape:
        raise ShapeError(
            f"X: a frame of {count(X.shape[0], 'row')} and {count(X.shape[1], 'column')}; give "
            "rows and columns"
        )
    names = column_names(X.columns)
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise DataError(f"X: two columns are called {double!r}; rename one")
    if list(X.columns) in (names, list(range(len(names)))):
        return X
    return X.set_axis(names, axis=1)


def coded_rows(
    X: Any,
    coding: Coding | None = None,
    names: Sequence[str] | None = None,
    *,
    is_table: bool = True,
    may_lack: bool = False,
) -> tuple[Any, Coding | None]:
    """Return rows of numbers and their coding; arrays that lack no value stay as they are."""
    # Text, categories, dates and missing values become numbers as in a file, or by the `coding` of
    # an earlier training; text that differs in nearly every row is refused. The columns of arrays
    # have `names`, else numbers; an array that is no table stays as it is. With `may_lack` missing
    # values that have no number stay.
    X = with_names(X)
    if not is_frame(X):
        return _coded_array(X, coding, names, may_lack) if is_table else (X, None)
    names = [str(name) for name in X.columns]
    is_new = coding is None or not (coding.texts or coding.gaps)
    if is_new and all(_is_plain(X[name]) for name in X.columns):
        if coding is not None:
            return X, None
        numbers = np.column_stack([np.asarray(X[name], np.float64) for name in X.columns])
        return X, coding_of(numbers, names, {}, np.zeros(len(names), np.bool_))
    known = {} if coding is None else coding.texts
    columns = [_column(X[name], str(name) in known) for name in X.columns]
    texts = {n: c.texts for n, c in zip(names, columns, strict=True) if c.texts is not None}
    numbers = np.column_stack([column.values for column in columns]).astype(np.float64)
    if coding is None:
        _refuse_names(texts, numbers, X)
        lacking = np.asarray(np.isnan(numbers).any(axis=0), np.bool_)
        ordered = {n for n, c in zip(names, columns, strict=True) if c.is_ordered}
        coding = coding_of(numbers, names, texts, lacking, ordered)
    else:
        _refuse_new_texts(texts, coding)
    numbers = recode(numbers, names, texts, coding, "X", may_lack=may_lack)
    held = whole_numbers(numbers)
    if held is not None:
        only_text = all(name in coding.texts for name in names)
        numbers = numbers.astype(smallest_raw_type(*held) if only_text else np.int64)
    if hasattr(X, "iloc"):
        return type(X)(numbers, columns=X.columns, index=X.index), coding
    return type(X)(numbers, schema=list(X.columns)), coding


def _coded_array(
    X: Any, coding: Coding | None, names: Sequence[str] | None, may_lack: bool
) -> tuple[Any, Coding | None]:
    rows = _with_gaps(X)
    if rows is None or (names is not None and len(names) != rows.shape[1]):  # others refuse that
        return X, None
    columns = list(map(str, range(rows.shape[1]) if names is None else names))
    if coding is None:
        lacking = np.asarray(np.isnan(rows).any(axis=0), np.bool_)
        coding = coding_of(rows.astype(np.float64), columns, {}, lacking)
    return recode(rows, columns, {}, coding, "X", may_lack=may_lack), coding


def _with_gaps(X: Any) -> NDArray[np.floating] | None:
    """Return rows that lack values, as floats of at least 32 bits; None of others."""
    try:
        X = np.asarray(X) if isinstance(X, list | tuple) else X
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fO":
            return None
        if X.dtype.kind == "O" or X.dtype.itemsize < 4:
            X = X.astype(np.float64 if X.dtype.kind == "O" else np.float32)
    except (TypeError, ValueError):  # text, or rows of unequal lengths
        return None
    return X if any(np.isnan(block).any() for _, block in row_blocks(X)) else None


def check_equal_shapes(X: object) -> None:
    """Refuse a list of inputs whose shapes differ."""
    shapes = {np.shape(each) for each in X} if isinstance(X, list) else set()
    if len(shapes) > 1:
        said = ", ".join(map(str, sorted(shapes)[:3]))
        raise ShapeError(f"X: its windows or rows have the shapes {said}; cut or pad them to one")


def in_numbers(model: Any, X: Any) -> Any:
    """Return rows by the numbers of the training, which a fitted estimator remembers."""
    check_equal_shapes(X)
    X = with_names(X)
    if hasattr(model, "steps"):  # its integer model has the numbers
        return X
    coding = Coding.read(getattr(model, "coding_", None))
    if not hasattr(model, "fit") or (coding is None and not is_frame(X)):
        return X
    names = getattr(model, "feature_names_in_", None)
    if coding is not None and names is None and is_frame(X):
        coded = {*coding.texts, *coding.gaps, *coding.usual}
        if coded.isdisjoint(map(str, X.columns)):  # training had an array
            X = X.to_numpy()
    return coded_rows(X, coding or Coding(), names)[0]


def without_codes(X: Any) -> Any:
    """Return rows of numbers; text and missing values of a frame are a TinykernelError."""
    rows, coding = coded_rows(X, is_table=False)
    for name in () if coding is None else (*coding.texts, *coding.gaps):
        raise DataError(f"X: column {name!r} holds text or lacks values; give numbers")
    return rows


def _is_plain(column: Any) -> bool:
    """Say whether a column holds numbers, or true and false, and lacks none."""
    values = np.asarray(column)
    return values.dtype.kind in "biuf" and not np.isnan(values).any()


def _is_no_value(cell: object) -> bool:
    """Say whether a cell is a list, a complex number or another object without a text."""
    kind = type(cell)
    return (
        (isinstance(cell, Sized) and not isinstance(cell, str | bytes))
        or (isinstance(cell, Complex) and not isinstance(cell, Real))
        or (kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__)
    )


def _column(column: Any, as_text: bool) -> Column:
    cells = column.astype(object).tolist() if hasattr(column, "iloc") else column.to_list()
    odd = next(filter(_is_no_value, cells), None)
    if odd is not None:
        kind = type(odd).__name__
        raise DataError(
            f"X: column {column.name!r} holds values of type {kind}; give numbers or text, or "
            "leave it out"
        )
    lacks = [cell is None or str(cell) == "<NA>" or cell != cell for cell in cells]
    there = [cell for cell, lacking in zip(cells, lacks, strict=True) if not lacking]
    if not as_text and all(isinstance(cell, (bool, int, float, np.number)) for cell in there):
        numbers = [np.nan if lack else float(cell) for cell, lack in zip(cells, lacks, strict=True)]
        return Column(np.array(numbers))
    texts = ["" if lack else str(cell) for cell, lack in zip(cells, lacks, strict=True)]
    return _in_order(column, column_of(packed(texts) if texts else joined([]), as_text=as_text))


def _in_order(column: Any, cells: Column) -> Column:
    """Give the texts of an ordered category numbers in its order."""
    kind = column.dtype
    is_ordered = getattr(kind, "ordered", str(kind).startswith("Enum"))
    if cells.texts is None or not is_ordered:
        return cells
    order = [str(each).strip() for each in kind.categories]  # as the texts of cells
    texts = sorted(cells.texts, key=order.index)
    place = np.array([texts.index(text) for text in cells.texts] or [0], np.float64)
    there, values = ~np.isnan(cells.values), cells.values.copy()
    values[there] = place[values[there].astype(np.intp)]
    return Column(values, tuple(texts), is_ordered=True)


def _refuse_names(texts: dict[str, tuple[str, ...]], numbers: _Rows, X: Any) -> None:
    """Refuse text that is different in nearly every row: a name, a date."""
    for j, name in enumerate(X.columns):
        kinds = texts.get(str(name), ())
        n = int(np.count_nonzero(~np.isnan(numbers[:, j])))
        if len(kinds) > min(MOST_TEXTS, max(2, n // 2)):
            dates = np.asarray(X[name]).dtype.kind in "mM"
            noun, way = ("dates", ", or give numbers, such as hours") if dates else ("texts", "")
            raise DataError(
                f"X: column {name!r} holds {len(kinds)} different {noun} in {n} rows; leave it "
                f"out{way}"
            )


def _refuse_new_texts(texts: dict[str, tuple[str, ...]], coding: Coding) -> None:
    for name, kinds in texts.items():
        known = coding.texts.get(name, ())
        new = next((text for text in kinds if text not in known), None)
        if new is not None:
            shown = join([visible(text) for text in known], 12) or "numbers"
            raise DataError(
                f"X: column {name!r}: {visible(new)[:40]!r} did not occur in training ({shown})"
            )
