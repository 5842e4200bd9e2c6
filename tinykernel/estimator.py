"""The scikit-learn face: a classifier that becomes firmware, and what all estimators share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tinykernel.decisions import Calibration, calibrate
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel, quantize
from tinykernel.model.answers.decision import Decision
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.model.quantization.scaling import to_raw
from tinykernel.modelfile import ModelFileMixin
from tinykernel.training import trainer
from tinykernel.training.options import TrainerOptions, declared
from tinykernel.training.options.fields import wrong_name
from tinykernel.training.options.parameters import (
    ClassifierParameters,
    EstimatorParameters,
    check_entries,
    told_by,
)
from tinykernel.training.options.recipe import Recipe
from tinykernel.training.trainset import TrainSet, prepare

# Of the names that entries of `options` have in grids.
_ENTRY = "options__"


class MachineEstimator(ModelFileMixin, BaseEstimator):
    """What every estimator shares that trains a machine: checked rows, the integer model."""

    machine_: KernelMachine | IntegerModel

    def _checked_rows(self, X: ArrayLike) -> NDArray[Any]:
        """Check rows to predict, and round them as the firmware's input type does."""
        check_is_fitted(self)
        rows = validate_data(self, flat(X)[0], dtype="numeric", reset=False)
        return to_raw(rows, "float32") if self.machine_.raw_dtype == "float32" else rows

    def quantize(self) -> IntegerModel:
        """Return the integer model: the very function that the firmware computes.

        Returns
        -------
        IntegerModel
            The same object until the next `fit`.
        """
        check_is_fitted(self)
        found = getattr(self, "feature_names_in_", None)
        names = None if found is None else tuple(np.atleast_1d(found).tolist())
        cached: tuple[KernelMachine | IntegerModel, Any, IntegerModel] | None = getattr(
            self, "_quantized", None
        )
        if cached is None or cached[0] is not self.machine_ or cached[1] != names:
            cached = (self.machine_, names, _as_integers(self.machine_, names))
            self._quantized = cached
        decision = getattr(self, "decision_", None)
        if cached[2].decision is not decision:
            cached = (*cached[:2], replace(cached[2], decision=decision))
            self._quantized = cached
        return cached[2]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_quantized"}


class MachineClassifier(ClassifierMixin, MachineEstimator):
    """What every classifier shares that trains a machine: how it predicts."""

    classes_: NDArray[Any]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the decision values of the float machine.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Raw inputs, in the units of the training rows.

        Returns
        -------
        ndarray of float64, shape (n, n_classes), or (n,) for two classes
            Larger for likelier classes; positive for ``classes_[1]`` of two.
        """
        rows = self._checked_rows(X)
        decisions = self.machine_.decision_function(rows)
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels with the float machine; see Notes for the firmware's.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Raw inputs, in the units of the training rows.

        Returns
        -------
        ndarray, shape (n,)
            Entries of `classes_`.
        """
        rows = self._checked_rows(X)
        if isinstance(self.machine_, IntegerModel):
            return np.asarray(self.classes_[self.machine_.scores(rows).argmax(axis=1)])
        return np.asarray(self.classes_[self.machine_.label_indices(rows)])


class KernelEstimator(MachineEstimator, EstimatorParameters):
    """What the classifier and the regressor share: training by the options."""

    input_shape_: tuple[int, ...] | None
    layout_: str | None
    n_components_: int
    sigma_: float | None
    noise_: float | None
    options_: dict[str, Any]
    trials_: list[dict[str, Any]]
    search_: dict[str, Any]
    n_iter_: int
    history_: dict[str, NDArray[np.float64]]
    interrupted_: bool
    in_passes_: bool

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; `deep` also has entries of `options`, as ``options__NAME``."""
        found: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.options, Mapping):
            found |= {f"{_ENTRY}{name}": value for name, value in self.options.items()}
        return found

    def set_params(self, **params: Any) -> KernelEstimator:
        """Set parameters, and entries of `options` as ``options__NAME``.

        Raises
        ------
        TinykernelError
            For a name that is not known.
        """
        own = {name: value for name, value in params.items() if not name.startswith(_ENTRY)}
        more = {name.removeprefix(_ENTRY): params[name] for name in params.keys() - own.keys()}
        known = {option.name for option in fields(self.KIND)}
        wrong = wrong_name(own, self._get_param_names(), known)
        if wrong:
            raise TinykernelError(f"{type(self).__name__}: {wrong}")
        check_entries(type(self), more)
        super().set_params(**own)
        self.__post_init__()
        if more:
            self.options = {**(self.options or {}), **more}
        return self

    def _run(
        self,
        data: TrainSet,
        told: TrainerOptions,
        recipe: Mapping[str, float],
        shape: tuple[int, ...] | None,
    ) -> None:
        """Train, and keep the result and how it came about."""
        result = trainer.fit(data, told, shape, **recipe)
        # Not earlier, or an interrupted second fit would mix two models.
        self.machine_, self.input_shape_ = result.machine, shape
        self.options_ = asdict(result.recipe)
        for options in (self.options_, self.options_.get("linear", {})):
            options.pop("n_threads", None)  # changes nothing but the time
            options.pop("losses", None)  # those of the loss
            for name in ("held_first", "held_second", "held_shift"):
                options.pop(name, None)  # the machine has them
        self.trials_ = [asdict(trial) for trial in result.trials]
        self.search_ = {} if result.outcome is None else result.outcome.summary()
        if result.contest is not None:
            self.search_["contest"] = result.contest.in_words
        chosen = result.recipe if isinstance(result.recipe, Recipe) else None
        self.layout_ = None if chosen is None else chosen.layout
        self.n_components_ = 0 if chosen is None else chosen.n_components
        self.sigma_ = result.sigma
        self.noise_ = None if chosen is None else chosen.noise
        epochs = result.history.epochs
        self.n_iter_, self.interrupted_ = len(epochs), result.history.interrupted
        self.in_passes_ = result.in_passes
        self.history_ = {
            name: np.array([epoch[name] for epoch in epochs])
            for name in ("loss", "accuracy")
            if name in epochs[0]
        }
        if self.interrupted_:
            warnings.warn(
                f"training was interrupted after {self.n_iter_} epochs; the best model until then "
                "is kept",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _checked_pair(
        self, validation: tuple[ArrayLike, ArrayLike], what: str, **checks: bool
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Check rows held out, and what belongs to them: `what` says what that is."""
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise TinykernelError(f"validation: give a pair (X, y) of rows and {what}")
        rows, known = validate_data(
            self, flat(validation[0])[0], validation[1], dtype="numeric", reset=False, **checks
        )
        return rows, known


def _is_calibrated(estimator: Any) -> bool:
    return hasattr(estimator, "decision_")


@declared
class TernaryKernelClassifier(MachineClassifier, KernelEstimator, ClassifierParameters):
    """A kernel machine with binary components and ternary weights, made for microcontrollers.

    ``f(x) = alpha W sign(cos(R x' + b) + t) + beta`` with W in {-1, 0, 1}: after Lei & Lan 2021
    (001), "Memory and Computation-Efficient Kernel SVM via Binary Embedding and Ternary Model
    Coefficients", with everything but two diagonals learned by gradient (see
    `tinykernel.training.trainer`). x' are the scaled inputs, and the scaler is part of the model:
    the firmware takes raw sensor values of the dtype given to `fit`.

    The model does not depend on the order of the training rows, on whether a row is repeated or
    has a weight of 2, or on the number of threads.

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
    machine_ : tinykernel.model.quantization.machine.KernelMachine or IntegerModel
        The trained machine, in floats; without components in integers.
    input_shape_ : tuple of int or None
        Of an input, where there is a local stage: (samples, channels), or (height, width,
        channels).
    layout_ : str or None
        Given or chosen; None without components.
    n_components_ : int
        p of the machine.
    sigma_, noise_ : float or None
        Given or chosen; None without components.
    options_ : dict of str to object
        Everything the training went by, slope and dropout included: the fields of
        `tinykernel.training.options.Recipe` but for the number of threads; without components
        those of `ImagePlan` or `SignalPlan` (`tinykernel.training.local`) or of `LinearRecipe`
        (`tinykernel.training.readouts.linear`).
    trials_ : list of dict
        The short trainings by which all that was chosen: the fields of
        `tinykernel.training.search.Trial`.
    search_ : dict of str to object
        What the search did: number of "trials", "chosen" in words, "log_loss" of it and
        "log_loss_usual" of the usual values on rows held out (None where they are not
        comparable), "interrupted". Empty without a search.
    n_iter_ : int
        Epochs made.
    history_ : dict of str to ndarray
        "loss" and, with rows for validation, "accuracy" of each epoch.
    interrupted_ : bool
        Whether Ctrl-C ended the training.
    in_passes_ : bool
        Whether the training went over more rows than those given, as the command line has it.
    decision_ : tinykernel.model.answers.decision.Decision
        Only after `calibrate`.

    Notes
    -----
    Where there are components, `predict` and `decision_function` use the float machine. The
    firmware computes the integer model that `quantize` returns; its scores are other numbers, and
    near a decision boundary its label may be another one. `IntegerModel.predict` gives exactly the
    labels of the firmware.

    `options` may hold:

    {more}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TernaryKernelClassifier(n_components=64, effort="quick", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    decision_: Decision

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        teacher: object = None,
    ) -> TernaryKernelClassifier:
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Raw inputs, finite. Their dtype decides what the firmware takes: float32 for any float,
            uint8 for bool, 8- and 16-bit integers as they are, int32 for other integers. Arrays
            (n, samples, channels) and (n, height, width, channels), and rows with a `window_shape`
            or an `image_shape`, go through a local stage.
        y : array-like, shape (n,)
            Labels: numbers, strings or bools, of at least two classes.
        sample_weight : array-like, shape (n,), optional
            Not negative. Rows of weight 0 are left out.
        groups : array-like, shape (n,), optional
            Which person, record or batch each row belongs to. Rows of a group stay together where
            rows are left out to choose hyper-parameters. A single group counts as none.
        validation : (X, y), optional
            Rows by which the best epoch is chosen.
        teacher : fitted scikit-learn classifier or array-like, shape (n, n_classes), optional
            Another model whose probabilities are mixed with the labels, half and half. A classifier
            is asked for those of `X`; the columns of an array are in the order of the labels.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is not allowed, a value does not fit, or there is one class only.
        ValueError
            From scikit-learn's checks of `X` and `y`, e.g. for NaN.

        Warns
        -----
        ConvergenceWarning
            If Ctrl-C ended the training after its first epoch: the best until then is kept.
            Earlier, KeyboardInterrupt is raised.
        """
        return self._fit(X, y, sample_weight, groups=groups, validation=validation, teacher=teacher)

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        teacher: object = None,
        recipe: Mapping[str, float] | None = None,
    ) -> TernaryKernelClassifier:
        """Train; `recipe` has fields of the recipe that are no options, of an earlier training."""
        told = told_by(self)
        X, given = flat(X)
        shape = told.input_shape(given)
        told.check_for(shape)
        rows, labels = validate_data(self, X, y, dtype="numeric")
        check_classification_targets(labels)
        classes, data = prepare(
            rows,
            labels,
            _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True),
            class_weight=self.class_weight,
            groups=groups,
            validation=None if validation is None else self._checked_pair(validation, "labels"),
            teacher=None if teacher is None else (teacher, X),
        )
        if hasattr(self, "decision_"):
            del self.decision_  # that of another model
        self._run(data, told, recipe or {}, shape)
        self.classes_ = classes
        return self

    # -- decisions ----------------------------------------------------------------------------

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
        """Fit probabilities, and when to answer, to rows that were not trained on.

        The models of `quantize` then decide, and `predict_proba` is there, until the next `fit`.

        Parameters
        ----------
        X, y, max_error, coverage, per_class, confidence, groups, false_alarms, known
            As for `tinykernel.calibrate`.

        Returns
        -------
        Calibration
            What can be promised.

        Raises
        ------
        TinykernelError
            As `tinykernel.calibrate`; an earlier calibration then stays.
        """
        check_is_fitted(self)
        found = calibrate(
            self.quantize(),
            flat(X)[0],
            y,
            max_error=max_error,
            coverage=coverage,
            per_class=per_class,
            confidence=confidence,
            groups=groups,
            false_alarms=false_alarms,
            known=None if known is None else (flat(known[0])[0], known[1]),
        )
        assert found.model.decision is not None
        self.decision_ = found.model.decision
        return found

    @available_if(_is_calibrated)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return calibrated probabilities; there after `calibrate` only.

        Parameters
        ----------
        X : array-like, shape (n, n_features)

        Returns
        -------
        ndarray of float64, shape (n, n_classes)
            Of the float machine, with the temperature of the calibration.
        """
        decisions = self.decision_function(X)
        if decisions.ndim == 1:
            decisions = np.column_stack([-decisions, decisions])
        return self.decision_.probabilities(decisions)


def flat(X: ArrayLike) -> tuple[Any, tuple[int, ...] | None]:
    """Return inputs as rows, and the shape of one input where they are an array of more."""
    n_dimensions = getattr(X, "ndim", 2)
    if n_dimensions not in (3, 4):
        return X, None
    inputs = np.asarray(X)
    return inputs.reshape(len(inputs), -1), inputs.shape[1:]


def _as_integers(
    machine: KernelMachine | IntegerModel, names: tuple[str, ...] | None
) -> IntegerModel:
    if isinstance(machine, IntegerModel):
        return replace(machine, feature_names=names)
    return quantize(machine, names)
