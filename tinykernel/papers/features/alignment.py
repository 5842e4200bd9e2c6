"""Random features chosen by how well their kernel matches the labels (kernel alignment)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.errors import TinykernelError
from tinykernel.papers.features.base import TURN, find_sigma, label_targets, window_of, window_signs
from tinykernel.papers.features.fourier import DenseMap, draw_frequencies

# Rows are worked on in parts of this many features in all, but not so few that BLAS suffers.
_VALUES_AT_ONCE = 1 << 20
_LEAST_ROWS = 256


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


@dataclass(kw_only=True, eq=False, repr=False)
class KernelAlignment(DenseMap):
    """Random features drawn from a distribution that is optimised for the labels.

    Draws many candidate features of a kernel, finds by `maximise_alignment` the weights q
    near the uniform ones whose kernel matches the labels best, and keeps the features to which q
    gives weight (000, section 3.2, (15)-(28), after Sinha & Duchi 2016).

    Parameters
    ----------
    n_components : int
        p, the number of features; the largest number where `selection` is "support".
    n_candidates : int
        N, how many features are drawn to choose from.
    rho : float
        Radius of the chi-square ball; see `maximise_alignment`.
    sigma : float or "neighbour"
        Width of the kernel from which candidates are drawn.
    kernel : {"gaussian", "laplacian", "cauchy"}
        Which kernel that is.
    selection : {"sample", "support"}
        "sample" draws frequencies from q with replacement and gives each a new b and t (24).
        "support" keeps each candidate once, with its b, the p largest q where there are more; the
        float features are then weighted by ``sqrt(q)``, so that ``z . z'`` is the kernel (18).
    binary : bool
        Whether to return ``sign(cos(.) + t)``, int8, in place of the cosines.
    random_state : int, RandomState or None

    Attributes
    ----------
    sigma_ : float
    distribution_ : AlignedDistribution
        q over the candidates, with the divergence and duality gap reached.
    selected_ : ndarray of int64, shape (p,)
        Which candidate each feature comes from.
    weights_ : ndarray of float64, shape (n_features, p)
        Frequencies, radians per unit.
    offset_, threshold_ : ndarray of float64, shape (p,)
        b (radians) and t of each feature.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> X = rng.normal(size=(200, 5))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> aligned = KernelAlignment(n_components=64, n_candidates=500, random_state=0).fit(X, y)
    >>> bool((aligned.distribution_.probabilities > 0).sum() < 250)
    True
    """

    n_candidates: int = 4096
    rho: float = 10.0
    selection: str = "sample"
    binary: bool = True

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        check_choice("selection", self.selection, ("sample", "support"))
        check_choice("binary", self.binary, (True, False))
        n = check_count("n_candidates", self.n_candidates)
        rows, labels = validate_data(self, X, y, dtype=(np.float64, np.float32), reset=False)
        check_classification_targets(labels)
        self.sigma_ = find_sigma(self.sigma, rows, rng)
        self.weights_ = draw_frequencies(self.kernel, rows.shape[1], n, self.sigma_, rng)
        self.offset_ = rng.uniform(0.0, TURN, n)
        self.threshold_ = rng.uniform(-1.0, 1.0, n)
        self.distribution_ = maximise_alignment(self._scores(rows, label_matrix(labels)), self.rho)
        self._select(rng)
        self._n_features_out = self.selected_.size

    def _scores(self, X: NDArray[Any], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return v of (20) and (27) for all candidates, divided by the square of the row count."""
        sums = np.zeros((self.offset_.size, labels.shape[1]))
        for rows in self._parts(X.shape[0]):
            cosines = super()._map(X[rows])
            sums += cosines.T @ labels[rows].astype(cosines.dtype)
        # The cosines are scaled by sqrt(2 / N); phi of (18) is not.
        sums *= np.sqrt(self.offset_.size / 2.0) / X.shape[0]
        return np.asarray((sums**2).sum(axis=1))

    def _select(self, rng: np.random.RandomState) -> None:
        """Keep the chosen candidates of those drawn."""
        q = self.distribution_.probabilities
        p = int(self.n_components)
        if self.selection == "sample":
            self.selected_ = np.sort(rng.choice(q.size, size=p, p=q))
            self.offset_ = rng.uniform(0.0, TURN, p)
            self.threshold_ = rng.uniform(-1.0, 1.0, p)
        else:
            largest = np.argsort(-q, kind="stable")[: min(p, np.count_nonzero(q))]
            self.selected_ = np.sort(largest)
            self.offset_ = self.offset_[self.selected_]
            self.threshold_ = self.threshold_[self.selected_]
        self.weights_ = self.weights_[:, self.selected_]

    def _parts(self, n_rows: int) -> Iterator[slice]:
        """Cut the rows into parts whose candidates fit the cache."""
        step = max(_LEAST_ROWS, _VALUES_AT_ONCE // int(self.n_candidates))
        return (slice(first, first + step) for first in range(0, n_rows, step))

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        if self.binary:
            start, width = window_of(self.offset_, self.threshold_)
            parts = [window_signs(self._turns(X[i]), start, width) for i in self._parts(len(X))]
            return np.concatenate(parts)
        Z = np.concatenate([super(KernelAlignment, self)._map(X[i]) for i in self._parts(len(X))])
        if self.selection == "support":
            q = self.distribution_.probabilities[self.selected_]
            Z *= np.sqrt(q / q.mean()).astype(Z.dtype)
        return Z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = [] if self.binary else ["float64", "float32"]
        return tags
