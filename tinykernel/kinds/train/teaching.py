"""Learning from a teacher: its probabilities, out of fold where it saw the rows.

A row to which teacher and label give several classes becomes several rows, weighted by the mean of
both (Hinton, Vinyals & Dean 2015, section 2, with temperature 1), so that every kind of model can
learn from it. The rows of one origin are a group, which no split divides.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from tinykernel.base import progress
from tinykernel.base.checks import as_groups, refuse_missing
from tinykernel.base.elementary import logs
from tinykernel.base.errors import BudgetError, DataError, OptionError, RowsError, ShapeError
from tinykernel.base.hadamard import padded_dimension
from tinykernel.kinds.kind import reduce_size
from tinykernel.kinds.planning import Usage
from tinykernel.learn.inputs import WORD, components_within
from tinykernel.learn.loss import WIDE_TEMPERATURES
from tinykernel.learn.teachers import no_teacher
from tinykernel.model.answers import softmax
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.pieces.ternary.spec import Ternary
from tinykernel.run.limits import Limits
from tinykernel.run.report import DRAWN, MOST_CHOSEN

_FOLDS = 5
_STEPS = 64  # of a weight of a class, so that the last bits of a probability change nothing


@dataclass(frozen=True)
class Lesson:
    """Rows to learn: of X, and behind these of `X_more`."""

    rows: NDArray[np.int64]
    y: NDArray[Any]
    weight: NDArray[np.float64]
    groups: NDArray[Any]
    answers: NDArray[Any]  # what the teacher answers to each of the `taught` rows
    taught: NDArray[np.int64]
    of_values: bool

    def agreement(self, predicted: NDArray[Any]) -> float:
        """Return the share of taught rows with the teacher's label; of values the R2 of these."""
        predictions = predicted[self.taught]
        if not self.of_values:
            return float(np.mean(predictions == self.answers))
        return float(1 - np.mean((predictions - self.answers) ** 2) / np.var(self.answers))


def soft_labels(
    teacher: Any,
    X: Any,
    y: ArrayLike,
    X_more: Any = None,
    weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    of_values: bool = False,
) -> Lesson:
    """Let clones of a teacher label the rows that they have not seen, and itself `X_more`."""
    truth = np.asarray(y)
    n, n_more = len(truth), 0 if X_more is None else len(X_more)
    lengths = _num_samples(X), n, n if weight is None else len(np.asarray(weight))
    if len(set(lengths)) > 1:
        raise ShapeError("teacher: X, y and sample_weight have {}, {}, {} rows".format(*lengths))
    refuse_missing("y", truth)
    groups = as_groups(groups, n)
    classes = None if of_values else np.unique(truth)
    if isinstance(teacher, type) or not hasattr(teacher, "predict"):
        raise OptionError(f"teacher: {teacher!r} has no rows to predict; give a model, as SVC()")
    if problem := no_teacher(teacher):
        raise OptionError(f"teacher: {problem}")
    can_clone = hasattr(teacher, "get_params") and hasattr(teacher, "fit")
    if not can_clone and X_more is None:
        raise OptionError(
            "teacher: it has no get_params and fit, so it cannot be trained without the rows that "
            "it labels; give rows that it has not seen as X_more"
        )
    parts, scale = list[NDArray[Any]](), 1.0
    if can_clone:
        parts.append(_out_of_fold(teacher, X, truth, groups, classes))
        if classes is not None and not _has_probabilities(teacher):
            scale = _temperature(parts[0], np.searchsorted(classes, truth))
    if n_more:
        parts.append(_decisions(_fit(teacher, X, truth, can_clone), X_more, classes))
    decisions = np.concatenate(parts)
    taught = np.arange(0 if can_clone else n, n + n_more)
    origin = np.arange(n + n_more) if groups is None else np.asarray(groups)
    if groups is not None and n_more:  # each fresh row is a group of its own
        names = np.unique(origin, return_inverse=True)[1]
        origin = np.concatenate([names, names.max() + 1 + np.arange(n_more)])
    of_row = np.ones(n + n_more)
    of_row[:n] = 1.0 if weight is None else np.asarray(weight, dtype=np.float64)
    if classes is None:
        values = np.concatenate([truth, np.zeros((n_more, *truth.shape[1:]))]).astype(np.float64)
        is_more = taught >= n
        values[taught] = np.where(is_more, decisions.T, (decisions.T + values[taught].T) / 2).T
        return Lesson(np.arange(n + n_more), values, of_row, origin, decisions, taught, True)
    shares = softmax(decisions * scale)
    row, code, part = _share_out(shares, taught, np.searchsorted(classes, truth), n + n_more)
    answers = classes[shares.argmax(axis=1)]
    return Lesson(row, classes[code], of_row[row] * part, origin[row], answers, taught, False)


def _share_out(
    shares: NDArray[np.float64], taught: NDArray[np.int64], codes: NDArray[np.int64], n_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return rows, their classes and the weight of each: the mean of label and teacher, in steps.

    `codes` are the labels of the first rows; the others have the classes of the teacher alone.
    """
    n = len(codes)
    hot = np.zeros((n_rows, shares.shape[1]))
    hot[np.arange(n), codes] = 1.0
    of_label = np.where(taught < n, 0.5, 0.0)[:, np.newaxis]
    hot[taught] = of_label * hot[taught] + (1 - of_label) * shares
    steps = np.rint(hot * _STEPS)
    row, code = np.nonzero(steps)
    return row, code, steps[row, code] / _STEPS


def _out_of_fold(
    teacher: Any, X: Any, y: NDArray[Any], groups: ArrayLike | None, classes: NDArray[Any] | None
) -> NDArray[np.float64]:
    """Return what clones of a teacher say of the rows that they were not trained on."""
    fewest = (
        len(y) if classes is None else int(np.bincount(np.unique(y, return_inverse=True)[1]).min())
    )
    n_groups = fewest if groups is None else len(np.unique(np.asarray(groups)))
    n_folds = min(_FOLDS, fewest, n_groups)
    if n_folds < 2:
        raise RowsError("teacher: a class has one row, or all are of one group; give X_more alone")
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold  # slow to import

    splitter: Any = GroupKFold(n_folds)
    if groups is None:
        kind = KFold if classes is None else StratifiedKFold
        splitter = kind(n_folds, shuffle=True, random_state=0)
    answers: NDArray[np.float64] | None = None
    folds = list(splitter.split(np.zeros(len(y)), y, groups))
    for inside, outside in progress.steps("the teacher labels rows", folds):
        try:
            fitted = clone(teacher).fit(_safe_indexing(X, inside), y[inside])
        except ValueError as error:  # as of a regressor of labels
            raise DataError(f"teacher: it refuses the rows: {str(error).splitlines()[0]}") from None
        part = _decisions(fitted, _safe_indexing(X, outside), classes)
        answers = np.zeros((len(y), *part.shape[1:])) if answers is None else answers
        answers[outside] = part
    assert answers is not None
    return answers


def _fit(teacher: Any, X: Any, y: NDArray[Any], can_clone: bool) -> Any:
    """Return the teacher, or a clone fitted to all rows where it is not fitted."""
    if can_clone:
        try:
            check_is_fitted(teacher)
        except NotFittedError:
            return clone(teacher).fit(X, y)
    return teacher


def _has_probabilities(teacher: Any) -> bool:
    return hasattr(teacher, "predict_proba")


def _decisions(fitted: Any, X: Any, classes: NDArray[Any] | None) -> NDArray[np.float64]:
    """Return values, or a number for each class: log probabilities, decisions, or its label."""
    if classes is None:
        return np.asarray(fitted.predict(X), dtype=np.float64)
    labels = np.asarray(getattr(fitted, "classes_", classes))
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise DataError(f"teacher: its class {unknown.tolist()[0]!r} is not a label in y")
    if _has_probabilities(fitted):
        numbers = logs(np.maximum(np.asarray(fitted.predict_proba(X), dtype=np.float64), 1e-9))
    elif hasattr(fitted, "decision_function") and not _of_pairs(fitted):
        numbers = np.asarray(fitted.decision_function(X), dtype=np.float64)
        if numbers.ndim == 1:
            numbers = np.stack([-numbers / 2, numbers / 2], axis=1)
    else:
        predicted = np.asarray(fitted.predict(X))
        if not np.all(np.isin(predicted, labels)):
            raise DataError("teacher: it predicts what is no label in y; give a classifier")
        numbers = np.where(predicted[:, np.newaxis] == labels, 0.0, -20.0)
    if numbers.shape[1:] != (len(labels),):
        raise DataError(
            f"teacher: it gives {numbers.shape[1:]} numbers a row for {len(labels)} classes"
        )
    answers = np.full((len(numbers), len(classes)), numbers.min() - 20.0)
    answers[:, np.searchsorted(classes, labels)] = numbers
    return answers


def _of_pairs(fitted: Any) -> bool:
    """Whether the decisions are of pairs of classes, not of classes, so that labels teach."""
    options = fitted.get_params() if hasattr(fitted, "get_params") else {}
    return "ovo" in [v for k, v in options.items() if k.endswith("decision_function_shape")]


def _temperature(decisions: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    """Return the factor of decisions whose softmax has the least log loss."""
    rows = np.arange(len(codes))

    def loss(factor: float) -> float:
        return float(-logs(np.maximum(softmax(decisions * factor)[rows, codes], 1e-9)).mean())

    return min(WIDE_TEMPERATURES, key=loss)


# Components hardly ever take less code.
_LEAST_CODE = 1536


def train_drawn(
    method: Any,
    options: Mapping[str, Any],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    limits: Limits | None,
    target: str,
    measure: Callable[[IntegerModel], Usage],
    **rows: Any,
) -> tuple[Any, int]:
    """Train a method with as many components as fit; return the estimator and the trainings.

    Where flash decides, five ternary weights take a byte; two bits a weight take fewer
    instructions. A model that is over a limit is trained again with fewer components.
    """
    n_classes, n_inputs = np.unique(np.asarray(y)).size, np.shape(X)[1]
    sides = padded_dimension(n_inputs), 1 if n_classes == 2 else n_classes
    n, settings, is_open = 0, dict(options), "n_components" not in options
    layout = replace(DRAWN, ternary=not settings.get("binary"))
    if limits is not None and limits.flash is not None:
        least = 0 if is_open else layout.table_bytes(settings["n_components"], *sides)
        if least > limits.flash:
            raise BudgetError(
                f"a model of {settings['n_components']} components needs at least {least} bytes of "
                f"flash on {target}; use fewer {{n_components}} or a larger budget",
                n_components=None,
            )
        if is_open:
            most = components_within(max(1, limits.flash - _LEAST_CODE), layout, *sides)
            settings["n_components"] = n = int(np.clip(most, WORD, MOST_CHOSEN))
    trainings = 0
    while True:
        trainings += 1
        estimator = method(**settings).fit(X, y, sample_weight, **rows)
        if n:
            estimator.machine_ = _pack(estimator.machine_)
        model = as_integer_model(estimator)
        used = measure(model)
        if used.share <= 1:
            return estimator, trainings
        if not is_open or n <= WORD:
            advice = "give a larger budget" if is_open else "use fewer {n_components}"
            raise BudgetError(f"the trained model needs {used.text}; {advice}", n_components=None)
        n = max(reduce_size(n, WORD, used.excess(model), model), WORD)
        settings |= {"n_components": n, "sigma": estimator.sigma_}


def _pack(model: IntegerModel) -> IntegerModel:
    """Let five ternary weights share a byte."""
    parts = (
        replace(part, packed=True) if isinstance(part, Ternary) else part
        for part in model.readout.parts
    )
    return replace(model, readout=replace(model.readout, parts=tuple(parts)))
