"""Dense random Fourier features, for any shift-invariant kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.checks import check_choice, check_count
from tinykernel.errors import TinykernelError
from tinykernel.papers.features.base import FeatureMap, add_cosine, find_sigma
from tinykernel.papers.features.metropolis import LogDensity, metropolis_hastings

_TURN = 2.0 * np.pi
_KERNELS = ("gaussian", "laplacian", "cauchy")


def draw_frequencies(
    kernel: str, n_features: int, n_components: int, sigma: float, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Draw from the spectral density of a kernel, exactly; shape (n_features, n_components).

    Frequencies are normal, Cauchy, and Laplace distributed, independently in each coordinate
    (Rahimi & Recht 2007, figure 1), in radians per unit.
    """
    check_choice("kernel", kernel, _KERNELS)
    shape = (n_features, n_components)
    if kernel == "gaussian":
        return rng.standard_normal(shape) / sigma
    if kernel == "laplacian":
        return rng.standard_cauchy(shape) / sigma
    return rng.laplace(size=shape) / sigma


class RandomFourierFeatures(FeatureMap):
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
    burn_in, thinning : int
        Of that sampling.
    step : float, optional
        Of that sampling; tuned when not given.
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

    sigma_: float
    weights_: NDArray[np.float64]
    offset_: NDArray[np.float64]
    acceptance_rate_: float | None

    def __init__(
        self,
        *,
        n_components: int = 256,
        sigma: float | str = 1.0,
        kernel: str = "gaussian",
        log_density: LogDensity | None = None,
        burn_in: int = 500,
        thinning: int = 20,
        step: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.sigma = sigma
        self.kernel = kernel
        self.log_density = log_density
        self.burn_in = burn_in
        self.thinning = thinning
        self.step = step
        self.random_state = random_state

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        p = int(self.n_components)
        self.sigma_ = find_sigma(self.sigma, X, rng)
        self.acceptance_rate_ = None
        if self.log_density is None:
            self.weights_ = draw_frequencies(self.kernel, X.shape[1], p, self.sigma_, rng)
        else:
            self.weights_ = self._sample(X.shape[1], p, rng)
        self.offset_ = rng.uniform(0.0, _TURN, p)

    def _sample(
        self, n_features: int, n_components: int, rng: np.random.RandomState
    ) -> NDArray[np.float64]:
        """Draw the frequencies by Metropolis-Hastings."""
        if not callable(self.log_density):
            raise TinykernelError(f"log_density must be a function; got {self.log_density!r}")
        drawn = metropolis_hastings(
            self.log_density,
            n_features,
            n_components,
            burn_in=check_count("burn_in", self.burn_in, low=0),
            thinning=check_count("thinning", self.thinning),
            step=self.step,
            random_state=rng,
        )
        self.acceptance_rate_ = drawn.acceptance_rate
        return drawn.samples.T / self.sigma_

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        turns = np.asarray(X @ (self.weights_ / _TURN).astype(X.dtype), order="C")
        return add_cosine(turns, self.offset_ / _TURN)
