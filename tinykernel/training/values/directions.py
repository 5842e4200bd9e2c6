"""Directions of the inputs along which values change, learned from the rows.

A recursive feature machine (Radhakrishnan, Beaglehole, Pandit & Belkin 2024) fits, then measures
distances by the mean outer product of the gradients of the fit, and fits again. The number of
steps is chosen on held-out rows; only a gain above two standard errors counts, as directions of
few rows soon follow noise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tinykernel.training.choice import Candidate, choose
from tinykernel.training.matrices import cholesky, product
from tinykernel.training.values.ridge import Ridge, Rows

_MOST_STEPS = 4
# Of more inputs the outer products take long, and few rows do not determine them.
_MOST_INPUTS = 256
_FOLDS, _ROWS_OF_FOLDS = 4, 600
# A gain must exceed so many of its standard errors.
_SURE = 2.0

_Doubles = NDArray[np.float64]


def seen(rows: Rows) -> tuple[_Doubles, Ridge]:
    """Return the matrix (d, d) that inputs are multiplied by for distances, and a fit with it."""
    steps = _steps(rows) if rows.X.shape[1] <= _MOST_INPUTS else 0
    return list(_views(rows, steps))[-1]


def _views(rows: Rows, steps: int) -> Iterator[tuple[_Doubles, Ridge]]:
    """Yield the matrices after 0, 1, ... steps, each with its fit."""
    d = rows.X.shape[1]
    view, fit = np.eye(d), Ridge(rows)
    yield view, fit
    for _ in range(steps):
        # The gradient of f(x @ view) is view times that of f.
        root = cholesky(product(product(view, fit.slopes()), view.T.copy())).T.copy()
        size = np.square(root).sum()
        view = root * np.sqrt(d / size) if size > 0 else view
        fit = Ridge(rows.seen(view), near=fit)
        yield view, fit


def _steps(rows: Rows) -> int:
    """Return the number of steps of least error on held-out groups, 0 if that may be chance."""
    few = rows.of(np.arange(0, len(rows.X), -(-len(rows.X) // _ROWS_OF_FOLDS)))
    group = np.unique(few.group, return_inverse=True)[1]
    # Groups are in canonical order, so every fourth one is a fair sample.
    fold, n_groups = group % _FOLDS, int(group.max()) + 1
    errors = np.zeros((_MOST_STEPS + 1, len(group)))
    for out in range(_FOLDS if n_groups >= _FOLDS else 0):
        held = few.of(fold == out)
        for step, (view, fit) in enumerate(_views(few.of(fold != out), _MOST_STEPS)):
            missed = fit.values(product(held.X, view)) - held.targets
            errors[step, fold == out] = np.square(missed * held.weight[:, None]).sum(axis=1)
    best = int(errors.sum(axis=1).argmin())
    total = max(float(np.square(few.targets * few.weight[:, None]).sum()), 1e-30)
    candidates = [
        Candidate(f"{step} steps", errors[step], 1 - float(errors[step].sum()) / total, step)
        for step in (0, best)
    ]
    return best if choose(candidates, groups=group, margin=_SURE).chosen else 0
