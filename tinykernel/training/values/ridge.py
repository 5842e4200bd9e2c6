"""Kernel ridge regression with a Gaussian kernel; width and penalty have the least error left out.

Rows of more weight count as if they were there more often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WIDTHS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0)
_PENALTIES = tuple(10.0 ** (k / 2) for k in range(-10, 5))

_Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with values."""

    X: _Doubles  # (n, d)
    targets: _Doubles  # (n, n_outputs)
    weight: _Doubles  # (n,): roots of the weights of the rows, whose mean is 1.
    group: NDArray[Any]  # (n,): which rows are left out together.

    def of(self, chosen: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        return Rows(self.X[chosen], self.targets[chosen], self.weight[chosen], self.group[chosen])

    def seen(self, view: _Doubles) -> Rows:
        """Return the same with inputs ``X @ view``."""
        return Rows(self.X @ view, self.targets, self.weight, self.group)


class Ridge:
    """A fit to rows: width and penalty are those of another, or have the least error left out.

    With `near` only widths about that of another fit are tried.
    """

    def __init__(self, rows: Rows, *, like: Ridge | None = None, near: Ridge | None = None) -> None:
        self.rows = rows
        self.width: float
        self.penalty: float
        if like is not None:
            self.width, self.penalty = like.width, like.penalty
        else:
            self.width, self.penalty = _chosen(rows, None if near is None else near.width)
        gram = _kernel(rows.X, rows.X, self.width) * np.outer(rows.weight, rows.weight)
        gram[np.diag_indices(len(gram))] += self.penalty
        self.factors: _Doubles = (
            np.linalg.solve(gram, rows.targets * rows.weight[:, None]) * rows.weight[:, None]
        )

    def values(self, X: _Doubles) -> _Doubles:
        """Return the values at other rows, shape (k, n_outputs)."""
        n = len(self.rows.X)
        return np.concatenate(
            [
                _kernel(part, self.rows.X, self.width) @ self.factors
                for part in np.array_split(X, -(-len(X) // n))
            ]
        )

    def slopes(self) -> _Doubles:
        """Return the mean outer product of the gradients at the rows, but for a factor; (d, d)."""
        X = self.rows.X
        kernel = _kernel(X, X, self.width)
        total = np.zeros((X.shape[1], X.shape[1]))
        for factors in self.factors.T:
            shares = kernel * factors
            gradients = shares @ X - shares.sum(axis=1)[:, None] * X
            gradients *= self.rows.weight[:, None]
            total += gradients.T @ gradients
        return total


def _kernel(rows: _Doubles, others: _Doubles, width: float) -> _Doubles:
    """Return the Gaussian kernel; `width` is that of one input, of many wider by their root."""
    squares = np.square(rows).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
    squares -= 2 * rows @ others.T
    result: _Doubles = np.exp(-np.maximum(squares, 0) / (2 * rows.shape[1] * width**2))
    return result


def _chosen(given: Rows, near: float | None) -> tuple[float, float]:
    """Return width and penalty of the least squared error of groups (of one row) left out."""
    rows = given.of(np.argsort(given.group, kind="stable"))
    if near is None:
        return min(_least(rows, width) for width in _WIDTHS)[1:]
    best = _least(rows, near)
    for direction in (1, -1):
        at = _WIDTHS.index(near) + direction
        while 0 <= at < len(_WIDTHS) and (other := _least(rows, _WIDTHS[at])) < best:
            best, at = other, at + direction
    return best[1:]


def _least(rows: Rows, width: float) -> tuple[float, float, float]:
    """Return the least error that a penalty gives, the width, and that penalty.

    With R = penalty (K + penalty)^-1 the errors of left-out rows B are ``R_BB^-1 (R y)_B``; the
    rows of a group lie side by side.
    """
    y = rows.targets * rows.weight[:, None]
    parts = np.split(np.arange(len(y)), np.flatnonzero(np.diff(rows.group)) + 1)
    gram = _kernel(rows.X, rows.X, width) * np.outer(rows.weight, rows.weight)
    values, vectors = np.linalg.eigh(gram)
    along, found = vectors.T @ y, []
    for penalty in _PENALTIES:
        share = penalty / (np.maximum(values, 0) + penalty)
        left = vectors @ (share[:, None] * along)
        if len(parts) == len(y):
            errors = left / (np.square(vectors) @ share)[:, None]
        else:
            errors = np.concatenate(
                [np.linalg.solve((vectors[b] * share) @ vectors[b].T, left[b]) for b in parts]
            )
        found.append((float(np.square(errors).mean()), width, penalty))
    return min(found)
