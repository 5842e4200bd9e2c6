"""What the classifiers with real weights share: checking, labels as +-1, and deciding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tinykernel.errors import TinykernelError

_FLOATS = (np.float64, np.float32)
_VALUES_AT_ONCE = 1 << 23


def hold_out(
    codes: NDArray[np.int64], fraction: float, rng: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keep a share of the rows of every class aside, to stop on; return both parts' positions.

    A class always keeps at least one row, so that nothing is held out of classes that are too
    small.
    """
    chosen = np.zeros(codes.size, dtype=bool)
    for code in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == code))
        chosen[rows[: min(round(fraction * rows.size), rows.size - 1)]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


@dataclass(kw_only=True, eq=False, repr=False)
class OneVersusRest(ClassifierMixin, BaseEstimator, ABC):
    """Base of the classifiers: one output for two classes, else one output a class.

    A subclass lists its parameters as fields, and defines `_fit`; its outputs are `coef_` times
    `_features` plus `intercept_`, unless it defines `_decide`. Rows are float32 or
    float64, and everything learned from them keeps that dtype.

    Attributes
    ----------
    classes_ : ndarray
        Labels in ascending order.
    n_features_in_ : int
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            float32 is computed with and kept as float32, everything else as float64.
        y : array-like, shape (n,)
            Class labels, at least two different ones.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is out of its range or there is one class only.
        """
        rows, labels = validate_data(self, X, y, dtype=_FLOATS, order="C")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise TinykernelError(
                f"{type(self).__name__}: y holds one class only, {labels.tolist()[0]!r}; "
                "at least two are needed"
            )
        rng = check_random_state(getattr(self, "random_state", None))
        self._fit(rows, codes.astype(np.int64), rng)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Compute the outputs.

        Parameters
        ----------
        X : array-like, shape (n, n_features)

        Returns
        -------
        ndarray, shape (n,) for two classes, where positive means ``classes_[1]``, else
        (n, n_classes)
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=_FLOATS, order="C", reset=False)
        step = max(1, _VALUES_AT_ONCE // self._width())
        parts = [self._decide(rows[i : i + step]) for i in range(0, rows.shape[0], step)]
        values = np.concatenate(parts)
        return values[:, 0] if self.classes_.size == 2 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the labels.

        Parameters
        ----------
        X : array-like, shape (n, n_features)

        Returns
        -------
        ndarray, shape (n,)
        """
        values = self.decision_function(X)
        codes = values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(np.int64)
        return np.asarray(self.classes_[codes])

    @abstractmethod
    def _fit(self, X: NDArray[Any], codes: NDArray[np.int64], rng: np.random.RandomState) -> None:
        """Set the fitted attributes from checked rows and classes, 0 to n_classes - 1."""

    def _features(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return what the linear outputs are of."""
        return X

    def _keep(self, W: NDArray[Any], with_intercept: bool = True) -> None:
        """Keep linear weights, shape (k, n_outputs), the last row of which may be an intercept."""
        self.coef_ = np.ascontiguousarray(W[: len(W) - with_intercept].T)
        self.intercept_ = W[-1].copy() if with_intercept else np.zeros_like(W[0])

    def _decide(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the outputs of checked rows, shape (n, n_outputs)."""
        weights = self.coef_.T.astype(X.dtype)
        return np.asarray(self._features(X) @ weights + self.intercept_.astype(X.dtype))

    def _width(self) -> int:
        """Return how many values the decision about one row holds in memory."""
        return int(getattr(self, "n_components", 256))
