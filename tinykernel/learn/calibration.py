"""Fit the decision part of a model to rows that it was not trained on."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.checks import as_groups, check_pair
from tinykernel.base.errors import DataError, ModelError, OptionError, RowsError, ShapeError
from tinykernel.base.frames import in_numbers
from tinykernel.base.text import count, percent
from tinykernel.learn import confidence as shares
from tinykernel.learn.confidence import (
    Ranking,
    Threshold,
    calibration_error,
    confidence_table,
    fit_temperature,
)
from tinykernel.learn.novelty import Alarms, alarms, fit_novelty
from tinykernel.model.answers import Decision, margins, softmax
from tinykernel.model.counters import as_classifier
from tinykernel.model.integer import IntegerModel

_ADVICE = "; --max-error SHARE or --coverage SHARE refuses unsure ones"


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrated model, and what the rows say about it.

    Parameters
    ----------
    model : IntegerModel
        With a decision part.
    rows, answered, wrong : int
        Rows used, rows that get an answer, and wrong answers.
    groups : int or None
        Number of groups, where the promise is for new groups.
    independent : float
        Number of independent rows that these rows count as.
    bound : float
        Upper bound of the error among the answers; of the worst class with `per_class`.
    confidence : float
        Confidence of the bound.
    error_before, error_after : float
        Expected calibration error of the probabilities with temperature 1, and with the
        temperature fitted to the other half of the rows. The model uses the better one.
    alarms : Alarms or None
        The threshold of novelty, where a rate of false alarms was asked for.
    remarks : tuple of str
        Deviations from the request, a sentence each.
    coverage_of_groups : float or None
        Mean over groups of the share of their rows that get an answer.
    """

    model: IntegerModel
    rows: int
    answered: int
    wrong: int
    groups: int | None
    independent: float
    bound: float
    confidence: float
    error_before: float
    error_after: float
    alarms: Alarms | None = None
    remarks: tuple[str, ...] = ()
    coverage_of_groups: float | None = None

    @property
    def coverage(self) -> float:
        """Share of the rows that get an answer."""
        return self.answered / self.rows

    @property
    def statement(self) -> str:
        """The promise in a sentence."""
        assert self.model.decision is not None
        return self.model.decision.statement

    def words(self) -> list[tuple[str, str]]:
        """Return the figures as names and values."""
        assert self.model.decision is not None
        rows, over, novel = count(self.rows, "row"), "", ""
        if self.groups is not None:
            rows += f" of {count(self.groups, 'group')}, which count as "
            rows += f"{self.independent:.0f} independent rows"
        if self.coverage_of_groups is not None:  # the guarantee for new groups
            over = f"; on average over groups {percent(self.coverage_of_groups)}"
        if self.alarms is not None:
            novel = f"above {self.alarms.threshold}: {self.alarms.alarms} of these rows"
        share, temperature = self.wrong / max(1, self.answered), self.model.decision.temperature
        used = "a temperature, which is not used"
        if temperature != 1:
            used = f"the chosen temperature of {temperature:.3g}"
        answered = f"{percent(self.coverage)}, of which {self.wrong} are wrong ({percent(share)})"
        errors = f"{self.error_before:.4f}; {self.error_after:.4f}"
        least = self.model.decision.least_margins
        return [
            ("rows", rows),
            ("promise", self.statement),
            ("answered", f"{answered}{over}"),
            ("least margin", least if self.model.decision.rejects else f"{least}{_ADVICE}"),
            ("novel", novel),
            ("calibration", f"expected calibration error {errors} with {used}"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the model as JSON types."""
        assert self.model.decision is not None
        return {
            "statement": self.statement,
            "rows": self.rows,
            "groups": self.groups,
            "independent_rows": self.independent,
            "answered": self.answered,
            "coverage": self.coverage,
            "coverage_of_groups": self.coverage_of_groups,
            "wrong": self.wrong,
            "bound": self.bound,
            "confidence": self.confidence,
            "thresholds": self.model.decision.thresholds.tolist(),
            "temperature": self.model.decision.temperature,
            "calibration_error": [self.error_before, self.error_after],
            **({} if self.alarms is None else {"novelty": self.alarms.to_dict()}),
            "remarks": list(self.remarks),
        }


def calibrate(
    model: object,
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
    """Fit probabilities, and a threshold below which the model answers "I do not know".

    Parameters
    ----------
    model : IntegerModel or fitted classifier
    X : array-like, shape (n, n_inputs)
        Rows that the model was not trained on. That is not checked.
    y : array-like, shape (n,)
        Their labels; with `per_class` every class of the model must be among them.
    max_error : float, optional
        Largest error among the answered rows, above 0 and below 1. The threshold is the lowest for
        which it can be promised.
    coverage : float, optional
        Or the share of rows to answer. With neither option all rows are answered.
    per_class : bool, default=False
        Whether each class has its own threshold and promise.
    confidence : float, default=0.95
        Confidence of the promise; with `per_class` that it holds for all classes.
    groups : array-like, shape (n,), optional
        Which person, record or batch each row belongs to. The promise is then for new groups: rows
        of one group are alike and count as fewer. Without groups it is for new rows of the same
        groups.
    false_alarms : float, optional
        Largest share of rows of known classes that may be taken for novel. The threshold of novelty
        is the lowest for which it can be promised. Without this option there is none.
    known : (X, y), optional
        Rows of known classes, best the training rows; needs `false_alarms`. Novelty then includes
        the distance to prototypes of these rows, see `Decision`. A fifth of the rows, at least 50,
        fits the conversion of margins to distances; the promise uses the others. If the scores
        alone are clearly better, novelty is computed from them, and `remarks` says so.

    Returns
    -------
    Calibration

    Raises
    ------
    TinykernelError
        If a number is out of range, a class has no row, or the rows cannot support the promise;
        then the message says how many are needed.

    Notes
    -----
    Thresholds: Learn then Test (see `tinykernel.learn.confidence`) or split conformal
    prediction. Temperature: Guo et al. 2017. Groups, errors: Korn & Graubard 1998, by the variance
    of errors between groups, with at most two rows per group; this is approximate, and fewer than 8
    groups promise nothing. Groups and coverage: Lee, Barber & Willett 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tinykernel import TernaryKernelClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> options = {"n_components": 128, "effort": "quick", "epochs": 20, "random_state": 0}
    >>> trained = TernaryKernelClassifier(**options)
    >>> done = calibrate(trained.fit(X[:900], y[:900]), X[900:], y[900:], max_error=0.05)
    >>> done.bound <= 0.05, done.coverage > 0.5
    (True, True)
    """
    request = _Request(max_error, coverage, per_class, 1 - confidence)
    request.check(false_alarms, known)
    integer = as_classifier(model, "calibrate")
    if integer.is_one_class:
        raise ModelError(
            "calibrate: the model has one class; calibrate a NoveltyDetector with its own method"
        )
    X = in_numbers(model, X)
    scores = integer.scores(X)
    labels, given_groups = _check(integer, len(scores), y, groups)
    answers, margin = margins(scores)
    rows = _Rows(margin, answers == labels, given_groups)
    lacking = [name for at, name in enumerate(integer.classes) if not (labels == at).any()]
    if lacking and per_class:
        raise RowsError(f"calibrate: class {lacking[0]!r} has no row; give rows of every class")
    independent = float(rows.n)
    if rows.groups is not None:
        right = rows.right.astype(np.float64)
        independent = shares.effective_rows(right, rows.groups, confidence)
    choices = _choices(rows, request, independent / rows.n, answers, integer.classes)
    bound = max(choice.bound for choice in choices)
    novelty, novelty_alarms = None, None
    if false_alarms is not None:
        novelty = fit_novelty(integer, X, scores, known)
        free = ~novelty.used
        free_groups = None if rows.groups is None else rows.groups[free]
        novelty_alarms = alarms(
            novelty.novelty[free], free_groups, false_alarms, 1 - confidence, int((~free).sum())
        )
    floats = scores.astype(np.float64) * integer.decision_scale
    before, after = _errors(floats, labels, rows)
    statement = _statement(rows, request, bound)
    decision = Decision(
        np.array([choice.threshold for choice in choices], dtype=np.uint32),
        *confidence_table(margin, rows.right),
        # The temperature of the largest likelihood does not always calibrate better.
        fit_temperature(floats, labels) if after < before else 1.0,
        statement if novelty_alarms is None else statement + novelty_alarms.statement,
        None if novelty_alarms is None else novelty_alarms.threshold,
        None if novelty is None else novelty.prototypes,
        None if novelty is None else novelty.margin_line,
    )
    answered = decision.decide(scores) >= 0
    remarks = [f"class {name!r} has no row: nothing is known of it" for name in lacking]
    if novelty is not None and novelty_alarms is not None:
        remarks += novelty.remarks(novelty_alarms.threshold)
    return Calibration(
        model=replace(integer, decision=decision),
        rows=rows.n,
        answered=int(answered.sum()),
        wrong=int((answered & ~rows.right).sum()),
        groups=None if rows.groups is None else rows.n_groups,
        independent=independent,
        bound=bound,
        confidence=confidence,
        error_before=before,
        error_after=after,
        alarms=novelty_alarms,
        coverage_of_groups=None if rows.groups is None else _mean_of_groups(answered, rows.groups),
        remarks=tuple(remarks),
    )


@dataclass(frozen=True)
class _Request:
    max_error: float | None
    coverage: float | None
    per_class: bool
    risk: float

    def check(self, false_alarms: float | None, known: object) -> None:
        """Refuse numbers out of range and options that exclude each other."""
        if self.max_error is not None and self.coverage is not None:
            raise OptionError("calibrate: give a largest error or a coverage, not both")
        if self.per_class and self.max_error is None and self.coverage is None:
            problem = "calibrate: {per_class} needs a largest error or a coverage"
            raise OptionError(problem, per_class=None)
        if known is not None:
            check_pair("known", known)
        if known is not None and false_alarms is None:
            raise OptionError("calibrate: known needs {false_alarms}", false_alarms=None)
        for name, value in {
            "the largest error": self.max_error,
            "the coverage": self.coverage,
            "the confidence": 1 - self.risk,
            "the share of false alarms": false_alarms,
        }.items():
            if value is not None and not (isinstance(value, Real) and 0 < value < 1):
                raise OptionError(f"calibrate: {name} must be above 0 and below 1; got {value!r}")


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows, or those with one answer: their margins, and which answers are right."""

    margin: NDArray[np.uint32]
    right: NDArray[np.bool_]
    groups: NDArray[Any] | None
    answer: str = ""  # " as 'label'" for rows of one answer

    @property
    def n(self) -> int:
        return len(self.margin)

    @property
    def n_groups(self) -> int:
        return len(np.unique(np.asarray(self.groups)))

    @property
    def title(self) -> str:
        return f"{self.n} rows{' answered' if self.answer else ''}{self.answer}"


def _check(
    model: IntegerModel, n: int, y: ArrayLike, groups: ArrayLike | None
) -> tuple[NDArray[np.intp], NDArray[Any] | None]:
    """Return the positions of labels in the classes, and groups, of n rows."""
    names = np.asarray(y)
    if names.shape != (n,) or not n:
        raise ShapeError(f"calibrate: {names.shape} labels for {n} rows; give one per row")
    index = {label: number for number, label in enumerate(model.classes)}
    unknown = next((label for label in names.tolist() if label not in index), None)
    if unknown is not None:
        raise DataError(f"calibrate: {unknown!r} is not a class of the model; leave it out")
    positions = np.array([index[label] for label in names.tolist()], dtype=np.intp)
    return positions, as_groups(groups, n)


def _choices(
    rows: _Rows, request: _Request, share: float, answers: NDArray[np.intp], names: tuple[Any, ...]
) -> list[Threshold]:
    """Choose the threshold, or one for each class."""
    if not request.per_class:
        return [_choice(rows, request, share)]
    request, choices = replace(request, risk=request.risk / len(names)), []
    for label, name in enumerate(names):
        mask = answers == label
        groups = None if rows.groups is None else rows.groups[mask]
        part = _Rows(rows.margin[mask], rows.right[mask], groups, f" as {name!r}")
        choices.append(_choice(part, request, share))
    return choices


def _choice(rows: _Rows, request: _Request, share: float) -> Threshold:
    """Choose a threshold, or explain why there is none."""
    if not rows.n:
        raise RowsError(f"calibrate: no row is answered{rows.answer}; give more rows")
    ranking, risk = Ranking(rows.margin, rows.right, share, rows.groups), request.risk
    if request.max_error is not None:
        chosen, best = ranking.by_error(request.max_error, risk)
        if chosen is None:
            raise RowsError(_why_none(rows, request, best, share))
        return chosen
    if request.coverage is None:
        return ranking.above(-1, risk)  # all rows
    levels = shares.conformal_levels(rows.groups, rows.n)
    chosen = ranking.by_coverage(request.coverage, risk, levels)
    if chosen is None:
        needed = int(np.ceil(request.coverage / (1 - request.coverage) - 1e-6))
        units = rows.title
        if rows.groups is not None:
            units = units.replace(f"{rows.n} rows", f"{rows.n_groups} groups")
        raise RowsError(
            f"calibrate: {units} are too few for a coverage of {_percent(request.coverage)}; at "
            f"least {needed} are needed; give more"
        )
    return chosen


def _why_none(rows: _Rows, request: _Request, best: Threshold, share: float) -> str:
    """Say why an error cannot be promised, and how many rows could."""
    assert request.max_error is not None
    least = shares.rows_needed(request.max_error, request.risk)
    have, effective = rows.title, share * rows.n
    if rows.groups is not None:
        effective = min(effective, shares.most_effective(rows.groups))
        have += shares.worth_of_groups(rows.groups, effective)
    promise = f"an error of at most {_percent(request.max_error)}"
    if least is not None and (effective < least + 1 or shares.too_few_groups(rows.groups)):
        rest = f"at least {least + 1} independent rows are needed, all of them right"
        if rows.groups is not None:
            rest = (
                f"at least {shares.groups_needed(least + 1)} groups are needed, all of their rows "
                "right; without groups the promise is for new rows of the same groups"
            )
        return f"calibrate: {have} are too few to promise {promise}; {rest}"
    observed = best.wrong / max(1, best.answered)
    needed = shares.rows_needed(request.max_error, request.risk, error=observed)
    more = "; no number of rows would do at this rate"
    if needed is not None:
        n_needed = needed * rows.n / effective * rows.n / max(1, best.answered)
        more = f" or more rows (about {int(np.ceil(n_needed))} rows are needed at this rate)"
    return (
        f"calibrate: {have} cannot promise {promise}: of the {best.answered} surest answers "
        f"{best.wrong} are wrong, so that up to {_percent(best.bound)} may be; give a larger error"
        f"{more}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _statement(rows: _Rows, request: _Request, bound: float) -> str:
    """Describe the promise and the rows that support it."""
    grouped = rows.groups is not None
    with_rows = f"with {'this' if rows.n == 1 else 'these'} {count(rows.n, 'row')}"
    with_rows += f" of {count(rows.n_groups, 'group')}" if grouped else ""
    share = request.max_error if request.max_error is not None else bound
    text = (
        f"{with_rows}: error among answered{' of every class' if request.per_class else ''} at "
        f"most {_percent(share)} with {'about ' if grouped else ''}{_percent(1 - request.risk)} "
        "confidence"
    )
    if shares.too_few_groups(rows.groups):
        text = f"{with_rows}: too few groups to promise an error for new ones"
    if request.coverage is not None:
        text += f", and at least {_percent(request.coverage)} answered on average"
        text += " over new groups" if grouped else ""
    return text


def _mean_of_groups(answered: NDArray[np.bool_], groups: NDArray[Any]) -> float:
    """Return the mean over groups of the share of their rows that get an answer."""
    _, group, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return float((np.bincount(group, answered) / counts).mean())


def _errors(
    floats: NDArray[np.float64], labels: NDArray[np.intp], rows: _Rows
) -> tuple[float, float]:
    """Return the calibration errors with temperature 1, and with that of the other half."""
    number = np.arange(rows.n)
    if rows.groups is not None:
        number = np.unique(rows.groups, return_inverse=True)[1]
    half, surest = number % 2 == 0, np.empty(rows.n)
    for part in (half, ~half):
        if part.any():
            other = ~part if (~part).any() else part
            temperature = fit_temperature(floats[other], labels[other])
            surest[part] = softmax(floats[part], temperature).max(axis=1)
    before = softmax(floats).max(axis=1)
    return calibration_error(before, rows.right), calibration_error(surest, rows.right)
