"""The integer model: arithmetic, proof of its ranges, quantisation and serialisation."""

from __future__ import annotations

from tinykernel.integer.model import RAW_DTYPES, InputScaler, IntegerModel
from tinykernel.integer.quantize import as_integer_model, quantize, snap_windows
from tinykernel.integer.ranges import Range, choose_schedules

__all__ = [
    "RAW_DTYPES",
    "InputScaler",
    "IntegerModel",
    "Range",
    "as_integer_model",
    "choose_schedules",
    "quantize",
    "snap_windows",
]
