"""Data sets: training rows, test rows that are split off, and rows for a finished model."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base import files as stored
from tinykernel.base.coding import Coding
from tinykernel.base.errors import RowsError
from tinykernel.base.files import drawn_places, rows_at
from tinykernel.base.text import count
from tinykernel.data.faults import needed_labels, shown
from tinykernel.data.origin import Origin
from tinykernel.data.tables import FilePart


def held_out_rows(
    part: FilePart, y: NDArray[Any], test_size: float, seed: int, *, by_group: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp], str]:
    """Return training rows, test rows, and the kind of the split as text."""
    is_class = y.dtype.kind != "f"  # values are floats, labels never
    codes = y if is_class else np.zeros(len(y), dtype=np.int64)
    if not by_group:
        kind = "stratified" if is_class else "at random"
        return *_stratified_split(part, codes, test_size, seed), kind
    group = np.asarray(part.group)
    if (group == group[0]).all():
        raise RowsError(
            f"{part.file}: all rows are in one group; give at least two, or leave out --groups"
        )
    test = held_out_groups(codes, group, test_size, seed)
    if test is None:
        raise RowsError(
            f"{part.file}: holding out a group leaves no training row of a class; give each class "
            "in several groups, or use --test 0"
        )
    return np.setdiff1d(np.arange(len(y)), test), test, "whole groups"


def _stratified_split(
    part: FilePart, y: NDArray[Any], test_size: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    from sklearn.model_selection import train_test_split

    labels, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        raise RowsError(
            f"{part.file}: the class {shown(labels[counts.argmin()])} has one row, too few to hold "
            "out a test row; add rows, use --test 0, or for quantities --task numbers"
        )
    n_test = max(int(np.ceil(test_size * len(y))), len(labels))
    if len(y) - n_test < len(labels):
        raise RowsError(
            f"{part.file}: holding out {n_test} of {len(y)} rows leaves fewer training rows than "
            f"the {len(labels)} classes; use a smaller --test, or for quantities --task numbers"
        )
    train, test = train_test_split(
        np.arange(len(y)), test_size=n_test, stratify=y, random_state=seed
    )
    missing = np.setdiff1d(labels, y[train])
    if missing.size:
        raise RowsError(
            f"{part.file}: holding out {n_test} of {len(y)} rows leaves no training row of the "
            f"class {shown(missing[0])}; use a smaller --test"
        )
    return train, test


def held_out_groups(
    y: NDArray[Any], group: NDArray[Any], test_size: float, seed: int
) -> NDArray[np.intp] | None:
    """Return rows of whole groups to test on; None if each group has a class of its own.

    Of the parts without which every class still has training rows, it is the first one with the
    most classes: the first fold of the splitter gets the groups whose classes are the most unusual.
    """
    names, number = np.unique(group, return_inverse=True)
    n_parts = min(max(2, round(1 / test_size)), len(names))
    codes, best, most = np.unique(y, return_inverse=True)[1], None, 0
    for part in _candidates(n_parts, codes, number, seed):
        n, left = np.unique(codes[part]).size, np.unique(np.delete(codes, part)).size
        if n > most and left == codes.max() + 1:
            best, most = part, n
    return best


def _candidates(
    n_parts: int, codes: NDArray[np.intp], group: NDArray[np.intp], seed: int
) -> Iterator[NDArray[np.intp]]:
    """Yield candidates for the test part: those of the splitter, then every single group."""
    if np.bincount(codes).max() >= n_parts:
        yield from (aside for _, aside in group_folds(n_parts, codes, group, seed))
    for number in np.random.default_rng(seed).permutation(group.max() + 1):
        yield np.flatnonzero(group == number)


def group_folds(
    n_parts: int, y: NDArray[Any], group: NDArray[Any], seed: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return folds of whole groups with similar shares of labels: (rest, fold) pairs."""
    from sklearn.model_selection import StratifiedGroupKFold

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than parts
        folds = StratifiedGroupKFold(n_parts, shuffle=True, random_state=seed)
        return list(folds.split(y, y, group))


TEST_PART = "the test part"  # `Rows.part` of the test rows of a file


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training rows and test rows."""

    X_train: NDArray[Any]  # (n_train, n_features): finite numbers, in the type of the file
    y_train: NDArray[Any]  # (n_train,): integers, booleans or text; floats are values
    X_test: NDArray[Any] | None
    y_test: NDArray[Any] | None
    source: str  # name of the file
    split: str  # description of the split, printed beside every accuracy
    # Person, record or batch of each row, where known.
    group_train: NDArray[Any] | None = None
    group_test: NDArray[Any] | None = None
    columns: tuple[str, ...] | None = None  # features of a table, channels of recordings
    shape: tuple[int, ...] | None = None  # of one input in the file, where known
    notes: tuple[str, ...] = ()  # changes to the values, one line each
    label: str | None = None  # name of the column of labels of a table
    coding: Coding | None = None  # codes of text and of missing values
    drawn_of: int | None = None  # training rows of the file, where `X_train` is a sample
    beside: int = 0  # numbers beside a window, the last values of a row
    origin: Origin = field(default_factory=Origin)  # how the source was read
    windows: str = ""  # description of the windows of recordings
    # Whole recordings of the training with their labels and names, where some are words that are
    # somewhere in them; those held out; and these words.
    clips: tuple[tuple[NDArray[Any], Any, str], ...] = ()
    clips_test: tuple[tuple[NDArray[Any], Any, str], ...] = ()
    words: tuple[str, ...] = ()

    @property
    def training(self) -> tuple[NDArray[Any], ...]:
        """The training rows and their labels, and their groups where known."""
        groups = () if self.group_train is None else (self.group_train,)
        return self.X_train, self.y_train, *groups

    @property
    def splits_groups(self) -> bool:
        """Whether the groups of both parts are known, and none is in both."""
        return _none_in_both(self.group_train, self.group_test)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to run a finished model on."""

    X: NDArray[Any]  # (n_rows, n_features): finite numbers, in the type of the file
    y: NDArray[Any] | None  # (n_rows,): labels, where the file has them
    source: str  # name of the file
    part: str  # description of these rows of the file
    group: NDArray[Any] | None = None  # (n_rows,): person, record or batch, where known
    notes: tuple[str, ...] = ()  # on missing values and ignored rows
    streams: tuple[NDArray[Any], ...] = ()  # (n_samples, n_channels) of recordings
    clip: NDArray[np.int64] | None = None  # (n_rows,): number of the recording
    names: tuple[str, ...] | None = None  # of pictures, or file:first sample of windows

    def at(self, places: NDArray[Any]) -> "Rows":
        """Return some of the rows."""
        parts = (self.y, self.group, self.clip)
        y, group, clip = (None if each is None else each[places] for each in parts)
        names = None if self.names is None else tuple(np.array(self.names)[places].tolist())
        return replace(self, X=self.X[places], y=y, group=group, clip=clip, names=names)


def as_split(train: FilePart, test: FilePart, seed: int) -> Dataset:
    """Return the data set of a file that has both parts."""
    n, n_test = len(train.X), len(test.X)
    by = ", by group" if _none_in_both(train.group, test.group) else ""
    rows = f"{count(n, 'training row')}, {count(n_test, 'test row')}"
    return _dataset((train, None), (test, None), f"{rows} (as the file splits them{by})", seed)


def _none_in_both(groups: NDArray[Any] | None, others: NDArray[Any] | None) -> bool:
    """Say whether groups are known on both sides of a split, and none is on both."""
    if groups is None or others is None:
        return False
    return not np.intersect1d(groups, others).size


def split_part(
    part: FilePart, y: NDArray[Any], test_size: float, seed: int, by_group: bool = False
) -> Dataset:
    """Hold out test rows of a checked part."""
    if test_size == 0:
        split = f"{count(len(y), 'training row')}, no test rows"
        return replace(_dataset((part, None), None, split, seed), columns=part.columns)
    train, test, kind = held_out_rows(part, y, test_size, seed, by_group=by_group)
    share = f"{100 * len(test) / len(y):.3g} % held out, {kind}, seed {seed}"
    if not by_group and part.group is not None:
        share += "; groups mixed"
    split = f"{count(len(train), 'training row')}, {count(len(test), 'test row')} ({share})"
    return replace(_dataset((part, train), (part, test), split, seed), columns=part.columns)


_Places = tuple[FilePart, NDArray[np.intp] | None]


def _dataset(train: _Places, test: _Places | None, split: str, seed: int) -> Dataset:
    """Return rows of parts; of too many rows a sample, which the split mentions."""
    X, y, group, n = _drawn(*train, seed)
    X_test, y_test, group_test, n_test = (None,) * 3 + (0,) if test is None else _drawn(*test, seed)
    sampled = [f"{len(y)} training rows"] if len(y) < n else []
    if y_test is not None and len(y_test) < n_test:
        sampled.append(count(len(y_test), "test row"))
    split += f"; drawn: {', '.join(sampled)}" if sampled else ""
    source, drawn_of = train[0].file.name, n if len(y) < n else None
    return Dataset(X, y, X_test, y_test, source, split, group, group_test, drawn_of=drawn_of)


def _drawn(
    part: FilePart, places: NDArray[np.intp] | None, seed: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None, int]:
    """Return rows, labels and groups, or a sample if they are too many; and their full number."""
    y, most = needed_labels(part), min(stored.MOST_ROWS, stored.MOST_VALUES // part.X.shape[1])
    n = len(y if places is None else places)
    if n > most:
        drawn = drawn_places(y if places is None else y[places], most, (seed, 8))
        places = drawn if places is None else places[drawn]
    if places is None:
        return np.array(part.X) if isinstance(part.X, np.memmap) else part.X, y, part.group, n
    group = None if part.group is None else part.group[places]
    return rows_at(part.X, places), y[places], group, n
