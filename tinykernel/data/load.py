"""Load and check the DATA files of the command line.

Rows for training come from `load_data`, rows to run a finished model on from `load_rows`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.checks import check_choice
from tinykernel.coding.cells import smallest_type, whole_numbers
from tinykernel.coding.codes import Coding, coding_of, in_words, recoded, refuse_new_gaps
from tinykernel.data.columns import without_needless
from tinykernel.data.faults import (
    as_classes,
    at_least_two_classes,
    check_columns,
    checked_part,
    fill_gaps,
    needed_labels,
    refuse_new_texts,
    refuse_values,
    same_kind,
    without_gaps,
)
from tinykernel.data.formats import Part, Parts, names_in, read_parts, whole
from tinykernel.data.held_rows import kept_aside
from tinykernel.data.partition import TEST_PART, Dataset, Rows, as_split, split_part
from tinykernel.data.paths import find_data, is_pictures
from tinykernel.data.pictures import PictureReading, read_pictures
from tinykernel.data.selection import Selection, medians_of
from tinykernel.errors import TinykernelError
from tinykernel.stored import StoredRows


def load_data(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    groups: str | None = None,
    test_size: float = 0.2,
    seed: int = 0,
    selection: Selection | None = None,
    input_type: str | None = None,
    values: bool = False,
    pictures: PictureReading | None = None,
) -> Dataset:
    """Load a data file to train on, and keep rows aside to test on.

    A file without a test part is split by ``sklearn.model_selection.train_test_split(...,
    test_size=test_size, stratify=y, random_state=seed)``, so that anyone can repeat the split.
    Where that would be fewer test rows than classes, as many rows as classes are kept aside.
    Arrays of more than two dimensions (images) are flattened in row-major order. A table of whole
    numbers holds integers, even where they are written as 3.0.

    `label` and `groups` name columns of a table, arrays of an ``.npz`` or ``.npy`` files. With
    groups a file without a test part is split by whole ones, of
    ``StratifiedGroupKFold(round(1 / test_size), shuffle=True, random_state=seed)`` the first. With
    a `test_size` of 0 all rows are for training. `input_type` is that of the inputs, as in the file
    by default; `values` says that labels are values to predict, kept aside at random.

    A TinykernelError says where a file is missing, unreadable, empty, without labels, of one class,
    or holds anything but finite numbers.
    """
    if not 0 <= test_size < 1:
        raise TinykernelError(f"test size must be at least 0 and below 1, got {test_size}")
    selection = selection or Selection()
    if pictures is not None or is_pictures(path):
        parts = read_pictures(path, pictures or PictureReading(), to_train=True)
        assert parts.train is not None
        return _dataset(parts, selection, values, test_size, seed, parts.train.group is not None)
    file = find_data(path)
    with whole(file):
        parts = read_parts(
            file,
            label=label,
            labels_needed=True,
            groups=groups,
            selection=selection,
            in_pieces=True,
        )
        dataset = _dataset(parts, selection, values, test_size, seed, groups is not None)
        return _typed(dataset, input_type)


def _dataset(
    parts: Parts,
    selection: Selection,
    values: bool,
    test_size: float,
    seed: int,
    by_group: bool,
) -> Dataset:
    """Check parts, keep rows aside, and give text and missing values numbers."""
    part, test = parts.train, parts.test
    if part is None:
        assert test is not None
        raise TinykernelError(f"{test.file}: holds test rows only; training needs X_train, y_train")
    notes = part.notes
    if selection.coding is not None:
        refuse_new_texts(part, selection.coding)
    if selection.inputs is None and part.columns is not None:
        part, said = without_needless(part)
        notes += said
    may_lack = _may_lack(part, selection)
    train, said = _checked(part, selection, gaps=may_lack, values=values)
    notes += said
    y = needed_labels(train)
    if not values:
        at_least_two_classes(train, y)
        refuse_values(train, y)
    if test is not None:
        like = {"n_features": train.X.shape[1], "like": train.name or "the training part"}
        test, _ = _checked(test, selection, gaps=may_lack, values=values, **like)
        if not values:
            same_kind(train, test)
        dataset = as_split(train, test, seed)
    else:
        dataset = split_part(train, y, test_size, seed, by_group)
    shape = part.X.shape[1:]
    dataset = replace(dataset, shape=shape, notes=notes, label=part.label, beside=part.beside)
    return _filled(_coded(dataset, train, selection), selection)


def _checked(part: Part, selection: Selection, **how: Any) -> tuple[Part, tuple[str, ...]]:
    """Check a part, and leave out rows that lack a value where that is asked for."""
    part = checked_part(part, **how)
    return without_gaps(part) if selection.missing == "drop" else (part, ())


def _may_lack(part: Part, selection: Selection) -> bool:
    """Whether the values of a part may be missing: in tables, or where that is asked for."""
    return selection.may_lack and (selection.missing is not None or part.columns is not None)


def _coded(data: Dataset, part: Part, selection: Selection) -> Dataset:
    """Give text and missing values the numbers of the training rows, or of an earlier training."""
    X, columns = data.X_train, part.columns or tuple(map(str, range(data.X_train.shape[1])))
    keeps = selection.missing in (None, "keep")
    may_lack = keeps and not isinstance(part.X, StoredRows)
    gaps = np.isnan(part.X) if may_lack else np.zeros((1, len(columns)), bool)
    lacking = np.asarray(gaps.any(axis=0))
    coding = selection.coding or coding_of(X, columns, part.texts, lacking)
    if not coding.texts and not coding.gaps:
        return data
    X_test = data.X_test
    X = recoded(X, columns, part.texts, coding)
    X_test = None if X_test is None else recoded(X_test, columns, part.texts, coding)
    for rows in (X, X_test):
        if keeps and rows is not None:
            refuse_new_gaps(rows, columns, data.source)
    notes = (*data.notes, *in_words(coding, gaps, columns))
    return replace(data, X_train=X, X_test=X_test, coding=coding, notes=notes)


def _filled(data: Dataset, selection: Selection) -> Dataset:
    """Fill gaps with the medians of the training rows, where that is asked for."""
    if selection.missing != "median":
        return data
    medians, X_test = medians_of(data.X_train), data.X_test
    X, note = fill_gaps(data.X_train, medians, data.source, data.columns)
    notes = {"training": note}
    if X_test is not None:
        X_test, notes["test"] = fill_gaps(X_test, medians, data.source, data.columns)
        note = "; ".join(f"{part} rows: {said}" for part, said in notes.items() if said)
    all_notes = (*data.notes, note) if note else data.notes
    return replace(data, X_train=X, X_test=X_test, medians=tuple(medians.tolist()), notes=all_notes)


def _typed(data: Dataset, input_type: str | None) -> Dataset:
    """Give the inputs the type that is asked for, or say which smaller one would hold them."""
    ranges = [whole_numbers(X) for X in (data.X_train, data.X_test) if X is not None]
    known = [each for each in ranges if each is not None]
    is_whole = len(known) == len(ranges)
    low, high = (min(r[0] for r in known), max(r[1] for r in known)) if is_whole else (0, 0)
    if input_type is not None:
        _check_type(data, input_type, (low, high) if is_whole else None)
    elif is_whole and data.columns is not None and data.X_train.dtype.kind in "fi":
        texts = {} if data.coding is None else data.coding.texts
        only_text = all(name in texts for name in data.columns)
        # A table of 3.0 and 4.0; of text alone the range is known.
        input_type = smallest_type(low, high) if only_text else "int64"
    if input_type is not None:
        X_test = None if data.X_test is None else data.X_test.astype(input_type)
        data = replace(data, X_train=data.X_train.astype(input_type), X_test=X_test)
    note = _smaller_type(data.X_train, low, high) if is_whole else ""
    return replace(data, notes=(*data.notes, note)) if note else data


def _check_type(data: Dataset, input_type: str, limits: tuple[int, int] | None) -> None:
    """Refuse a type that does not hold the inputs; `limits` are theirs where they are whole."""
    from tinykernel.model import RAW_DTYPES  # takes a second

    check_choice("input type", input_type, RAW_DTYPES)
    if input_type == "float32":
        return
    info = np.iinfo(input_type)
    if limits is None or limits[0] < info.min or limits[1] > info.max:
        what = "not all whole numbers"
        if limits is not None:
            what = f"whole numbers from {limits[0]} to {limits[1]}"
        raise TinykernelError(f"{data.source}: the inputs are {what}, which is no {input_type}")


def _smaller_type(X: NDArray[Any], low: int, high: int) -> str:
    """Say in one line which type takes fewer bytes for the same whole numbers."""
    taken = min(X.dtype.itemsize, 4)  # the firmware knows nothing wider
    name = smallest_type(low, high)
    saved = (taken - np.dtype(name).itemsize) * X.shape[1]
    if saved <= 0:
        return ""
    kind = "float32" if X.dtype.kind == "f" else "int32" if taken == 4 else X.dtype.name
    return (
        f"the {X.shape[1]} inputs are whole numbers from {low} to {high}: --set input_type={name} "
        f"saves {saved} B of {taken * X.shape[1]} B in every row that the firmware takes as {kind}"
    )


def load_rows(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    groups: str | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
    test_size: float | None = None,
    seed: int = 0,
    selection: Selection | None = None,
    values: bool = False,
    keep_all: bool = False,
    pictures: PictureReading | None = None,
) -> Rows:
    """Load rows to run a finished model on: the test part of the file, else all its rows.

    The parameters of `load_data` mean the same; labels are used where the file has them. Rows must
    have `n_features`, and a table the columns `feature_names` in this order. Number labels become
    text where the `classes` of the model are text. With `test_size`, rows of a file without a test
    part are those that `load_data` keeps aside. With `keep_all` rows of a table without a label
    stay, and no label is used where one is missing.
    """
    if n_features is None and feature_names is not None:
        n_features = len(feature_names)
    if is_pictures(path):
        rows, part = _picture_rows(path, pictures, classes)
        by_group = part.group is not None
    else:
        file = find_data(path)
        # An array of groups is needed for a split only; a column must be told from the inputs.
        is_table = file.suffix.lower() not in (".npz", ".npy")
        if test_size is None and not is_table and groups not in names_in(file):
            groups = None
        parts = read_parts(
            file,
            label=label,
            labels_needed=False,
            n_features=n_features,
            groups=groups,
            selection=selection,
            keep_all=keep_all,
        )
        selection, by_group = selection or Selection(), groups is not None
        part = _complete(parts.any_part, feature_names, n_features, selection, values)
        y = part.y if part.y is None or classes is None else as_classes(part, part.y, classes)
        which = "all rows" if parts.test is None else TEST_PART
        rows = Rows(part.X, y, file.name, which, part.group, part.notes)
    if rows.part == TEST_PART or test_size is None:
        return rows
    labels = needed_labels(part)
    _, aside, kind = kept_aside(part, labels, test_size, seed, by_group=by_group)
    which = f"{kind}{',' if by_group else ''} {100 * len(aside) / len(labels):.3g} %, seed {seed}"
    return replace(rows.at(aside), part=which)


def _picture_rows(
    path: str | os.PathLike[str], how: PictureReading | None, classes: Sequence[object] | None
) -> tuple[Rows, Part]:
    """Load pictures to run a finished model on; labels that are no classes of it say nothing."""
    if how is None:
        raise TinykernelError(
            f"{path}: is a picture or a folder of pictures, but the model takes no images of 8 bits"
        )
    parts = read_pictures(path, how, to_train=False)
    part = checked_part(parts.any_part)
    y = part.y
    if y is not None and classes is not None:
        same = not {str(label) for label in classes}.isdisjoint(y.astype(np.str_).tolist())
        y = as_classes(part, y, classes) if same else None
    which = "all pictures" if parts.test is None else TEST_PART
    return Rows(part.X, y, part.file.name, which, part.group, part.notes, names=part.names), part


def _complete(
    part: Part,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    selection: Selection,
    values: bool,
) -> Part:
    """Check rows for a finished model; without those that lack a value, or with numbers there."""
    may_lack, coding = _may_lack(part, selection), selection.coding or Coding()
    how = {"n_features": n_features, "like": "the model", "gaps": may_lack, "values": values}
    part = checked_part(part, **how)  # type: ignore[arg-type]
    check_columns(part, feature_names)
    refuse_new_texts(part, coding)
    X, notes = part.X, tuple[str, ...]()
    if selection.missing == "drop":
        part, notes = without_gaps(part)
        X = part.X
    elif selection.missing == "median":
        medians = np.array(selection.medians or (), dtype=np.float64)
        X, note = fill_gaps(X, medians, part.file, part.columns)
        notes = (note,) if note else ()
    else:
        # An array has the columns of the model.
        columns = part.columns or tuple(feature_names or map(str, range(X.shape[1])))
        gaps = np.isnan(X) if X.dtype.kind == "f" else None
        notes = in_words(Coding({}, coding.gaps), gaps, columns)
        X = recoded(X, columns, part.texts, coding)
        refuse_new_gaps(X, columns, part.file)
    return replace(part, X=X, notes=(*part.notes, *notes))
