"""Decisions of a trained model: how sure it is, and when it had better say nothing.

`bounds` says what rows can promise, `thresholds` chooses when to answer, `confidence` turns scores
into probabilities, `calibrate` puts them together.
"""

from __future__ import annotations

from tinykernel.decisions.calibrate import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
