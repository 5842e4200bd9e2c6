"""Checks of the rows and labels of a data file."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import Coding, gaps_in_words, number_of
from tinykernel.base.errors import DataError, ShapeError
from tinykernel.base.files import row_blocks
from tinykernel.base.text import count, join, visible
from tinykernel.data.tables import FilePart

_LARGEST = float(np.finfo(np.float32).max)
_INT32 = np.iinfo(np.int32)
_LARGEST_LABEL = 2.0**53  # floats below are exact integers
_ROWS_AT_ONCE = 16384


def checked_part(
    part: FilePart,
    *,
    n_features: int | None = None,
    like: str = "",
    gaps: bool = False,
    values: bool = False,
) -> FilePart:
    """Check a part of a file; return it with 2-D numbers X and clean labels or values y."""
    # Rows must have `n_features`, as `like` has; with `gaps` values may be missing (NaN), with
    # `values` y holds values. X with missing values is read into memory.
    where = f"{part.file}: {part.name}".rstrip(": ")
    X = part.X
    if X.dtype.kind not in "biuf":
        kind = "text" if X.dtype.kind in "US" else f"values of type {X.dtype}"
        raise DataError(f"{where} holds {kind}; give numbers")
    if X.ndim < 2:
        raise ShapeError(f"{where} has shape {X.shape}; give two dimensions, rows and inputs")
    X = X.reshape(X.shape[0], math.prod(X.shape[1:]))
    X = X.astype(np.float32) if X.dtype == np.float16 else X
    if not X.size:
        raise DataError(f"{where} is empty ({X.shape[0]} rows, {X.shape[1]} inputs); give rows")
    if n_features is not None and X.shape[1] != n_features:
        verb = "takes" if like == "the model" else "has"
        inputs = count(X.shape[1], "input")
        raise ShapeError(f"{where} has {inputs}, but {like} {verb} {n_features}")
    _all_representable(part, X, gaps)
    if gaps and isinstance(X, np.memmap) and any(np.isnan(rows).any() for _, rows in row_blocks(X)):
        X = np.array(X)
    clean = _clean_values if values else _clean_labels
    y = None if part.y is None else clean(part, _one_a_row(part, part.y, values))
    for name, array in (("labels", y), ("groups", part.group)):
        if array is not None and array.shape != X.shape[:1]:
            problem = f"has {len(X)} rows but {name} of shape {array.shape}; give one per row"
            raise DataError(f"{where} {problem}")
    return replace(part, X=X, y=y)


def with_truths(part: FilePart, coding: Coding) -> FilePart:
    """Return a part whose False and True are 0 and 1 in columns that were numbers in training."""
    truths = {"false": 0.0, "true": 1.0}
    X, texts = part.X, dict(part.texts)
    for name in part.texts.keys() - coding.texts.keys():
        numbers = np.array([truths.get(text.lower(), np.nan) for text in part.texts[name]])
        if not np.isnan(numbers).any():
            assert part.columns is not None
            X, j = X.copy(), part.columns.index(name)
            there = ~np.isnan(X[:, j])
            X[there, j] = numbers[X[there, j].astype(np.intp)]
            del texts[name]
    return replace(part, X=X, texts=texts)


def refuse_new_texts(part: FilePart, coding: Coding) -> None:
    """Refuse text that did not occur in an earlier training."""
    for name, texts in part.texts.items():
        known = coding.texts.get(name)
        wrong = [
            code
            for code, text in enumerate(texts)
            if (number_of(text) is None if known is None else text not in known)
        ]
        if not wrong:
            continue
        assert part.columns is not None
        j = part.columns.index(name)
        row = int(np.flatnonzero(np.isin(part.X[:, j], wrong))[0])
        place = f"{part.file}: {part.place(row, j)}"
        text = visible(texts[int(part.X[row, j])])[:40]
        which = "numbers" if known is None else join([visible(each) for each in known], 12)
        raise DataError(
            f"{place}: {text!r} did not occur in training ({which}); correct it, or train again"
        )


def without_gaps(part: FilePart) -> tuple[FilePart, tuple[str, ...]]:
    """Drop the rows of a checked part that lack a value, and note how many."""
    if part.X.dtype.kind != "f" or isinstance(part.X, np.memmap):
        return part, ()
    gaps = np.isnan(part.X)
    complete = ~gaps.any(axis=1)
    if complete.all():
        return part, ()
    if not complete.any():
        raise DataError(f"{part.file}: every row has a missing value; keep them")
    y, group = (None if array is None else array[complete] for array in (part.y, part.group))
    lines = None if part.lines is None else np.asarray(part.lines)[complete].tolist()
    smaller = replace(part, X=part.X[complete], y=y, group=group, lines=lines)
    return smaller, (f"{gaps_in_words(gaps, part.columns)}: these rows are left out",)


def check_columns(part: FilePart, feature_names: Sequence[str] | None) -> None:
    """Refuse a table whose columns are not those of the training, in their order."""
    if feature_names is None or part.columns is None:
        return
    columns = [column.strip() for column in part.columns]
    for number, (column, name) in enumerate(zip(columns, feature_names, strict=True), start=1):
        if column != name:
            raise DataError(
                f"{part.file}: input {number} is {column!r} where the model was trained with "
                f"{name!r}; bring the columns into its order, or rename them"
            )


def _all_representable(part: FilePart, X: NDArray[Any], gaps: bool) -> None:
    """Refuse values that are NaN, infinite, or too large for the firmware's types."""
    if X.dtype.kind == "b" or (X.dtype.kind in "iu" and X.dtype.itemsize <= 2):
        return
    low, high = (-_LARGEST, _LARGEST) if X.dtype.kind == "f" else (_INT32.min, _INT32.max)
    for first in range(0, len(X), _ROWS_AT_ONCE):
        rows = X[first : first + _ROWS_AT_ONCE]
        good = (rows >= low) & (rows <= high)  # False for NaN
        if gaps:
            good |= np.isnan(rows)
        if not good.all():
            row, column = (int(i) for i in np.argwhere(~good)[0])
            value = rows[row, column]
            where = f"{part.file}: {part.place(first + row, column)}"
            if np.isnan(value):
                raise DataError(
                    f"{where}: the value is missing (NaN); fill it, remove the row, or train with "
                    "--missing keep or drop"
                )
            if np.isinf(value):
                raise DataError(f"{where} is infinite; correct it or remove the row")
            kind = "a 32-bit float" if X.dtype.kind == "f" else "a 32-bit integer"
            raise DataError(f"{where} is {value}, which does not fit in {kind}; rescale it")


def _one_a_row(part: FilePart, y: NDArray[Any], values: bool) -> NDArray[Any]:
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        way = "give one per row" if values else "give one per row (one-hot labels: use argmax)"
        raise ShapeError(f"{_labels_of(part, values)} have shape {y.shape}; {way}")
    return y


def _labels_of(part: FilePart, values: bool = False) -> str:
    """Return the labels or values of a part as the subject of a message."""
    of = f" of {part.name}" if part.name else ""
    return f"{part.file}: the {'values' if values else 'labels'}{of}"


def _clean_labels(part: FilePart, y: NDArray[Any]) -> NDArray[Any]:
    """Return labels as integers, booleans or text."""
    if y.dtype.kind == "S":
        try:
            y = np.char.decode(y, "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{_labels_of(part)} are bytes but not UTF-8; convert them") from None
    if y.dtype.kind == "f":
        whole = (np.abs(y.astype(np.float64)) < _LARGEST_LABEL) & (y == np.floor(y))  # NaN: False
        if not whole.all():
            row = int((~whole).argmax())
            raise DataError(
                f"{_labels_of(part)} are not classes: {part.place(row)} has {y[row]}; give "
                "integers or text, or --task numbers to predict values"
            )
        y = y.astype(np.int64)
    if y.dtype.kind not in "biuU":
        raise ShapeError(f"{_labels_of(part)} have type {y.dtype}; give integers or text")
    if y.dtype.kind == "U":
        try:
            "".join(np.unique(y)).encode()
        except UnicodeEncodeError:
            raise DataError(
                f"{_labels_of(part)} hold half of a surrogate pair, which is not text; correct it"
            ) from None
    return y


def _clean_values(part: FilePart, y: NDArray[Any]) -> NDArray[np.float64]:
    """Return values to predict as finite numbers."""
    where, numbers = _labels_of(part, values=True), _as_numbers(y)
    if numbers is None:
        raise DataError(f"{where} to predict are not numbers (the first is {shown(y[0])!r})")
    if not np.all(np.isfinite(numbers)):
        row = int((~np.isfinite(numbers)).argmax())
        raise DataError(f"{where}: {part.place(row)} has {y[row]}; remove the row")
    return numbers


def _as_numbers(y: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return labels as numbers, also from text; None if one is not a number."""
    try:
        return y.astype(np.float64) if y.dtype.kind in "biufU" else None
    except ValueError:
        return None


def refuse_values(part: FilePart, y: NDArray[Any]) -> None:
    """Refuse labels of a table that are probably values: numbers that hardly repeat."""
    if y.dtype.kind != "U" or np.unique(y).size <= max(20, len(y) // 4):
        return
    numbers = _as_numbers(y)
    if numbers is not None and np.any(numbers != np.rint(numbers)):
        raise DataError(
            f"{part.file}: the labels are numbers that hardly repeat, such as {shown(y[0])}; give "
            "--task numbers to predict values"
        )


def needed_labels(part: FilePart) -> NDArray[Any]:
    """Return the labels of a part; TinykernelError if it has none."""
    if part.y is None:
        raise DataError(f"{part.file}: {part.name} has no labels; add y{part.name[1:]}")
    return part.y


def shown(label: object) -> str:
    """Return a label for a message: one short line."""
    text = visible(str(label))
    return text if len(text) <= 40 else text[:37] + "..."


def same_kind(train: FilePart, test: FilePart) -> None:
    """Refuse parts of which one has text as labels and the other numbers."""
    y, y_test = needed_labels(train), needed_labels(test)
    if (y.dtype.kind == "U") != (y_test.dtype.kind == "U"):
        kinds = ("text", "numbers") if y.dtype.kind == "U" else ("numbers", "text")
        raise DataError(
            f"{test.file}: the labels of {train.name} are {kinds[0]} (the first is {shown(y[0])}), "
            f"those of {test.name} {kinds[1]} ({shown(y_test[0])}); give both the same"
        )


def as_classes(part: FilePart, y: NDArray[Any], classes: Sequence[object]) -> NDArray[Any]:
    """Convert labels to the type of the model's classes, which are all text or none."""
    text = isinstance(classes[0], str)
    if text and y.dtype.kind != "U":
        return y.astype(np.str_)
    if not text and y.dtype.kind == "U":
        names = join(classes, show=shown)
        raise DataError(
            f"{part.file}: the labels are text (the first is {shown(y[0])!r}), but the classes of "
            f"the model are numbers ({names}); give labels as numbers"
        )
    return y
