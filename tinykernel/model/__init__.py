"""The integer model: arithmetic, proof of its ranges, quantization and serialisation."""

from __future__ import annotations

from tinykernel.model.integer import RAW_DTYPES, InputScaler, IntegerModel
from tinykernel.model.proof import Range, choose_schedules
from tinykernel.model.quantize import as_integer_model, quantize, snap_windows

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
