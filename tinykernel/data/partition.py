"""Rows to train on, to test on, to run a model on; and the rows of a file, split and drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel import stored
from tinykernel.coding.codes import Coding
from tinykernel.data.faults import needed_labels
from tinykernel.data.formats import Part
from tinykernel.data.held_rows import kept_aside
from tinykernel.stored import drawn_places, rows_at

#: What `Rows` call the rows that a file has for tests.
TEST_PART = "the test part"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows to train on and rows to test on.

    Parameters
    ----------
    X_train : ndarray, shape (n_train, n_features)
        Numbers, all finite, in the dtype of the file.
    y_train : ndarray, shape (n_train,)
        Integers, booleans or strings; at least two classes.
    X_test, y_test : ndarray or None
        The same for the rows kept aside; None where there are none.
    source : str
        Name of the file.
    split : str
        How the two parts came about, in words, to be printed beside every accuracy.
    group_train, group_test : ndarray or None
        Which person, record or batch each row belongs to, where the file says so.
    columns : tuple of str or None
        Names of the features of a table, or of the channels of recordings.
    shape : tuple of int or None
        Of one input in the file, where it is known.
    notes : tuple of str
        What was done to the values, and what smaller type would hold them; one line each.
    medians : tuple of float or None
        What missing values were filled with, one an input; None where that was not asked for.
    label : str or None
        Name of the column of labels of a table.
    coding : Coding or None
        The numbers of text and of missing values; None where there are none.
    drawn_of : int or None
        How many training rows there are, where those of `X_train` are a sample of them.
    beside : int
        Values at the end of a row that the file has for numbers beside windows.
    """

    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any] | None
    y_test: NDArray[Any] | None
    source: str
    split: str
    group_train: NDArray[Any] | None = None
    group_test: NDArray[Any] | None = None
    columns: tuple[str, ...] | None = None
    shape: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()
    medians: tuple[float, ...] | None = None
    label: str | None = None
    coding: Coding | None = None
    drawn_of: int | None = None
    beside: int = 0


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to run a finished model on."""

    X: NDArray[Any]  # (n_rows, n_features): numbers, all finite, in the dtype of the file.
    y: NDArray[Any] | None  # (n_rows,): labels, where the file has them.
    source: str  # name of the file.
    part: str  # which rows of the file these are, in words.
    # Which person, record or batch each row belongs to, where the file says so.
    group: NDArray[Any] | None = None  # (n_rows,)
    # What became of missing values, and what was left out; one line each.
    notes: tuple[str, ...] = ()
    # Of recordings: the samples that the rows were cut from.
    streams: tuple[NDArray[Any], ...] = ()  # (n_samples, n_channels)
    # Of recordings: the number of the one that a row was cut from.
    clip: NDArray[np.int64] | None = None  # (n_rows,)
    names: tuple[str, ...] | None = None  # of pictures; of windows files and first samples.

    def at(self, places: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        y, group = (None if each is None else each[places] for each in (self.y, self.group))
        names = None if self.names is None else tuple(np.array(self.names)[places].tolist())
        return replace(self, X=self.X[places], y=y, group=group, names=names)


def as_split(train: Part, test: Part, seed: int) -> Dataset:
    """Take the parts as the file splits them."""
    X, y, group = _drawn(train, None, seed)
    X_test, y_test, group_test = _drawn(test, None, seed)
    n, n_test = len(train.X), len(test.X)
    split = f"{n} training rows, {n_test} test rows (as the file splits them)"
    found = Dataset(X, y, X_test, y_test, train.file.name, split, group, group_test)
    return _with_sizes(found, n, n_test)


def split_part(
    part: Part, y: NDArray[Any], test_size: float, seed: int, by_group: bool = False
) -> Dataset:
    """Keep rows of a checked part aside."""
    source, n = part.file.name, len(y)
    if test_size == 0:
        split = f"{n} training rows, no test rows"
        X, labels, group = _drawn(part, None, seed)
        found = Dataset(X, labels, None, None, source, split, group, None, part.columns)
        return _with_sizes(found, n, 0)
    kept, aside, kind = kept_aside(part, y, test_size, seed, by_group=by_group)
    percent = f"{100 * len(aside) / len(y):.3g} %"
    if by_group:
        share = f"{kind} kept aside, {percent}, seed {seed}"
    else:
        share = f"{kind} {percent} kept aside, seed {seed}"
        share += "" if part.group is None else "; groups mixed"
    X, labels, group = _drawn(part, kept, seed)
    X_test, y_test, group_test = _drawn(part, aside, seed)
    split = f"{len(kept)} training rows, {len(aside)} test rows ({share})"
    found = Dataset(X, labels, X_test, y_test, source, split, group, group_test, part.columns)
    return _with_sizes(found, len(kept), len(aside))


def _drawn(
    part: Part, places: NDArray[np.intp] | None, seed: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Return rows, labels and groups at some places, of too many a sample."""
    y, most = needed_labels(part), min(stored.MOST_ROWS, stored.MOST_VALUES // part.X.shape[1])
    if len(y if places is None else places) > most:
        drawn = drawn_places(y if places is None else y[places], most, (seed, 8))
        places = drawn if places is None else places[drawn]
    if places is None:
        return part.X[:], y, part.group
    return rows_at(part.X, places), y[places], None if part.group is None else part.group[places]


def _with_sizes(data: Dataset, n_train: int, n_test: int) -> Dataset:
    """Say of how many rows the parts are samples, where they are."""
    sampled = []
    if len(data.y_train) < n_train:
        sampled.append(f"{len(data.y_train)} training rows")
        data = replace(data, drawn_of=n_train)
    if data.y_test is not None and len(data.y_test) < n_test:
        sampled.append(f"{len(data.y_test)} test rows")
    return replace(data, split=f"{data.split}; drawn: {', '.join(sampled)}") if sampled else data
