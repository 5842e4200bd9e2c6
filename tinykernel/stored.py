"""Rows stored in a file, read in pieces when they are too many for memory."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError

#: Larger inputs, in bytes, are read in pieces.
IN_PIECES = 1 << 28
#: Limits of a training set.
MOST_ROWS, MOST_VALUES = 2_000_000, 1 << 28
#: Rows of a piece.
ROWS_AT_ONCE = 1 << 16


class KeptFile:
    """An open file, closed when the last rows that refer to it are gone."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def __del__(self) -> None:
        """Close the file."""
        self.stream.close()


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of one type, one after the other in a file."""

    file: KeptFile
    begin: int  # offset of the first row, in bytes.
    shape: tuple[int, ...]  # the first is the number of rows.
    dtype: np.dtype[Any]

    @staticmethod
    def temporary(shape: tuple[int, ...], dtype: np.dtype[Any]) -> StoredRows:
        """Return rows of a new temporary file; write them to its stream."""
        return StoredRows(KeptFile(tempfile.TemporaryFile()), 0, shape, dtype)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """Read the rows of a slice without a step."""
        first, last, _ = part.indices(len(self))
        rows = np.empty((max(last - first, 0), *self.shape[1:]), self.dtype)
        row_bytes = rows.itemsize * math.prod(self.shape[1:])
        self.file.stream.seek(self.begin + first * row_bytes)
        read = self.file.stream.readinto(rows.reshape(-1).view(np.uint8)) if rows.size else 0  # type: ignore[attr-defined]
        if read != rows.nbytes:
            raise TinykernelError("rows cannot be read again: the file was cut short meanwhile")
        return rows

    def reshape(self, *shape: int) -> StoredRows:
        """Return the same values as rows of another shape."""
        return replace(self, shape=shape)


def row_blocks(X: NDArray[Any] | StoredRows) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield pieces of the rows, each with the number of its first row."""
    for first in range(0, len(X), ROWS_AT_ONCE):
        yield first, X[first : first + ROWS_AT_ONCE]


def rows_at(X: NDArray[Any] | StoredRows, places: NDArray[Any]) -> NDArray[Any]:
    """Return the rows at some places, in that order."""
    if not isinstance(X, StoredRows):
        return np.asarray(X[places])
    selected = np.empty((len(places), *X.shape[1:]), X.dtype)
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    for first, rows in row_blocks(X):
        low, high = np.searchsorted(ordered, (first, first + len(rows)))
        selected[order[low:high]] = rows[ordered[low:high] - first]
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
