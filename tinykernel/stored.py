"""Rows in a file, of which some are read at a time: more of them than memory should hold."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError

#: Files of more bytes of inputs are read in pieces.
IN_PIECES = 1 << 28
#: A training sees at most so many rows and so many values.
MOST_ROWS, MOST_VALUES = 2_000_000, 1 << 28
#: Rows of a piece.
ROWS_AT_ONCE = 1 << 16


class KeptFile:
    """An open file, which is closed with the last rows that need it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def __del__(self) -> None:
        """Close it."""
        self.stream.close()


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of one type, one after the other in a file.

    Parameters
    ----------
    file : KeptFile
    begin : int
        Where the first row begins, in bytes.
    shape : tuple of int
        The first is the number of rows.
    dtype : numpy.dtype

    Examples
    --------
    >>> rows = StoredRows.temporary((3, 2), np.dtype(np.int16))
    >>> _ = rows.file.stream.write(np.arange(6, dtype=np.int16).data)
    >>> rows[1:].tolist()
    [[2, 3], [4, 5]]
    """

    file: KeptFile
    begin: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @staticmethod
    def temporary(shape: tuple[int, ...], dtype: np.dtype[Any]) -> StoredRows:
        """Return room for rows: write them to the stream of the file, which goes with them."""
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
        found = np.empty((max(last - first, 0), *self.shape[1:]), self.dtype)
        a_row = found.itemsize * math.prod(self.shape[1:])
        self.file.stream.seek(self.begin + first * a_row)
        read = self.file.stream.readinto(found.reshape(-1).view(np.uint8)) if found.size else 0  # type: ignore[attr-defined]
        if read != found.nbytes:
            raise TinykernelError("rows cannot be read again: the file was cut short meanwhile")
        return found

    def reshape(self, *shape: int) -> StoredRows:
        """Return the same values as rows of another shape."""
        return replace(self, shape=shape)


def row_blocks(X: NDArray[Any] | StoredRows) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the rows some at a time, each time with the number of the first."""
    for first in range(0, len(X), ROWS_AT_ONCE):
        yield first, X[first : first + ROWS_AT_ONCE]


def rows_at(X: NDArray[Any] | StoredRows, places: NDArray[Any]) -> NDArray[Any]:
    """Return the rows at some places, in that order."""
    if not isinstance(X, StoredRows):
        return np.asarray(X[places])
    found = np.empty((len(places), *X.shape[1:]), X.dtype)
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    for first, rows in row_blocks(X):
        low, high = np.searchsorted(ordered, (first, first + len(rows)))
        found[order[low:high]] = rows[ordered[low:high] - first]
    return found


def drawn_places(y: NDArray[Any], most: int, seed: int | tuple[int, ...]) -> NDArray[np.intp]:
    """Return places of a random sample of at most `most` rows in a random order.

    The sample is stratified by the labels `y`, shape (n,): each class has its share, and at least
    one row. Floats are values, of which the sample is a plain random one.

    Examples
    --------
    >>> y = np.repeat(["a", "b", "c"], [60, 30, 1])
    >>> np.unique(y[drawn_places(y, 10, seed=0)], return_counts=True)[1].tolist()
    [6, 3, 1]
    """
    order = np.random.default_rng(seed).permutation(len(y))
    if y.dtype.kind == "f" or len(y) <= most:
        return np.asarray(order[:most], np.intp)
    _, code, size = np.unique(y[order], return_inverse=True, return_counts=True)
    by_class = np.argsort(code, kind="stable")
    first = np.cumsum(size) - size
    rank = np.empty(len(y))
    rank[by_class] = np.arange(len(y)) - first[code[by_class]]
    # Rows of all classes in turn, each class as often as it has rows; its first row leads.
    turn = np.where(rank == 0, 0, (rank + 0.5) / size[code])
    chosen = np.argsort(turn, kind="stable")[: max(most, len(size))]
    return np.asarray(order[np.sort(chosen)], np.intp)
