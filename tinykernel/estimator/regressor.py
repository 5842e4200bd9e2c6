"""The regressor: a scikit-learn estimator that becomes firmware."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from tinykernel.errors import DataError, ShapeError
from tinykernel.estimator.machines import Budgeted, KernelEstimator, elsewhere
from tinykernel.model.answers.values import numbered_values
from tinykernel.training.options import TrainerOptions, declared
from tinykernel.training.options.fields import MachineParameters, Parameters
from tinykernel.training.options.regression import RegressorOptions, ValueParameters
from tinykernel.training.trainset import TrainSet, prepare_values


class BaseRegressor(RegressorMixin, KernelEstimator):
    """Base of the regressors."""

    KIND: ClassVar[type[TrainerOptions]] = RegressorOptions
    TARGET: ClassVar[str] = "values"
    CHECKS: ClassVar[dict[str, bool]] = {"multi_output": True, "y_numeric": True}
    outputs_: tuple[str, ...]

    def _train_set(
        self,
        y: ArrayLike,
        options: TrainerOptions,
        *checked: NDArray[Any],
        value_name: str | None = None,
        validation: tuple[NDArray[Any], NDArray[Any]] | None = None,
        **beside: Any,
    ) -> tuple[TrainSet, dict[str, Any]]:
        """Return rows with values, and the names of the outputs.

        `value_name` is the name of a single value where `y` has none.
        """
        assert isinstance(options, RegressorOptions)
        rows, values, weight = checked[0], _columns(checked[1]), checked[2]
        n = values.shape[1]
        names = _names(y) or (numbered_values(n) if value_name is None else (value_name,))
        others = None if validation is None else (validation[0], _columns(validation[1]))
        if others is not None and others[1].shape[1] != n:
            raise ShapeError(
                f"validation: {others[1].shape[1]} values per row; give {n}, as in training"
            )
        data = prepare_values(rows, values, weight, options, names, validation=others, **beside)
        assert data.quantity is not None
        return data, {"outputs_": data.quantity.units.names}

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
        return np.asarray(self.machine_.predict(rows), dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        """Declare that `y` may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class Regressor(Budgeted, BaseRegressor, ValueParameters, Parameters):
    """A regressor for microcontrollers: the kind of model that is best for the rows.

    Kinds of models compete as for `Classifier`. The firmware gives values in fixed point,
    ``NAME_predict(input, scratch, values)``: a value is ``values[i] / 2^NAME_SCALE_SHIFT``.

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
        As of `Classifier`.
    history_ : dict of str to ndarray
        "loss" and, with validation rows, "accuracy" of each epoch: 1 minus the ratio to the loss
        of the best constant, which is R2 for squared errors.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Regressor(model="linear", effort="quick", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class TernaryKernelRegressor(BaseRegressor, ValueParameters, MachineParameters):
    """A regressor with binary components, ternary weights and a linear part.

    The model is that of `TernaryKernelClassifier`, trained with another loss. `Regressor` chooses
    among this and other kinds of models.

    Parameters
    ----------
    {options}

    Attributes
    ----------
    outputs_, n_features_in_, feature_names_in_, machine_, layout_, n_components_, sigma_, noise_,
    options_, trials_, search_, n_iter_, history_, interrupted_
        As of `Regressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TernaryKernelRegressor(n_components=64, effort="quick", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.5
    True
    """

    ELSEWHERE: ClassVar[dict[str, str]] = elsewhere("Regressor")
    MODEL: ClassVar[str] = "components"


def _columns(values: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    except ValueError:
        raise DataError("y: holds text; give numbers, or train a Classifier of labels") from None


def _names(y: object) -> tuple[str, ...] | None:
    """Return the names of the columns of a pandas Series or DataFrame, or None."""
    columns = getattr(y, "columns", None)
    if columns is not None:
        return tuple(map(str, columns))
    name = getattr(y, "name", None)
    return None if name is None or callable(name) else (str(name),)
