"""Shift-invariant kernels, and a starting point for their width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array, check_random_state

from tinykernel.errors import TinykernelError

_DISTANCES_AT_ONCE = 1 << 22


_Kernel = Callable[..., NDArray[Any]]
_SHARED = """Parameters
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
        If sigma is not positive or the numbers of features differ."""


def _kernel(values: Callable[[NDArray[Any], NDArray[Any], float], NDArray[Any]]) -> _Kernel:
    """Make a kernel of the function that computes it: checks, and what all docstrings share."""

    def kernel(X: ArrayLike, Y: ArrayLike | None = None, sigma: float = 1.0) -> NDArray[Any]:
        if not (sigma > 0 and np.isfinite(sigma)):
            raise TinykernelError(f"sigma must be a positive number, got {sigma}")
        left = check_array(X, dtype=(np.float64, np.float32))
        right = left if Y is None else check_array(Y, dtype=(np.float64, np.float32))
        if left.shape[1] != right.shape[1]:
            counts = f"X has {left.shape[1]} features and Y has {right.shape[1]}"
            raise TinykernelError(f"kernel: {counts}; they must agree")
        return values(left, right, sigma)

    kernel.__name__ = kernel.__qualname__ = values.__name__
    kernel.__doc__ = str(values.__doc__).replace("{shared}", _SHARED)
    return kernel


@_kernel
def gaussian_kernel(X: NDArray[Any], Y: NDArray[Any], sigma: float) -> NDArray[Any]:
    """Compute ``k(x, y) = exp(-||x - y||^2 / (2 sigma^2))``.

    Every Gaussian map of this package approximates this kernel: 001 (below (1)), where the norm is
    printed without its square, and 000 (3), where sigma is 1. scikit-learn's ``gamma`` is
    ``1 / (2 sigma^2)``.

    {shared}

    Examples
    --------
    >>> gaussian_kernel([[0.0], [1.0]], sigma=1.0).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """
    squares = euclidean_distances(X, None if Y is X else Y, squared=True)
    return np.asarray(np.exp(squares * squares.dtype.type(-0.5 / sigma**2)))


@_kernel
def laplacian_kernel(X: NDArray[Any], Y: NDArray[Any], sigma: float) -> NDArray[Any]:
    """Compute ``k(x, y) = exp(-||x - y||_1 / sigma)``.

    Its spectral density is a product of Cauchy densities (Rahimi & Recht 2007, figure 1).

    {shared}

    Examples
    --------
    >>> laplacian_kernel([[0.0, 0.0]], [[1.0, 1.0]], sigma=2.0).round(3)
    array([[0.368]])
    """
    return np.asarray(np.exp(cdist(X, Y, "cityblock") / -sigma).astype(np.result_type(X, Y)))


@_kernel
def cauchy_kernel(X: NDArray[Any], Y: NDArray[Any], sigma: float) -> NDArray[Any]:
    """Compute ``k(x, y) = prod_i 1 / (1 + ((x_i - y_i) / sigma)^2)``.

    Its spectral density is a product of Laplace densities (Rahimi & Recht 2007, figure 1, where the
    factor that makes ``k(x, x) = 1`` is missing).

    {shared}

    Examples
    --------
    >>> cauchy_kernel([[0.0, 0.0]], [[1.0, 1.0]], sigma=1.0)
    array([[0.25]])
    """
    kernel = np.ones((X.shape[0], Y.shape[0]), dtype=np.result_type(X, Y))
    for i in range(X.shape[1]):
        kernel /= 1 + ((X[:, i : i + 1] - Y[:, i]) / sigma) ** 2
    return kernel


@_kernel
def exponential_kernel(X: NDArray[Any], Y: NDArray[Any], sigma: float) -> NDArray[Any]:
    """Compute ``exp(-||x - y||_2 / sigma)``, which 003 calls the Laplacian kernel.

    It is the Matern kernel of order 1/2, whose components `Fastfood` has as "matern12"; the
    `laplacian_kernel` of 002 and of random Fourier features takes the 1-norm.

    {shared}

    Examples
    --------
    >>> exponential_kernel([[0.0, 0.0]], [[3.0, 4.0]], sigma=5.0).round(3)
    array([[0.368]])
    """
    return np.asarray(np.exp(cdist(X, Y) / -sigma).astype(np.result_type(X, Y)))


#: Functions of two sets of rows and sigma, by the name that estimators take.
KERNELS = {
    "gaussian": gaussian_kernel,
    "laplacian": laplacian_kernel,
    "exponential": exponential_kernel,
    "cauchy": cauchy_kernel,
}


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
