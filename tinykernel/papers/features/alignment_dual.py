"""The distribution over random features that matches the labels best (kernel alignment)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.checks import check_positive
from tinykernel.errors import TinykernelError
from tinykernel.papers.features.base import label_targets


class AlignedDistribution(NamedTuple):
    """What `maximise_alignment` returns.

    Attributes
    ----------
    probabilities : ndarray of float64, shape (N,)
        q: not negative, sum 1, many of them exactly 0.
    divergence : float
        ``N ||q||^2 - 1``, at most rho.
    multiplier : float
        The dual variable lambda of the ball; 0 where the ball does not bind.
    gap : float
        Duality gap, relative to the spread of the scores: how far q can be from the optimum.
    n_iterations : int
        Steps of the bisection.
    """

    probabilities: NDArray[np.float64]
    divergence: float
    multiplier: float
    gap: float
    n_iterations: int


def label_matrix(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the labels as +-1, one column for two classes, else one a class; refuse one class."""
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise TinykernelError("kernel alignment needs at least two classes, got one class")
    return label_targets(codes, classes.size, np.float64)


def alignment_scores(features: NDArray[Any], y: ArrayLike) -> NDArray[np.float64]:
    """Return how well each feature matches the labels: v of 000 (20) and (27).

    ``v_l = || sum_i ybar_i phi_l(x_i) ||^2``, so that the alignment ``sum_ij k_Q(x_i, x_j) ybar_i .
    ybar_j`` of the kernel ``k_Q = sum_l q_l phi_l phi_l`` is ``q . v``.

    Parameters
    ----------
    features : ndarray, shape (n, N)
        phi_l(x_i).
    y : array-like, shape (n,)
        Class labels.

    Returns
    -------
    ndarray of float64, shape (N,)

    Raises
    ------
    TinykernelError
        If there are fewer than two classes.

    Examples
    --------
    >>> alignment_scores(np.array([[1.0, 1.0], [1.0, -1.0]]), [0, 1])
    array([0., 4.])
    """
    sums = features.T @ label_matrix(np.asarray(y)).astype(features.dtype)
    return np.asarray(np.einsum("ij,ij->i", sums, sums, dtype=np.float64))


def _project_on_simplex(
    ordered: NDArray[np.float64], sums: NDArray[np.float64], scale: float
) -> tuple[int, float]:
    """Return how many entries the projection of ``scale * v`` keeps, and its threshold.

    `ordered` is v in descending order and `sums` its running sums. Entry k is kept while
    ``1 + scale * (k v_k - sums_k) > 0``, whose left side never rises with k.
    """
    low, high = 1, ordered.size
    while low < high:
        middle = (low + high + 1) // 2
        if 1 + scale * (middle * ordered[middle - 1] - sums[middle - 1]) > 0:
            low = middle
        else:
            high = middle - 1
    return low, (scale * sums[low - 1] - 1) / low


def maximise_alignment(
    scores: ArrayLike, rho: float, *, tolerance: float = 1e-10
) -> AlignedDistribution:
    """Find the distribution near the uniform one that has the largest mean score.

    Maximises ``q . v`` over the simplex and the ball of the chi-square divergence ``sum_l ((N
    q_l)^2 - 1) / N <= rho`` (000 (17)-(18)). For a multiplier lambda the maximiser of the
    Lagrangian (21)-(22) is the projection of ``v / (2 lambda N)`` on the simplex, ``q_l = max(0,
    v_l / (2 lambda N) + tau)``. (000 (23) leaves out the maximum, without which q may be negative,
    and the factor 2, which only renames lambda.) Its divergence falls with lambda, so that the dual
    is solved by bisection; each step costs O(log N) after one sort.

    Parameters
    ----------
    scores : array-like, shape (N,)
        v, finite.
    rho : float
        Radius of the ball, greater than 0. About ``N / (1 + rho)`` features keep weight; at
        ``rho >= N - 1`` the best feature gets all of it.
    tolerance : float
        On the divergence, relative to rho. The result is always inside the ball.

    Returns
    -------
    AlignedDistribution

    Raises
    ------
    TinykernelError
        If rho or the tolerance is not positive, or the scores are not finite.

    Examples
    --------
    >>> best = maximise_alignment([4.0, 2.0, 1.0, 0.0], rho=1.0)
    >>> best.probabilities.round(3)
    array([0.648, 0.27 , 0.081, 0.   ])
    """
    check_positive("rho", rho)
    check_positive("tolerance", tolerance)
    v = np.asarray(scores, dtype=np.float64)
    if v.ndim != 1 or v.size == 0 or not np.isfinite(v).all():
        raise TinykernelError("kernel alignment: the scores must be a list of finite numbers")
    n, top, spread = v.size, float(v.max()), float(np.ptp(v))
    ties = v == top
    if n / ties.sum() - 1 <= rho:
        q = ties / ties.sum()
        return AlignedDistribution(q, n / int(ties.sum()) - 1, 0.0, 0.0, 0)
    # The projection does not change when a constant is added, so the scores run from -1 to 0.
    ordered = np.sort((v - top) / spread)[::-1]
    sums, squares = np.cumsum(ordered), np.cumsum(ordered**2)

    def divergence(scale: float) -> float:
        kept, threshold = _project_on_simplex(ordered, sums, scale)
        total = scale**2 * squares[kept - 1] - 2 * scale * threshold * sums[kept - 1]
        return float(n * (total + kept * threshold**2) - 1)

    low, high, steps = 0.0, 1.0, 0
    while divergence(high) < rho:
        low, high, steps = high, 2 * high, steps + 1
    while divergence(low) < rho * (1 - tolerance) and high - low > 4e-16 * high:
        middle = 0.5 * (low + high)
        steps += 1
        low, high = (middle, high) if divergence(middle) <= rho else (low, middle)
    _, threshold = _project_on_simplex(ordered, sums, low)
    q = np.maximum(low * (v - top) / spread - threshold, 0.0)
    q /= q.sum()
    reached = n * float(q @ q) - 1
    # Dual value less primal value: lambda times the slack of the ball.
    multiplier = 1 / (2 * low * n)
    return AlignedDistribution(q, reached, spread * multiplier, multiplier * (rho - reached), steps)
