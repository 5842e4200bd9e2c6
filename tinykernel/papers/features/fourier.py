"""Dense random Fourier features of three kernels, and their signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.checks import check_choice
from tinykernel.papers.features.base import TURN, FeatureMap, cosines

_VALUES_AT_ONCE = 1 << 22


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFourierFeatures(FeatureMap):
    """Random Fourier features: ``z(x) = sqrt(2 / p) cos(W' x + b)``.

    With the columns of W drawn from the Fourier transform of the kernel and b from Uniform(0, 2 pi)
    the product ``z(x) . z(y)`` is an unbiased estimate of ``k(x - y)`` (Rahimi & Recht 2007;
    Zhang 2022 (2)-(4); Qi 2020). One matrix product through BLAS: O(p d) time and memory;
    `Fastfood` does the Gaussian kernel in O(p log d).

    Parameters
    ----------
    n_components : int
        p, the number of features.
    sigma : float
        Width of the kernel; `neighbour_distance` of the training rows is a start.
    kernel : {"gaussian", "laplacian", "cauchy"}
        ``exp(-||x - y||^2 / (2 sigma^2))``, ``exp(-||x - y||_1 / sigma)``, or
        ``prod_i 1 / (1 + ((x_i - y_i) / sigma)^2)`` (Rahimi & Recht 2007, figure 1).
    random_state : int, RandomState or None

    Attributes
    ----------
    weights_ : ndarray of float64, shape (n_features, n_components)
        W, radians per unit.
    offset_ : ndarray of float64, shape (n_components,)
        b, radians in [0, 2 pi).

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.5]])
    >>> features = RandomFourierFeatures(n_components=20000, kernel="laplacian", random_state=0)
    >>> Z = features.fit_transform(X)
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-1.5)) < 0.03)
    True
    """

    kernel: str = "gaussian"

    def _draw(self, n_features: int, rng: np.random.RandomState) -> None:
        check_choice("kernel", self.kernel, ("gaussian", "laplacian", "cauchy"))
        shape = (n_features, int(self.n_components))
        if self.kernel == "gaussian":
            frequencies = rng.standard_normal(shape)
        elif self.kernel == "laplacian":
            frequencies = rng.standard_cauchy(shape)
        else:
            frequencies = rng.laplace(size=shape)
        self.weights_ = frequencies / self.sigma
        self.offset_: NDArray[np.float64] = rng.uniform(0.0, TURN, shape[1])

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        return cosines(X @ (self.weights_ / TURN).astype(X.dtype), self.offset_)


@dataclass(kw_only=True, eq=False, repr=False)
class BCSIK(RandomFourierFeatures):
    """Binary codes for shift-invariant kernels: ``z(x) = sign(cos(W' x + b) + t)``.

    W from the spectral density of the kernel, ``b ~ Uniform(0, 2 pi)``, ``t ~ Uniform(-1, 1)``
    (Raginsky & Lazebnik 2009; Lei & Lan 2021 (1); Zhang 2022 (6)). The expected share of differing
    features of two rows is a function of their kernel value, within the bounds of Lemma 1.
    `RMBCSIK` does the same in O(p log d).

    Parameters
    ----------
    n_components, sigma, kernel, random_state
        As in `RandomFourierFeatures`.

    Attributes
    ----------
    weights_, offset_
        As in `RandomFourierFeatures`.
    threshold_ : ndarray of float64, shape (n_components,)
        t.

    Examples
    --------
    >>> BCSIK(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).dtype
    dtype('int8')
    """

    _dtype_out: ClassVar[type | None] = np.int8

    def _draw(self, n_features: int, rng: np.random.RandomState) -> None:
        super()._draw(n_features, rng)
        self.threshold_: NDArray[np.float64] = rng.uniform(-1.0, 1.0, self.offset_.size)

    def _map(self, X: NDArray[Any]) -> NDArray[np.int8]:
        step = max(1, _VALUES_AT_ONCE // self.offset_.size)
        level = np.sqrt(2.0 / self.offset_.size) * self.threshold_
        parts = [
            super(BCSIK, self)._map(X[first : first + step]) > -level
            for first in range(0, len(X), step)
        ]
        return 2 * np.concatenate(parts).view(np.int8) - 1
