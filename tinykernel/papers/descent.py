"""Algorithm 1 of Lei & Lan 2021: ternary weights of an output by alternating minimisation.

The output is ``f = alpha h + beta`` with ``h = w.z``, and minimises (7)::

    sum_i c_i loss(y_i f_i) + lambda alpha^2 sum_j w_j^2          sum_i c_i = 1

with every ``w_j`` in {-1, 0, 1}, or {-1, 1}; the l1 penalty is ``lambda alpha sum_j |w_j|``. The
intercept beta is 0 in the paper. All losses are functions of ``s = 1 - y f``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tinykernel.checks import check_choice
from tinykernel.compiled import njit
from tinykernel.elementary import exp, log

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


def scaled(
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
        alpha, beta = scaled(problem, sums, price, alpha, beta)
        order = rng.permutation(len(signs))
        short = 1 - y * (alpha * sums + beta)
        constants = problem.kind, problem.binary, signs, alpha * y, share
        visit(constants, order, regularization * alpha**problem.power, short, weights, sums)
        price = regularization * np.count_nonzero(weights)
        objectives.append(problem.objective(sums, price, alpha, beta))
        gain = objectives[-2] - objectives[-1]
    return Output(weights, float(alpha), float(beta), tuple(objectives[1:]))
