"""Coverage, error and calibration of a model's decisions on labelled rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.confidence import calibration_error
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import margins, softmax


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
