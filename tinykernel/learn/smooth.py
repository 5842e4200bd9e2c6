"""A smooth fit to few rows with values, and random rows around them with its predictions.

With few rows binary components fit the noise, and training noise that prevents it hides the
function. So kernel ridge regression is fitted to the rows (`ridge`), with distances along learned
directions (`directions`). The trainer learns the predictions of this fit, which have no noise, for
the rows and for random rows around them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tinykernel.learn.choice import Candidate, Fold, choose
from tinykernel.learn.linear.ridge import Ridge, WeightedRows
from tinykernel.learn.loop import Recipe
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.sums import cholesky, product
from tinykernel.learn.trainset import TrainSet

# Fewer rows do not determine a width; with more, a fit takes long, and noise does less harm.
_FEWEST_ROWS, MOST_ROWS = 30, 4000
_ROWS_TO_LEARN, _MOST_OF_ONE = 16000, 16
# Deviation of drawn rows from a row, in deviations of each input.
_DISTANCE = 0.3
_FEWEST_EPOCHS, _MOST_EPOCHS = 30, 60
# Rows that directions, width and penalty are chosen on.
_ROWS_TO_CHOOSE = 1000
# Targets are multiples of this: few rows have no more precision.
_STEP = 2.0**-12

_Doubles = NDArray[np.float64]
# Of the search for directions.
_MOST_STEPS = 4
# Of more inputs the outer products take long, and few rows do not determine them.
_MOST_INPUTS = 256
_FOLDS, _ROWS_OF_FOLDS = 4, 600
# A gain must exceed so many of its standard errors.
_SURE = 2.0


@dataclass(frozen=True, eq=False)
class Smooth:
    """A smooth fit to the rows of a training set."""

    rows: WeightedRows  # standardised.
    view: _Doubles  # (d, d): rows are multiplied by it for distances.
    like: Ridge  # a fit to some of them, with the width and penalty to use.
    n_steps: int  # of the search for the view.

    def values(self, X: _Doubles) -> _Doubles:
        """Return the values of a fit to all rows, (k, n_outputs)."""
        return Ridge(self.rows.along(self.view), like=self.like).values(product(X, self.view))

    def held_out(self, fold: Fold) -> NDArray[np.float32]:
        """Return the values of a fit inside a fold for the rows outside.

        The view is learned again: that of all rows knows the rows outside.
        """
        inside = self.rows.of(fold.inside)
        view, like = list(_views(_thin(inside), self.n_steps))[-1]
        fit = Ridge(inside.along(view), like=like)
        return _round(fit.values(product(self.rows.X[fold.outside], view)))

    def judge(self, data: TrainSet, folds: Sequence[Fold]) -> tuple[float, float]:
        """Return loss and R2 of fits inside the folds, on the rows outside."""
        scores = [data.truth_of(fold.outside).judge(self.held_out(fold)) for fold in folds]
        loss, explained = np.mean(scores, axis=0).tolist()
        return loss, explained


def smooth_rows(
    data: TrainSet, options: TrainerOptions, recipe: Recipe
) -> tuple[TrainSet, Recipe, Smooth | None]:
    """Replace few rows with squared errors by rows of a smooth fit; other data get None."""
    n = len(data.X)
    if data.quantity is None or any(data.quantity.losses) or not _FEWEST_ROWS <= n <= MOST_ROWS:
        return data, recipe, None
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
    smooth = _fit((data.X - centre) / spread, data)
    targets = _round(smooth.values((rows - centre) / spread))
    quantity = replace(data.quantity, targets=targets)
    learned = replace(data.of(of), X=rows, validation=data.validation, quantity=quantity)
    passes = np.clip(_FEWEST_EPOCHS * _ROWS_TO_LEARN // len(rows), _FEWEST_EPOCHS, _MOST_EPOCHS)
    epochs = options.epochs or min(recipe.epochs, int(passes))
    return learned, replace(recipe, noise=0.0, epochs=epochs), smooth


def _round(values: _Doubles) -> NDArray[np.float32]:
    return (np.rint(values / _STEP) * _STEP).astype(np.float32)


def _fit(rows: _Doubles, data: TrainSet) -> Smooth:
    """Return a fit to the rows of the data."""
    assert data.quantity is not None
    n = len(rows)
    weighted = WeightedRows(
        rows,
        data.quantity.targets.astype(np.float64),
        np.sqrt(data.sample_weight / data.sample_weight.mean()),
        np.arange(n) if data.groups is None else data.groups,
    )
    return Smooth(weighted, *directions(_thin(weighted)))


def _thin(rows: WeightedRows) -> WeightedRows:
    """Return rows to choose by: they are in canonical order, so every k-th one is a fair sample."""
    n = len(rows.X)
    return rows.of(np.arange(0, n, -(-n // _ROWS_TO_CHOOSE)))


def directions(rows: WeightedRows) -> tuple[_Doubles, Ridge, int]:
    """Return the matrix (d, d) that inputs are multiplied by for distances, a fit, and the steps.

    A recursive feature machine (Radhakrishnan, Beaglehole, Pandit & Belkin 2024) fits, then
    measures distances by the mean outer product of the gradients of the fit, and fits again. The
    number of steps is chosen on held-out rows; only a gain above two standard errors counts, as
    directions of few rows soon follow noise.
    """
    steps = _steps(rows) if rows.X.shape[1] <= _MOST_INPUTS else 0
    return *list(_views(rows, steps))[-1], steps


def _views(rows: WeightedRows, steps: int) -> Iterator[tuple[_Doubles, Ridge]]:
    """Yield the matrices after 0, 1, ... steps, each with its fit."""
    d = rows.X.shape[1]
    view, fit = np.eye(d), Ridge(rows)
    yield view, fit
    for _ in range(steps):
        # The gradient of f(x @ view) is view times that of f.
        root = cholesky(product(product(view, fit.slopes()), view.T.copy())).T.copy()
        size = np.square(root).sum()
        view = root * np.sqrt(d / size) if size > 0 else view
        fit = Ridge(rows.along(view), near=fit)
        yield view, fit


def _steps(rows: WeightedRows) -> int:
    """Return the number of steps of least error on held-out groups, 0 if that may be chance."""
    few = rows.of(np.arange(0, len(rows.X), -(-len(rows.X) // _ROWS_OF_FOLDS)))
    group = np.unique(few.group, return_inverse=True)[1]
    # Groups are in canonical order, so every fourth one is a fair sample.
    fold, n_groups = group % _FOLDS, int(group.max()) + 1
    errors = np.zeros((_MOST_STEPS + 1, len(group)))
    for out in range(_FOLDS if n_groups >= _FOLDS else 0):
        others = few.of(fold == out)
        for step, (view, fit) in enumerate(_views(few.of(fold != out), _MOST_STEPS)):
            missed = fit.values(product(others.X, view)) - others.targets
            errors[step, fold == out] = np.square(missed * others.weight[:, None]).sum(axis=1)
    best = int(errors.sum(axis=1).argmin())
    total = max(float(np.square(few.targets * few.weight[:, None]).sum()), 1e-30)
    candidates = [
        Candidate(f"{step} steps", errors[step], 1 - float(errors[step].sum()) / total, step)
        for step in (0, best)
    ]
    return best if choose(candidates, groups=group, margin=_SURE).chosen else 0
