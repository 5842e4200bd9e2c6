"""IntegerModel: its specification and arithmetic, what its fields must be, and what it answers."""

from __future__ import annotations

from tinykernel.model.integer.model import IntegerModel
from tinykernel.model.scaler import RAW_DTYPES, InputScaler

__all__ = ["RAW_DTYPES", "InputScaler", "IntegerModel"]
