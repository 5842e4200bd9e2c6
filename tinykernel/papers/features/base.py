"""Base class of the random feature maps, and a starting value of the kernel width."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tinykernel.checks import check_count, check_positive
from tinykernel.errors import TinykernelError

TURN = 2.0 * np.pi
_FLOATS = (np.float64, np.float32)
_DISTANCES_AT_ONCE = 1 << 22


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of the feature maps: a subclass has its parameters as fields, `_draw` and `_map`.

    Rows are float32 or float64; features keep that dtype unless ``_dtype_out`` says otherwise.
    """

    n_components: int = 256
    sigma: float = 1.0
    random_state: int | np.random.RandomState | None = None
    _dtype_out: ClassVar[type | None] = None

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """Draw the random parameters for the number of features of `X`.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
        y : array-like, shape (n,), optional
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is out of its range.
        """
        rows = np.asarray(validate_data(self, X, dtype=_FLOATS))
        self._n_features_out = check_count("n_components", self.n_components)
        check_positive("sigma", self.sigma)
        self._draw(rows.shape[1], check_random_state(self.random_state))
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
        return self._map(np.asarray(validate_data(self, X, dtype=_FLOATS, reset=False)))

    @abstractmethod
    def _draw(self, n_features: int, rng: np.random.RandomState) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the features of checked rows."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        dtypes = ["float64", "float32"] if self._dtype_out is None else []
        tags.transformer_tags.preserves_dtype = dtypes
        return tags


def cosines(turns: NDArray[Any], offset: NDArray[np.float64]) -> NDArray[Any]:
    """Return ``sqrt(2 / p) cos(2 pi turns + offset)`` of projections (n, p), in their dtype."""
    as_type = turns.dtype.type
    amplitude = as_type(np.sqrt(2.0 / turns.shape[1]))
    return np.asarray(amplitude * np.cos(turns * as_type(TURN) + offset.astype(as_type)))


def neighbour_distance(
    X: ArrayLike,
    k: int = 50,
    n_rows: int = 1000,
    random_state: int | np.random.RandomState | None = None,
) -> float:
    """Return the mean distance from a row to its k-th nearest other row: a starting sigma.

    The heuristic of Yu et al. 2015 (section 7). Distances are measured from a random sample of
    rows to all rows, so that the estimate does not depend on the size of the sample.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        At least two rows.
    k : int
        Which neighbour; the farthest one when there are fewer.
    n_rows : int
        Size of the sample.
    random_state : int, RandomState or None

    Returns
    -------
    float
        In the units of the features; 1.0 when the distances are 0, as for identical rows.

    Examples
    --------
    >>> neighbour_distance([[0.0], [1.0], [3.0]], k=1)
    1.3333333333333333
    """
    if k < 1 or n_rows < 1:
        raise TinykernelError(f"neighbour_distance: k and n_rows start at 1, got {k} and {n_rows}")
    rows = check_array(X, dtype=_FLOATS)
    n = rows.shape[0]
    if n < 2:
        raise TinykernelError("neighbour_distance: at least two rows are needed")
    rng = check_random_state(random_state)
    sample = np.sort(rng.permutation(n)[:n_rows])
    k = min(k, n - 1)
    # Far from the origin, differences of large squares would be rounding errors.
    rows = rows - rows.mean(axis=0)
    norms = np.einsum("ij,ij->i", rows, rows)
    total = 0.0
    step = max(1, _DISTANCES_AT_ONCE // n)
    for first in range(0, sample.size, step):
        chosen = sample[first : first + step]
        squares = norms[chosen, None] + norms - 2 * (rows[chosen] @ rows.T)
        # A row is not its own neighbour.
        squares[np.arange(chosen.size), chosen] = np.inf
        nearest = np.partition(squares, k - 1, axis=1)[:, k - 1]
        total += float(np.sqrt(np.maximum(nearest, 0)).sum(dtype=np.float64))
    return total / sample.size or 1.0
