"""How good a model is, what chance leaves open, and what a model for next to nothing does.

`evaluate` judges a model, `compare` its labels. `baselines` trains the majority class and a linear
model on the same rows; `cautions` looks for what makes a high accuracy mean little.
"""

from __future__ import annotations

from tinykernel.evaluation.beside import baselines
from tinykernel.evaluation.doubts import cautions
from tinykernel.evaluation.judging import Judged, evaluate
from tinykernel.evaluation.labels import (
    Baseline,
    Evaluation,
    accuracy_interval,
    compare,
    interval_in_words,
)

__all__ = [
    "Baseline",
    "Evaluation",
    "Judged",
    "accuracy_interval",
    "baselines",
    "cautions",
    "compare",
    "evaluate",
    "interval_in_words",
]
