"""Ternary weights on binary codes (001, section 2.2), by Algorithm 1.

The output is ``f = alpha h + beta`` with ``h = w.z``, and minimises (7)::

    sum_i c_i loss(y_i f_i) + lambda alpha^2 sum_j w_j^2          sum_i c_i = 1

with every ``w_j`` in {-1, 0, 1}, or {-1, 1}; the l1 penalty is ``lambda alpha sum_j |w_j|``. The
intercept beta is 0 in the paper. All losses are functions of ``s = 1 - y f``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from tinykernel.base.checks import check_choice, check_count, check_positive
from tinykernel.base.compiled import njit
from tinykernel.base.elementary import exp, log
from tinykernel.papers.maps import FLOATS, OneVersusRest, label_matrix

LOSSES = ("squared_hinge", "hinge", "logistic", "squared")
PENALTIES = ("l2", "l1")
# An output is finished when a sweep lowers its objective by less than this share.
_TOLERANCE = 1e-4
# A weight begins as 0 where its feature correlates with y by less than this share of the mean.
_CUT = 0.7
_SMALLEST_ALPHA = 1e-8
_NEWTON_STEPS, _HALVINGS = 30, 10


@njit(nogil=True, forceinline=True)
def _loss(kind, s):  # type: ignore[no-untyped-def]
    """Compute the loss of LOSSES[kind] at ``s = 1 - y f``."""
    if kind == 2:
        return log(1.0 + exp(-abs(s - 1.0))) + max(0.0, s - 1.0)
    u = s if kind == 3 else max(0.0, s)
    return u if kind == 1 else u * u


@njit(nogil=True)
def _losses(kind, short):  # type: ignore[no-untyped-def]
    """Compute the loss of each row, and half its first and second derivative by s."""
    loss, pull, bend = np.empty_like(short), np.empty_like(short), np.empty_like(short)
    for i in range(short.size):
        s = short[i]
        loss[i] = _loss(kind, s)
        if kind == 2:
            share = 1.0 / (1.0 + exp(1.0 - s))
            pull[i], bend[i] = 0.5 * share, 0.5 * share * (1.0 - share)
        else:
            bend[i] = 1.0 if kind == 3 or s > 0 else 0.0
            pull[i] = s * bend[i]
    return loss, pull, bend


@dataclass(frozen=True, eq=False)
class TernaryProblem:
    """One output against the rest: y (n,) of +-1, and shares c (n,) of the rows."""

    signs: NDArray[np.int8]  # (p, n): z, feature by feature.
    y: NDArray[np.float64]
    share: NDArray[np.float64]
    loss: str = "squared_hinge"
    penalty: str = "l2"
    binary: bool = False  # whether no weight is 0

    def __post_init__(self) -> None:
        for name, choices in (("loss", LOSSES), ("penalty", PENALTIES), ("binary", (True, False))):
            check_choice(name, getattr(self, name), choices)

    @property
    def kind(self) -> int:
        """The number of the loss."""
        return LOSSES.index(self.loss)

    @property
    def power(self) -> int:
        """The power of alpha in the penalty."""
        return 2 if self.penalty == "l2" else 1

    def objective(self, sums: NDArray[Any], price: float, alpha: float, beta: float) -> float:
        """Compute (7); `sums` (n,) are h, `price` is lambda times the number of weights not 0."""
        losses = _losses(self.kind, 1.0 - self.y * (alpha * sums + beta))[0]
        return float(np.sum(self.share * losses) + price * alpha**self.power)


@dataclass(frozen=True, eq=False)
class Output:
    """A learned output, and the objective after each sweep."""

    weights: NDArray[np.int8]  # (p,)
    alpha: float
    beta: float
    objectives: tuple[float, ...]


@njit(nogil=True)
def _tabulate(kind, short, slope, share, half, mean):  # type: ignore[no-untyped-def]
    """Tabulate the loss where h moves by m = 0, 1 and 2 with z: ``mean[m] + z . half[m]``."""
    for m in range(3):
        total = 0.0
        for i in range(short.size):
            up, down = _loss(kind, short[i] - m * slope[i]), _loss(kind, short[i] + m * slope[i])
            half[m, i] = 0.5 * share[i] * (up - down)
            total += 0.5 * share[i] * (up + down)
        mean[m] = total


@njit(nogil=True)
def visit(problem, order, price, short, weights, sums):  # type: ignore[no-untyped-def]
    """Give each weight in turn the best of its values, (10)-(11).

    `problem` holds the number of the loss, whether weights are binary, z, ``alpha y`` and c;
    `short` (n,) is ``1 - y f``, and `price` what a weight costs. `short`, `weights` and `sums`
    change in place.
    """
    kind, binary, signs, slope, share = problem
    half, mean = np.empty((3, short.size)), np.empty(3)
    _tabulate(kind, short, slope, share, half, mean)
    for j in order:
        z, old = signs[j], np.int64(weights[j])
        best, cost = 0, mean[0] + price * abs(old)
        for m in range(2 if binary else 1, 2 + abs(old)):
            tilt = 0.0
            for i in range(z.size):
                tilt += half[m, i] * z[i]
            for move in (m, -m):
                new = mean[m] + (tilt if move > 0 else -tilt) + price * abs(old + move)
                if abs(old + move) <= 1 and new < cost:
                    best, cost = move, new
        if best != 0:
            weights[j] = old + best
            for i in range(z.size):
                sums[i] += best * z[i]
                short[i] -= slope[i] * best * z[i]
            _tabulate(kind, short, slope, share, half, mean)


def minimise_scale(
    problem: TernaryProblem, sums: NDArray[np.int32], price: float, alpha: float, beta: float
) -> tuple[float, float]:
    """Minimise (8) over alpha and beta by Newton's method; the hinge loss by Powell's."""
    y, share, h = problem.y, problem.share, sums.astype(np.float64)
    value = problem.objective(h, price, alpha, beta)
    if problem.loss == "hinge":
        bounds = ((_SMALLEST_ALPHA, None), (None, None))
        solved = minimize(
            lambda at: problem.objective(h, price, *at),
            (alpha, beta),
            method="Powell",
            bounds=bounds,
        )
        return (float(solved.x[0]), float(solved.x[1])) if solved.fun < value else (alpha, beta)
    is_square = problem.power == 2
    for _ in range(_NEWTON_STEPS):
        _, pull, bend = _losses(problem.kind, 1.0 - y * (alpha * h + beta))
        active, slope = share * bend, price * alpha if is_square else price / 2
        by_alpha, by_beta = slope - np.sum(share * pull * y * h), -np.sum(share * pull * y)
        # The diagonal would be 0 where no row is short, or all sums are 0.
        a, b, c = np.sum(active * h * h) + 1e-9, np.sum(active * h), np.sum(active) + 1e-9
        a += price if is_square else 0.0
        d_alpha = (b * by_beta - c * by_alpha) / (a * c - b * b)
        d_beta = (b * by_alpha - a * by_beta) / (a * c - b * b)
        steps = ((alpha + d_alpha / 2**k, beta + d_beta / 2**k) for k in range(_HALVINGS))
        tried = [(max(_SMALLEST_ALPHA, new), beta) for new, beta in steps]
        values = [problem.objective(h, price, *at) for at in tried]
        best = int(np.argmin(values))
        if not values[best] < value * (1 - 1e-9):
            break
        (alpha, beta), value = tried[best], values[best]
    return alpha, beta


def first_weights(problem: TernaryProblem) -> NDArray[np.int8]:
    """Return the signs of correlations with y; like those of (12), of a linear SVM, and faster."""
    up = problem.y > 0
    towards = np.where(up, 1 / problem.share[up].sum(), -1 / problem.share[~up].sum())
    by_row = problem.share * towards
    correlation = np.array([np.sum(by_row * z) for z in problem.signs])
    if problem.binary:
        return np.where(correlation < 0, -1, 1).astype(np.int8)
    weak = np.abs(correlation) <= _CUT * np.abs(correlation).mean()
    return np.where(weak, 0, np.sign(correlation)).astype(np.int8)


def learn_output(
    problem: TernaryProblem,
    regularization: float,
    max_iter: int,
    seed: int,
    start: tuple[NDArray[np.int8], float] | None = None,
) -> Output:
    """Learn one output by Algorithm 1; `start` are weights and alpha, lambda `regularization`."""
    signs, y, share = problem.signs, problem.y, problem.share
    weights, alpha = start or (first_weights(problem), 1.0 / np.sqrt(len(signs)))
    rng, alpha, beta = np.random.default_rng(seed), max(alpha, _SMALLEST_ALPHA), 0.0
    sums = np.zeros(y.size, dtype=np.int32)
    for weight, z in zip(weights, signs, strict=True):
        sums += weight * z
    objectives, gain = [np.inf], np.inf
    while len(objectives) <= max_iter and gain >= _TOLERANCE * objectives[-1]:
        price = regularization * np.count_nonzero(weights)
        alpha, beta = minimise_scale(problem, sums, price, alpha, beta)
        order = rng.permutation(len(signs))
        short = 1 - y * (alpha * sums + beta)
        constants = problem.kind, problem.binary, signs, alpha * y, share
        visit(constants, order, regularization * alpha**problem.power, short, weights, sums)
        price = regularization * np.count_nonzero(weights)
        objectives.append(problem.objective(sums, price, alpha, beta))
        gain = objectives[-2] - objectives[-1]
    return Output(weights, float(alpha), float(beta), tuple(objectives[1:]))


_MOST_ROWS = 2000  # of the linear SVM, which (12) trains on a small part


@dataclass(kw_only=True, eq=False, repr=False)
class TernaryLinearClassifier(OneVersusRest):
    """Linear classifier ``f = alpha w . z + beta`` with every w_j in {-1, 0, 1} (001 (6)-(12)).

    Algorithm 1 minimises, for one class against the rest, (7)::

        1/n sum_i loss(y_i, f_i) + lambda alpha^2 sum_j w_j^2

    by turns over alpha and beta (8), and over one weight after the other, each of which takes the
    best of its values (10)-(11). No step raises the objective, so that it converges (Lemma 2). z is
    a binary code: of each value the sign counts, where 0 counts as 1.

    001 has no beta. Its (15) subtracts ``len(z)``, where only weights other than 0 count.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic", "squared"}
    penalty : {"l2", "l1"}
        That of (7), or ``lambda alpha sum_j |w_j|``.
    regularization : float
        lambda, not negative.
    binary : bool
        Whether weights are -1 or 1 only.
    start : {"svm", "random"}
        The signs and the mean magnitude of the weights of a linear SVM on up to 2000 rows (12), or
        random weights.
    max_iter : int
        Most sweeps over the weights.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_, scale_, intercept_ : ndarray, shape (n_outputs, n_features), and twice (n_outputs,)
        w, alpha and beta, of one output for two classes.
    objectives_ : list of tuple of float
        The objective of each output after each sweep.

    Examples
    --------
    >>> Z = np.random.default_rng(0).choice([-1, 1], (200, 9))
    >>> TernaryLinearClassifier(random_state=0).fit(Z, Z[:, :3].sum(axis=1) > 0).coef_[0, :3]
    array([1, 1, 1], dtype=int8)
    """

    loss: str = "hinge"
    penalty: str = "l2"
    regularization: float = 0.1
    binary: bool = False
    start: str = "svm"
    max_iter: int = 20
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> TernaryLinearClassifier:
        """Learn from codes (n, n_features) and labels of at least two classes."""
        rows, labels = validate_data(self, X, y, dtype=FLOATS)
        check_choice("start", self.start, ("svm", "random"))
        check_count("max_iter", self.max_iter)
        if self.regularization != 0:
            check_positive("regularization", self.regularization)
        self.classes_, Y = label_matrix(labels)
        rng = check_random_state(self.random_state)
        signs = np.ascontiguousarray(_signs(rows).T)
        share, kind = np.full(len(rows), 1 / len(rows)), (self.loss, self.penalty, self.binary)
        settings, outputs = (float(self.regularization), self.max_iter), []
        for targets in np.ascontiguousarray(Y.T):
            problem = TernaryProblem(signs, targets, share, *kind)
            start = self._start(problem, rng)
            outputs.append(learn_output(problem, *settings, rng.randint(2**31 - 1), start))
        self.coef_ = np.stack([output.weights for output in outputs])
        self.scale_ = np.array([output.alpha for output in outputs])
        self.intercept_ = np.array([output.beta for output in outputs])
        self.objectives_ = [output.objectives for output in outputs]
        self.n_iter_ = max(map(len, self.objectives_))
        return self

    def _start(
        self, problem: TernaryProblem, rng: np.random.RandomState
    ) -> tuple[NDArray[np.int8], float]:
        """Return the first weights and alpha, (12)."""
        p, n = problem.signs.shape
        if self.start == "random":
            values = [-1, 1] if self.binary else [-1, 0, 1]
            return rng.choice(np.array(values, dtype=np.int8), p), 1 / np.sqrt(p)
        order = rng.permutation(n)
        # Both classes are there, however rare one of them is.
        first = [order[problem.y[order] == sign][:1] for sign in (-1, 1)]
        part = np.unique(np.concatenate([order[:_MOST_ROWS], *first]))
        svm = LinearSVC(C=1 / p, random_state=rng.randint(2**31 - 1))
        w = svm.fit(problem.signs[:, part].T, problem.y[part]).coef_[0]
        return np.where(w < 0, -1, 1).astype(np.int8), float(np.abs(w).mean())

    def _outputs(self, X: NDArray[Any]) -> NDArray[Any]:
        # Whole numbers in float32 are exact.
        sums = _signs(X).astype(np.float32) @ self.coef_.T.astype(np.float32)
        return np.asarray(sums * self.scale_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # signs of two columns do not tell blobs apart
        return tags


def _signs(X: NDArray[Any]) -> NDArray[np.int8]:
    return np.where(X >= 0, 1, -1).astype(np.int8)
