"""A smooth fit of few rows with values, and the many rows of it that a machine learns from.

Binary components follow the noise of few rows, and noise on the inputs that prevents it hides what
the values depend on. So kernel ridge regression is fitted to the rows (Gaussian kernel; width and
penalty have the least error on rows, or groups, left out), and the machine learns the values of
this fit: at the rows, and at others drawn around them. It has no noise that could be learned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tinykernel.training.options import Recipe, TrainerOptions
from tinykernel.training.trainset import TrainSet

__all__ = ["smoothed"]

# Fewer rows tell no width; of more, a fit takes long, and noise does less harm.
_FEWEST_ROWS, _MOST_ROWS = 30, 4000
_ROWS_TO_LEARN, _MOST_OF_ONE = 8000, 16
# Of the drawn rows: deviation from a row, in deviations of each input.
_DISTANCE = 0.3
_EPOCHS = 30
# Width and penalty are chosen on so many rows.
_ROWS_TO_CHOOSE = 1000
_WIDTHS = (0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0)
_PENALTIES = 10.0 ** np.arange(-5, 2.01, 0.5)
# Targets are whole multiples of this: the last bits of matrix products depend on the machine.
_STEP = 2.0**-12

_Doubles = NDArray[np.float64]


def smoothed(
    data: TrainSet, options: TrainerOptions, recipe: Recipe, given: frozenset[str]
) -> tuple[TrainSet, Recipe]:
    """Return rows of a smooth fit in place of few rows with squared errors, and how to learn them.

    Everything else comes back as it is.
    """
    n = len(data.X)
    if data.quantity is None or any(data.quantity.losses) or options.augment_shift():
        return data, recipe
    if not _FEWEST_ROWS <= n <= _MOST_ROWS:
        return data, recipe
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    centre = data.X.mean(axis=0, dtype=np.float64)
    spread = data.X.std(axis=0, dtype=np.float64)
    spread[high == low] = 1.0
    rng = np.random.default_rng([recipe.seed, 6])
    near = rng.permutation(np.arange(min(_ROWS_TO_LEARN, _MOST_OF_ONE * n) - n) % n)
    moved = data.X[near] + _DISTANCE * spread * rng.standard_normal((near.size, low.size))
    if data.X.dtype.kind in "iu":
        moved = np.rint(moved)
    drawn = np.clip(moved, low, high).astype(data.X.dtype)
    rows, of = np.concatenate([data.X, drawn]), np.concatenate([np.arange(n), near])
    with threadpool_limits(1):
        found = _fitted((rows - centre) / spread, data)
    targets = (np.rint(found / _STEP) * _STEP).astype(np.float32)
    learned = replace(
        data, X=rows, codes=data.codes[of], sample_weight=data.sample_weight[of],
        groups=None if data.groups is None else data.groups[of],
        quantity=replace(data.quantity, targets=targets),
    )  # fmt: skip
    noise = recipe.noise if options.noise is not None or "noise" in given else 0.0
    epochs = options.epochs or min(recipe.epochs, _EPOCHS)
    return learned, replace(recipe, noise=noise, epochs=epochs)


def _fitted(rows: _Doubles, data: TrainSet) -> _Doubles:
    """Fit to the first rows, those of the data, and return the values of all, (n, n_outputs)."""
    assert data.quantity is not None
    n, targets = len(data.X), data.quantity.targets.astype(np.float64)
    weight = np.sqrt(data.sample_weight / data.sample_weight.mean())
    # Rows in canonical order lie side by side: every k-th is of all kinds.
    some = np.arange(0, n, -(-n // _ROWS_TO_CHOOSE))
    group = some if data.groups is None else data.groups[some]
    width, penalty = _chosen(rows[some], targets[some], weight[some], group)
    # Of more weight is what would be there more often.
    gram = _kernel(rows[:n], rows[:n], width) * np.outer(weight, weight)
    gram[np.diag_indices(n)] += penalty
    factors = np.linalg.solve(gram, targets * weight[:, None]) * weight[:, None]
    return np.concatenate(
        [
            _kernel(part, rows[:n], width) @ factors
            for part in np.array_split(rows, -(-len(rows) // n))
        ]
    )


def _kernel(rows: _Doubles, others: _Doubles, width: float) -> _Doubles:
    """Return the Gaussian kernel; `width` is that of one input, of many wider by their root."""
    squares = np.square(rows).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
    squares -= 2 * rows @ others.T
    result: _Doubles = np.exp(-np.maximum(squares, 0) / (2 * rows.shape[1] * width**2))
    return result


def _chosen(
    rows: _Doubles, targets: _Doubles, weight: _Doubles, group: NDArray[Any]
) -> tuple[float, float]:
    """Return width and penalty of the least squared error of groups (of one row) left out.

    With R = penalty (K + penalty)^-1 the errors of left-out rows B are ``R_BB^-1 (R y)_B``.
    """
    order = np.argsort(group, kind="stable")
    rows, weight, group = rows[order], weight[order], group[order]
    y = targets[order] * weight[:, None]
    parts = np.split(np.arange(group.size), np.flatnonzero(np.diff(group)) + 1)
    best = (np.inf, _WIDTHS[0], float(_PENALTIES[0]))
    for width in _WIDTHS:
        values, vectors = np.linalg.eigh(_kernel(rows, rows, width) * np.outer(weight, weight))
        along = vectors.T @ y
        for penalty in _PENALTIES.tolist():
            share = penalty / (np.maximum(values, 0) + penalty)
            left = vectors @ (share[:, None] * along)
            if len(parts) == group.size:
                errors = left / (np.square(vectors) @ share)[:, None]
            else:
                errors = np.concatenate(
                    [np.linalg.solve((vectors[b] * share) @ vectors[b].T, left[b]) for b in parts]
                )
            best = min(best, (float(np.square(errors).mean()), width, penalty))
    return best[1:]
