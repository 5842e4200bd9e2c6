"""Load and check the DATA files of the command line.

Rows for training come from `load_data`, rows to run a finished model on from `load_rows`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
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
    r"""Load a data file to train on, and keep rows aside to test on.

    ============  ===================================================================
    ``.npz``      ``X_train, y_train, X_test, y_test``, or ``X, y``; optionally
                  ``group_train, group_test`` or ``group``
    ``.npy``      ``NAME_X.npy`` beside ``NAME_y.npy``, or with `label` the file of labels;
                  ``X_train.npy`` takes ``X_test.npy`` as its test part where that exists
    ``.csv``      a header and one column of labels; ``.tsv`` the same with tabs. Where columns are
                  not parted by commas, numbers may have decimal commas
    ``.parquet``  the same; needs pyarrow
    pictures      a folder of them; the label is the name of the folder that a picture lies in, or
                  stands in its name. The folders ``train`` and ``test`` are the parts
    ============  ===================================================================

    A file without a test part is split by ``sklearn.model_selection.train_test_split(...,
    test_size=test_size, stratify=y, random_state=seed)``, so that anyone can repeat the split.
    Where that would be fewer test rows than classes, as many rows as classes are kept aside.
    Arrays of more than two dimensions (images) are flattened in row-major order. A table of whole
    numbers holds integers, even where they are written as 3.0.

    Of more than 2,000,000 rows of a part, or 2**28 values, a sample of so many is drawn, stratified
    by class. Files of more than 256 MB of inputs, but for text, are read in pieces; a table of
    Parquet is read as a whole where it has columns of text or lacks values.

    Parameters
    ----------
    path : path-like
        See `find_data`.
    label : str, optional
        The column of labels of a table, the array of labels beside ``X`` in an ``.npz``, or the
        file of labels of an ``.npy``. A table takes its only column called label, target, class
        or y when this is not given.
    groups : str, optional
        The column of a table, the array of an ``.npz`` (e.g. ``group_train``) or the ``.npy`` file
        that tells which person, record or batch a row belongs to. A file without a test part is
        then split by whole groups, of ``StratifiedGroupKFold(round(1 / test_size), shuffle=True,
        random_state=seed)`` the first part.
    test_size : float, default=0.2
        Part of the rows to keep aside where the file has no test part, 0 <= test_size < 1.
        With 0 all rows are for training and `X_test` is None.
    seed : int, default=0
        Decides which rows are kept aside.
    selection : Selection, optional
        Which columns of a table are inputs, and what becomes of missing values. Columns that look
        like times, counters or identifiers are refused unless its `inputs` name them.
    input_type : str, optional
        Of the inputs, e.g. ``"uint8"``; every value must fit. By default as in the file.
    values : bool
        Whether the labels are values to predict, numbers of any kind. Rows are then kept aside at
        random.
    pictures : PictureReading, optional
        How pictures are read. Whole groups are kept aside where their names say groups.

    Raises
    ------
    TinykernelError
        If the file is missing, unreadable, empty, without labels, holds anything but finite
        numbers or has one class only. The message names row and column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "gesture.csv"
    >>> _ = file.write_text("ax,ay,label\n" + "1,2,up\n3,4,down\n" * 5)
    >>> data = load_data(file)
    >>> data.X_train.shape, data.split
    ((8, 2), '8 training rows, 2 test rows (stratified 20 % kept aside, seed 0)')
    >>> folder.cleanup()
    """
    if not 0 <= test_size < 1:
        raise TinykernelError(f"test size must be at least 0 and below 1, got {test_size}")
    selection = selection or Selection()
    if is_pictures(path):
        parts = read_pictures(path, pictures or PictureReading(), to_train=True)
        assert parts.train is not None
        split = test_size, seed, parts.train.group is not None
        return _loaded(parts, parts.train.file, selection, split, values)
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
        found = _loaded(parts, file, selection, (test_size, seed, groups is not None), values)
        return _typed(found, input_type)


def _loaded(
    parts: Parts, file: Path, selection: Selection, split: tuple[float, int, bool], values: bool
) -> Dataset:
    """Check parts, and keep rows aside: which share, the seed, and whether whole groups."""
    if parts.train is None:
        raise TinykernelError(f"{file}: holds test rows only; training needs X_train, y_train")
    part, said = parts.train, parts.train.notes
    if selection.coding is not None:
        refuse_new_texts(part, selection.coding)
    if selection.inputs is None and part.columns is not None:
        part, notes = without_needless(part)
        said += notes
    may_lack = _may_lack(part, selection)
    train = checked_part(part, gaps=may_lack, values=values)
    if selection.missing == "drop":
        train, note = without_gaps(train)
        said += (note,) if note else ()
    X, y = train.X, needed_labels(train)
    if not values:
        at_least_two_classes(train, y)
        refuse_values(train, y)
    if parts.test is not None:
        test = checked_part(
            parts.test,
            n_features=X.shape[1],
            like=train.name or "the training part",
            gaps=may_lack,
            values=values,
        )
        if selection.missing == "drop":
            test, _ = without_gaps(test)
        if not values:
            same_kind(train, test)
        found = as_split(train, test, split[1])
    else:
        found = split_part(train, y, *split)
    found = replace(
        found,
        shape=part.X.shape[1:],
        notes=said,
        label=parts.train.label,
        beside=parts.train.beside,
    )
    return _filled(_coded(found, train, selection), selection)


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
    medians = medians_of(data.X_train)
    X, note = fill_gaps(data.X_train, medians, data.source, data.columns)
    X_test = data.X_test
    if X_test is not None:
        X_test, of_test = fill_gaps(X_test, medians, data.source, data.columns)
        note = "; ".join(
            f"{part} rows: {said}" for part, said in (("training", note), ("test", of_test)) if said
        )
    if note:
        data = replace(data, notes=(*data.notes, note))
    return replace(data, X_train=X, X_test=X_test, medians=tuple(medians.tolist()))


def _typed(data: Dataset, input_type: str | None) -> Dataset:
    """Give the inputs the type that is asked for, or say which smaller one would hold them."""
    held = _range(data)
    if input_type is not None:
        _check_type(data, input_type, held)
    elif held is not None and data.columns is not None and data.X_train.dtype.kind in "fi":
        texts = {} if data.coding is None else data.coding.texts
        only_text = all(name in texts for name in data.columns)
        # A table of 3.0 and 4.0; of text alone the range is known.
        input_type = smallest_type(*held) if only_text else "int64"
    if input_type is not None:
        X_test = None if data.X_test is None else data.X_test.astype(input_type)
        data = replace(data, X_train=data.X_train.astype(input_type), X_test=X_test)
    note = "" if held is None else _smaller_type(data.X_train, *held)
    return replace(data, notes=(*data.notes, note)) if note else data


def _range(data: Dataset) -> tuple[int, int] | None:
    """Return the lowest and the highest input where all are whole numbers of 32 bits."""
    ranges = [whole_numbers(X) for X in (data.X_train, data.X_test) if X is not None]
    whole = [each for each in ranges if each is not None]
    if len(whole) < len(ranges):
        return None
    return min(low for low, _ in whole), max(high for _, high in whole)


def _check_type(data: Dataset, input_type: str, held: tuple[int, int] | None) -> None:
    """Refuse a type that does not hold the inputs, whose range is known where they are whole."""
    from tinykernel.model import RAW_DTYPES  # takes a second

    check_choice("input type", input_type, RAW_DTYPES)
    if input_type == "float32":
        return
    limits = np.iinfo(input_type)
    if held is None or held[0] < limits.min or held[1] > limits.max:
        what = "not all whole numbers"
        if held is not None:
            what = f"whole numbers from {held[0]} to {held[1]}"
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

    Parameters
    ----------
    path : path-like
        See `find_data`.
    label : str, optional
        As in `load_data`. Labels are used where the file has them and are not needed.
    groups : str, optional
        As in `load_data`. The column of a table is no input; with `test_size` whole groups are
        taken.
    n_features : int, optional
        The number of features that the model takes; other widths are refused.
    feature_names : sequence of str, optional
        The columns that the model was trained with; a table with others, or with these in another
        order, is refused.
    classes : sequence, optional
        The classes of the model. Number labels are turned into text where these are text.
    test_size : float, optional
        For a file without a test part: only the rows that `load_data` keeps aside for the same
        `groups`, `test_size` and `seed`. All rows by default.
    seed : int, default=0
        See `test_size`.
    selection : Selection, optional
        As in the training, with its medians.
    values : bool
        As in `load_data`.
    keep_all : bool, default=False
        Whether rows of a table without a label stay; where one has none, no label is used then.
    pictures : PictureReading, optional
        How pictures are read, for a model that takes some.

    Raises
    ------
    TinykernelError
        As in `load_data`, and if the number of columns is not `n_features`, or the first column
        that is not the one of `feature_names`.
    """
    if n_features is None and feature_names is not None:
        n_features = len(feature_names)
    if is_pictures(path):
        return _picture_rows(path, pictures, classes, test_size, seed)
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
    part = parts.test or parts.train
    assert part is not None  # read_parts never returns two empty parts
    part, notes = _complete(part, feature_names, n_features, selection or Selection(), values)
    rows = Rows(part.X, part.y, file.name, "all rows", part.group, notes)
    if parts.test is not None:
        rows = replace(rows, part=TEST_PART)
    elif test_size is not None:
        rows = _aside(rows, part, test_size, seed, by_group=groups is not None)
    if rows.y is not None and classes is not None:
        rows = replace(rows, y=as_classes(part, rows.y, classes))
    return rows


def _aside(rows: Rows, part: Part, test_size: float, seed: int, *, by_group: bool) -> Rows:
    """Take the rows that training keeps aside."""
    labels = needed_labels(part)
    _, aside, kind = kept_aside(part, labels, test_size, seed, by_group=by_group)
    which = f"{kind}{',' if by_group else ''} {100 * len(aside) / len(labels):.3g} %, seed {seed}"
    return replace(rows.at(aside), part=which)


def _picture_rows(
    path: str | os.PathLike[str],
    how: PictureReading | None,
    classes: Sequence[object] | None,
    test_size: float | None,
    seed: int,
) -> Rows:
    """Load pictures to run a finished model on; labels that are no classes of it say nothing."""
    if how is None:
        raise TinykernelError(
            f"{path}: is a picture or a folder of pictures, but the model takes no images of 8 bits"
        )
    parts = read_pictures(path, how, to_train=False)
    part = parts.test or parts.train
    assert part is not None  # there are pictures
    part = checked_part(part)
    y = part.y
    if y is not None and classes is not None:
        same = not {str(label) for label in classes}.isdisjoint(y.astype(np.str_).tolist())
        y = as_classes(part, y, classes) if same else None
    which = "all pictures" if parts.test is None else TEST_PART
    rows = Rows(part.X, y, part.file.name, which, part.group, part.notes, names=part.names)
    if parts.test is None and test_size is not None:
        rows = _aside(rows, part, test_size, seed, by_group=part.group is not None)
    return rows


def _complete(
    part: Part,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    selection: Selection,
    values: bool = False,
) -> tuple[Part, tuple[str, ...]]:
    """Check rows for a finished model; without those that lack a value, or with numbers there.

    Also says in words which of it was done.
    """
    may_lack, coding = _may_lack(part, selection), selection.coding or Coding()
    part = checked_part(part, n_features=n_features, like="the model", gaps=may_lack, values=values)
    check_columns(part, feature_names)
    refuse_new_texts(part, coding)
    if selection.missing == "drop":
        part, note = without_gaps(part)
        return part, (*part.notes, *([note] if note else []))
    if selection.missing == "median":
        medians = np.array(selection.medians or (), dtype=np.float64)
        X, note = fill_gaps(part.X, medians, part.file, part.columns)
        return replace(part, X=X), (*part.notes, *([note] if note else []))
    # An array has the columns of the model.
    columns = part.columns or tuple(feature_names or map(str, range(part.X.shape[1])))
    X = recoded(part.X, columns, part.texts, coding)
    refuse_new_gaps(X, columns, part.file)
    gaps = np.isnan(part.X) if part.X.dtype.kind == "f" else None
    said = in_words(Coding({}, coding.gaps), gaps, columns)
    return replace(part, X=X), (*part.notes, *said)
