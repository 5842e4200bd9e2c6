"""LocalStage: its specification, what its fields must be, and its counts in compiled code."""

from __future__ import annotations

from tinykernel.model.local.stage import LANE_BITS, WIDEST_CELL, LocalStage

__all__ = ["LANE_BITS", "WIDEST_CELL", "LocalStage"]
