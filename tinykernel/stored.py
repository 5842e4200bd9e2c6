"""Rows in a file, of which some are read at a time: more of them than memory should hold."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError

#: Files of more bytes of inputs are read in pieces.
IN_PIECES = 1 << 28
#: A search, and models that need all rows at once, see at most so many rows and so many values.
MOST_ROWS, MOST_VALUES = 500_000, 1 << 30
#: Rows of a piece.
ROWS_AT_ONCE = 1 << 16
_PART_ROWS = 1 << 17


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
    """Return places of rows in a random order, the same each time: at most so many.

    There are some of every label `y`, shape (n,); floats are values, which are no labels.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    kept = np.arange(min(most, len(y)))
    if y.dtype.kind != "f":
        kept = np.union1d(np.unique(y[order], return_index=True)[1], kept)
    return np.asarray(order[kept], np.intp)


@dataclass(frozen=True, eq=False)
class Passes:
    """All training rows, dealt at random to parts that each fit into memory."""

    rows: StoredRows  # of a temporary file, part after part.
    labels: NDArray[Any]  # (n,)
    first: NDArray[np.int64]  # (n_parts + 1,): where the parts begin.

    @staticmethod
    def of(
        X: NDArray[Any] | StoredRows, y: NDArray[Any], places: NDArray[Any], seed: int
    ) -> Passes:
        """Write the rows at some places to a temporary file, which goes when nobody needs it.

        Examples
        --------
        >>> X, y = np.arange(8).reshape(4, 2), np.array(list("abab"))
        >>> passes = Passes.of(X, y, np.array([3, 0, 1]), seed=0)
        >>> [(rows.tolist(), labels.tolist()) for rows, labels in [passes[0]]]
        [([[0, 1], [2, 3], [6, 7]], ['a', 'b', 'b'])]
        """
        n_parts = -(-len(places) // _PART_ROWS)
        part = np.full(len(X), n_parts, np.uint16)
        part[places] = np.random.default_rng([seed, 9]).integers(0, n_parts, len(places), np.uint16)
        order = np.argsort(part, kind="stable")[: len(places)]
        first = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=n_parts)[:n_parts])])
        stored, at = StoredRows.temporary((len(places), *X.shape[1:]), X.dtype), first.copy()
        stream = stored.file.stream
        for begin, rows in row_blocks(X):
            own = part[begin : begin + len(rows)]
            turn = np.argsort(own, kind="stable")
            ends = np.searchsorted(own[turn], np.arange(n_parts + 1))
            for k in range(n_parts):
                run = np.ascontiguousarray(rows[turn[ends[k] : ends[k + 1]]])
                stream.seek(int(at[k]) * (rows.nbytes // len(rows)))
                stream.write(run.data)
                at[k] += len(run)
        return Passes(stored, y[order], first.astype(np.int64))

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.first) - 1

    def __getitem__(self, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Read rows and labels of a part."""
        part = slice(int(self.first[k]), int(self.first[k + 1]))
        return self.rows[part], self.labels[part]

    def labels_of_parts(self) -> list[NDArray[Any]]:
        """Return the labels of each part."""
        return np.split(self.labels, self.first[1:-1])

    @property
    def sizes(self) -> list[int]:
        """Rows of each part."""
        return [int(n) for n in np.diff(self.first)]

    def epochs(self, usual: int, n_rows: int) -> int:
        """Return how many passes make as many steps as the usual epochs of so many rows."""
        return max(1, round(usual * n_rows / len(self.labels)))


@dataclass(frozen=True, eq=False)
class Blocks:
    """Parts as a learner takes them."""

    sizes: list[int]  # rows of each.
    # From the number of a part to what the learner learns from.
    load: Callable[[int], tuple[Any, ...]]
