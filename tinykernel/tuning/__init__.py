"""Accuracy against size: `tune` finds the smallest model that is good enough."""

from tinykernel.tuning.curve import Point
from tinykernel.tuning.result import TuneResult
from tinykernel.tuning.tuner import tune

__all__ = ["Point", "TuneResult", "tune"]
