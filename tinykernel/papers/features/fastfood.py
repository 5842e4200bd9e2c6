"""Fastfood: random Fourier features by the fast Walsh-Hadamard transform, and their signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.checks import check_choice
from tinykernel.hadamard import fwht, padded_dimension
from tinykernel.model.permutation import Permutation
from tinykernel.papers.features.base import TURN, FeatureMap, cosines

# Features computed at a time.
_VALUES_AT_ONCE = 1 << 22


def _draw_permutation(kind: str, d: int, rng: np.random.RandomState) -> Permutation:
    """Draw P; the multiplier of an orbit is 5 modulo 8, which mixes the low bits best."""
    if kind == "identity":
        return Permutation()
    if kind == "stored":
        return Permutation("stored", table=rng.permutation(d).astype(np.uint16))
    multiplier = 8 * rng.randint(0, d // 8) + 5
    return Permutation(
        "orbit", multiplier=int(multiplier), increment=2 * rng.randint(0, d // 2) + 1
    )


@dataclass(kw_only=True, eq=False, repr=False)
class Fastfood(FeatureMap):
    """Random Fourier features of the Gaussian kernel in O(p log d) time and O(p) memory.

    ``z(x) = sqrt(2 / p) cos(R x + b)``, so that ``z(x) . z(y)`` approximates
    ``exp(-||x - y||^2 / (2 sigma^2))``. R stacks blocks of d rows (Lei & Lan 2021 (3)-(4), after
    Le, Sarlos & Smola 2013)::

        V = S H G P H B / (sigma sqrt(d))

    with the input padded by zeros to d values, d a power of two and at least 32.

    The rows of ``H G P H B`` all have the length ``sqrt(d) ||G||``. S gives them the lengths that
    rows of a Gaussian matrix have: ``S_ii = s_i / ||G||`` with s_i from the chi distribution with d
    degrees of freedom, so that row i has length ``s_i / sigma``. Each row of V is then exactly
    N(0, I / sigma^2) (with Gaussian G), and z . z' is unbiased. (Zhang 2022, below (9) and in its
    code, takes Uniform(0, 1) for S without the division by ||G||: the lengths would then be uniform
    between 0 and ``||G|| / sigma``, half of what they should be on average, and the kernel wider
    than sigma says and not Gaussian.)

    Parameters
    ----------
    n_components : int
        p, the number of features. Any number; the last block is cut.
    sigma : float
        Width of the kernel; `neighbour_distance` of the training rows is a start.
    diagonal : {"gaussian", "sign"}
        Entries of G: normal, or random signs, which need one bit each.
    row_scale : {"chi", "one"}
        "chi" as above; "one" gives every row the root mean square of those lengths,
        ``S_ii = sqrt(d) / ||G||`` (which is S = 1 for sign G), so that the kernel keeps its width:
        its curvature at 0 is the same, and the difference vanishes as d grows.
    permutation : {"orbit", "stored", "identity"}
        P: generated from two numbers, a random table, or none. All blocks share B and P, so that
        ``P H B x`` is computed once.
    random_state : int, RandomState or None

    Attributes
    ----------
    sign_ : ndarray of int8, shape (n_features,)
        Diagonal of B.
    permutation_ : Permutation
    diagonal_ : ndarray of float64, shape (m, d)
        Diagonals of G.
    row_scale_ : ndarray of float64, shape (m, d)
        ``S / (sigma sqrt(d))``, radians per unit.
    offset_ : ndarray of float64, shape (m, d)
        b, radians in [0, 2 pi).

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> Z = Fastfood(n_components=20000, sigma=1.0, random_state=0).fit_transform(X)
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-0.5)) < 0.03)
    True
    """

    diagonal: str = "gaussian"
    row_scale: str = "chi"
    permutation: str = "orbit"

    def _draw(self, n_features: int, rng: np.random.RandomState) -> None:
        check_choice("diagonal", self.diagonal, ("gaussian", "sign"))
        check_choice("row_scale", self.row_scale, ("chi", "one"))
        check_choice("permutation", self.permutation, ("orbit", "stored", "identity"))
        d = padded_dimension(n_features)
        shape = (-(-int(self.n_components) // d), d)
        self.sign_ = (2 * rng.randint(0, 2, n_features) - 1).astype(np.int8)
        self.permutation_ = _draw_permutation(self.permutation, d, rng)
        if self.diagonal == "gaussian":
            self.diagonal_ = rng.standard_normal(shape)
        else:
            self.diagonal_ = np.where(rng.randint(0, 2, shape) == 1, 1.0, -1.0)
        squares = rng.chisquare(d, shape) if self.row_scale == "chi" else np.full(shape, float(d))
        norm = np.sqrt((self.diagonal_**2).sum(axis=1, keepdims=True))
        self.row_scale_ = np.sqrt(squares) / (norm * (self.sigma * np.sqrt(d)))
        self.offset_ = rng.uniform(0.0, TURN, shape)

    def _turns(self, X: NDArray[Any], scaled: type) -> NDArray[Any]:
        """Return the projections ``R x`` in turns (1 is 2 pi), scaled in a dtype."""
        d = self.diagonal_.shape[1]
        mixed = np.zeros((X.shape[0], d), dtype=X.dtype)
        mixed[:, : X.shape[1]] = X * self.sign_
        mixed = np.take(fwht(mixed), self.permutation_.indices(d), axis=1)
        scale = (self.row_scale_ / TURN).astype(scaled)
        out: NDArray[Any] = np.empty((X.shape[0], int(self._n_features_out)), dtype=scaled)
        for block, diagonal in enumerate(self.diagonal_.astype(X.dtype)):
            part = out[:, block * d : (block + 1) * d]
            n = part.shape[1]
            np.multiply(fwht(mixed * diagonal)[:, :n], scale[block, :n], out=part)
        return out

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        turns = self._turns(X, X.dtype.type)
        return cosines(turns, self.offset_.ravel()[: turns.shape[1]])


@dataclass(kw_only=True, eq=False, repr=False)
class RMBCSIK(Fastfood):
    """Reduced-memory binary codes for shift-invariant kernels: the signs of Fastfood features.

    ``z(x) = sign(cos(R x + b) + t)`` with R as in `Fastfood`, ``b ~ Uniform(0, 2 pi)`` and
    ``t ~ Uniform(-1, 1)`` (Lei & Lan 2021 (5)). The share of differing features of two rows is a
    function of their kernel value, within the bounds of Lemma 1.

    Features are computed without a cosine: with ``h = arccos(-t)``, z is +1 exactly where
    ``(R x + b + h) mod 2 pi < 2 h``. The fitted attributes are the fields of
    `tinykernel.model.quantization.machine.KernelMachine` of the same names, and the features are
    those of its method ``features``: projections in float32 whatever the input.

    Parameters
    ----------
    n_components, sigma, diagonal, row_scale, permutation, random_state
        As in `Fastfood`.

    Attributes
    ----------
    sign_, permutation_, diagonal_, row_scale_, offset_
        As in `Fastfood`.
    threshold_ : ndarray of float64, shape (m, d)
        t.
    start_, width_ : ndarray of float64, shape (m, d)
        ``b + h`` and ``2 h``, radians.

    Examples
    --------
    >>> codes = RMBCSIK(n_components=8, random_state=0).fit_transform([[0.0, 1.0], [0.1, 1.0]])
    >>> codes.dtype, codes.shape
    (dtype('int8'), (2, 8))
    """

    _dtype_out: ClassVar[type | None] = np.int8

    def _draw(self, n_features: int, rng: np.random.RandomState) -> None:
        super()._draw(n_features, rng)
        self.threshold_ = rng.uniform(-1.0, 1.0, self.diagonal_.shape)
        half = np.arccos(-self.threshold_)
        self.start_ = self.offset_ + half
        self.width_ = 2.0 * half

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        p = int(self._n_features_out)
        start, width = (values.ravel()[:p] / TURN for values in (self.start_, self.width_))
        rows, step = X.astype(np.float32), max(1, _VALUES_AT_ONCE // p)
        parts = []
        for first in range(0, len(rows), step):
            # Phases in float64, as in `KernelMachine.features`.
            phase = self._turns(rows[first : first + step], np.float64) + start
            parts.append(phase - np.floor(phase) < width)
        return 2 * np.concatenate(parts).view(np.int8) - 1
