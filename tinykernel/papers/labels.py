"""Labels of +-1, a column a class (000 (25)), and what classifiers with such outputs share."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tinykernel.errors import RowsError

FLOATS = (np.float64, np.float32)


def label_matrix(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the classes, and for each a column of 1 and -1; for two classes only the second."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise RowsError("y has one class; give labels of two or more")
    Y = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
    return classes, Y[:, 1:] if len(classes) == 2 else Y


class OneVersusRest(ClassifierMixin, BaseEstimator):
    """Base of classifiers with an output a class, or one output for two classes."""

    classes_: NDArray[Any]

    @abstractmethod
    def _outputs(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute the outputs of rows, shape (n, n_outputs)."""

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Compute the outputs of rows: shape (n, n_classes), or (n,) for two classes."""
        check_is_fitted(self)
        values = self._outputs(validate_data(self, X, dtype=FLOATS, reset=False))
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the labels of rows, shape (n,)."""
        values = self.decision_function(X)
        codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[codes])
