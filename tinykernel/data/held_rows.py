"""Split off test rows: stratified, by whole groups, or at random."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.data.faults import shown
from tinykernel.data.formats import Part
from tinykernel.errors import TinykernelError


def held_out_rows(
    part: Part, y: NDArray[Any], test_size: float, seed: int, *, by_group: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp], str]:
    """Return training rows, test rows, and the kind of the split as text."""
    is_class = y.dtype.kind != "f"  # values are floats, labels never
    codes = y if is_class else np.zeros(len(y), dtype=np.int64)
    split = _group_split if by_group else _stratified_split
    train, test = split(part, codes, test_size, seed)
    missing = np.setdiff1d(codes, codes[train])
    if missing.size:
        raise TinykernelError(
            f"{part.file}: holding out {len(test)} of {len(y)} rows leaves no training row of "
            f"the class {shown(missing[0])}; use a smaller --test"
        )
    return train, test, "whole groups" if by_group else "stratified" if is_class else "at random"


def _stratified_split(
    part: Part, y: NDArray[Any], test_size: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of training and test rows."""
    from sklearn.model_selection import train_test_split

    labels, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        raise TinykernelError(
            f"{part.file}: the class {shown(labels[counts.argmin()])} has one row, too few to hold "
            "out a test row; add rows, use --test 0, or for quantities --task numbers"
        )
    n_test = max(int(np.ceil(test_size * len(y))), len(labels))
    if len(y) - n_test < len(labels):
        raise TinykernelError(
            f"{part.file}: holding out {n_test} of {len(y)} rows leaves fewer training rows than "
            f"the {len(labels)} classes; use a smaller --test, or for quantities --task numbers"
        )
    train, test = train_test_split(
        np.arange(len(y)), test_size=n_test, stratify=y, random_state=seed
    )
    return train, test


def _group_split(
    part: Part, y: NDArray[Any], test_size: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of training and test rows, split by groups."""
    names, group = np.unique(np.asarray(part.group), return_inverse=True)
    n_parts = min(max(2, round(1 / test_size)), names.size)
    if n_parts < 2:
        raise TinykernelError(
            f"{part.file}: all rows are in one group; give at least two, or leave out --groups"
        )
    if np.unique(y, return_counts=True)[1].max() < n_parts:
        raise TinykernelError(f"{part.file}: too few rows to hold out groups; use --test 0")
    train, test = group_folds(n_parts, y, group, seed)[0]
    if not len(test):
        raise TinykernelError(f"{part.file}: too few groups to hold one out; use --test 0")
    return train, test


def group_folds(
    n_parts: int, y: NDArray[Any], group: NDArray[Any], seed: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return folds of whole groups with similar shares of labels: (rest, fold) pairs."""
    from sklearn.model_selection import StratifiedGroupKFold

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than parts
        folds = StratifiedGroupKFold(n_parts, shuffle=True, random_state=seed)
        return list(folds.split(y, y, group))
