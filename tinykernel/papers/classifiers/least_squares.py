"""Least squares as a classifier, in closed form: linear, with a kernel, with random features (003).

All three minimise ``sum_i ||f(x_i) - y_i||^2 + lambda ||f||^2`` with labels +1 and -1, one output
for two classes and else one a class (one-hot).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tinykernel.checks import check_choice, check_positive
from tinykernel.errors import TinykernelError
from tinykernel.papers.classifiers.one_vs_rest import OneVersusRest
from tinykernel.papers.classifiers.pegasos import with_constant
from tinykernel.papers.features.base import find_sigma, label_targets
from tinykernel.papers.features.fourier import RandomFourierFeatures
from tinykernel.papers.features.kernels import KERNELS

_ROWS_AT_ONCE = 4096


def _solve(matrix: NDArray[Any], right: NDArray[Any], regularization: float) -> NDArray[Any]:
    """Solve ``(matrix + lambda I) a = right`` by Cholesky factors; overwrites `matrix`."""
    matrix[np.diag_indices_from(matrix)] += matrix.dtype.type(regularization)
    try:
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise TinykernelError(
            f"least squares: the equations are singular with regularization={regularization}; "
            "use a larger one, or float64 rows"
        ) from None
    return np.asarray(cho_solve(factor, right, check_finite=False))


def _weights(
    features: Callable[[NDArray[Any]], NDArray[Any]],
    X: NDArray[Any],
    Y: NDArray[Any],
    regularization: float,
) -> NDArray[Any]:
    """Solve ``(Z' Z + lambda I) W = Z' Y`` of features, added up in float64, part by part."""
    square = right = np.zeros(())
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        Z = features(X[part]).astype(np.float64)
        square, right = square + Z.T @ Z, right + Z.T @ Y[part]
    return _solve(square, right, regularization).astype(X.dtype)


@dataclass(kw_only=True, eq=False, repr=False)
class LeastSquaresClassifier(OneVersusRest):
    """Linear least squares on one-hot labels (003): ``W = (X' X + lambda I)^-1 X' Y``.

    Rows are augmented by a 1, whose weight is the intercept; like 003 this penalises it too. O(n
    d^2 + d^3) time; the d by d matrix is always computed in float64.

    Parameters
    ----------
    regularization : float
        lambda, greater than 0.

    Attributes
    ----------
    classes_ : ndarray
        Labels in ascending order.
    coef_ : ndarray, shape (n_outputs, n_features)
        One output for two classes. (003 uses two, of which one is minus the other.)
    intercept_ : ndarray, shape (n_outputs,)
    n_features_in_ : int

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> LeastSquaresClassifier().fit(X, [0, 0, 1, 1]).predict([[0.5], [3.5]])
    array([0, 1])
    """

    regularization: float = 1e-3

    def _fit(self, X: NDArray[Any], codes: NDArray[np.int64], rng: np.random.RandomState) -> None:
        penalty = check_positive("regularization", self.regularization)
        Y = label_targets(codes, self.classes_.size, np.float64)
        self._keep(_weights(with_constant, X, Y, penalty))


@dataclass(kw_only=True, eq=False, repr=False)
class KernelLeastSquaresClassifier(OneVersusRest):
    """Kernel least squares (003): ``alpha = (K + lambda I)^-1 y``.

    The output is ``f(x) = sum_j alpha_j k(x_j, x)``. Also called kernel ridge regression, here on
    the labels. O(n^3) time and n^2 numbers of memory: for up to some 20,000 rows; beyond that,
    `FourierLeastSquaresClassifier`.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "exponential", "cauchy"}
        The Laplacian kernel of 003 is "exponential" here (see `exponential_kernel`).
    sigma : float or "neighbour"
        Width of the kernel; "neighbour" takes `neighbour_distance` of the training rows. The code
        of 003 divides the squared distance by 2 sigma, not 2 sigma^2: its 10^4 is 100 here.
    regularization : float
        lambda, greater than 0.
    random_state : int, RandomState or None
        Used only for "neighbour".

    Attributes
    ----------
    classes_ : ndarray
        Labels in ascending order.
    sigma_ : float
        The width used.
    rows_ : ndarray, shape (n, n_features)
        The training rows.
    dual_coef_ : ndarray, shape (n, n_outputs)
        alpha.
    n_features_in_ : int

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = KernelLeastSquaresClassifier(sigma=0.5).fit(X, [0, 1, 1, 0])
    >>> model.predict([[0.1], [1.4]])
    array([0, 1])
    """

    kernel: str = "gaussian"
    sigma: float | str = "neighbour"
    regularization: float = 1e-4
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X: NDArray[Any], codes: NDArray[np.int64], rng: np.random.RandomState) -> None:
        check_choice("kernel", self.kernel, tuple(KERNELS))
        penalty = check_positive("regularization", self.regularization)
        self.sigma_ = find_sigma(self.sigma, X, rng)
        # Rounding errors of a float32 kernel are of the size of the smaller lambdas.
        K = KERNELS[self.kernel](X.astype(np.float64), sigma=self.sigma_)
        Y = label_targets(codes, self.classes_.size, np.float64)
        self.rows_ = X.copy()
        self.dual_coef_ = _solve(K, Y, penalty).astype(X.dtype)

    def _decide(self, X: NDArray[Any]) -> NDArray[Any]:
        K = KERNELS[self.kernel](X, self.rows_.astype(X.dtype), sigma=self.sigma_)
        return np.asarray(K @ self.dual_coef_.astype(X.dtype))

    def _width(self) -> int:
        return int(self.rows_.shape[0])


@dataclass(kw_only=True, eq=False, repr=False)
class FourierLeastSquaresClassifier(OneVersusRest):
    """Least squares on a random feature map (003): ``(Z' Z + lambda I) w = Z' y``.

    ``z(x) = sqrt(2 / p) cos(W' x + b)``. As p grows this becomes `KernelLeastSquaresClassifier`, in
    O(n p^2) time. (003 leaves out the factor sqrt(2 / p): its penalty is p / 2 times ours.)

    Parameters
    ----------
    n_components : int
        p, the number of features.
    sigma : float or "neighbour"
        Width of the kernel; 003's gamma is 1 / sigma.
    kernel : {"gaussian", "laplacian", "cauchy"}
        As in `RandomFourierFeatures`.
    regularization : float
        lambda, greater than 0.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : ndarray
        Labels in ascending order.
    features_ : RandomFourierFeatures
        The fitted map.
    coef_ : ndarray, shape (n_outputs, p)
        w; there is no intercept, as in 003.
    n_features_in_ : int

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> bool(FourierLeastSquaresClassifier(sigma=1.0, random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    n_components: int = 256
    sigma: float | str = "neighbour"
    kernel: str = "gaussian"
    regularization: float = 1e-4
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X: NDArray[Any], codes: NDArray[np.int64], rng: np.random.RandomState) -> None:
        penalty = check_positive("regularization", self.regularization)
        self.features_ = RandomFourierFeatures(
            n_components=self.n_components,
            sigma=self.sigma,
            kernel=self.kernel,
            random_state=rng.randint(2**31 - 1),
        ).fit(X)
        Y = label_targets(codes, self.classes_.size, np.float64)
        W = _weights(self.features_.transform, X, Y, penalty)
        self._keep(W, with_intercept=False)

    def _features(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.features_.transform(X))
