"""Rows that may lie in a file, as `numpy.memmap`, when they are too many for memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Larger inputs, in bytes, stay in their file.
IN_PIECES = 1 << 28
#: Limits of a training set.
MOST_ROWS, MOST_VALUES = 2_000_000, 1 << 28
#: Rows of a piece.
ROWS_AT_ONCE = 1 << 16


def row_blocks(X: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield pieces of the rows, each with the number of its first row."""
    for first in range(0, len(X), ROWS_AT_ONCE):
        yield first, X[first : first + ROWS_AT_ONCE]


def rows_at(X: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Return the rows at some places, in that order; a file is read from its begin to its end."""
    selected = np.empty((len(places), *X.shape[1:]), X.dtype)
    for _, part in row_blocks(np.argsort(places, kind="stable")):
        selected[part] = X[places[part]]
    return selected


def drawn_places(y: NDArray[Any], most: int, seed: int | tuple[int, ...]) -> NDArray[np.intp]:
    """Return at most `most` random places; for labels stratified, with at least one per class."""
    order = np.random.default_rng(seed).permutation(len(y))
    if y.dtype.kind == "f" or len(y) <= most:
        return np.asarray(order[:most], np.intp)
    _, code, size = np.unique(y[order], return_inverse=True, return_counts=True)
    by_class = np.argsort(code, kind="stable")
    first = np.cumsum(size) - size
    rank = np.empty(len(y))
    rank[by_class] = np.arange(len(y)) - first[code[by_class]]
    # Classes take turns in proportion to their rows; the first row of each class leads.
    turn = np.where(rank == 0, 0, (rank + 0.5) / size[code])
    chosen = np.argsort(turn, kind="stable")[: max(most, len(size))]
    return np.asarray(order[np.sort(chosen)], np.intp)
