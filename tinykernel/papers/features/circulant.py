"""Circulant nonlinear maps: a projection by circular convolution, through the FFT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, rfft

from tinykernel.papers.features.base import TURN, FeatureMap, add_cosine, find_sigma

_ROWS_AT_ONCE = 256


def circulant_projection(
    X: NDArray[Any], vectors: NDArray[Any], n_components: int | None = None
) -> NDArray[Any]:
    """Multiply rows by stacked circulant matrices: ``[circ(r_1); circ(r_2); ...] x``.

    ``circ(r) x`` is the circular convolution of r and x (004 (12)-(14)), computed by the FFT (15);
    the transform of x is computed once for all vectors. O(k log d) for k outputs.

    `vectors`, shape (m, d), are r_1 to r_m, the first columns of the matrices. Of the m d outputs
    the first `n_components` are kept; the result has the dtype of X.

    >>> circulant_projection(np.array([[1.0, 0.0, 0.0]]), np.array([[1.0, 2.0, 3.0]])).round(6)
    array([[1., 2., 3.]])
    """
    n, d = X.shape
    k = vectors.shape[0] * d if n_components is None else n_components
    spectra = rfft(vectors.astype(X.dtype), axis=1)
    out = np.empty((n, k), dtype=X.dtype)
    for first in range(0, n, _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        transformed = rfft(X[rows], axis=1)
        for block, spectrum in enumerate(spectra):
            part = out[rows, block * d : (block + 1) * d]
            part[...] = irfft(transformed * spectrum, n=d, axis=1)[:, : part.shape[1]]
    return out


def circulant_gradient(
    X: NDArray[Any], output_gradient: NDArray[Any], n_vectors: int
) -> NDArray[Any]:
    """Differentiate a loss with respect to the vectors of `circulant_projection`.

    With g the gradient for the outputs of one block, that for its vector is the circular
    correlation ``sum_rows s_1(rev(x)) * g`` (004 (17), where ``g = -w sin(R x)``), summed over the
    rows before the one inverse transform.

    `output_gradient`, shape (n, k), is the derivative by the k outputs; those from k to m d, with m
    = `n_vectors`, count as unused.

    >>> circulant_gradient(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0]]), 1)
    array([[1., 2.]])
    """
    n, d = X.shape
    spectra = np.zeros((n_vectors, d // 2 + 1), dtype=np.complex128)
    for first in range(0, n, _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        reversed_rows = np.conj(rfft(X[rows], axis=1))
        for block in range(n_vectors):
            gradient = output_gradient[rows, block * d : (block + 1) * d].astype(X.dtype)
            spectra[block] += np.einsum("ij,ij->j", reversed_rows, rfft(gradient, n=d, axis=1))
    return np.asarray(irfft(spectra, n=d, axis=1)).astype(X.dtype)


@dataclass(kw_only=True, eq=False, repr=False)
class CirculantFeatures(FeatureMap):
    """Random circulant nonlinear maps: ``z(x) = sqrt(2 / k) cos(R D x + b)`` (004, section 8).

    R stacks circulant matrices of vectors with entries from N(0, 1 / sigma^2), and D holds random
    signs, so that ``z(x) . z(y)`` approximates the Gaussian kernel. For k < d the first k outputs
    of one circulant matrix are taken, for k > d several are stacked, and the last is cut. Unlike
    `Fastfood` the input is not padded: d is the number of features. The offset b, which 004 (13)
    leaves out, makes the estimate unbiased.

    Parameters
    ----------
    n_components : int
        k, the number of features.
    sigma : float or "neighbour"
        Width of the kernel; "neighbour" takes `neighbour_distance` of the training rows.
    random_state : int, RandomState or None

    Attributes
    ----------
    sigma_ : float
        The width used.
    sign_ : ndarray of int8, shape (n_features,)
        Diagonal of D.
    vectors_ : ndarray of float64, shape (m, n_features)
        One a circulant matrix, radians per unit.
    offset_ : ndarray of float64, shape (n_components,)
        b, radians in [0, 2 pi).

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(2, 50)) / 10
    >>> Z = CirculantFeatures(n_components=20000, random_state=0).fit_transform(X)
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-0.5 * np.sum((X[0] - X[1]) ** 2))) < 0.03)
    True
    """

    sigma: float | str = 1.0

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        k, d = int(self.n_components), X.shape[1]
        self.sigma_ = find_sigma(self.sigma, X, rng)
        self.sign_ = (2 * rng.randint(0, 2, size=(d,)) - 1).astype(np.int8)
        self.vectors_ = rng.standard_normal((-(-k // d), d)) / self.sigma_
        self.offset_ = rng.uniform(0.0, TURN, k)

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        turns = circulant_projection(
            X * self.sign_.astype(X.dtype), self.vectors_ / TURN, int(self._n_features_out)
        )
        return add_cosine(turns, self.offset_ / TURN)
