"""Hold out whole recordings to test on."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tinykernel.data.partition import Dataset, group_folds, part_of_most_classes
from tinykernel.data.recordings import Windows
from tinykernel.errors import DataError, OptionError, RowsError
from tinykernel.text import count


def split_recordings(
    data: Windows, test_size: float = 0.2, seed: int = 0
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of training and test windows; whole recordings (or groups) are held out.

    Windows of one recording overlap and resemble each other, so they must not be split. The parts
    are those of ``sklearn.model_selection.StratifiedGroupKFold(round(1 / test_size), shuffle=True,
    random_state=seed)``. Of the parts without which every class still has training windows, the
    first one with the most classes is held out. A `test_size` of 0 holds out none.
    """
    if data.y is None:
        raise DataError(
            f"{data.source}: has no labels to train on; add them, or name them with --label"
        )
    if not 0 <= test_size < 1:
        raise OptionError(f"test size must be at least 0 and below 1, got {test_size}")
    train = np.ones(len(data.X), bool)
    if test_size == 0:
        return train, ~train
    names, group = np.unique(data.groups, return_inverse=True)
    if len(names) < 2:
        unit = "recording" if len(data.recordings) == 1 else "group"
        raise RowsError(
            f"{data.source}: has one {unit} only, and its windows are too alike to test on; give "
            "several files, name groups with --groups, or use --test 0"
        )
    codes = np.unique(data.y, return_inverse=True)[1]
    n_parts = min(max(2, round(1 / test_size)), len(names))
    test = part_of_most_classes(_parts(n_parts, codes, group, seed), codes)
    if test is None:
        raise RowsError(_why_no_split(data, codes, group))
    train[test] = False
    return train, ~train


def _parts(
    n_parts: int, codes: NDArray[np.intp], group: NDArray[np.intp], seed: int
) -> Iterator[NDArray[np.intp]]:
    """Yield candidates for the test part: those of the splitter, then every single group."""
    if np.bincount(codes).max() >= n_parts:
        yield from (aside for _, aside in group_folds(n_parts, codes, group, seed))
    for number in np.random.default_rng(seed).permutation(group.max() + 1):
        yield np.flatnonzero(group == number)


def _why_no_split(data: Windows, codes: NDArray[np.intp], group: NDArray[np.intp]) -> str:
    assert data.y is not None
    for code in range(int(codes.max()) + 1):
        if len(np.unique(group[codes == code])) == 1:
            first = int((codes == code).argmax())
            return (
                f"{data.source}: no recording can be held out: {data.y[first]} is in "
                f"{data.groups[first]} only; record it once more, or use --test 0"
            )
    return (
        f"{data.source}: no recording can be held out without losing a class; record each class "
        "again, or use --test 0"
    )


def as_dataset(data: Windows, test_size: float = 0.2, seed: int = 0) -> Dataset:
    """Split windows into training and test rows by `split_recordings`."""
    train, test = split_recordings(data, test_size, seed)
    assert data.y is not None
    split = f"{count(int(train.sum()), 'training window')}, no test windows"
    groups = data.groups
    if test.any():
        n_train, n_test = (len(np.unique(groups[part])) for part in (train, test))
        unit = "recording" if set(groups) <= set(data.recordings) else "group"
        which = f": {', '.join(np.unique(groups[test]))}" if n_test <= 3 else ""
        split = split.replace("no test windows", count(int(test.sum()), "test window")) + (
            f" ({n_test} of {count(n_train + n_test, unit)} held out{which}; seed {seed})"
        )
    parts = (data.inputs, data.y, groups) if test.any() else (None, None, None)
    X_test, y_test, group_test = (None if each is None else each[test] for each in parts)
    return Dataset(
        data.inputs[train],
        data.y[train],
        X_test,
        y_test,
        data.source,
        split,
        groups[train],
        group_test,
        data.channels,
    )
