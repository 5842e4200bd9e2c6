"""scikit-learn estimators that become firmware: classifiers and regressors."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from tinykernel.base.checks import check_pair
from tinykernel.base.errors import DataError, ShapeError
from tinykernel.base.frames import in_numbers
from tinykernel.base.options import declared
from tinykernel.kinds.estimators import machines
from tinykernel.learn.calibration import Calibration, calibrate
from tinykernel.learn.options import (
    ClassParameters,
    MachineParameters,
    Parameters,
    RegressorOptions,
    TrainerOptions,
    ValueParameters,
)
from tinykernel.learn.trainset import TrainSet, prepare, prepare_values
from tinykernel.model.answers import Decision, numbered_values, softmax

# Fewer different numbers may be classes.
_MANY_NUMBERS, _FEW_NUMBERS = 100, 20
_OF_VALUES = "train with {task}, or a Regressor"


def _check_labels(y: NDArray[Any]) -> None:
    """Refuse numbers that are no classes."""
    if y.dtype.kind in "iuf" and np.array_equal(y, np.rint(y)):
        numbers, times = np.unique(y, return_counts=True)
        most = max(_FEW_NUMBERS, min(len(y) // 4, _MANY_NUMBERS))
        # Classes of few rows, of which a split may leave one, are usually numbered without gaps.
        has_gaps = times.size > 0 and numbers[-1] - numbers[0] >= times.size
        if has_gaps and times.size > most and np.mean(times == 1) >= 0.25:
            raise DataError(
                f"y: {times.size} different numbers, many of them once, are probably values; "
                f"{_OF_VALUES}, or give classes as text",
                task="numbers",
            )
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        if y.dtype.kind in "OS":
            problem = "y: Unknown label type: several types, or bytes; give text or numbers"
            raise DataError(problem) from None
        if "continuous" not in str(error):
            raise
        problem = f"y: Unknown label type: continuous values; {_OF_VALUES}"
        raise DataError(problem, task="numbers") from None


class BaseClassifier(machines.MachineClassifier, machines.KernelEstimator):
    """Base of the classifiers that are trained here."""

    KIND: ClassVar[type[TrainerOptions]] = TrainerOptions
    decision_: Decision

    def _train_set(
        self, y: ArrayLike, options: TrainerOptions, *rows: NDArray[Any], **beside: Any
    ) -> tuple[TrainSet, dict[str, Any]]:
        _check_labels(rows[1])
        classes, data = prepare(*rows, class_weight=options.class_weight, **beside)
        if hasattr(self, "decision_"):
            del self.decision_  # that of another model
        return data, {"classes_": classes}

    def calibrate(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        max_error: float | None = None,
        coverage: float | None = None,
        per_class: bool = False,
        confidence: float = 0.95,
        groups: ArrayLike | None = None,
        false_alarms: float | None = None,
        known: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Calibration:
        """Fit probabilities and thresholds to rows that were not trained on.

        Until the next `fit`, models of `quantize` and `predict_proba` use them.

        Parameters
        ----------
        X, y, max_error, coverage, per_class, confidence, groups, false_alarms, known
            As for `tinykernel.calibrate`.

        Returns
        -------
        Calibration
            The guarantees, and the calibrated model.

        Raises
        ------
        TinykernelError
            As `tinykernel.calibrate`; an earlier calibration then stays.
        """
        check_is_fitted(self)
        if known is not None:
            check_pair("known", known)
            known = machines.flat(in_numbers(self, known[0]))[0], known[1]
        calibration = calibrate(
            self.quantize(),
            machines.flat(in_numbers(self, X))[0],
            y,
            max_error=max_error,
            coverage=coverage,
            per_class=per_class,
            confidence=confidence,
            groups=groups,
            false_alarms=false_alarms,
            known=known,
        )
        assert calibration.model.decision is not None
        self.decision_ = calibration.model.decision
        return calibration

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return probabilities, which `calibrate` corrects.

        Parameters
        ----------
        X : array-like, shape (n, n_features)

        Returns
        -------
        ndarray of float64, shape (n, n_classes)
            Softmax of the scores at the temperature of the calibration; without one at 1, as the
            log loss of the training has it. Least squares, of kernels of few windows, give no
            log-odds: calibrate these.
        """
        decisions = self.decision_function(X)
        if hasattr(self, "decision_"):
            if decisions.ndim == 1:
                decisions = np.column_stack([-decisions, decisions])
            return self.decision_.probabilities(decisions)
        if decisions.ndim == 1:
            decisions = np.column_stack([np.zeros_like(decisions), decisions])
        return softmax(decisions)


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(machines.Budgeted, BaseClassifier, ClassParameters, Parameters):
    """A classifier for microcontrollers: the kind of model that is best for the rows.

    Kinds of models and their sizes compete on held-out rows, within a budget, unless parameters
    say which one (`tinykernel.kinds`). `machine_` is the very function that the firmware computes.
    The model does not depend on the order of the training rows, on whether a row is repeated or has
    a weight of 2, or on the number of threads.

    Parameters
    ----------
    {options}

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, ascending; of rows with positive weight.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when `X` had column names.
    coding_ : dict
        Only when `X` was a frame, or an array with NaN. By column, the numbers of "texts" and of
        "gaps", missing values; "usual" is the number of a missing value where training had none:
        the median.
    machine_ : IntegerModel
        What was learned: the very function that the firmware computes.
    input_shape_ : tuple of int or None
        Shape of a window or an image: (samples, channels), or (height, width, channels).
    layout_ : str or None
        Layout of the components; None without components.
    n_components_ : int
        Number of components, p.
    sigma_, noise_ : float or None
        Kernel width and training noise; None without components.
    options_ : dict of str to object
        All settings of the training: the fields of `tinykernel.learn.options.Recipe` except
        the number of threads; without components those of a plan in
        `tinykernel.learn.convolutions` or `tinykernel.learn.signals`, or of `LinearRecipe`.
    trials_ : list of dict
        The trainings that were compared: fields of `tinykernel.kinds.selection.RaceRecord`.
    search_ : dict of str to object
        Result of the search: number of "trials", "chosen" as text, "log_loss" of it and
        "log_loss_usual" of the defaults on held-out rows (None where they are not
        comparable), "interrupted". Empty without a search.
    n_iter_ : int
        Number of epochs.
    history_ : dict of str to ndarray
        "loss" and, with validation rows, "accuracy" of each epoch. Classes of windows have one
        entry: of maximum likelihood the log loss of validation rows or of training rows, of
        ridge regression the mean squared error of held-out rows (NaN where there were none).
    interrupted_ : bool
        Whether Ctrl-C ended the training.
    decision_ : tinykernel.model.answers.Decision
        Only after `calibrate`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Classifier(budget="4KB", effort="quick", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class TernaryKernelClassifier(BaseClassifier, ClassParameters, MachineParameters):
    """The kernel machine: binary components and ternary weights, and perhaps a linear part.

    ``f(x) = alpha W sign(cos(R x' + b) + t) + beta`` with W in {-1, 0, 1} (in {-1, 1} by the
    layouts compact and phases, which are chosen by hand alone): after Lei & Lan 2021, "Memory and
    Computation-Efficient Kernel SVM via Binary Embedding and Ternary Model Coefficients". G, S, b,
    t and W of ``R = S H G P H B`` are learned by gradient as far as `layout` stores them, B and P
    chosen by short trainings (see `tinykernel.learn.components`). x' are the scaled inputs, and the
    scaler is part of the model: the firmware takes raw sensor values of the dtype given to `fit`.
    `Classifier` chooses among this and other kinds of models.

    Parameters
    ----------
    {options}

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, machine_, layout_, n_components_, sigma_, noise_,
    options_, trials_, search_, n_iter_, history_, interrupted_, decision_
        As of `Classifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TernaryKernelClassifier(n_components=64, effort="quick", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    ELSEWHERE: ClassVar[dict[str, str]] = machines.elsewhere("Classifier")
    MODEL: ClassVar[str] = "components"


class BaseRegressor(RegressorMixin, machines.KernelEstimator):
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

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return R2, the mean of several values; of quantiles that of the middle one."""
        from sklearn.metrics import r2_score  # draws from Python's random numbers when it is loaded

        n_levels = 1 if isinstance(self.loss, str) else len(self.loss)
        values = self.predict(X).reshape(len(X), -1, n_levels)[:, :, n_levels // 2]  # type: ignore
        return float(r2_score(y, values, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Declare that `y` may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class Regressor(machines.Budgeted, BaseRegressor, ValueParameters, Parameters):
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

    ELSEWHERE: ClassVar[dict[str, str]] = machines.elsewhere("Regressor")
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
