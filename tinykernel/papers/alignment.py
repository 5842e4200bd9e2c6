"""Kernel alignment: a distribution of random features, learned from labels (000, section 3.2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from tinykernel.base.checks import check_count, check_positive
from tinykernel.papers.maps import CosineMap, draw_frequencies, label_matrix

_ROWS_AT_ONCE, _HALVINGS = 4096, 100


def project_on_simplex(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest distribution, ``max(0, v + tau)`` with tau so that the sum is 1."""
    ordered = np.sort(v)[::-1]
    taus = (1 - np.cumsum(ordered)) / np.arange(1, v.size + 1)
    return np.asarray(np.maximum(0.0, v + taus[np.flatnonzero(ordered + taus > 0)[-1]]))


def maximise_alignment(scores: NDArray[np.float64], rho: float) -> NDArray[np.float64]:
    """Maximise ``q . v`` over distributions with chi-square divergence ``N ||q||^2 - 1 <= rho``.

    This is 000 (18) with the v of (20). At a multiplier lambda the Lagrangian (22) is greatest at
    the projection of ``v / (2 lambda N)`` on the simplex, which is (23) with the maximum that it
    lacks, and without which q is negative where v is small; the 2 only renames lambda. The
    divergence falls with lambda, so that bisection solves the dual. (17) prints p / q for the
    q / p of (22).
    """
    best = scores == scores.max()
    if scores.size / best.sum() - 1 <= rho:
        return np.asarray(best / best.sum())
    unit = (scores - scores.max()) / np.ptp(scores)  # adding a constant changes no projection

    def is_inside(scale: float) -> bool:
        return bool(scores.size * np.sum(project_on_simplex(scale * unit) ** 2) - 1 <= rho)

    low, high = 0.0, 1.0
    while is_inside(high):
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_inside(middle) else (low, middle)
    return project_on_simplex(low * unit)


@dataclass(kw_only=True, eq=False, repr=False)
class KernelAlignment(CosineMap):
    """Random Fourier features drawn from a distribution that is aligned with the labels.

    Of `n_candidates` frequencies of a kernel each has the score
    ``v_l = || sum_i y_i phi(x_i; w_l) ||^2``, with y of +-1 for two classes (000 (20)) and a column
    of +-1 a class for more ((25)-(27)). The distribution q with the largest ``q . v`` in a ball of
    radius rho about the uniform one ((16)-(18), Sinha & Duchi 2016) is sparse, and W is drawn from
    it. b is drawn anew, as for (24), so that a frequency drawn twice is not one feature twice.

    Parameters
    ----------
    n_components, sigma, kernel, random_state
        As for `SpectralFeatures`.
    n_candidates : int
        N_w.
    rho : float
        Radius of the ball; about ``n_candidates / (1 + rho)`` candidates keep a probability.

    Attributes
    ----------
    distribution_, weights_, offset_ : ndarray
        q, and W and b as of `SpectralFeatures`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> map = KernelAlignment(random_state=0).fit(X, np.sin(4 * X[:, 0]) > 0)
    >>> bool(np.abs(map.weights_[0]).mean() > np.abs(map.weights_[1]).mean())
    True
    """

    n_candidates: int = 1000
    rho: float = 1.0
    kernel: str = "gaussian"

    def _draw(self, X: NDArray[Any], y: Any, rng: np.random.RandomState) -> None:
        Y = label_matrix(y)[1]
        n, rho = check_count("n_candidates", self.n_candidates), check_positive("rho", self.rho)
        W = draw_frequencies(self.kernel, (X.shape[1], n), rng) / self.sigma
        b = rng.uniform(0, 2 * np.pi, n)
        parts = gen_batches(len(X), _ROWS_AT_ONCE)
        pull = sum(
            np.cos(X[part] @ W.astype(X.dtype) + b.astype(X.dtype)).T @ Y[part] for part in parts
        )
        self.distribution_ = maximise_alignment(np.sum(pull**2, axis=1), rho)
        self.weights_ = W[:, rng.choice(n, len(self.offset_), p=self.distribution_)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
