"""Shift-invariant kernels, and a starting point for their width."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array, check_random_state

from tinykernel.errors import TinykernelError

_DISTANCES_AT_ONCE = 1 << 22


def _pair(X: ArrayLike, Y: ArrayLike | None, sigma: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Check two sets of rows and the width."""
    if not (sigma > 0 and np.isfinite(sigma)):
        raise TinykernelError(f"sigma must be a positive number, got {sigma}")
    left = check_array(X, dtype=(np.float64, np.float32))
    right = left if Y is None else check_array(Y, dtype=(np.float64, np.float32))
    if left.shape[1] != right.shape[1]:
        raise TinykernelError(
            f"kernel: X has {left.shape[1]} features and Y has {right.shape[1]}; they must agree"
        )
    return left, right


def gaussian_kernel(X: ArrayLike, Y: ArrayLike | None = None, sigma: float = 1.0) -> NDArray[Any]:
    """Compute ``k(x, y) = exp(-||x - y||^2 / (2 sigma^2))``.

    Every Gaussian map of this package approximates this kernel: 001 (below (1)), where the norm is
    printed without its square, and 000 (3), where sigma is 1. scikit-learn's ``gamma`` is
    ``1 / (2 sigma^2)``.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
    Y : array-like, shape (m, n_features), optional
        `X` when not given.
    sigma : float
        Width, greater than 0, in the units of the features.

    Returns
    -------
    ndarray of the dtype of the inputs, shape (n, m)

    Raises
    ------
    TinykernelError
        If sigma is not positive or the numbers of features differ.

    Examples
    --------
    >>> gaussian_kernel([[0.0], [1.0]], sigma=1.0).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """
    left, right = _pair(X, Y, sigma)
    squares = euclidean_distances(left, None if right is left else right, squared=True)
    return np.asarray(np.exp(squares * squares.dtype.type(-0.5 / sigma**2)))


def laplacian_kernel(X: ArrayLike, Y: ArrayLike | None = None, sigma: float = 1.0) -> NDArray[Any]:
    """Compute ``k(x, y) = exp(-||x - y||_1 / sigma)``.

    Its spectral density is a product of Cauchy densities (Rahimi & Recht 2007, figure 1).

    Parameters
    ----------
    X : array-like, shape (n, n_features)
    Y : array-like, shape (m, n_features), optional
        `X` when not given.
    sigma : float
        Width, greater than 0, in the units of the features.

    Returns
    -------
    ndarray of the dtype of the inputs, shape (n, m)

    Raises
    ------
    TinykernelError
        If sigma is not positive or the numbers of features differ.

    Examples
    --------
    >>> laplacian_kernel([[0.0, 0.0]], [[1.0, 1.0]], sigma=2.0).round(3)
    array([[0.368]])
    """
    left, right = _pair(X, Y, sigma)
    distances = cdist(left, right, "cityblock")
    return np.asarray(np.exp(distances / -sigma).astype(np.result_type(left, right)))


def cauchy_kernel(X: ArrayLike, Y: ArrayLike | None = None, sigma: float = 1.0) -> NDArray[Any]:
    """Compute ``k(x, y) = prod_i 1 / (1 + ((x_i - y_i) / sigma)^2)``.

    Its spectral density is a product of Laplace densities (Rahimi & Recht 2007, figure 1, where the
    factor that makes ``k(x, x) = 1`` is missing).

    Parameters
    ----------
    X : array-like, shape (n, n_features)
    Y : array-like, shape (m, n_features), optional
        `X` when not given.
    sigma : float
        Width, greater than 0, in the units of the features.

    Returns
    -------
    ndarray of the dtype of the inputs, shape (n, m)

    Raises
    ------
    TinykernelError
        If sigma is not positive or the numbers of features differ.

    Examples
    --------
    >>> cauchy_kernel([[0.0, 0.0]], [[1.0, 1.0]], sigma=1.0)
    array([[0.25]])
    """
    left, right = _pair(X, Y, sigma)
    kernel = np.ones((left.shape[0], right.shape[0]), dtype=np.result_type(left, right))
    for i in range(left.shape[1]):
        kernel /= 1 + ((left[:, i : i + 1] - right[:, i]) / sigma) ** 2
    return kernel


def exponential_kernel(
    X: ArrayLike, Y: ArrayLike | None = None, sigma: float = 1.0
) -> NDArray[Any]:
    """Compute ``exp(-||x - y||_2 / sigma)``, which 003 calls the Laplacian kernel.

    It is the Matern kernel of order 1/2, whose components `Fastfood` has as "matern12"; the
    `laplacian_kernel` of 002 and of random Fourier features takes the 1-norm.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
    Y : array-like, shape (m, n_features), optional
        `X` when not given.
    sigma : float
        Width, greater than 0, in the units of the inputs.

    Returns
    -------
    ndarray of the dtype of the inputs, shape (n, m)

    Raises
    ------
    TinykernelError
        If sigma is not positive or the numbers of inputs differ.

    Examples
    --------
    >>> exponential_kernel([[0.0, 0.0]], [[3.0, 4.0]], sigma=5.0).round(3)
    array([[0.368]])
    """
    left, right = _pair(X, Y, sigma)
    distances = cdist(left, right)
    return np.asarray(np.exp(distances / -sigma).astype(np.result_type(left, right)))


#: Functions of two sets of rows and sigma, by the name that estimators take.
KERNELS = {
    "gaussian": gaussian_kernel,
    "laplacian": laplacian_kernel,
    "exponential": exponential_kernel,
    "cauchy": cauchy_kernel,
}


def hamming_bounds(kernel: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bound the expected share of differing binary features (001 Lemma 1).

    ``h1(u) = 4/pi^2 (1 - u)`` and ``h2(u) = min(sqrt(1 - u) / 2, 4/pi^2 (1 - 2u/3))``, as in
    Raginsky & Lazebnik (2009) and 001. The first part of h2 is Jensen's inequality: two features
    differ with probability ``E|cos a - cos b| / 2 <= sqrt(E (cos a - cos b)^2) / 2``, and that mean
    is ``1/2 + 1/2 - u``. 000 (7) prints ``sqrt(1 - u^2)``: true too, being larger, but not tight.

    Parameters
    ----------
    kernel : array-like
        u, kernel values in [0, 1].

    Returns
    -------
    lower, upper : ndarray of float64
        Of the shape of `kernel`.

    Examples
    --------
    >>> lower, upper = hamming_bounds([1.0, 0.0])
    >>> lower.round(4), upper.round(4)
    (array([0.    , 0.4053]), array([0.    , 0.4053]))
    """
    u = np.asarray(kernel, dtype=np.float64)
    unrelated = 4 / np.pi**2
    upper = np.minimum(0.5 * np.sqrt(np.maximum(1 - u, 0)), unrelated * (1 - 2 * u / 3))
    return unrelated * (1 - u), upper


def expected_hamming(kernel: ArrayLike) -> NDArray[np.float64]:
    """Return the expected share of differing binary features for the Gaussian kernel.

    ``8/pi^2 sum_{m >= 1} (1 - k(m x, m y)) / (4 m^2 - 1)`` (Raginsky & Lazebnik 2009, lemma 2.3)
    with ``k(m x, m y) = k(x, y)^(m^2)``, and ``sum 1 / (4 m^2 - 1) = 1/2``.

    Parameters
    ----------
    kernel : array-like
        Values of the Gaussian kernel in [0, 1].

    Returns
    -------
    ndarray of float64
        Of the shape of `kernel`; in [0, 4/pi^2], accurate to 1e-4.

    Examples
    --------
    >>> expected_hamming([0.0, 0.5]).round(4)
    array([0.4053, 0.2668])
    """
    u = np.asarray(kernel, dtype=np.float64)
    total = np.full(u.shape, 0.5)
    for square in np.arange(1.0, 2001.0) ** 2:
        total -= u**square / (4 * square - 1)
    return np.asarray(8 / np.pi**2 * total)


def neighbour_distance(
    X: ArrayLike,
    k: int = 50,
    n_rows: int = 1000,
    random_state: int | np.random.RandomState | None = None,
) -> float:
    """Return the mean distance from a row to its k-th nearest other row: a starting sigma.

    The heuristic of Yu et al. (004, section 7). The distances run from a random sample of rows to
    all rows, so that the estimate does not depend on the size of the sample.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        At least two rows.
    k : int
        Which neighbour; the farthest one when there are fewer.
    n_rows : int
        Size of the sample.
    random_state : int, RandomState or None
        Chooses the sample.

    Returns
    -------
    float
        In the units of the features; 1.0 when the distances are 0, as for identical rows.

    Raises
    ------
    TinykernelError
        If `k` or `n_rows` is less than 1, or there are fewer than two rows.

    Examples
    --------
    >>> neighbour_distance([[0.0], [1.0], [3.0]], k=1)
    1.3333333333333333
    """
    if k < 1 or n_rows < 1:
        raise TinykernelError(f"neighbour_distance: k and n_rows start at 1, got {k} and {n_rows}")
    rows = check_array(X, dtype=(np.float64, np.float32))
    n = rows.shape[0]
    if n < 2:
        raise TinykernelError("neighbour_distance: at least two rows are needed")
    rng = check_random_state(random_state)
    sample = np.sort(rng.permutation(n)[:n_rows])
    k = min(k, n - 1)
    # Far from the origin the differences of large squares below would be rounding errors.
    rows = rows - rows.mean(axis=0)
    norms = np.einsum("ij,ij->i", rows, rows)
    total = 0.0
    step = max(1, _DISTANCES_AT_ONCE // n)
    for first in range(0, sample.size, step):
        chosen = sample[first : first + step]
        squares = norms[chosen, None] + norms - 2 * (rows[chosen] @ rows.T)
        # The row itself is not its neighbour, whatever rounding makes of its distance to itself.
        squares[np.arange(chosen.size), chosen] = np.inf
        nearest = np.partition(squares, k - 1, axis=1)[:, k - 1]
        total += float(np.sqrt(np.maximum(nearest, 0)).sum(dtype=np.float64))
    return total / sample.size or 1.0
