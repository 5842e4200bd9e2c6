"""Figures that compare predictions with the truth, and their confidence intervals."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.checks import as_groups, refuse_missing
from tinykernel.base.errors import DataError, ShapeError
from tinykernel.base.text import count, join, percent, size, visible
from tinykernel.learn import confidence as shares
from tinykernel.model.answers import margins, softmax
from tinykernel.model.integer import IntegerModel

_TAIL = (1 + shares.LEVEL) / 2


def interval_in_words(
    interval: tuple[float, float] | None, n_groups: int | None, digits: int | None = 1
) -> str:
    """Describe an interval of a share in percent; with `digits` None of a number."""
    if interval is None:
        return "too few groups for an interval"
    low, high = (f"{x:.4g}" if digits is None else f"{100 * x:.{digits}f}" for x in interval)
    about = "" if n_groups is None else "about "
    return f"with {about}95 % confidence {low} to {high}{'' if digits is None else ' %'}"


def accuracy_interval(
    right: ArrayLike, groups: ArrayLike | None = None
) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of a share, or None for fewer than 8 groups.

    Without groups it is exact (Clopper and Pearson 1934). With K groups it is the exact one for
    n / deff (t(n - 1) / t(K - 1))^2 independent rows, t being quantiles of Student (Korn and
    Graubard 1998), deff the design effect (`_design_effect`). It holds for groups like these: a
    kind of group of which none is among them is not allowed for, while the promises of `calibrate`
    allow for it. `benchmarks/interval_coverage.py` measures the coverage and the width.

    >>> low, high = accuracy_interval([True] * 90 + [False] * 10)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    if shares.too_few_groups(groups):
        return None
    number = None if groups is None else float(len(np.unique(np.asarray(groups))))
    return _share_interval(np.asarray(right, dtype=np.float64), groups, number)


def balanced_interval(
    labels: NDArray[Any], right: NDArray[np.bool_], groups: ArrayLike | None
) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the mean recall, or None for fewer than 8 groups.

    Each recall p_c has an interval (l_c, u_c) as in `accuracy_interval`, but K is the number of
    groups of equal size (`shares.kish`) that hold as much of the label: one of which two groups of
    20 have nearly all rows is as uncertain as two groups are. The mean of C recalls lies
    ``sqrt(sum_cd r_cd (p_c - l_c) (p_d - l_d)) / C`` above its lower end, likewise below its upper
    one (Zou 2007, "Toward using confidence intervals to compare correlations"); r is the
    correlation of the recalls by group. The sum is at least that of independent recalls.

    >>> labels, groups = np.repeat(["N", "S"], 200), np.arange(400) % 20
    >>> right, few = np.arange(400) % 7 > 0, np.where(labels == "S", groups % 2, groups)
    >>> [np.round(balanced_interval(labels, right, each), 2).tolist() for each in (groups, few)]
    [[0.81, 0.89], [0.54, 0.93]]
    """
    if shares.too_few_groups(groups):
        return None
    place = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    recalls, ends, excess = list[float](), list[tuple[float, float]](), list[NDArray[np.float64]]()
    for label in np.unique(labels):
        rows = labels == label
        outcome, part = right[rows].astype(np.float64), None if place is None else place[rows]
        recalls.append(float(outcome.mean()))
        ends.append(_share_interval(outcome, part, None if part is None else shares.kish(part)))
        if place is not None:
            sums = np.bincount(place[rows], outcome - recalls[-1], place.max() + 1)
            excess.append(np.asarray(sums / max(float(np.sqrt(sums @ sums)), 1e-12)))
    away = np.abs(np.array(ends) - np.array(recalls)[:, None])
    squares = np.square(away).sum(axis=0)
    if place is not None:
        squares = np.maximum(squares, np.square(away.T @ np.array(excess)).sum(axis=1))
    below, above = np.sqrt(squares) / len(recalls)
    mean = float(np.mean(recalls))
    return max(0.0, mean - float(below)), min(1.0, mean + float(above))


def _share_interval(
    outcome: NDArray[np.float64], groups: ArrayLike | None, number: float | None
) -> tuple[float, float]:
    """Return the interval of `accuracy_interval` for groups that count as so many."""
    from scipy.special import betaincinv, stdtrit

    share, n = float(outcome.mean()), float(outcome.size)
    if groups is not None and number is not None:
        if number <= 1:
            return 0.0, 1.0
        ratio = stdtrit(n - 1, _TAIL) / stdtrit(number - 1, _TAIL)
        n = max(1.0, n / _design_effect(outcome, groups) * ratio**2)
    good, tail = share * n, 1 - _TAIL
    low = 0.0 if share == 0 else float(betaincinv(good, n - good + 1, tail))
    high = 1.0 if share == 1 else float(betaincinv(good + 1, n - good, 1 - tail))
    return low, high


def _design_effect(outcome: NDArray[np.float64], groups: ArrayLike) -> float:
    """Return how many rows of these groups count as one: 1 + (m - 1) rho (Kish 1965).

    m is the size of the group of a row, on average; rho is the correlation of the rows of a group.
    Few wrong answers cannot show that rho is small: with w wrong or w right ones, whichever are
    fewer, a rho of 1 / (1 + 8 w) is assumed of groups of average size; with none each group is one.
    """
    n, fewer = outcome.size, min(outcome.sum(), outcome.size - outcome.sum())
    size = n / shares.kish(groups)
    if not fewer:
        return size
    mean_size = n / len(np.unique(np.asarray(groups)))
    least = 1 + (mean_size - 1) / (1 + 8 * fewer)
    return max(float(least), 1 + (size - 1) * shares.intraclass_correlation(outcome, groups))


def rmse_interval(
    errors: NDArray[np.float64], groups: ArrayLike | None
) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the RMSE on new rows or groups; None for few groups.

    By Student's t for the logarithm of the mean squared error, whose variance by groups is that of
    independent rows times a design effect (Kish 1965).
    `benchmarks/interval_coverage.py` measures the coverage and the width.
    """
    from scipy.special import stdtrit

    if shares.too_few_groups(groups):
        return None
    squares, n = np.square(errors), errors.size
    mean = float(squares.mean())
    number, effect = n, 1.0
    if groups is not None:
        number = len(np.unique(np.asarray(groups)))
        size = n / shares.kish(groups)
        # Squares are skew: what their correlation seems to be is mostly too small.
        effect += (size - 1) * min(1.5 * shares.intraclass_correlation(squares, groups), 1.0)
    if mean == 0:
        return 0.0, 0.0
    if number <= 1:
        return 0.0, math.inf
    error = shares.standard_error(squares, None) / mean * math.sqrt(effect)
    factor = math.exp(min(stdtrit(number - 1, _TAIL) * error / 2, 700.0))
    return math.sqrt(mean) / factor, math.sqrt(mean) * factor


@dataclass(frozen=True, eq=False)
class DecisionFigures:
    """How often a model answers, and how often that is wrong."""

    answered: NDArray[np.bool_]  # (n,)
    right: NDArray[np.bool_]  # (n,): whether the label with the largest score is the true one
    # 95 % confidence interval of the error among the answers; None where nothing is answered
    interval: tuple[float, float] | None
    # for the softmax of the decisions, the probabilities, and the confidence on the chip
    calibration_error: tuple[float, float, float]
    curve: list[tuple[float, float]]  # surest share of the rows, and the error among them

    @property
    def coverage(self) -> float:
        """Share of the rows that are answered."""
        return float(self.answered.mean())

    @property
    def error(self) -> float | None:
        """Share of the answers that are wrong."""
        return float(np.mean(~self.right[self.answered])) if self.answered.any() else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON types."""
        return {
            "answered": int(self.answered.sum()),
            "coverage": self.coverage,
            "error": self.error,
            "interval": None if self.interval is None else list(self.interval),
            "calibration_error": list(self.calibration_error),
            "curve": [list(point) for point in self.curve],
        }

    def words(self, n_groups: int | None) -> list[tuple[str, str]]:
        """Return the figures as names and values."""
        answered = f"{percent(self.coverage)} of the rows"
        if self.error is not None:
            answered += f", {percent(self.error)} of them wrong"
        if self.interval is not None:
            answered += f", {interval_in_words(self.interval, n_groups, 2)}"
        plain, probability, confidence = (f"{error:.4f}" for error in self.calibration_error)
        curve = (f"{100 * share:.0f} %: {percent(error)}" for share, error in self.curve)
        return [
            ("answered", answered),
            ("surest rows", f"error rate of the surest {', '.join(curve)}"),
            (
                "calibration",
                f"expected error of probabilities {probability} (uncalibrated {plain}), of "
                f"the confidence {confidence}",
            ),
        ]


def decision_figures(
    model: IntegerModel, X: ArrayLike, y: NDArray[Any], interval_of: Any
) -> DecisionFigures | None:
    """Judge the decisions of a model; None where it makes none.

    `interval_of` takes which rows are answered, and which answers are wrong; it returns the
    interval of the share of wrong answers.
    """
    decision = model.decision
    if decision is None:
        return None
    scores = model.scores(X)
    right = np.asarray(np.array(model.classes)[scores.argmax(axis=1)] == y)
    answered = np.asarray(decision.decide(scores) >= 0)
    floats = scores.astype(np.float64) * model.decision_scale
    errors = (
        shares.calibration_error(softmax(floats).max(axis=1), right),
        shares.calibration_error(decision.probabilities(floats).max(axis=1), right),
        shares.calibration_error((decision.confidence(scores) + 0.5) / 256, right),
    )
    interval = interval_of(answered, ~right[answered]) if answered.any() else None
    curve = error_by_coverage(margins(scores)[1], right)
    return DecisionFigures(answered, right, interval, errors, curve)


def error_by_coverage(
    margin: NDArray[np.uint32], right: NDArray[np.bool_]
) -> list[tuple[float, float]]:
    """Return pairs of coverage and error, where only the surest rows are answered.

    >>> error_by_coverage(np.arange(10, dtype=np.uint32), np.arange(10) > 4)[-1]
    (0.5, 0.0)
    """
    order = np.argsort(-margin.astype(np.int64), kind="stable")
    errors = np.cumsum(~right[order])
    points = (1.0, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5)
    counts = [max(1, round(share * len(margin))) for share in points]
    return [(share, float(errors[n - 1] / n)) for share, n in zip(points, counts, strict=True)]


@dataclass(frozen=True, eq=False)
class Baseline:
    """A simple model on the same rows."""

    name: str
    n_bytes: int  # of its table: weights as int8, splits of eight bytes
    training_rows: int
    figures: dict[str, float]  # "accuracy" and "balanced_accuracy", or "rmse" and "mae"
    by: str  # name of the figure that is compared
    made_of: str  # {"weights", "splits"}
    worse: bool  # whether that figure is worse than the model's, possibly by chance
    as_good: bool  # whether it is not significantly worse
    better: bool  # whether it is significantly better

    @property
    def title(self) -> str:
        """The name, and the size of the tables without code."""
        return self.name + (f" of {size(self.n_bytes)} of {self.made_of}" if self.n_bytes else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types, the figures among them."""
        fields = dict(vars(self))
        return {**fields.pop("figures"), **fields}

    @staticmethod
    def of_dict(record: dict[str, Any]) -> "Baseline":
        """Read a `to_dict` of labels; a malformed record raises an error of any type."""
        kinds = {"name": str, "n_bytes": int, "training_rows": int, "by": str, "made_of": str}
        kinds |= dict.fromkeys(("worse", "as_good", "better"), bool)
        names = ("accuracy", "balanced_accuracy", "macro_f1")
        fields = {name: kind(record[name]) for name, kind in kinds.items()}
        return Baseline(figures={name: float(record[name]) for name in names}, **fields)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation(ABC):
    """How good a model is on labelled rows.

    Parameters
    ----------
    n_groups : int or None
        Number of people, records or batches that the rows come from, where it is known.
    interval : tuple of float or None
        95 % confidence interval of the accuracy or RMSE on new rows, approximate for new groups;
        None for fewer than 8 groups.
    baselines : dict of str to Baseline
        "majority" or "mean", "linear" and "tree"; empty without training rows.
    cautions : tuple of str
        Reasons why the figures may mislead, one line each.
    """

    n_groups: int | None
    interval: tuple[float, float] | None
    baselines: dict[str, Baseline] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """Number of compared rows."""

    @property
    @abstractmethod
    def figures(self) -> dict[str, float]:
        """Figures to compare with baselines."""

    @abstractmethod
    def words(self) -> list[tuple[str, str]]:
        """Return the figures as names and values."""

    @property
    def source(self) -> str:
        """How many rows and groups it is from."""
        of = "" if self.n_groups is None else f" of {count(self.n_groups, 'group')}"
        return f"{count(self.rows, 'row')}{of}"

    @property
    def too_few_groups(self) -> str:
        """Say that the groups are too few for a verdict; empty where they are not."""
        if not self.n_groups or self.interval is not None:
            return ""
        groups = "one group is" if self.n_groups == 1 else f"{self.n_groups} groups are"
        return f"{groups} too few to conclude that the model is better on others"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; every command prints these keys."""
        return {
            "rows": self.rows,
            "groups": self.n_groups,
            **self.figures,
            "interval": None if self.interval is None else list(self.interval),
            "baselines": {name: each.to_dict() for name, each in self.baselines.items()},
            "cautions": list(self.cautions),
        }


_MOST_ROWS = 2.0**53  # counts up to here are exact in float64


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelEvaluation(Evaluation):
    """Accuracy of labels, in addition to the fields of `Evaluation`.

    Parameters
    ----------
    classes : tuple
        Labels: those of the model, then those that only the rows have.
    confusion : ndarray of int, shape (n_classes, n_classes)
        Number of rows by true label (row) and predicted label (column).
    balanced_interval : tuple of float or None
        95 % confidence interval of the balanced accuracy, like `interval`. It is wide where a label
        comes from few groups.
    decisions : DecisionFigures or None
        For a calibrated model.

    Examples
    --------
    >>> judged = compare(["ok", "ok", "bad", "bad"], ["ok", "ok", "ok", "bad"], ["bad", "ok"])
    >>> judged.accuracy, judged.recall.tolist(), judged.confusion.tolist()
    (0.75, [0.5, 1.0], [[1, 1], [0, 2]])
    """

    classes: tuple[Any, ...]
    confusion: NDArray[np.int64]
    balanced_interval: tuple[float, float] | None = None
    decisions: DecisionFigures | None = None

    @property
    def rows(self) -> int:
        """Number of compared rows."""
        return int(self.confusion.sum())

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each label; shape (n_classes,)."""
        return np.asarray(self.confusion.sum(axis=1))

    @property
    def accuracy(self) -> float:
        """Share of rows with the right label."""
        return float(np.trace(self.confusion) / self.rows)

    @property
    def recall(self) -> NDArray[np.float64]:
        """Share of the rows of each label that get it; NaN without rows."""
        return _shares(np.diag(self.confusion), self.counts)

    @property
    def precision(self) -> NDArray[np.float64]:
        """Share of the predictions of each label that are right; NaN without predictions."""
        return _shares(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the labels that have rows."""
        return float(np.nanmean(self.recall))

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels with rows or predictions; a label never predicted right has 0."""
        both = self.counts + self.confusion.sum(axis=0)
        return float(np.nanmean(_shares(2 * np.diag(self.confusion), both)))

    @property
    def figures(self) -> dict[str, float]:
        """Accuracy, balanced accuracy and macro F1."""
        names = ("accuracy", "balanced_accuracy", "macro_f1")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; every command prints these keys."""
        return super().to_dict() | {
            "balanced_interval": self.balanced_interval and list(self.balanced_interval),
            "classes": list(self.classes),
            "counts": self.counts.tolist(),
            "recall": self.recall.tolist(),
            "precision": self.precision.tolist(),
            "confusion": self.confusion.tolist(),
            **({} if self.decisions is None else {"decisions": self.decisions.to_dict()}),
        }

    def words(self) -> list[tuple[str, str]]:
        """Return the figures as names and values."""
        interval = interval_in_words(self.interval, self.n_groups)
        # Classes without rows have no recall.
        absent = [label for label, n in zip(self.classes, self.counts, strict=True) if not n]
        without = f" (no rows of {visible(join(absent))})" if absent else ""
        least = int(np.nanargmin(self.recall))
        if self.n_groups and self.balanced_interval is not None:
            without += f", {interval_in_words(self.balanced_interval, self.n_groups)}"
        right = f"{self.confusion[least, least]} of {count(self.counts[least], 'row')} found"
        return [
            ("accuracy", f"{percent(self.accuracy)}, {interval} ({self.source})"),
            (
                "balanced",
                f"{percent(self.balanced_accuracy)} mean recall of the classes"
                f"{without}, macro F1 {self.macro_f1:.3f}",
            ),
            ("worst class", f"{self.classes[least]}, {right} ({percent(self.recall[least])})"),
            *([] if self.decisions is None else self.decisions.words(self.n_groups)),
        ]

    def to_record(self) -> dict[str, Any]:
        """Return all but the decisions as JSON types, for `of_record`."""
        names = ("classes", "confusion", "groups", "interval", "baselines", "cautions")
        fields = self.to_dict()
        return {name: fields[name] for name in names}

    @staticmethod
    def of_record(record: Any) -> "LabelEvaluation | None":
        """Read the unchecked record of a model file; None if it is not one."""
        try:
            confusion = np.array(record["confusion"], dtype=np.int64)
            n = len(record["classes"])
            if confusion.shape != (n, n) or confusion.min() < 0:
                return None
            if not 0 < confusion.sum(dtype=np.float64) < _MOST_ROWS:
                return None
            interval = record["interval"]
            if interval is not None:
                interval = float(interval[0]), float(interval[1])
            return LabelEvaluation(
                classes=tuple(record["classes"]),
                confusion=confusion,
                n_groups=None if record["groups"] is None else int(record["groups"]),
                interval=interval,
                baselines={
                    str(key): Baseline.of_dict(each) for key, each in record["baselines"].items()
                },
                cautions=tuple(map(str, record["cautions"])),
            )
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
            return None


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def compare(
    y: ArrayLike,
    predicted: ArrayLike,
    classes: Sequence[Any] | None = None,
    groups: ArrayLike | None = None,
) -> LabelEvaluation:
    """Compare true labels y (n,) with predictions."""
    # `classes` are the labels of the model in its order, by default all labels, sorted. Rows of a
    # group are alike, so `groups` widen the interval.
    true, answers = _one_a_row("labels", np.asarray(y), np.asarray(predicted))
    groups = as_groups(groups, true.size)
    known = [] if classes is None else list(classes)
    _check_kinds(true.tolist(), [*answers.tolist(), *known])
    known += [label for label in np.union1d(true, answers).tolist() if label not in known]
    index = {label: number for number, label in enumerate(known)}
    places = [[index[label] for label in labels.tolist()] for labels in (true, answers)]
    confusion = np.zeros((len(known), len(known)), dtype=np.int64)
    np.add.at(confusion, tuple(places), 1)
    return LabelEvaluation(
        classes=tuple(known),
        confusion=confusion,
        n_groups=None if groups is None else len(np.unique(groups)),
        interval=accuracy_interval(true == answers, groups),
        balanced_interval=balanced_interval(true, true == answers, groups),
    )


def _one_a_row(
    name: str, true: NDArray[Any], answers: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return labels or values, and their predictions; refuse other than one per row."""
    if true.ndim != 1 or true.shape != answers.shape or not true.size:
        raise ShapeError(
            f"{name}: shape {true.shape} for predictions of shape {answers.shape}; give one per row"
        )
    refuse_missing(name, true)
    return true, answers


def _check_kinds(true: Sequence[Any], known: Sequence[Any]) -> None:
    """Refuse text as labels if the model's are numbers, and the reverse."""
    kinds = [{isinstance(label, str) for label in labels} for labels in (true, known)]
    if len(kinds[0] | kinds[1]) > 1:
        names = {False: "numbers", True: "text"}
        of_rows, of_model = (" and ".join(names[kind] for kind in sorted(each)) for each in kinds)
        raise DataError(
            f"labels: they are {of_rows} (the first is {true[0]!r}), but those of the model are "
            f"{of_model} ({known[0]!r}); give labels of that type"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueEvaluation(Evaluation):
    """Errors of predicted values, in addition to the fields of `Evaluation`.

    Parameters
    ----------
    n_rows : int
    rmse, mae : float
        Root mean squared error and mean absolute error, in the unit of the values; of several
        quantiles those of the middle one.
    r2 : float
        Explained share of the variance; NaN for constant values.
    coverage : dict of str to float
        Share of rows below each quantile; empty where there are none.

    Examples
    --------
    >>> judged = compare_values([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 6.0])
    >>> judged.rmse, judged.mae, round(judged.r2, 2)
    (1.0, 0.5, 0.2)
    """

    n_rows: int
    rmse: float
    mae: float
    r2: float
    coverage: dict[str, float] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of compared rows."""
        return self.n_rows

    @property
    def figures(self) -> dict[str, float]:
        """RMSE, MAE and R2."""
        return {"rmse": self.rmse, "mae": self.mae, "r2": self.r2}

    def words(self) -> list[tuple[str, str]]:
        """Return the figures as names and values."""
        interval, shares = interval_in_words(self.interval, self.n_groups, None), self.coverage
        return [
            ("RMSE", f"{self.rmse:.4g}, {interval} ({self.source})"),
            ("MAE", f"{self.mae:.4g}"),
            ("R2", f"{self.r2:.4f}"),
            ("rows", ", ".join(f"{percent(shares[name])} at most {name}" for name in shares)),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; every command prints these keys."""
        return super().to_dict() | {"coverage": dict(self.coverage)}


def compare_values(
    y: ArrayLike, predicted: ArrayLike, groups: ArrayLike | None = None
) -> ValueEvaluation:
    """Compare true values with predictions, both of shape (n,)."""
    numbers = np.asarray(y, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    true, answers = _one_a_row("values", *numbers)
    groups = as_groups(groups, true.size)
    errors = answers - true
    spread = float(np.square(true - true.mean()).sum())
    r2 = 1 - float(np.square(errors).sum()) / spread if spread > 0 else float("nan")
    return ValueEvaluation(
        n_rows=true.size,
        n_groups=None if groups is None else len(np.unique(groups)),
        rmse=float(np.sqrt(np.mean(np.square(errors)))),
        mae=float(np.abs(errors).mean()),
        r2=r2,
        interval=rmse_interval(errors, groups),
    )
