"""Fit the decision part of a model to rows that it was not trained on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.confidence import calibration_error, confidence_table, fit_temperature
from tinykernel.decisions.novelty import Alarms, alarms, fit_novelty
from tinykernel.decisions.shares import (
    conformal_levels,
    effective_rows,
    error_bound,
    groups_needed,
    most_effective,
    rows_needed,
    too_few_groups,
)
from tinykernel.decisions.thresholds import Choice, by_coverage, by_error
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.answers.decision import Decision, deficits, margins, softmax

#: Deficits that a model keeps for its prediction sets at most.
_MOST_LEVELS = 4096


@dataclass(frozen=True, eq=False)
class Calibration:
    """A model that knows how sure it is, and what the rows say of it.

    Parameters
    ----------
    model : IntegerModel
        With a decision part.
    rows, answered, wrong : int
        Rows that were used, those that get an answer, and how many answers are wrong.
    groups : int or None
        Groups of these rows, where the promise is for new groups.
    independent : float
        As how many independent rows they count.
    bound : float
        Upper bound of the error among answered; of the worst class with a threshold a class.
    confidence : float
        That of the bound.
    error_before, error_after : float
        Expected calibration error of the probabilities, with temperature 1 and with that of the
        other half of the rows. The model has a temperature other than 1 where that is the smaller.
    alarms : Alarms or None
        What novelty says of these rows, where a rate of false alarms was asked for.
    remarks : tuple of str
        What is not as asked for, a sentence each.
    coverage_of_groups : float or None
        Share of the rows of a group that get an answer, the mean over groups.
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
        """What is promised, in a sentence."""
        assert self.model.decision is not None
        return self.model.decision.statement

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


@dataclass(frozen=True, eq=False)
class _Rows:
    """What the model makes of the calibration rows."""

    scores: NDArray[np.int32]
    labels: NDArray[np.intp]
    groups: NDArray[Any] | None
    classes: tuple[Any, ...]

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.asarray(self.scores.argmax(axis=1) == self.labels)


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
    """Fit probabilities, and a threshold below which the model says that it does not know.

    Parameters
    ----------
    model : IntegerModel, KernelMachine or fitted classifier
    X : array-like, shape (n, n_inputs)
        Rows that the model was not trained on. Nobody can check that here.
    y : array-like, shape (n,)
        Their labels; with `per_class` every class of the model must be among them.
    max_error : float, optional
        Largest error among the answered rows, above 0 and below 1: the threshold is the lowest for
        which that can be promised.
    coverage : float, optional
        Or the share of rows that are to be answered. With neither, all are.
    per_class : bool, default=False
        Whether each class has a threshold of its own, for which the promise then holds.
    confidence : float, default=0.95
        Of the promise; with `per_class` that it holds for all classes.
    groups : array-like, shape (n,), optional
        Which person, record or batch each row belongs to. The promise is then for new groups: rows
        of one group are alike, and count as fewer. Without, it is for new rows of the same groups.
    false_alarms : float, optional
        Share of rows of known classes that may be taken for novel, at most: the threshold of
        novelty is the lowest for which that can be promised. Without, there is none.
    known : (X, y), optional
        Rows of known classes, best those of the training, with `false_alarms`: novelty is then also
        the distance to prototypes of them, see `Decision`. A fifth of the rows to calibrate, at
        least 50, then tells what a margin is worth as a distance, and the others promise. Where
        the scores are clearly better than that, novelty is that of the scores; `remarks` says so.

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
    Thresholds: Learn then Test (see `tinykernel.decisions.thresholds`) or split conformal
    prediction. Temperature: Guo et al. 2017. Groups: Korn & Graubard 1998 for errors, by the
    variance of errors between groups over all rows, and no more than two rows a group; that is
    approximate, and of fewer than 8 groups nothing is promised. Lee, Barber & Willett 2023 for
    coverage and prediction sets.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tinykernel import TernaryKernelClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> options = {"n_components": 128, "effort": "quick", "epochs": 20, "random_state": 0}
    >>> trained = TernaryKernelClassifier(**options)
    >>> found = calibrate(trained.fit(X[:900], y[:900]), X[900:], y[900:], max_error=0.05)
    >>> found.bound <= 0.05, found.coverage > 0.5
    (True, True)
    >>> int(found.model.predict_set(X[900:903], 0.01).sum()) >= 3
    True
    """
    _check_wishes(max_error, coverage, per_class, confidence, false_alarms)
    if known is not None and false_alarms is None:
        raise TinykernelError("calibrate: known rows go with a share of false alarms")
    integer = as_integer_model(model)
    if integer.is_regressor:
        raise TinykernelError("calibrate: the model predicts values, not classes")
    if integer.is_one_class:
        raise TinykernelError(
            "calibrate: the model has one class; tinykernel.estimator.calibrate_one_class sets its "
            "threshold"
        )
    rows = _rows(integer, X, y, groups)
    lacking = [name for at, name in enumerate(rows.classes) if not (rows.labels == at).any()]
    if lacking and per_class:
        raise TinykernelError(
            f"calibrate: class {lacking[0]!r} has no row; give rows of every class"
        )
    wish = _Wish(max_error, coverage, per_class, 1 - confidence)
    independent = _independent(rows, confidence)
    choices = _choices(rows, wish, independent / len(rows.labels))
    thresholds = np.array([choice.threshold for choice in choices], dtype=np.uint32)
    bound = max(choice.bound for choice in choices)
    found = fit = None
    if false_alarms is not None:
        fit = fit_novelty(integer, X, rows.scores, known)
        left = ~fit.used
        groups_left = None if rows.groups is None else rows.groups[left]
        found = alarms(
            fit.novelty[left], groups_left, false_alarms, 1 - confidence, int(fit.used.sum())
        )
    table, shift = confidence_table(margins(rows.scores)[1], rows.right)
    set_deficits, set_levels = _set_levels(rows)
    floats = rows.scores.astype(np.float64) * integer.decision_scale
    before, after = _errors(floats, rows)
    # The likeliest probabilities are not always the better calibrated ones.
    temperature = fit_temperature(floats, rows.labels) if after < before else 1.0
    decision = Decision(
        thresholds,
        table,
        shift,
        temperature,
        set_deficits,
        set_levels,
        _statement(rows, wish, bound) + ("" if found is None else found.statement),
        None if found is None else found.threshold,
        None if fit is None else fit.prototypes,
        None if fit is None else fit.margin_line,
    )
    answers = decision.decide(rows.scores)
    return Calibration(
        model=replace(integer, decision=decision),
        rows=len(answers),
        answered=int(np.sum(answers >= 0)),
        wrong=int(np.sum((answers >= 0) & (answers != rows.labels))),
        groups=None if rows.groups is None else len(np.unique(rows.groups)),
        independent=independent,
        bound=bound,
        confidence=confidence,
        error_before=before,
        error_after=after,
        alarms=found,
        coverage_of_groups=None if rows.groups is None else _mean_of_groups(answers >= 0, rows),
        remarks=(
            *(f"class {name!r} has no row: nothing is known of it" for name in lacking),
            *(() if fit is None or found is None else fit.remarks(found.threshold)),
        ),
    )


def _mean_of_groups(answered: NDArray[np.bool_], rows: _Rows) -> float:
    """Return the mean over groups of the share of their rows that get an answer."""
    groups = np.asarray(rows.groups)
    _, group, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return float((np.bincount(group, answered) / counts).mean())


@dataclass(frozen=True)
class _Wish:
    """What is asked for."""

    max_error: float | None
    coverage: float | None
    per_class: bool
    risk: float


def _check_wishes(
    max_error: float | None,
    coverage: float | None,
    per_class: bool,
    confidence: float,
    false_alarms: float | None,
) -> None:
    if max_error is not None and coverage is not None:
        raise TinykernelError("calibrate: give a largest error or a coverage, not both")
    if per_class and max_error is None and coverage is None:
        raise TinykernelError("calibrate: per class goes with a largest error or a coverage")
    given = {
        "the largest error": max_error,
        "the coverage": coverage,
        "the confidence": confidence,
        "the share of false alarms": false_alarms,
    }
    for name, value in given.items():
        if value is not None and not 0 < value < 1:
            raise TinykernelError(f"calibrate: {name} must be above 0 and below 1; got {value}")


def _rows(model: IntegerModel, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> _Rows:
    """Run the model, and check labels and groups."""
    given = np.asarray(y)
    scores = model.scores(X)
    if given.shape != (len(scores),) or not len(scores):
        raise TinykernelError(f"calibrate: {given.shape} labels for {len(scores)} rows")
    index = {label: number for number, label in enumerate(model.classes)}
    unknown = next((label for label in given.tolist() if label not in index), None)
    if unknown is not None:
        raise TinykernelError(f"calibrate: {unknown!r} is no class of the model; leave it out")
    labels = np.array([index[label] for label in given.tolist()], dtype=np.intp)
    found = None if groups is None else np.asarray(groups)
    if found is not None and found.shape != given.shape:
        raise TinykernelError(f"calibrate: {found.shape} groups for {len(given)} rows")
    return _Rows(scores, labels, found, model.classes)


def _independent(rows: _Rows, confidence: float) -> float:
    """Return as how many independent rows they count."""
    if rows.groups is None:
        return float(len(rows.labels))
    return effective_rows(rows.right.astype(np.float64), rows.groups, confidence)


def _choices(rows: _Rows, wish: _Wish, share: float) -> list[Choice]:
    """Choose the threshold, or one a class."""
    answers, margin = margins(rows.scores)
    every = np.ones(len(answers), dtype=np.bool_)
    if not wish.per_class:
        return [_choice(rows, wish, every, margin, share, "")]
    one = replace(wish, risk=wish.risk / len(rows.classes))
    return [
        _choice(rows, one, answers == label, margin, share, f" as {name!r}")
        for label, name in enumerate(rows.classes)
    ]


def _choice(
    rows: _Rows,
    wish: _Wish,
    mask: NDArray[np.bool_],
    margin: NDArray[np.uint32],
    share: float,
    where: str,
) -> Choice:
    """Choose one threshold on some of the rows, or explain why there is none."""
    margin, right, n = margin[mask], rows.right[mask], int(mask.sum())
    if n == 0:
        raise TinykernelError(f"calibrate: no row is answered{where}; give more rows")
    groups = None if rows.groups is None else rows.groups[mask]
    levels = conformal_levels(groups, n)
    if wish.max_error is None:
        found = by_coverage(margin, right, wish.coverage or 0.0, wish.risk, share, levels, groups)
        if found is None:
            assert wish.coverage is not None
            units = "rows" if groups is None else "groups"
            have = n if groups is None else len(np.unique(groups))
            needed = int(np.ceil(wish.coverage / (1 - wish.coverage) - 1e-6))
            raise TinykernelError(
                f"calibrate: {have} {units}{_answered(where)} are too few for a coverage of "
                f"{_percent(wish.coverage)}; at least {needed} are needed"
            )
        # Without a wish everything is answered.
        return (
            found
            if wish.coverage
            else replace(
                found,
                threshold=0,
                answered=n,
                wrong=int(np.sum(~right)),
                bound=error_bound(int(np.sum(~right)), n, wish.risk, share, groups),
            )
        )
    chosen, best = by_error(margin, right, wish.max_error, wish.risk, share, groups)
    if chosen is None:
        raise TinykernelError(_why_none(wish, best, n, share, groups, where))
    return chosen


def _why_none(
    wish: _Wish, best: Choice, n: int, share: float, groups: NDArray[Any] | None, where: str
) -> str:
    """Say why an error cannot be promised, and how many rows could."""
    assert wish.max_error is not None
    least = rows_needed(wish.max_error, wish.risk)
    have = f"{n} rows{_answered(where)}"
    effective = share * n
    if groups is not None:
        effective = min(effective, most_effective(groups))
        have += (
            f", of {len(np.unique(groups))} groups, tell as much of new groups as "
            f"{max(1, int(effective))} independent ones and"
        )
    promise = f"an error of at most {_percent(wish.max_error)}"
    if least is not None and (effective < least + 1 or too_few_groups(groups)):
        rest = f"at least {least + 1} independent ones are needed, all of them right"
        if groups is not None:
            rest = (
                f"at least {groups_needed(least + 1)} groups are needed, all of their rows right; "
                "without groups the promise is for new rows of the same groups"
            )
        return f"calibrate: {have} are too few to promise {promise}: {rest}"
    observed = best.wrong / max(1, best.answered)
    needed = rows_needed(wish.max_error, wish.risk, error=observed)
    more = "no number of rows would do"
    if needed is not None:
        rows = needed * n / effective * n / max(1, best.answered)
        more = f"about {int(np.ceil(rows))} rows are needed"
    return (
        f"calibrate: {have} cannot promise {promise}: of the {best.answered} surest answers "
        f"{best.wrong} are wrong, so that up to {_percent(best.bound)} may be; wish for a larger "
        f"error, or give more rows ({more} at this rate)"
    )


def _answered(where: str) -> str:
    return f" answered{where}" if where else ""


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _statement(rows: _Rows, wish: _Wish, bound: float) -> str:
    """Say what is promised, and on which rows."""
    n = len(rows.labels)
    with_rows = f"with these {n} rows"
    if rows.groups is not None:
        with_rows += f" of {len(np.unique(rows.groups))} groups"
    every = " of every class" if wish.per_class else ""
    share = wish.max_error if wish.max_error is not None else bound
    text = f"{with_rows}: error among answered{every} at most {_percent(share)} with "
    text += f"{'' if rows.groups is None else 'about '}{_percent(1 - wish.risk)} confidence"
    if too_few_groups(rows.groups):
        text = f"{with_rows}: too few groups to promise an error for new ones"
    if wish.coverage is not None:
        text += f", and at least {_percent(wish.coverage)} answered on average"
        text += "" if rows.groups is None else " over new groups"
    return text


def _set_levels(rows: _Rows) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """Return the deficits of the true classes, ascending, and the levels that they reach."""
    own = deficits(rows.scores)[np.arange(len(rows.labels)), rows.labels]
    order = np.argsort(own, kind="stable")
    found = own[order].astype(np.uint32)
    levels = np.cumsum(conformal_levels(rows.groups, len(own))[order])
    # Of many rows some suffice: each stands for those below it, and the last one is kept.
    step = -(-len(found) // _MOST_LEVELS)
    kept = np.arange(len(found) - 1, -1, -step)[::-1]
    return found[kept], np.minimum(levels[kept], np.nextafter(1, 0))


def _errors(floats: NDArray[np.float64], rows: _Rows) -> tuple[float, float]:
    """Return the calibration errors with temperature 1, and with that of the other half."""
    own = (
        np.arange(len(floats))
        if rows.groups is None
        else (np.unique(rows.groups, return_inverse=True)[1])
    )
    half, surest = own % 2 == 0, np.empty(len(floats))
    for part in (half, ~half):
        if part.any():
            other = ~part if (~part).any() else part
            temperature = fit_temperature(floats[other], rows.labels[other])
            surest[part] = softmax(floats[part], temperature).max(axis=1)
    before = softmax(floats).max(axis=1)
    return calibration_error(before, rows.right), calibration_error(surest, rows.right)


def error_by_coverage(
    margin: NDArray[np.uint32], right: NDArray[np.bool_]
) -> list[tuple[float, float]]:
    """Return which error remains when only the surest share of rows is answered.

    Examples
    --------
    >>> error_by_coverage(np.arange(10, dtype=np.uint32), np.arange(10) > 4)[-1]
    (0.5, 0.0)
    """
    order = np.argsort(-margin.astype(np.int64), kind="stable")
    errors = np.cumsum(~right[order])
    points = (1.0, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5)
    counts = [max(1, round(share * len(margin))) for share in points]
    return [(share, float(errors[n - 1] / n)) for share, n in zip(points, counts, strict=True)]
