"""Binary codes from dense random projections: for angles, and for kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.papers.features.base import FeatureMap, window_of, window_signs
from tinykernel.papers.features.fourier import DenseMap

_VALUES_AT_ONCE = 1 << 22


@dataclass(kw_only=True, eq=False, repr=False)
class BinaryJohnsonLindenstrauss(FeatureMap):
    """Signs of a random projection: ``z(x) = sign(R x)``, R Gaussian (001, section 1).

    The expected share of differing features of two rows is their angle divided by pi: the codes
    keep angles, not a kernel and not lengths, which is why 001 goes on to `BCSIK`.

    Parameters
    ----------
    n_components : int
        p, the number of features.
    random_state : int, RandomState or None

    Attributes
    ----------
    weights_ : ndarray of float64, shape (n_features, n_components)
        R transposed; standard normal.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> Z = BinaryJohnsonLindenstrauss(n_components=10000, random_state=0).fit_transform(X)
    >>> bool(abs((Z[0] != Z[1]).mean() - 0.5) < 0.02)
    True
    """

    _dtype_out: ClassVar[type | None] = np.int8

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        self.weights_ = rng.standard_normal((X.shape[1], int(self.n_components)))

    def _map(self, X: NDArray[Any]) -> NDArray[np.int8]:
        weights = self.weights_.astype(X.dtype)
        step = max(1, _VALUES_AT_ONCE // weights.shape[1])
        parts = [X[first : first + step] @ weights >= 0 for first in range(0, X.shape[0], step)]
        return 2 * np.concatenate(parts).view(np.int8) - 1


@dataclass(kw_only=True, eq=False, repr=False)
class BCSIK(DenseMap):
    """Binary codes for shift-invariant kernels: ``z(x) = sign(cos(W' x + b) + t)``.

    W from the spectral density of the kernel, ``b ~ Uniform(0, 2 pi)``, ``t ~ Uniform(-1, 1)``
    (Raginsky & Lazebnik 2009; 001 (1), 000 (6)). The share of differing features of two rows lies,
    in expectation, between h1 and h2 of Lemma 1 (`hamming_bounds`) of their kernel value; for the
    Gaussian kernel it is `expected_hamming`. `RMBCSIK` does the same in O(p log d).

    Parameters
    ----------
    n_components : int
        p, the number of features.
    sigma : float or "neighbour"
        Width of the kernel; "neighbour" takes `neighbour_distance` of the training rows.
    kernel : {"gaussian", "laplacian", "cauchy"}
    random_state : int, RandomState or None

    Attributes
    ----------
    sigma_, weights_, offset_
        As in `RandomFourierFeatures`.
    threshold_ : ndarray of float64, shape (n_components,)
        t.

    Examples
    --------
    >>> BCSIK(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).dtype
    dtype('int8')
    """

    _dtype_out: ClassVar[type | None] = np.int8

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        super()._draw(X, y, rng)
        self.threshold_: NDArray[np.float64] = rng.uniform(-1.0, 1.0, self.offset_.size)

    def _map(self, X: NDArray[Any]) -> NDArray[np.int8]:
        step = max(1, _VALUES_AT_ONCE // self.offset_.size)
        start, width = window_of(self.offset_, self.threshold_)
        parts = [
            window_signs(self._turns(X[first : first + step]), start, width)
            for first in range(0, X.shape[0], step)
        ]
        return np.concatenate(parts)
