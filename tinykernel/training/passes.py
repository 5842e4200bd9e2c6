"""Training over more rows than memory should hold: parts of a file, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.stored import StoredRows, row_blocks

_PART_ROWS = 1 << 17


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
