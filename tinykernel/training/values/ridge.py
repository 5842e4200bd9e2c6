"""Kernel ridge regression with a Gaussian kernel; width and penalty have the least held-out error.

Weights of rows count as repetitions. All is added up in the order of the source (`matrices`), so
that every processor gives the same bits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.elementary import exps
from tinykernel.training.matrices import distances, inverse_root, product, solve, tridiagonal

_WIDTHS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0)
_PENALTIES = tuple(10.0 ** (k / 2) for k in range(-10, 5))

_Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows with values."""

    X: _Doubles  # (n, d)
    targets: _Doubles  # (n, n_outputs)
    weight: _Doubles  # (n,): roots of the weights of the rows, whose mean is 1.
    group: NDArray[Any]  # (n,): rows of a group are held out together.

    def of(self, chosen: NDArray[Any]) -> "WeightedRows":
        """Return some of the rows."""
        return WeightedRows(
            self.X[chosen], self.targets[chosen], self.weight[chosen], self.group[chosen]
        )

    def along(self, view: _Doubles) -> "WeightedRows":
        """Return rows with inputs ``X @ view``."""
        return WeightedRows(product(self.X, view), self.targets, self.weight, self.group)


class Ridge:
    """A fit to rows, with width and penalty of `like`, or of the least held-out error.

    With `near` only widths close to that of another fit are tried.
    """

    def __init__(
        self, rows: WeightedRows, *, like: "Ridge | None" = None, near: "Ridge | None" = None
    ) -> None:
        self.rows = rows
        self.width: float
        self.penalty: float
        if like is not None:
            self.width, self.penalty = like.width, like.penalty
        else:
            self.width, self.penalty = _chosen(rows, None if near is None else near.width)
        gram = _kernel(rows.X, rows.X, self.width) * np.outer(rows.weight, rows.weight)
        gram[np.diag_indices(len(gram))] += self.penalty
        weight = rows.weight[:, None]
        self.factors: _Doubles = solve(gram, rows.targets * weight) * weight

    def values(self, X: _Doubles) -> _Doubles:
        """Return the values at other rows, shape (k, n_outputs)."""
        parts = np.array_split(X, -(-len(X) // len(self.rows.X)))
        kernels = (_kernel(part, self.rows.X, self.width) for part in parts)
        return np.concatenate([product(kernel, self.factors) for kernel in kernels])

    def slopes(self) -> _Doubles:
        """Return the mean outer product of the gradients at the rows, up to a factor; (d, d)."""
        X = self.rows.X
        kernel = _kernel(X, X, self.width)
        total = np.zeros((X.shape[1], X.shape[1]))
        for factors in self.factors.T:
            gradients = product(kernel, factors[:, None] * X)
            gradients -= product(kernel, factors[:, None].copy()) * X
            gradients *= self.rows.weight[:, None]
            total += product(gradients.T.copy(), gradients)
        return total


def _kernel(rows: _Doubles, others: _Doubles, width: float) -> _Doubles:
    """Return the Gaussian kernel of a width of `width` times the root of the number of inputs."""
    squares: _Doubles = distances(np.ascontiguousarray(rows), others.T.copy())
    return exps(squares / (-2 * rows.shape[1] * width**2))


def _chosen(rows: WeightedRows, near: float | None) -> tuple[float, float]:
    """Return width and penalty of the least squared error on held-out groups."""
    rows = rows.of(np.argsort(rows.group, kind="stable"))
    if near is None:
        return min(_least(rows, width) for width in _WIDTHS)[1:]
    best = _least(rows, near)
    for direction in (1, -1):
        at = _WIDTHS.index(near) + direction
        while 0 <= at < len(_WIDTHS) and (other := _least(rows, _WIDTHS[at])) < best:
            best, at = other, at + direction
    return best[1:]


def _least(rows: WeightedRows, width: float) -> tuple[float, float, float]:
    """Return the least error of any penalty, the width, and that penalty.

    With M = (K + penalty)^-1 the errors of held-out rows B are ``M_BB^-1 (M y)_B``; rows of a group
    are consecutive.
    """
    y = rows.targets * rows.weight[:, None]
    parts = np.split(np.arange(len(y)), np.flatnonzero(np.diff(rows.group)) + 1)
    gram = _kernel(rows.X, rows.X, width) * np.outer(rows.weight, rows.weight)
    reduced, tried = tridiagonal(gram), []
    for penalty in _PENALTIES:
        root = inverse_root(*reduced, penalty)
        dual = product(product(root, y).T.copy(), root).T
        if len(parts) == len(y):
            errors = dual / np.square(root).sum(axis=0)[:, None]
        else:
            blocks = ((root[:, b].copy(), dual[b].copy()) for b in parts)
            errors = np.concatenate([solve(product(z.T.copy(), z), left) for z, left in blocks])
        tried.append((float(np.square(errors).mean()), width, penalty))
    return min(tried)
