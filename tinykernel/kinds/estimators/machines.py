"""Common parts of the estimators: input checks, training, the integer model."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tinykernel.base.checks import check_pair
from tinykernel.base.errors import DataError, TinykernelError, warn
from tinykernel.base.frames import check_equal_shapes, coded_rows, in_numbers, plain_labels
from tinykernel.base.options import option
from tinykernel.compile.targets import find_target
from tinykernel.kinds.kind import Problem, check_rows
from tinykernel.kinds.rehearsal import compiling_beside
from tinykernel.kinds.selection import Selected, deliver, estimate_usage, kinds_for, select
from tinykernel.learn.loop import Recipe, TrainingResult, seed_of
from tinykernel.learn.options import Parameters, TrainerOptions
from tinykernel.learn.trainset import TrainSet
from tinykernel.model.file import ModelFileMixin
from tinykernel.model.integer import IntegerModel
from tinykernel.model.scale import to_raw
from tinykernel.run.limits import Limits, parse_limits
from tinykernel.run.report import limits_on

#: The processor that limits are for, unless another one is given.
DEFAULT_TARGET = "cortex-m4"
# What to do where scikit-learn refuses rows, by how its message begins.
_WAYS = {
    "Input X contains infinity": "replace it, or leave such rows out",
    "Found input variables with inconsistent": "give a label or value for each row",
    "Found array with 0": "give one or more",
    "Found array with dim": "give X of (n, n_features), y of (n,), or (n, n_values) of values",
    "X has": "give the columns of training",
    "Complex data": "give real numbers",
    "Input X contains NaN": "fill it; classifiers and regressors take it in arrays and frames of "
    "tables alone, if training rows had some",
    **dict.fromkeys(
        ("could not convert string", "dtype='numeric' is not compatible"),
        "give a frame of pandas or polars, whose text becomes numbers",
    ),
    **dict.fromkeys(  # with the words that check_estimator wants
        ("Expected 2D array", "Expected a 2-dimensional container"),
        "Reshape your data to rows: one is X[[0]], of a frame X.iloc[[0]]",
    ),
}
_MISSING = ("None", "nan", "<NA>")
_OF_EACH_ROW = {
    "y": "give a label or value for each row, as in training",
    "sample_weight": "give a number of at least 0 for each row",
}
_SelfT = TypeVar("_SelfT", bound="KernelEstimator")


class MachineEstimator(ModelFileMixin, BaseEstimator):
    """Base of the estimators that train a machine."""

    machine_: IntegerModel
    coding_: dict[str, Any]

    def _code(self, X: Any, options: TrainerOptions) -> Any:
        """Return training rows; text and missing values of a table become numbers."""
        if hasattr(self, "coding_"):
            del self.coding_  # that of another model
        is_table = options.image_shape is None and options.window_shape is None
        rows, coding = coded_rows(X, is_table=is_table)
        if coding is not None:
            self.coding_ = coding.written()
        return rows

    @staticmethod
    def _shape(X: ArrayLike, options: TrainerOptions) -> tuple[Any, tuple[int, ...] | None]:
        """Return training rows, and the shape of one that is no row of a table; check options."""
        options.check()
        rows, sides = flat(X)
        shape = options.input_shape(sides)
        options.check_for(shape)
        return rows, shape

    def _weighted_rows(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, **checks: bool
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        """Check training rows, their labels or values, and their weights."""
        labels = plain_labels(y)
        _check_text(labels, checks.get("y_numeric", False))
        rows, targets = self._numeric(X, labels, **checks)
        options = {"dtype": np.float64, "ensure_non_negative": True}
        weight = in_one_line("sample_weight", _check_sample_weight, sample_weight, rows, **options)
        return rows, targets, weight

    def _numeric(self, *rows: Any, **checks: Any) -> Any:
        """Return rows, and labels or values where they are given, as scikit-learn checks them."""
        return in_one_line("X", validate_data, self, *rows, dtype="numeric", **checks)

    def _checked_rows(self, X: ArrayLike) -> NDArray[Any]:
        """Check rows to predict, and round them as the firmware's input type does."""
        check_is_fitted(self)
        X = in_numbers(self, X)
        self.machine_.check_columns(X)  # sklearn compares names of text only
        rows = self._numeric(flat(X)[0], reset=False)
        return to_raw(rows, "float32") if self.machine_.raw_dtype == "float32" else rows

    def quantize(self) -> IntegerModel:
        """Return the integer model: the very function that the firmware computes.

        Returns
        -------
        IntegerModel
            The same object until the next `fit`.
        """
        check_is_fitted(self)
        column_names = getattr(self, "feature_names_in_", None)
        names = None if column_names is None else tuple(np.atleast_1d(column_names).tolist())
        machine, decision = self.machine_, getattr(self, "decision_", None)
        source, model = getattr(self, "_quantized", (None, machine))
        model = model if source is machine else machine
        if model.feature_names != names or model.decision is not decision:
            model = replace(model, feature_names=names, decision=decision)
        self._quantized = machine, model
        return model

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_quantized"}


class MachineClassifier(ClassifierMixin, MachineEstimator):
    """Base of the classifiers."""

    classes_: NDArray[Any]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the decision values, as the firmware does.

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
        return self.machine_.decision_function(rows)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels, as the firmware does.

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
        return np.asarray(self.classes_[self.machine_.scores(rows).argmax(axis=1)])


class KernelEstimator(MachineEstimator):
    """Base of classifiers and regressors: training with options."""

    #: The options of the trainer.
    KIND: ClassVar[type[TrainerOptions]]
    #: The kind of model, where it is no parameter.
    MODEL: ClassVar[str] = "auto"
    #: What `y` holds, and how scikit-learn checks it.
    TARGET: ClassVar[str] = "labels"
    CHECKS: ClassVar[dict[str, bool]] = {}

    def fit(
        self: _SelfT,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> _SelfT:
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Raw inputs. Their dtype decides what the firmware takes: float32 for any float,
            uint8 for bool, 8- and 16-bit integers as they are, int32 for other integers. Arrays
            (n, samples, channels) and (n, height, width, channels), and rows with a `window_shape`
            or an `image_shape`, go through a local stage. Text, categories, dates and missing
            values of a frame of pandas or polars become numbers, as those of files do, and so does
            NaN in an array of rows of a table.
        y : array-like, shape (n,), or (n, n_values)
            Labels: numbers, strings or bools, of at least two classes. Of a regressor finite
            numbers.
        sample_weight : array-like, shape (n,), optional
            Not negative. Rows of weight 0 are ignored.
        groups : array-like, shape (n,), optional
            Which person, record or batch each row belongs to. Rows of a group stay together when
            rows are held out to choose hyper-parameters. A single group is ignored.
        validation : (X, y), optional
            Rows by which the best epoch is chosen.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is not allowed, a value does not fit, there is one class only, or the
            values differ so much in size that one fixed point cannot hold all.

        Warns
        -----
        ConvergenceWarning
            If Ctrl-C ended the training after its first epoch: the best model so far is used.
            Before that, KeyboardInterrupt is raised.
        """
        rows, before = (X, y, sample_weight), dict(self.__dict__)
        try:
            problem, attributes = self.problem(*rows, groups=groups, validation=validation)
            kinds = kinds_for(problem.options)
            with compiling_beside(problem, kinds):
                selection = select(problem, kinds)
                result, _ = deliver(selection, problem, estimate_usage(problem))
        except BaseException:  # Ctrl-C, too: columns of these rows beside the model of others
            self.__dict__ = before
            raise
        self.take(result, selection, problem, attributes)
        return self

    def problem(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        **beside: Any,
    ) -> tuple[Problem, dict[str, Any]]:
        """Check the rows; return what is to be learned, and attributes to set after training.

        `beside` are arguments of `_train_set`.
        """
        parameters = {"model": self.MODEL} | self.get_params()
        names = {field.name for field in fields(self.KIND)} & set(parameters)
        options = self.KIND(**{name: parameters[name] for name in names})
        limits, target = self._limits(options)
        X, shape = self._shape(self._code(X, options), options)
        if not isinstance(options.random_state, Integral):  # threads would draw in any order
            options = replace(options, random_state=seed_of(options))
        checked = self._weighted_rows(X, y, sample_weight, **self.CHECKS)
        others = None if validation is None else self._checked_pair(validation)
        data, attributes = self._train_set(y, options, *checked, validation=others, **beside)
        check_rows(data, options)
        return Problem(data, options, shape, limits, target), attributes

    def _limits(self, options: TrainerOptions) -> tuple[Limits | None, str]:
        """Return the limits of the model, and the processor that they are for."""
        return None, DEFAULT_TARGET

    @abstractmethod
    def _train_set(
        self, y: ArrayLike, options: TrainerOptions, *rows: NDArray[Any], **beside: Any
    ) -> tuple[TrainSet, dict[str, Any]]:
        """Return rows, labels or values, and weights; and attributes to set after training."""

    def take(
        self,
        result: TrainingResult,
        selection: Selected,
        problem: Problem,
        attributes: dict[str, Any],
    ) -> None:
        """Set the fitted attributes; not earlier, or an interrupted fit would mix two models."""
        self.__dict__.update(attributes)
        self.machine_, self.input_shape_ = result.machine, problem.shape
        self.options_ = asdict(result.recipe)
        for settings in (self.options_, self.options_.get("linear", {})):
            settings.pop("n_threads", None)  # does not change the result
            settings.pop("losses", None)  # follow from `loss`
        self.search_ = selection.summary()
        self.trials_ = self.search_.pop("records", [])
        chosen = result.recipe if isinstance(result.recipe, Recipe) else None
        self.layout_ = None if chosen is None else chosen.layout
        self.n_components_ = 0 if chosen is None else chosen.n_components
        self.sigma_ = result.sigma
        self.noise_ = None if chosen is None else chosen.noise
        epochs = result.history.epochs
        self.n_iter_, self.interrupted_ = len(epochs), result.history.interrupted
        self.remarks_ = result.history.remarks
        self.history_ = {
            name: np.array([epoch[name] for epoch in epochs])
            for name in ("loss", "accuracy")
            if name in epochs[0]
        }
        if self.interrupted_:
            after = f" after {self.n_iter_} epochs" if self.n_iter_ > 1 else ""
            text = f"training was interrupted{after}; the best model so far is used"
            warn(text, ConvergenceWarning)

    def _checked_pair(
        self, validation: tuple[ArrayLike, ArrayLike]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Check validation rows and their labels or values."""
        check_pair("validation", validation, self.TARGET)
        pair = flat(in_numbers(self, validation[0]))[0], validation[1]
        rows, targets = self._numeric(*pair, reset=False, **self.CHECKS)
        return rows, targets

    def __sklearn_tags__(self) -> Any:
        """Declare that rows of a table may lack values."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class Budgeted:
    """The budget of estimators that choose a kind of model."""

    budget: str | int | Limits | None = option(  # noqa: RUF009
        None,
        lambda name, value: parse_limits(value),
        "Flash that the model may add to the program on `target`, runtime included: bytes, or text "
        'such as "8KB"; or several limits, "flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz", with '
        '"instructions=200k" in place of a time. "30KB" by default, and no limit where the number '
        "of components, kernels or channels is given, or the target is host.",
        type="str, int, Limits or None",
    )
    target: str = option(
        DEFAULT_TARGET, lambda name, value: find_target(value), "Processor that the budget is for."
    )

    def _limits(self, options: TrainerOptions) -> tuple[Limits | None, str]:
        return limits_on(self.budget, self.target, is_sized=bool(options.size)), self.target


def _check_text(y: Any, is_numeric: bool) -> None:
    """Refuse missing labels among text, and text in place of values."""
    cells = np.asarray(y)
    if y is None or cells.dtype.kind in "biufc":
        return
    if is_numeric:
        try:
            cells.astype(np.float64)
        except (TypeError, ValueError):
            raise DataError("y: not numbers; text is for a Classifier") from None
    gaps = sum(not isinstance(label, str) and str(label) in _MISSING for label in cells.flat)
    if gaps:
        raise DataError(f"y: {gaps} of {len(cells)} labels are missing; leave these rows out")


def in_one_line(subject: str, function: Callable[..., Any], *rows: Any, **options: Any) -> Any:
    """Call what may refuse rows in the words of scikit-learn, and say what to do about it."""
    try:
        return function(*rows, **options)
    except TinykernelError:
        raise
    except ValueError as error:
        problem = str(error).partition("\n")[0].rstrip(".:")
        subject = "y" if problem.startswith(("Input y", "This ", "y ")) else subject
        ways = {"": _OF_EACH_ROW[subject]} if subject in _OF_EACH_ROW else _WAYS
        way = next((way for begin, way in ways.items() if problem.startswith(begin)), None)
        if way is None or problem.startswith("The feature names"):  # with a line for each name
            raise
        raise DataError(f"{subject}: {problem}; {way}") from None


def elsewhere(name: str) -> dict[str, str]:
    """Return a hint for each option that only another estimator has."""
    names = {field.name for field in fields(Parameters)} | {"budget", "target"}
    return dict.fromkeys(names, f"tinykernel.{name} has it")


def flat(X: ArrayLike) -> tuple[Any, tuple[int, ...] | None]:
    """Return inputs as rows, and the shape of one input of a 3-D or 4-D array."""
    check_equal_shapes(X)
    X = np.asarray(X) if isinstance(X, list) and np.ndim(X) > 2 else X
    if getattr(X, "ndim", 2) not in (3, 4):
        return X, None
    inputs = np.asarray(X)
    return inputs.reshape(len(inputs), -1), inputs.shape[1:]
