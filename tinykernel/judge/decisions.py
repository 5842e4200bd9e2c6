"""The decision part of a model: coverage, error, and how it was calibrated."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.text import count, listed, percent
from tinykernel.learn.calibration import Calibration
from tinykernel.learn.confidence import calibration_error
from tinykernel.model.answers import Decision, margins, softmax
from tinykernel.model.integer import IntegerModel


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
        calibration_error(softmax(floats).max(axis=1), right),
        calibration_error(decision.probabilities(floats).max(axis=1), right),
        calibration_error((decision.confidence(scores) + 0.5) / 256, right),
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


_UNLIMITED = "none: every row is answered"
_CLASSES_SHOWN = 12
_EVERY = f"{_UNLIMITED}; --max-error SHARE or --coverage SHARE refuses unsure ones"


def calibration_in_words(result: Calibration) -> list[tuple[str, str]]:
    """Return the figures as names and values for `print_pairs`."""
    assert result.model.decision is not None
    thresholds = result.model.decision.thresholds.tolist()
    rows, over, novel = count(result.rows, "row"), "", ""
    if result.groups is not None:
        rows += f" of {count(result.groups, 'group')}, which count as "
        rows += f"{result.independent:.0f} independent rows"
    if result.coverage_of_groups is not None:  # the guarantee for new groups
        over = f"; on average over groups {percent(result.coverage_of_groups)}"
    if result.alarms is not None:
        novel = f"above {result.alarms.threshold}: {result.alarms.alarms} of these rows"
    share = percent(result.wrong / max(1, result.answered))
    return [
        ("rows", rows),
        ("promise", result.statement),
        (
            "answered",
            f"{percent(result.coverage)}, of which {result.wrong} are wrong ({share}){over}",
        ),
        ("least margin", listed(thresholds, _CLASSES_SHOWN) if any(thresholds) else _EVERY),
        ("novel", novel),
        ("calibration", _probabilities_in_words(result)),
    ]


def _probabilities_in_words(result: Calibration) -> str:
    """Describe the temperature, and the error of probabilities with and without it."""
    before, after = f"{result.error_before:.4f}", f"{result.error_after:.4f}"
    error = f"expected calibration error {before}"
    assert result.model.decision is not None
    temperature = result.model.decision.temperature
    if temperature != 1:
        return f"{error}; {after} with the chosen temperature of {temperature:.3g}"
    return f"{error}; {after} with a temperature, which is not used"


def decision_facts(integer: IntegerModel) -> dict[str, Any]:
    """Return the decision part, where there is one."""
    decision = integer.decision
    if decision is None:
        return {}
    return {
        "decision": {
            "thresholds": decision.thresholds.tolist(),
            "confidences": decision.table.tolist(),
            "confidence_shift": decision.shift,
            "temperature": decision.temperature,
            "statement": decision.statement,
            "novelty_threshold": decision.novelty_threshold,
            "prototypes": decision.n_prototypes,
        }
    }


def decision_in_words(decision: Decision | None) -> list[tuple[str, str]]:
    """Return thresholds, confidence and novelty of a decision part, as names and values."""
    if decision is None:
        return []
    novel = "" if decision.novelty_threshold is None else str(decision.novelty_threshold)
    if novel and decision.n_prototypes:
        novel += f", by the distance to {count(decision.n_prototypes, 'prototype')} and the margin"
    least = listed(decision.thresholds.tolist(), _CLASSES_SHOWN)
    confidence = f"{decision.table[0]} to {decision.table[-1]}"
    return [
        ("least margin", least if decision.rejects else _UNLIMITED),
        ("confidence", f"{confidence}, a step every {1 << decision.shift} of the margin"),
        ("novel above", novel),
        ("promise", decision.statement),
    ]
