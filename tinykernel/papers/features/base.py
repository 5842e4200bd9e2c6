"""What all random feature maps share: fitting, checking, the cosine and its sign in turns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

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

TURN = 2.0 * np.pi


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


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of the feature maps: subclasses draw parameters and map checked rows.

    A subclass lists its parameters as fields, and defines `_draw` and `_map`. Rows are float32 or
    float64; features keep that dtype unless ``_dtype_out`` says otherwise.
    """

    n_components: int = 256
    random_state: int | np.random.RandomState | None = None
    _dtype_out: ClassVar[type | None] = None

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """Draw the random parameters for the number of features of `X`.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
        y : array-like, shape (n,), optional
            Class labels, of a map that is chosen by them; others ignore it.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is out of its range, or labels that count are of one class.
        """
        rows = np.asarray(validate_data(self, X, dtype=(np.float64, np.float32)))
        self._n_features_out = check_count("n_components", self.n_components)
        self._draw(rows, y, check_random_state(self.random_state))
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
    return np.cos(TURN * np.asarray(turns))


@overload(cosine_of_turns)
def _compile_cosine_of_turns(turns):  # type: ignore[no-untyped-def]
    as_type, n = (np.float32, 6) if turns == types.float32 else (np.float64, 12)
    half, quarter, turn = as_type(0.5), as_type(0.25), as_type(TURN)
    series = tuple(as_type(c) for c in reversed(_SINE[:n]))

    def cosine(turns):  # type: ignore[no-untyped-def]
        a = turn * (quarter - abs(turns - np.floor(turns + half)))
        s = a * a
        value = series[0]
        for k in range(1, n):
            value = series[k] + s * value
        return a * value

    return cosine


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


@njit(nogil=True)
def _window_rows(begin, end, turns, start, width, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        for j in range(turns.shape[1]):
            phase = turns[i, j] + start[j]
            out[i, j] = 2 * np.int8(phase - np.floor(phase) < width[j]) - 1


def window_of(
    offset: NDArray[np.float64], threshold: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return start and width, in turns, of the window of ``sign(cos(angle + offset) + t)``."""
    half = np.arccos(-threshold) / TURN
    return offset / TURN + half, 2.0 * half


def window_signs(
    turns: NDArray[Any], start: NDArray[np.float64], width: NDArray[np.float64]
) -> NDArray[np.int8]:
    """Write +1 where the phase ``turns + start`` lies in the window, modulo 1, else -1.

    With `window_of` b and t this is ``sign(cos(2 pi turns + b) + t)`` without a cosine: with ``h =
    arccos(-t)`` the sign is +1 where ``(angle + b + h) mod 2 pi < 2 h``.
    """
    as_type = turns.dtype.type
    out = np.empty(turns.shape, dtype=np.int8)
    threads = useful_threads(turns.size * 5)
    window = start.astype(as_type), width.astype(as_type)
    run_on_rows(_window_rows, turns.shape[0], threads, turns, *window, out)
    return out
