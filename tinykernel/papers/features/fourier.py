"""Dense random Fourier features, for any shift-invariant kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.checks import check_choice
from tinykernel.errors import TinykernelError
from tinykernel.papers.features.base import TURN, FeatureMap, add_cosine, find_sigma
from tinykernel.papers.features.metropolis import LogDensity, metropolis_hastings


def draw_frequencies(
    kernel: str, n_features: int, n_components: int, sigma: float, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Draw from the spectral density of a kernel, exactly; shape (n_features, n_components).

    Frequencies are normal, Cauchy, and Laplace distributed, independently in each coordinate
    (Rahimi & Recht 2007, figure 1), in radians per unit.
    """
    check_choice("kernel", kernel, ("gaussian", "laplacian", "cauchy"))
    shape = (n_features, n_components)
    if kernel == "gaussian":
        return rng.standard_normal(shape) / sigma
    if kernel == "laplacian":
        return rng.standard_cauchy(shape) / sigma
    return rng.laplace(size=shape) / sigma


@dataclass(kw_only=True, eq=False, repr=False)
class DenseMap(FeatureMap):
    """Base of the maps of ``W' x + b`` with a dense W: they draw it, and project by BLAS."""

    sigma: float | str = 1.0
    kernel: str = "gaussian"

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        self.sigma_ = find_sigma(self.sigma, X, rng)
        self.weights_ = self._frequencies(X.shape[1], rng)
        p = int(self.weights_.shape[1])
        self.offset_: NDArray[np.float64] = rng.uniform(0.0, TURN, p)

    def _frequencies(self, n_features: int, rng: np.random.RandomState) -> NDArray[np.float64]:
        return draw_frequencies(self.kernel, n_features, int(self.n_components), self.sigma_, rng)

    def _turns(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute ``W' x`` in turns (1 is an angle of 2 pi); C-contiguous."""
        return np.asarray(X @ (self.weights_ / TURN).astype(X.dtype), order="C")

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        return add_cosine(self._turns(X), self.offset_ / TURN)


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFourierFeatures(DenseMap):
    """Random Fourier features: ``z(x) = sqrt(2 / p) cos(W' x + b)``.

    With the columns of W drawn from the Fourier transform of the kernel and b from Uniform(0, 2 pi)
    the product ``z(x) . z(y)`` is an unbiased estimate of ``k(x - y)`` (Rahimi & Recht 2007; 000
    (2)-(4), 002). One matrix product through BLAS: O(p d) time and memory; `Fastfood` does the
    Gaussian kernel in O(p log d).

    Parameters
    ----------
    n_components : int
        p, the number of features.
    sigma : float or "neighbour"
        Width of the kernel; "neighbour" takes `neighbour_distance` of the training rows.
    kernel : {"gaussian", "laplacian", "cauchy"}
        `gaussian_kernel`, `laplacian_kernel` or `cauchy_kernel`. Not used when `log_density` is
        given.
    log_density : callable, optional
        Any other spectral density, for a kernel of width 1, up to a factor: takes frequencies of
        shape (n, n_features), returns n natural logarithms. Sampled by `metropolis_hastings`.
    random_state : int, RandomState or None

    Attributes
    ----------
    sigma_ : float
        The width used.
    weights_ : ndarray of float64, shape (n_features, n_components)
        W, radians per unit.
    offset_ : ndarray of float64, shape (n_components,)
        b, radians in [0, 2 pi).
    acceptance_rate_ : float or None
        Of Metropolis-Hastings after the burn-in; None where the density is sampled exactly.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.5]])
    >>> features = RandomFourierFeatures(n_components=20000, kernel="laplacian", random_state=0)
    >>> Z = features.fit_transform(X)
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-1.5)) < 0.03)
    True
    """

    log_density: LogDensity | None = None

    def _frequencies(self, n_features: int, rng: np.random.RandomState) -> NDArray[np.float64]:
        self.acceptance_rate_: float | None = None
        if self.log_density is None:
            return super()._frequencies(n_features, rng)
        if not callable(self.log_density):
            raise TinykernelError(f"log_density must be a function; got {self.log_density!r}")
        p = int(self.n_components)
        drawn = metropolis_hastings(self.log_density, n_features, p, random_state=rng)
        self.acceptance_rate_ = drawn.acceptance_rate
        return drawn.samples.T / self.sigma_
