"""Decisions of a trained model: how sure it is, and when it refuses to answer.

`bounds` says what rows can promise, `thresholds` chooses when to answer, `confidence` turns scores
into probabilities, `calibrate` puts them together. In the field, `counters` counts decisions, and
`drift` says whether they are those of held-out rows.
"""

from __future__ import annotations

from tinykernel.decisions.calibrate import Calibration, calibrate
from tinykernel.decisions.counters import Counters
from tinykernel.decisions.drift import Drift, Expected, drift, expected_counts

__all__ = [
    "Calibration",
    "Counters",
    "Drift",
    "Expected",
    "calibrate",
    "drift",
    "expected_counts",
]
