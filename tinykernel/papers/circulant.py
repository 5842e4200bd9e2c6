"""Circulant maps: a projection by circular convolutions, through the FFT (004, section 8)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

from tinykernel.papers.fourier import CosineMap


def circulant_projection(X: NDArray[Any], vectors: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the first k entries of ``[circ(r_1) x; circ(r_2) x; ...]`` (004 (12)-(15)), by FFT."""
    spectra = rfft(X)[:, None] * rfft(vectors.astype(X.dtype))
    return np.asarray(irfft(spectra, n=X.shape[1]).reshape(len(X), -1)[:, :k])


def circulant_gradient(X: NDArray[Any], slopes: NDArray[Any], n_vectors: int) -> NDArray[Any]:
    """Return the gradient for the vectors of `circulant_projection`, given that for its outputs."""
    # 004 (17): the circular correlation ``sum_rows s_1(rev(x)) * g``, with the g of one circulant
    # matrix and 0 for outputs that were cut off. The sum over rows comes before the inverse FFT.
    n, d = X.shape
    padded = np.zeros((n, n_vectors * d), dtype=X.dtype)
    padded[:, : slopes.shape[1]] = slopes
    spectra = rfft(padded.reshape(n, n_vectors, d))
    return np.asarray(irfft(np.einsum("ij,imj->mj", np.conj(rfft(X)), spectra), n=d))


@dataclass(kw_only=True, eq=False, repr=False)
class CirculantFeatures(CosineMap):
    """Random circulant maps: ``Z(x) = sqrt(2 / k) cos(R D x + b)`` (004 (12)-(15), section 8.2).

    R stacks circulant matrices of vectors of N(0, 1 / sigma^2) and is cut to k rows; D holds random
    signs. ``Z(x) . Z(y)`` estimates the Gaussian kernel in O(k log d) time and O(k) memory, and the
    input is not padded. ``CompactMapClassifier(projection="circulant")`` optimises the vectors
    (section 8.3).

    004 (13) has no b. Its Proposition 1 says that ``cos(u) cos(v)`` is a function of u - v, by an
    identity that is none (it is ``(cos(u - v) + cos(u + v)) / 2``): the kernel is shift-invariant,
    and the estimate without bias, only with a uniform b.

    Parameters
    ----------
    n_components, sigma, random_state
        As for `SpectralFeatures`; n_components is k.

    Attributes
    ----------
    sign_, vectors_, offset_ : ndarray, shapes (n_features,), (m, n_features), (n_components,)
        D, the first columns of the circulant matrices in radians per unit, and b in radians.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2, 50)) / 10
    >>> Z = CirculantFeatures(n_components=20000, random_state=0).fit_transform(X)
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-0.5 * np.sum((X[0] - X[1]) ** 2))) < 0.03)
    True
    """

    def _draw(self, X: NDArray[Any], y: Any, rng: np.random.RandomState) -> None:
        d = X.shape[1]
        self.sign_ = rng.choice([-1.0, 1.0], d)
        self.vectors_ = rng.standard_normal((-(-len(self.offset_) // d), d)) / self.sigma

    def _angles(self, X: NDArray[Any]) -> NDArray[Any]:
        flipped = X * self.sign_.astype(X.dtype)
        return circulant_projection(flipped, self.vectors_, len(self.offset_))
