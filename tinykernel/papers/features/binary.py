"""Binary codes from dense random projections: for angles, and for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.compiled import njit
from tinykernel.hadamard import run_on_rows, useful_threads
from tinykernel.papers.features.base import FeatureMap, find_sigma
from tinykernel.papers.features.fourier import draw_frequencies

_TURN = 2.0 * np.pi
_VALUES_AT_ONCE = 1 << 22


@njit(nogil=True)
def _window_signs(begin, end, turns, start, width, out):  # type: ignore[no-untyped-def]
    """Write +1 where the phase, in turns, lies in the window, else -1."""
    for i in range(begin, end):
        for j in range(turns.shape[1]):
            phase = turns[i, j] + start[j]
            out[i, j] = 2 * np.int8(phase - np.floor(phase) < width[j]) - 1


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

    _dtype_out = np.int8
    weights_: NDArray[np.float64]

    def __init__(
        self,
        *,
        n_components: int = 256,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        self.weights_ = rng.standard_normal((X.shape[1], int(self.n_components)))

    def _map(self, X: NDArray[Any]) -> NDArray[np.int8]:
        weights = self.weights_.astype(X.dtype)
        out = np.empty((X.shape[0], weights.shape[1]), dtype=np.int8)
        step = max(1, _VALUES_AT_ONCE // weights.shape[1])
        for first in range(0, X.shape[0], step):
            part = slice(first, first + step)
            np.copyto(out[part], X[part] @ weights >= 0, casting="unsafe")
        out *= 2
        out -= 1
        return out


class BCSIK(FeatureMap):
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
    sigma_ : float
        The width used.
    weights_ : ndarray of float64, shape (n_features, n_components)
        W, radians per unit.
    offset_ : ndarray of float64, shape (n_components,)
        b, radians in [0, 2 pi).
    threshold_ : ndarray of float64, shape (n_components,)
        t.

    Examples
    --------
    >>> BCSIK(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).dtype
    dtype('int8')
    """

    _dtype_out = np.int8
    sigma_: float
    weights_: NDArray[np.float64]
    offset_: NDArray[np.float64]
    threshold_: NDArray[np.float64]

    def __init__(
        self,
        *,
        n_components: int = 256,
        sigma: float | str = 1.0,
        kernel: str = "gaussian",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.sigma = sigma
        self.kernel = kernel
        self.random_state = random_state

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        p = int(self.n_components)
        self.sigma_ = find_sigma(self.sigma, X, rng)
        self.weights_ = draw_frequencies(self.kernel, X.shape[1], p, self.sigma_, rng)
        self.offset_ = rng.uniform(0.0, _TURN, p)
        self.threshold_ = rng.uniform(-1.0, 1.0, p)

    def _map(self, X: NDArray[Any]) -> NDArray[np.int8]:
        weights = (self.weights_ / _TURN).astype(X.dtype)
        out = np.empty((X.shape[0], weights.shape[1]), dtype=np.int8)
        step = max(1, _VALUES_AT_ONCE // weights.shape[1])
        for first in range(0, X.shape[0], step):
            turns = np.asarray(X[first : first + step] @ weights, order="C")
            out[first : first + step] = window_codes(turns, self.offset_ / _TURN, self.threshold_)
        return out


def window_codes(
    turns: NDArray[Any], offset: NDArray[np.float64], threshold: NDArray[np.float64]
) -> NDArray[np.int8]:
    """Compute ``sign(cos(2 pi (turns + offset)) + threshold)`` without a cosine: int8, +1 or -1.

    With ``h = arccos(-threshold)`` the sign is +1 where ``(angle + h) mod 2 pi < 2 h``.
    """
    half = np.arccos(-threshold) / _TURN
    start = (offset + half).astype(turns.dtype)
    width = (2.0 * half).astype(turns.dtype)
    out = np.empty(turns.shape, dtype=np.int8)
    threads = useful_threads(turns.size * 5)
    run_on_rows(_window_signs, turns.shape[0], threads, turns, start, width, out)
    return out
