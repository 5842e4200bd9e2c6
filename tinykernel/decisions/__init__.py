"""Decisions of a trained model: how sure it is, and when it refuses to answer.

`shares` computes bounds that rows support, `thresholds` chooses when to answer, `confidence` turns
scores into probabilities, and `calibrate` combines them. On a device `counters` counts decisions;
`drift` compares them with those on held-out rows. `past` has numbers relative to their own past.
"""

from tinykernel.decisions.calibrate import Calibration, calibrate
from tinykernel.decisions.counters import Counters
from tinykernel.decisions.drift import Drift, Expected, drift, expected_counts
from tinykernel.decisions.past import relative

__all__ = [
    "Calibration",
    "Counters",
    "Drift",
    "Expected",
    "calibrate",
    "drift",
    "expected_counts",
    "relative",
]
