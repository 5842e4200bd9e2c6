"""Judge models: `evaluate`, simple models on the same rows, confidence intervals, cautions."""

from __future__ import annotations

from tinykernel.evaluation.baselines import label_baselines, value_baselines
from tinykernel.evaluation.cautions import cautions
from tinykernel.evaluation.comparison import Baseline, Evaluation
from tinykernel.evaluation.importance import Importance, input_importance
from tinykernel.evaluation.intervals import accuracy_interval, interval_in_words, rmse_interval
from tinykernel.evaluation.labels import LabelEvaluation, compare
from tinykernel.evaluation.models import evaluate
from tinykernel.evaluation.values import ValueEvaluation, compare_values

__all__ = [
    "Baseline",
    "Evaluation",
    "Importance",
    "LabelEvaluation",
    "ValueEvaluation",
    "accuracy_interval",
    "cautions",
    "compare",
    "compare_values",
    "evaluate",
    "input_importance",
    "interval_in_words",
    "label_baselines",
    "rmse_interval",
    "value_baselines",
]
