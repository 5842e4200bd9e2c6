"""What all random feature maps share: fitting, checking, and the cosine in compiled code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.compiled import njit
from tinykernel.hadamard import run_on_rows, useful_threads
from tinykernel.papers.features.kernels import neighbour_distance

_TURN = 2.0 * np.pi


def find_sigma(sigma: object, X: NDArray[Any], rng: np.random.RandomState) -> float:
    """Return the width of the kernel: the number given, or that of the "neighbour" heuristic."""
    if isinstance(sigma, str):
        check_choice("sigma", sigma, ("neighbour",))
        return neighbour_distance(X, random_state=rng) if X.shape[0] > 1 else 1.0
    return check_positive("sigma", sigma)


def label_targets(codes: NDArray[np.int64], n_classes: int, dtype: Any) -> NDArray[Any]:
    """Write classes, 0 to n_classes - 1, as the targets +1 and -1 of the outputs (000 (16), (25)).

    Two classes have one column, where +1 stands for class 1, else each class has one.

    >>> label_targets(np.array([0, 2]), 3, np.float64)
    array([[ 1., -1., -1.],
           [-1., -1.,  1.]])
    """
    if n_classes == 2:
        return (2 * codes - 1).astype(dtype)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1, -1).astype(dtype)


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of the feature maps: subclasses draw parameters and map checked rows.

    A subclass defines `_draw` and `_map`. Rows are float32 or float64; features keep that dtype
    unless ``_dtype_out`` says otherwise.
    """

    _dtype_out: type | None = None

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """Draw the random parameters for the number of features of `X`.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
        y : array-like, shape (n,), optional
            Ignored unless the map is supervised.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is out of its range.
        """
        rows = np.asarray(validate_data(self, X, dtype=(np.float64, np.float32)))
        n_components = check_count("n_components", self.n_components)
        self._draw(rows, y, check_random_state(self.random_state))
        self._n_features_out = n_components
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Compute the features.

        Parameters
        ----------
        X : array-like, shape (n, n_features)

        Returns
        -------
        ndarray, shape (n, n_components)
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        return self._map(np.asarray(rows))

    @abstractmethod
    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        """Set the fitted attributes from checked rows."""

    @abstractmethod
    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the features of checked rows."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kept = ["float64", "float32"] if self._dtype_out is None else []
        tags.transformer_tags.preserves_dtype = kept
        return tags


# --- the cosine --------------------------------------------------------------------------------
# The C library's cosine is called element by element, about 10 ns each. This one is a polynomial
# that LLVM turns into vector code: about 0.3 ns in float32.

_SINE = tuple((-1.0) ** k / float(np.prod(np.arange(1.0, 2 * k + 2))) for k in range(12))


def cosine_of_turns(turns: Any) -> Any:
    """Compute ``cos(2 pi turns)``; the compiled form, for scalars, keeps float32.

    With the distance t to the nearest whole turn, ``cos(2 pi t) = sin(2 pi (1/4 - |t|))``, whose
    argument lies in [-pi/2, pi/2], where the Taylor series ends below rounding after 6 terms
    (float32: error at most 2e-7) or 12 (float64: 2e-15 for angles that are exact).
    """
    return np.cos(_TURN * np.asarray(turns))


@overload(cosine_of_turns)
def _compile_cosine_of_turns(turns):  # type: ignore[no-untyped-def]
    as_type = np.float32 if turns == types.float32 else np.float64
    half, quarter, turn = as_type(0.5), as_type(0.25), as_type(_TURN)
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 = (as_type(c) for c in _SINE)

    def short(turns):  # type: ignore[no-untyped-def]
        a = turn * (quarter - abs(turns - np.floor(turns + half)))
        s = a * a
        return a * (c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5)))))

    def long(turns):  # type: ignore[no-untyped-def]
        a = turn * (quarter - abs(turns - np.floor(turns + half)))
        s = a * a
        tail = c6 + s * (c7 + s * (c8 + s * (c9 + s * (c10 + s * c11))))
        return a * (c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * (c5 + s * tail))))))

    return short if as_type is np.float32 else long


@njit(nogil=True)
def _add_cosine_rows(begin, end, angles, offset, amplitude):  # type: ignore[no-untyped-def]
    """Replace angles in turns by ``amplitude * cos(2 pi (angles + offset))``."""
    for i in range(begin, end):
        for j in range(angles.shape[1]):
            angles[i, j] = amplitude * cosine_of_turns(angles[i, j] + offset[j])


def add_cosine(angles: NDArray[Any], offset: NDArray[Any]) -> NDArray[Any]:
    """Turn projections into components, in place: ``sqrt(2 / p) cos(2 pi (angles + offset))``.

    Angles, C-contiguous and of shape (n, p), and offsets are in turns.
    """
    as_type = angles.dtype.type
    amplitude = as_type(np.sqrt(2.0 / angles.shape[1]))
    threads = useful_threads(angles.size * 8)
    run_on_rows(
        _add_cosine_rows, angles.shape[0], threads, angles, offset.astype(as_type), amplitude
    )
    return angles
