"""Fastfood: random features by the fast Walsh-Hadamard transform (000 (9)-(14); 001 (3)-(4))."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.checks import check_choice
from tinykernel.hadamard import fwht
from tinykernel.papers.fourier import CosineMap


@dataclass(kw_only=True, eq=False, repr=False)
class Fastfood(CosineMap):
    """Random features of the Gaussian kernel in O(p log d) time and O(p) memory.

    ``Z(x) = sqrt(2 / p) cos(R x + b)``, where R stacks blocks V of d rows (001 (3)-(4), 000
    (9)-(14), after Le, Sarlos & Smola 2013); x is padded by zeros to d values, a power of two::

        V = S H G P H B / (sigma sqrt(d))

    B holds random signs, P permutes, and G is standard normal, so that all rows of ``H G P H B``
    have the length ``sqrt(d) ||G||``. ``S_ii = s_i / ||G||``, with s_i of the chi distribution with
    d degrees of freedom, gives them those of a Gaussian matrix: each row of V is exactly
    N(0, I / sigma^2).

    001 calls S "a random scaling matrix" only, and (4) has one transpose too many. 000 takes
    Uniform(0, 1) for S, below (9) and in its code: rows are then half as long, and the kernel is
    neither Gaussian nor of width sigma. 000 (10) prints p(-1) twice, and line 21 of its Algorithm 1
    leaves out b and the cosine.

    `PaperClassifier` has these blocks in whole numbers, with shared B and P, signs in G, and S = 1.

    Parameters
    ----------
    n_components, sigma, random_state
        As for `SpectralFeatures`; the last block is cut.
    shared : bool
        Whether all blocks have one B and one P, so that ``P H B x`` is computed once.

    Attributes
    ----------
    sign_, permutation_ : ndarray, shape (n_blocks, d), or (1, d) where shared
        B, and P as the positions that ``P u = u[permutation_]`` takes.
    diagonal_, scale_ : ndarray, shape (n_blocks, d)
        G, and ``S / (sigma sqrt(d))``.
    offset_ : ndarray, shape (n_components,)

    Examples
    --------
    >>> features = Fastfood(n_components=20000, random_state=0)
    >>> Z = features.fit_transform([[0.0, 0.0], [1.0, 0.0]])
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-0.5)) < 0.03)
    True
    """

    shared: bool = False

    def _draw(self, X: NDArray[Any], y: Any, rng: np.random.RandomState) -> None:
        check_choice("shared", self.shared, (True, False))
        d = 1 << (X.shape[1] - 1).bit_length()
        shape = (-(-len(self.offset_) // d), d)
        mixers = range(1 if self.shared else shape[0])
        self.sign_ = np.stack([rng.choice([-1.0, 1.0], d) for _ in mixers])
        self.permutation_ = np.stack([rng.permutation(d) for _ in mixers])
        self.diagonal_ = rng.standard_normal(shape)
        lengths = np.sqrt(rng.chisquare(d, shape))
        norm = np.linalg.norm(self.diagonal_, axis=1, keepdims=True)
        self.scale_ = lengths / (norm * self.sigma * np.sqrt(d))

    def _angles(self, X: NDArray[Any]) -> NDArray[Any]:
        n, d = len(X), self.sign_.shape[1]
        blocks: list[NDArray[Any]] = []
        for k, (diagonal, scale) in enumerate(zip(self.diagonal_, self.scale_, strict=True)):
            if k < len(self.sign_):
                padded = np.zeros((n, d), dtype=X.dtype)
                np.multiply(
                    X, self.sign_[k, : X.shape[1]].astype(X.dtype), out=padded[:, : X.shape[1]]
                )
                mixed = fwht(padded)[:, self.permutation_[k]]
            blocks.append(fwht(mixed * diagonal.astype(X.dtype)) * scale.astype(X.dtype))
        return np.hstack(blocks)[:, : len(self.offset_)]
