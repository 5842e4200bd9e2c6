"""The integer model: arithmetic, proof of its ranges, quantization and serialisation."""

from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.proof import Range, choose_schedules
from tinykernel.model.quantization.pipelines import as_integer_model, quantize
from tinykernel.model.stages.scale import RAW_DTYPES, Scale

__all__ = [
    "RAW_DTYPES",
    "Grid",
    "IntegerModel",
    "Range",
    "Scale",
    "as_integer_model",
    "choose_schedules",
    "quantize",
]
