"""Cosine maps learned to approximate a known kernel on given data (004, section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel import progress
from tinykernel.checks import check_count, check_positive
from tinykernel.papers.classifiers.compact_maps import DenseProjection
from tinykernel.papers.classifiers.pegasos import draw_batch
from tinykernel.papers.features.base import TURN, find_sigma
from tinykernel.papers.features.fourier import DenseMap, draw_frequencies
from tinykernel.papers.features.kernels import KERNELS


def kernel_error_gradient(
    projection: DenseProjection, X: NDArray[Any], K: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Differentiate the error by the parameters of the map (004 (11)).

    The error is ``1/n^2 sum_ij (K_ij - Z(x_i) . Z(x_j))^2`` over all pairs of rows (004 (10)), and
    the gradient
    ``8 / (k n^2) sum_{x, x'} (K(x, x') - Z(x) . Z(x')) sin(theta_i . x + b_i)
    cos(theta_i . x' + b_i) x``; 004 (11) prints x_i for the last factor and leaves out 1 / n^2.
    """
    Z, slopes = projection.features_and_slopes(X)
    slopes *= (K - Z @ Z.T) @ Z
    slopes *= slopes.dtype.type(4.0 / X.shape[0] ** 2)
    return projection.backward(X, slopes), slopes.sum(axis=0)


@dataclass(kw_only=True, eq=False, repr=False)
class LearnedKernelFeatures(DenseMap):
    r"""Cosine features learned so that their products are a known kernel on the training rows.

    Minimises ``sum_ij (k(x_i, x_j) - Z(x_i) . Z(x_j))^2`` over Theta and b of
    ``Z(x) = sqrt(2 / p) cos(Theta' x + b)`` by stochastic gradient descent (004 (10)-(11)), from
    random Fourier features of that kernel. Fewer features then give the same error on rows like
    those seen; elsewhere nothing is promised. 004 finds, and `docs/results` repeats, that for
    classification a better approximation of the kernel brings far less than learning the map
    itself: `CompactMapClassifier`.

    Parameters
    ----------
    n_components : int
        p, the number of features.
    sigma : float or "neighbour"
        Width of the kernel; "neighbour" takes `neighbour_distance` of the training rows.
    kernel : {"gaussian", "laplacian", "cauchy"}
        `gaussian_kernel`, `laplacian_kernel` or `cauchy_kernel`.
    max_iter : int
        Number of steps; 0 leaves the random Fourier features.
    batch_size : int
        Rows a step; all their pairs count.
    learning_rate : float
        A step is this times ``p^2 sigma^-2`` times the gradient of the mean squared error, falling
        linearly to 0 over the steps.
    max_turn : float
        Largest change, in radians, of the phase of a row of root-mean-square length in a step.
        This default and that of `learning_rate` were chosen on rows held out of the training part
        of USPS (``docs/results/defaults.md``).
    random_state : int, RandomState or None

    Attributes
    ----------
    sigma_ : float
        The width used.
    weights_ : ndarray, shape (n_features, n_components)
        Theta, radians per unit.
    offset_ : ndarray, shape (n_components,)
        b, radians in [0, 2 pi).
    n_iter_ : int
        Steps made.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(100, 3))
    >>> from tinykernel.papers.features import gaussian_kernel
    >>> K = gaussian_kernel(X, sigma=2.0)
    >>> def error(max_iter):
    ...     map = LearnedKernelFeatures(sigma=2.0, max_iter=max_iter, random_state=0)
    ...     Z = map.fit_transform(X)
    ...     return np.mean((K - Z @ Z.T) ** 2)
    >>> bool(error(50) < 0.8 * error(0))
    True
    """

    n_components: int = 128
    max_iter: int = 1000
    batch_size: int = 500
    learning_rate: float = 0.3
    max_turn: float = 0.1

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        steps = check_count("max_iter", self.max_iter, low=0)
        size = check_count("batch_size", self.batch_size)
        rate = check_positive("learning_rate", self.learning_rate)
        limit = check_positive("max_turn", self.max_turn)
        p = int(self.n_components)
        self.sigma_ = find_sigma(self.sigma, X, rng)
        matrix = draw_frequencies(self.kernel, X.shape[1], p, 1.0, rng).astype(X.dtype)
        projection = DenseProjection(matrix, rng.uniform(0.0, TURN, p).astype(X.dtype))
        # In units of sigma the frequencies are of order 1 whatever the data.
        rows = X / X.dtype.type(self.sigma_)
        norm = np.sqrt(np.mean(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)))
        limit /= max(float(norm), 1.0)
        for t in range(steps):
            batch = rows[draw_batch(rows.shape[0], size, rng)]
            K = KERNELS[self.kernel](batch, sigma=1.0)
            gradient = kernel_error_gradient(projection, batch, K)
            projection.step(gradient, rate * p * p * (1.0 - t / steps), limit)
            if (t + 1) % 100 == 0:
                progress.report("learning the map", t + 1, steps)
        self.n_iter_ = steps
        self.weights_ = projection.matrix / X.dtype.type(self.sigma_)
        self.offset_ = np.mod(projection.offset, X.dtype.type(TURN))
