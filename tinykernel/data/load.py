"""Sources of rows, tables, arrays and pictures: read, checked, split and coded."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import check_choice
from tinykernel.base.coding import (
    RAW_DTYPES,
    Coding,
    coding_of,
    in_words,
    recode,
    smallest_raw_type,
    whole_numbers,
)
from tinykernel.base.errors import (
    DataError,
    FileError,
    FormatError,
    OptionError,
    RowsError,
    ShapeError,
)
from tinykernel.data import faults
from tinykernel.data.binary import read_npy, read_npz, read_parquet
from tinykernel.data.columns import lost_digits, placeholders, similar_labels, without_needless
from tinykernel.data.delimited import read_table
from tinykernel.data.origin import Origin
from tinykernel.data.partition import TEST_PART, Dataset, Rows, as_split, held_out_rows, split_part
from tinykernel.data.paths import find_data
from tinykernel.data.pictures import PictureReading, read_pictures
from tinykernel.data.tables import ColumnChooser, FilePart, Parts, Selection, part_of

_ALL = Selection()


@dataclass(frozen=True)
class TableSource:
    """A table or arrays; the last six fields are of a finished model.

    `input_type` is that of the inputs, by default as in the file; a table of whole numbers, even if
    written as 3.0, holds integers. With `values` the labels are numbers to predict. With `keep_all`
    rows of a table without a label stay; if a label is missing, none is used. Missing values stay
    NaN if the model `takes_gaps`; `in_order` makes its order of arrays with more dimensions.
    """

    path: str | os.PathLike[str]
    selection: Selection = _ALL
    values: bool = False
    input_type: str | None = None
    n_features: int | None = None
    feature_names: Sequence[str] | None = None
    classes: Sequence[object] | None = None
    keep_all: bool = False
    takes_gaps: bool = False
    in_order: Callable[[NDArray[Any]], NDArray[Any]] | None = None

    def train_rows(self, test_size: float = 0.2, seed: int = 0) -> Dataset:
        """Load training rows, and hold out test rows.

        A file without a test part is split by ``sklearn.model_selection.train_test_split(...,
        test_size=test_size, stratify=y, random_state=seed)``, with at least as many test rows as
        classes; values at random, and groups as `held_out_groups` does, by a part of
        ``StratifiedGroupKFold(round(1 / test_size), shuffle=True, random_state=seed)``. A
        `test_size` of 0 holds out none.
        Arrays of more than two dimensions are flattened in row-major order.
        """
        parts = read_parts(find_data(self.path), self.selection, labels_needed=True, in_pieces=True)
        by_group = self.selection.groups is not None
        dataset = _dataset(parts, self.selection, self.values, test_size, seed, by_group)
        # Later tables may have further columns.
        known = Origin(
            missing=self.selection.missing, inputs=dataset.columns, coding=dataset.coding
        )
        return replace(_typed(dataset, self.input_type), origin=known)

    def rows(self, test_size: float | None = None, seed: int = 0) -> Rows:
        """Load the test part, else all rows or those that a training held out."""
        parts = read_parts(
            find_data(self.path),
            self.selection,
            labels_needed=False,
            n_features=self.n_features,
            keep_all=self.keep_all,
        )
        part = self._complete(_flat(parts.any_part, self.in_order))
        y = part.y
        if y is not None and self.classes is not None:
            y = faults.as_classes(part, y, self.classes)
        rows = Rows(part.X, y, part.file.name, "all rows", part.group, part.notes)
        if parts.test is not None:
            return replace(rows, part=TEST_PART)
        return _held_out(part, rows, test_size, seed, self.selection.groups is not None)

    def _complete(self, part: FilePart) -> FilePart:
        """Check rows for a finished model, and drop or code missing values."""
        selection, names = self.selection, self.feature_names
        may_lack = self.takes_gaps or _may_lack(part, selection)
        coding = (selection.coding or Coding()).named(part.columns or ())
        part = faults.checked_part(
            part, n_features=self.n_features, like="the model", gaps=may_lack, values=self.values
        )
        faults.check_columns(part, names)
        part = faults.with_truths(part, coding)
        faults.refuse_new_texts(part, coding)
        if selection.missing == "drop":
            part, notes = faults.without_gaps(part)
            return replace(part, notes=(*part.notes, *notes))
        X = part.X
        # An array has the columns of the model, in their order.
        columns = part.columns or tuple(names or map(str, range(X.shape[1])))
        gaps = np.isnan(X) if X.dtype.kind == "f" else None
        notes = in_words(replace(coding, texts={}), gaps, columns)
        X = recode(X, columns, part.texts, coding, part.file, may_lack=self.takes_gaps)
        return replace(part, X=X, notes=(*part.notes, *notes))


@dataclass(frozen=True)
class PictureSource:
    """A picture or a folder of pictures; the labels count if one of them is a class."""

    path: str | os.PathLike[str]
    how: PictureReading | None  # None for a model of other inputs
    values: bool = False
    classes: Sequence[object] | None = None

    def train_rows(self, test_size: float = 0.2, seed: int = 0) -> Dataset:
        """Load training pictures, and hold out test pictures."""
        how = self.how or PictureReading()
        parts = read_pictures(self.path, how, to_train=True)
        assert parts.train is not None
        by_group = parts.train.group is not None
        dataset = _dataset(parts, _ALL, self.values, test_size, seed, by_group)
        return replace(dataset, origin=Origin(pictures=how.remembered))

    def rows(self, test_size: float | None = None, seed: int = 0) -> Rows:
        """Load the test part, else all pictures or those that a training held out."""
        if self.how is None:
            raise DataError(
                f"{self.path}: holds pictures, but the model takes no images of 8 bits; give other "
                "data"
            )
        parts = read_pictures(self.path, self.how, to_train=False)
        part = faults.checked_part(parts.any_part)
        y = part.y
        if y is not None and self.classes is not None:
            known = {str(label) for label in self.classes}
            same = not known.isdisjoint(y.astype(np.str_).tolist())
            y = faults.as_classes(part, y, self.classes) if same else None
        rows = Rows(part.X, y, part.file.name, "all pictures", part.group, part.notes)
        rows = replace(rows, names=part.names)
        if parts.test is not None:
            return replace(rows, part=TEST_PART)
        return _held_out(part, rows, test_size, seed, part.group is not None)


def _flat(part: FilePart, in_order: Callable[[NDArray[Any]], NDArray[Any]] | None) -> FilePart:
    """Return a part whose values of a row have the order of a model that knows its axes."""
    if in_order is None or part.X.ndim < 3:
        return part
    try:
        return replace(part, X=in_order(part.X))
    except ShapeError as error:
        raise ShapeError(f"{part.file}: {error}") from None


def _held_out(
    part: FilePart, rows: Rows, test_size: float | None, seed: int, by_group: bool
) -> Rows:
    """Return all rows of a checked part, or those that a training with this split held out."""
    if test_size is None:
        return rows
    labels = faults.needed_labels(part)
    _, test, kind = held_out_rows(part, labels, test_size, seed, by_group=by_group)
    share = f"{100 * len(test) / len(labels):.3g} %"
    return replace(rows.at(test), part=f"test rows ({share} held out, {kind}, seed {seed})")


def _dataset(
    parts: Parts, selection: Selection, values: bool, test_size: float, seed: int, by_group: bool
) -> Dataset:
    """Check parts, hold out test rows, and code text and missing values."""
    if not 0 <= test_size < 1:
        raise OptionError(f"test size must be at least 0 and below 1, got {test_size}")
    part, test = parts.train, parts.test
    if part is None:
        assert test is not None
        raise DataError(f"{test.file}: holds test rows only; training needs X_train, y_train")
    notes = part.notes
    if selection.coding is not None:
        faults.refuse_new_texts(part, selection.coding)
    if selection.inputs is None and part.columns is not None:
        part, column_notes = without_needless(part)
        notes += column_notes
    may_lack = _may_lack(part, selection)
    train, gap_notes = _checked(part, selection, gaps=may_lack, values=values)
    notes += gap_notes
    y = faults.needed_labels(train)
    if not values:
        if (y == y[0]).all():
            raise RowsError(
                f"{train.file}: one class only, all {len(y)} training rows have the label "
                f"{faults.shown(y[0])}; training needs two"
            )
        faults.refuse_values(train, y)
    if test is not None:
        like = {"n_features": train.X.shape[1], "like": train.name or "the training part"}
        test, _ = _checked(test, selection, gaps=may_lack, values=values, **like)
        if not values:
            faults.same_kind(train, test)
        dataset = as_split(train, test, seed)
    else:
        dataset = split_part(train, y, test_size, seed, by_group)
    columns = part.columns or tuple(map(str, range(train.X.shape[1])))
    notes += lost_digits(train.X, columns) + (() if values else similar_labels(y.tolist()))
    if part.columns is not None:
        notes += placeholders(train.X, columns)
    shape = part.X.shape[1:]
    dataset = replace(dataset, shape=shape, notes=notes, label=part.label, beside=part.beside)
    return _coded(dataset, train, selection)


def _checked(part: FilePart, selection: Selection, **how: Any) -> tuple[FilePart, tuple[str, ...]]:
    """Check a part, and with missing="drop" drop rows that lack a value."""
    part = faults.checked_part(part, **how)
    return faults.without_gaps(part) if selection.missing == "drop" else (part, ())


def _may_lack(part: FilePart, selection: Selection) -> bool:
    """Whether a part may have missing values: tables may, arrays with an option `missing`."""
    return selection.missing != "error" and (selection.missing or part.columns) is not None


def _coded(data: Dataset, part: FilePart, selection: Selection) -> Dataset:
    """Code text and missing values by the training rows, or as in an earlier training."""
    X, columns = data.X_train, part.columns or tuple(map(str, range(data.X_train.shape[1])))
    keeps = selection.missing in (None, "keep")
    may_lack = keeps and not isinstance(part.X, np.memmap)
    gaps = np.isnan(part.X) if may_lack else np.zeros((1, len(columns)), bool)
    coding = selection.coding or coding_of(X, columns, part.texts, np.asarray(gaps.any(axis=0)))
    if not may_lack or part.columns is None:
        coding = replace(coding, usual={})
    if not (coding.texts or coding.gaps or coding.usual):
        return data
    X_test = data.X_test
    how = columns, part.texts, coding, data.source
    X, X_test = recode(X, *how), None if X_test is None else recode(X_test, *how)
    notes = (*data.notes, *in_words(coding, gaps, columns))
    return replace(data, X_train=X, X_test=X_test, coding=coding, notes=notes)


def _typed(data: Dataset, input_type: str | None) -> Dataset:
    """Convert the inputs to `input_type`, or whole numbers of a table to an integer type."""
    ranges = [whole_numbers(X) for X in (data.X_train, data.X_test) if X is not None]
    known = [each for each in ranges if each is not None]
    is_whole = len(known) == len(ranges)
    low, high = (min(r[0] for r in known), max(r[1] for r in known)) if is_whole else (0, 0)
    if input_type is not None:
        _check_type(data, input_type, (low, high) if is_whole else None)
    elif is_whole and data.columns is not None and data.X_train.dtype.kind in "fi":
        texts = {} if data.coding is None else data.coding.texts
        only_text = all(name in texts for name in data.columns)
        # Only codes of text have a known range; other whole numbers, such as 3.0, become int64.
        input_type = smallest_raw_type(low, high) if only_text else "int64"
    if input_type is None:
        return data
    X_test = None if data.X_test is None else data.X_test.astype(input_type)
    return replace(data, X_train=data.X_train.astype(input_type), X_test=X_test)


def _check_type(data: Dataset, input_type: str, limits: tuple[int, int] | None) -> None:
    """Refuse a type that cannot hold the inputs; `limits` is the range of whole numbers."""
    check_choice("input type", input_type, RAW_DTYPES)
    if input_type == "float32":
        return
    info = np.iinfo(input_type)
    if limits is None or limits[0] < info.min or limits[1] > info.max:
        kind = "not all whole numbers"
        if limits is not None:
            kind = f"whole numbers from {limits[0]} to {limits[1]}"
        raise DataError(f"{data.source}: the inputs are {kind}, which do not fit {input_type}")


def load_inputs(
    file: Path, names: Sequence[str] = (), coding: Coding | None = None, *, with_axes: bool = False
) -> NDArray[Any]:
    """Load the inputs of a file with or without labels, of its training part if it has two.

    If a table has columns of all `names`, it is these, in their order. Missing values stay NaN,
    and text becomes the numbers of a coding. Rows of arrays are flat, or keep their axes.
    """
    how = _ALL if coding is None else replace(_ALL, coding=coding)
    parts = read_parts(file, how, labels_needed=False, keep_all=True)
    whole = parts.train or parts.any_part
    part = faults.checked_part(whole, gaps=True)
    if with_axes and whole.X.ndim > 2:
        return np.asarray(part.X.reshape(whole.X.shape))
    columns = part.columns or ()
    coding = None if coding is None else coding.named(columns)
    part = faults.with_truths(part, coding or Coding())
    if not names or not set(names) <= set(columns):
        names = columns
    known = {} if coding is None else coding.texts
    text = next((name for name in names if name in part.texts and name not in known), None)
    if text is not None:
        raise DataError(f"{file}: column {text!r} holds text, which the model does not take")
    if coding is not None:
        faults.refuse_new_texts(part, coding)
        texts = {name: part.texts[name] for name in known if name in part.texts}
        part = replace(part, X=recode(part.X, columns, texts, coding, file, may_lack=True))
    rows: NDArray[Any] = part.X[:, [columns.index(name) for name in names]] if names else part.X
    return rows


FORMATS = (".npz", ".npy", ".csv", ".tsv", ".parquet")


def read_parts(
    path: Path,
    selection: Selection,
    *,
    labels_needed: bool,
    n_features: int | None = None,
    in_pieces: bool = False,
    keep_all: bool = False,
) -> Parts:
    """Read an existing data file by its suffix.

    If labels are not needed, labels and groups may be missing. If a table has `n_features` columns,
    none is the label. With `in_pieces` many rows stay in a file, as `numpy.memmap`. With
    `keep_all` rows without a label stay, and labels are then ignored.
    """
    suffix = path.suffix.lower()
    if selection.names_columns and suffix in (".npz", ".npy"):
        raise OptionError(f"{path}: has no columns; leave out inputs and drop, or give a table")
    chooser = ColumnChooser(path, selection, labels_needed, n_features, keep_all)
    try:
        if suffix == ".npz":
            return read_npz(path, selection, labels_needed, in_pieces)
        if suffix == ".npy":
            return read_npy(path, selection, labels_needed, in_pieces)
        if suffix in (".csv", ".tsv"):
            return Parts(part_of(read_table(path, chooser.known), chooser), None)
        if suffix == ".parquet":
            return Parts(read_parquet(path, chooser, in_pieces), None)
    except OSError as error:
        reason = error.strerror or "damaged or cut short"
        raise FileError(f"{path}: cannot be read ({reason})") from None
    raise FormatError(
        f"{path}: cannot be read as data; give a file that ends in {', '.join(FORMATS)}"
    )
