"""Judge models: `evaluate`, simple models on the same rows, confidence intervals, cautions."""

from tinykernel.evaluation.figures import (
    Baseline,
    Evaluation,
    LabelEvaluation,
    ValueEvaluation,
    compare,
)
from tinykernel.evaluation.intervals import accuracy_interval, interval_in_words
from tinykernel.evaluation.models import evaluate

__all__ = [
    "Baseline",
    "Evaluation",
    "LabelEvaluation",
    "ValueEvaluation",
    "accuracy_interval",
    "compare",
    "evaluate",
    "interval_in_words",
]
