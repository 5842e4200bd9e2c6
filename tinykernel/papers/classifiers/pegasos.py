"""Pegasos: linear support vector machines by stochastic sub-gradients (004, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.errors import TinykernelError
from tinykernel.papers.classifiers.one_vs_rest import OneVersusRest
from tinykernel.papers.features.base import label_targets

#: Features and targets of some rows.
Batch = tuple[NDArray[Any], NDArray[Any]]


def draw_batch(
    n_rows: int, batch_size: int, rng: np.random.RandomState
) -> NDArray[np.int64] | slice:
    """Sample the M points of one step: with replacement, or all rows where there are no more."""
    if n_rows <= batch_size:
        return slice(None)
    return rng.randint(0, n_rows, batch_size)


def with_constant(Z: NDArray[Any], wanted: bool = True) -> NDArray[Any]:
    """Append a component that is always 1, whose weight is then the intercept, where wanted."""
    if not wanted:
        return Z
    return np.hstack([Z, np.ones((Z.shape[0], 1), dtype=Z.dtype)])


def active_targets(W: NDArray[Any], Z: NDArray[Any], Y: NDArray[Any]) -> NDArray[Any]:
    """Return the targets of the points with non-zero loss, A+ of 004 (7), and 0 for the others."""
    return np.where(Y * (Z @ W) < 1, Y, Y.dtype.type(0))


def hinge_gradient(
    W: NDArray[Any], Z: NDArray[Any], Y: NDArray[Any], regularization: float
) -> NDArray[Any]:
    """Differentiate ``lambda/2 ||w||^2 + 1/n sum max(0, 1 - y w.z)`` by the weights (004 (5), (7)).

    `W` has shape (k, n_outputs), `Z` (n, k), and `Y`, +1 or -1, (n, n_outputs); the result is
    ``lambda w - 1/|A| sum_{A+} y z``, where A+ are the points with non-zero loss.
    """
    pull = Z.T @ active_targets(W, Z, Y)
    pull *= W.dtype.type(-1.0 / Z.shape[0])
    pull += W.dtype.type(regularization) * W
    return np.asarray(pull)


def pegasos(
    W: NDArray[Any],
    draw: Callable[[], Batch],
    regularization: float,
    n_steps: int,
    *,
    first: int = 1,
    average: bool = False,
) -> NDArray[Any]:
    """Optimise linear weights with fixed components: Algorithm 1 of 004.

    Step t subtracts ``1 / (lambda t)`` times the gradient (7) of a batch and shrinks each output to
    ``||w|| <= 1 / sqrt(lambda)``, a ball that holds the optimum. (Line 6 of Algorithm 1 prints
    ``min{1, 1 / lambda ||w||}`` for the factor; with the ball of line 1, and in Shalev-Shwartz et
    al. 2011, it is ``min{1, 1 / (sqrt(lambda) ||w||)}``.)

    `W` is where to start, and is not changed; `draw` returns a new batch. The step of ``first = 1``
    forgets the start altogether, so that a run that is to go on must continue to count. `average`
    returns the mean of the weights after the second half of the steps in place of the last.
    """
    as_type = W.dtype.type
    W = W.copy()
    total = np.zeros(W.shape)
    for t in range(first, first + n_steps):
        Z, Y = draw()
        W -= as_type(1.0 / (regularization * t)) * hinge_gradient(W, Z, Y, regularization)
        squares = np.einsum("ij,ij->j", W, W, dtype=np.float64)
        W /= np.sqrt(np.maximum(regularization * squares, 1.0)).astype(as_type)
        if t - first >= n_steps // 2:
            total += W
    return (total / (n_steps - n_steps // 2)).astype(W.dtype) if average else W


@dataclass(kw_only=True, eq=False, repr=False)
class PegasosClassifier(OneVersusRest):
    """Linear support vector machine, trained by Pegasos; several classes one versus rest.

    Minimises ``lambda/2 ||w||^2 + 1/n sum max(0, 1 - y w.x)`` for each output (004 (6), Algorithm
    1), all outputs at once by matrix products; the weights are the mean of those after the second
    half of the steps. The linear baseline of 004, and the classifier on
    top of a random feature map there: ``make_pipeline(RandomFourierFeatures(), ...)``.

    Parameters
    ----------
    regularization : float
        lambda, greater than 0.
    max_iter : int
        Number of steps. Good accuracy takes some ``10 / lambda`` points, `batch_size` a step.
    batch_size : int
        M, points a step.
    fit_intercept : bool
        Append a feature that is always 1; its weight is penalised like the others.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : ndarray
        Labels in ascending order.
    coef_ : ndarray, shape (n_outputs, n_features)
    intercept_ : ndarray, shape (n_outputs,)
    n_iter_ : int
        Steps made.
    n_features_in_ : int

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    >>> PegasosClassifier(random_state=0).fit(X, [0, 0, 1, 1]).predict([[0.5, 0.0], [3.5, 0.0]])
    array([0, 1])
    """

    regularization: float = 1e-4
    max_iter: int = 2000
    batch_size: int = 500
    fit_intercept: bool = True
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X: NDArray[Any], codes: NDArray[np.int64], rng: np.random.RandomState) -> None:
        penalty = check_positive("regularization", self.regularization)
        size = check_count("batch_size", self.batch_size)
        steps = check_count("max_iter", self.max_iter)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        Y = label_targets(codes, self.classes_.size, X.dtype)

        def draw() -> Batch:
            rows = draw_batch(X.shape[0], size, rng)
            return with_constant(X[rows], self.fit_intercept), Y[rows]

        W = np.zeros((X.shape[1] + bool(self.fit_intercept), Y.shape[1]), dtype=X.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            W = pegasos(W, draw, penalty, steps, average=True)
        if not np.isfinite(W).all():
            raise TinykernelError(
                "PegasosClassifier: the weights overflowed; scale the features to about [-1, 1]"
            )
        self._keep(W, bool(self.fit_intercept))
        self.n_iter_ = steps
