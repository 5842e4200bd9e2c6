"""Algorithm 1 of Lei & Lan 2021: ternary weights of an output by alternating minimisation.

The output is ``f = alpha h + beta`` with ``h = w.z``, and minimises (7)::

    sum_i c_i max(0, 1 - y_i f_i)^2 + lambda alpha^2 sum_j w_j^2          sum_i c_i = 1

with every ``w_j`` in {-1, 0, 1}. The intercept beta is 0 in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.compiled import njit

# An output is finished when a sweep lowers its objective by less than this share.
_TOLERANCE = 1e-4
# A weight begins as 0 where its feature correlates with y by less than this share of the mean.
_CUT = 0.7
_SMALLEST_ALPHA = 1e-8
_NEWTON_STEPS, _HALVINGS = 30, 10


@dataclass(frozen=True, eq=False)
class Problem:
    """One output against the rest: y (n,) of +-1, and shares c (n,) of the rows."""

    signs: NDArray[np.int8]  # (p, n): z, feature by feature.
    y: NDArray[np.float64]
    share: NDArray[np.float64]

    def objective(self, sums: NDArray[Any], price: float, alpha: float, beta: float) -> float:
        """Compute (7); `sums` (n,) are h, `price` is lambda times the number of weights not 0."""
        short = np.maximum(0.0, 1.0 - self.y * (alpha * sums + beta))
        return float(np.sum(self.share * short**2) + price * alpha**2)


@dataclass(frozen=True, eq=False)
class Output:
    """A learned output, and the sweeps that were made."""

    weights: NDArray[np.int8]  # (p,)
    alpha: float
    beta: float
    n_sweeps: int


@njit(nogil=True)
def _tabulate(short, slope, share, half, mean):  # type: ignore[no-untyped-def]
    """Tabulate the loss where h moves by m = 0, 1 and 2 with z: ``mean[m] + z . half[m]``."""
    for m in range(3):
        total = 0.0
        for i in range(short.size):
            up, down = max(0.0, short[i] - m * slope[i]), max(0.0, short[i] + m * slope[i])
            half[m, i] = 0.5 * share[i] * (up * up - down * down)
            total += 0.5 * share[i] * (up * up + down * down)
        mean[m] = total


@njit(nogil=True)
def visit(signs, slope, share, order, price, short, weights, sums):  # type: ignore[no-untyped-def]
    """Give each weight in turn the best of its three values, (10)-(11).

    `slope` (n,) is ``alpha y``, `short` (n,) is ``1 - y f``, and `price` what a weight costs.
    `short`, `weights` and `sums` change in place.
    """
    half, mean = np.empty((3, short.size)), np.empty(3)
    _tabulate(short, slope, share, half, mean)
    for j in order:
        z, old = signs[j], np.int64(weights[j])
        best, cost = 0, mean[0] + price * abs(old)
        for m in range(1, 2 + abs(old)):
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
            _tabulate(short, slope, share, half, mean)


def scaled(
    problem: Problem, sums: NDArray[np.int32], price: float, alpha: float, beta: float
) -> tuple[float, float]:
    """Minimise (7) over alpha and beta at fixed weights, which is (8), by Newton's method."""
    y, share, h = problem.y, problem.share, sums.astype(np.float64)
    value = problem.objective(h, price, alpha, beta)
    for _ in range(_NEWTON_STEPS):
        short = np.maximum(0.0, 1.0 - y * (alpha * h + beta))
        active = share * (short > 0)
        by_alpha, by_beta = (
            price * alpha - np.sum(share * short * y * h),
            -np.sum(share * short * y),
        )
        # The diagonal would be 0 where no row is short, or all sums are 0.
        a, b, c = np.sum(active * h * h) + price + 1e-9, np.sum(active * h), np.sum(active) + 1e-9
        d_alpha = (b * by_beta - c * by_alpha) / (a * c - b * b)
        d_beta = (b * by_alpha - a * by_beta) / (a * c - b * b)
        steps = ((alpha + d_alpha / 2**k, beta + d_beta / 2**k) for k in range(_HALVINGS))
        tried = [(max(_SMALLEST_ALPHA, new), beta) for new, beta in steps]
        values = [problem.objective(h, price, *each) for each in tried]
        best = int(np.argmin(values))
        if not values[best] < value * (1 - 1e-9):
            break
        (alpha, beta), value = tried[best], values[best]
    return alpha, beta


def first_weights(problem: Problem) -> NDArray[np.int8]:
    """Return the sign of the correlation of each feature with y; 0 where it is weak.

    The paper begins with the signs of a linear SVM (12), which ends equally accurate.
    """
    up = problem.y > 0
    towards = np.where(up, 1 / problem.share[up].sum(), -1 / problem.share[~up].sum())
    by_row = problem.share * towards
    correlation = np.array([np.sum(by_row * z) for z in problem.signs])
    weak = np.abs(correlation) <= _CUT * np.abs(correlation).mean()
    return np.where(weak, 0, np.sign(correlation)).astype(np.int8)


def learn_output(problem: Problem, penalty: float, max_iter: int, seed: int) -> Output:
    """Learn one output by Algorithm 1: alpha by (8), then each weight by (10)-(11), and again.

    `penalty` is lambda. Weights are visited in random order.
    """
    signs, y, share = problem.signs, problem.y, problem.share
    weights, rng = first_weights(problem), np.random.default_rng(seed)
    sums = np.zeros(y.size, dtype=np.int32)
    for weight, z in zip(weights, signs, strict=True):
        sums += weight * z
    alpha, beta = 1.0 / np.sqrt(len(signs)), 0.0
    n_sweeps, objective, gain = 0, np.inf, np.inf
    while n_sweeps < max_iter and gain >= _TOLERANCE * objective:
        alpha, beta = scaled(problem, sums, penalty * np.count_nonzero(weights), alpha, beta)
        order = rng.permutation(len(signs))
        short, price = 1 - y * (alpha * sums + beta), penalty * alpha**2
        visit(signs, alpha * y, share, order, price, short, weights, sums)
        after = problem.objective(sums, penalty * np.count_nonzero(weights), alpha, beta)
        n_sweeps, gain, objective = n_sweeps + 1, objective - after, after
    return Output(weights, float(alpha), float(beta), n_sweeps)
