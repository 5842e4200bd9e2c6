"""The integer model: arithmetic, proof of its ranges, quantisation and serialisation."""

from __future__ import annotations

from tinykernel.model.integer import RAW_DTYPES, InputScaler, IntegerModel
from tinykernel.model.quantize import as_integer_model, quantize, snap_windows
from tinykernel.model.ranges import Range, choose_schedules

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
