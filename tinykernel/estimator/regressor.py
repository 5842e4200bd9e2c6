"""The regressor: a scikit-learn estimator that becomes firmware."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, validate_data

from tinykernel.errors import TinykernelError
from tinykernel.estimator.machines import KernelEstimator, flat
from tinykernel.model import IntegerModel
from tinykernel.training.options import TrainerOptions, declared
from tinykernel.training.options.regression import RegressorOptions, ValueParameters
from tinykernel.training.trainset import prepare_values


@declared
class TernaryKernelRegressor(RegressorMixin, KernelEstimator, ValueParameters):
    """A regressor with binary components, ternary weights and a linear part.

    The model is that of `TernaryKernelClassifier`, trained with another loss. The firmware gives
    values in fixed point, ``NAME_predict(input, scratch, values)``: a value is
    ``values[i] / 2^NAME_SCALE_SHIFT``.

    Parameters
    ----------
    {options}

    Attributes
    ----------
    outputs_ : tuple of str
        Names of the outputs: those of the columns of `y`, or "value" ("value0" and so on of
        several); for quantiles with their level, "value q0.9".
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when `X` had column names.
    machine_ : IntegerModel
        What was learned: the very function that the firmware computes.
    input_shape_, layout_, n_components_, sigma_, noise_, options_, trials_, search_, n_iter_,
    interrupted_
        As of `TernaryKernelClassifier`.
    history_ : dict of str to ndarray
        "loss" and, with validation rows, "accuracy" of each epoch: 1 minus the ratio to the loss
        of the best constant, which is R2 for squared errors.

    Notes
    -----
    `predict` gives what the firmware gives, bit for bit.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TernaryKernelRegressor(n_components=64, effort="quick", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.5
    True
    """

    KIND: ClassVar[type[TrainerOptions]] = RegressorOptions
    outputs_: tuple[str, ...]

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> TernaryKernelRegressor:
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            As for `TernaryKernelClassifier.fit`.
        y : array-like, shape (n,) or (n, n_values)
            Finite numbers.
        sample_weight : array-like, shape (n,), optional
            Not negative. Rows of weight 0 are left out.
        groups : array-like, shape (n,), optional
            Which person, record or batch each row belongs to. Rows of a group stay together where
            rows are held out to choose hyper-parameters. A single group counts as none.
        validation : (X, y), optional
            Rows by which the best epoch is chosen.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is not allowed, a value does not fit, or the values differ so much in
            size that one fixed point cannot hold all.
        ValueError
            From scikit-learn's checks of `X` and `y`, e.g. for NaN.

        Warns
        -----
        ConvergenceWarning
            If Ctrl-C ended the training after its first epoch: the best until then is kept.
            Earlier, KeyboardInterrupt is raised.
        """
        return self._fit(X, y, sample_weight, groups=groups, validation=validation)

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        value_name: str | None = None,
    ) -> TernaryKernelRegressor:
        """Train; `value_name` is the name of a single value where `y` has none."""
        options = self._trainer_options()
        assert isinstance(options, RegressorOptions)
        names = _names(y) or (None if value_name is None else (value_name,))
        X, sides = flat(self._coded(X))
        shape = options.input_shape(sides)
        options.check_for(shape)
        rows, values = validate_data(self, X, y, dtype="numeric", multi_output=True, y_numeric=True)
        columns = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
        n_values = columns.shape[1]
        numbered = [f"value{i}" if n_values > 1 else "value" for i in range(n_values)]
        data = prepare_values(
            rows,
            columns,
            _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True),
            options,
            names or tuple(numbered),
            groups=groups,
            validation=None
            if validation is None
            else self._checked_validation(validation, n_values),
        )
        self._run(data, options, shape)
        assert data.quantity is not None
        self.outputs_ = data.quantity.units.names
        return self

    def _checked_validation(
        self, validation: tuple[ArrayLike, ArrayLike], n_values: int
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        rows, values = self._checked_pair(validation, "values", multi_output=True, y_numeric=True)
        columns = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
        if columns.shape[1] != n_values:
            raise TinykernelError(
                f"validation: {columns.shape[1]} values per row; give {n_values}, as in training"
            )
        return rows, columns

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict values, as the firmware does.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Raw inputs, in the units of the training rows.

        Returns
        -------
        ndarray of float64, shape (n,), or (n, n_outputs) of several outputs
        """
        rows = self._checked_rows(X)
        assert isinstance(self.machine_, IntegerModel)
        return np.asarray(self.machine_.predict(rows), dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        """Declare that `y` may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def _names(y: object) -> tuple[str, ...] | None:
    """Return the names of the columns of a pandas Series or DataFrame, or None."""
    columns = getattr(y, "columns", None)
    if columns is not None:
        return tuple(map(str, columns))
    name = getattr(y, "name", None)
    return None if name is None or callable(name) else (str(name),)
