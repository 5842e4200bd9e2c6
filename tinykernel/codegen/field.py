"""What the header of the field, ``<name>_field.h``, says of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinykernel.codegen.literals import table_rows
from tinykernel.decisions.adaptation import ADAPT_SHIFT, OFFSETS_MAGIC, offset_largest
from tinykernel.decisions.counters import COUNTERS_MAGIC, counters_bytes
from tinykernel.model.integer import IntegerModel

__all__ = ["field_context"]


def field_context(model: IntegerModel) -> dict[str, Any]:
    """Return what the template may use besides the context of the other sources."""
    return {
        "counters_magic": hex(COUNTERS_MAGIC),
        "counters_bytes": counters_bytes(model.n_classes),
        "offsets_magic": hex(OFFSETS_MAGIC),
        "offset_largest": offset_largest(model),
        "adapt_shift": ADAPT_SHIFT,
        "adapt_words": 6 + model.n_classes,
        "scores_bytes": 4 * model.n_classes,
        **_ranges(model),
    }


def _ranges(model: IntegerModel) -> dict[str, Any]:
    """Return the ends of the raw values of a local stage as tables in a function."""
    if model.local is None:
        return {"range_lines": [], "range_size": 1, "range_top": 0}
    scaler, channels = model.local.scaler, model.local.channels
    names = [("low", "float", scaler.offset), ("slope", "float", scaler.multiplier)]
    if scaler.span is not None:
        span = np.where(scaler.multiplier > 0, scaler.span, 0).astype(np.uint32)
        names = [("low", "int32_t", scaler.offset), ("span", "uint32_t", span)]
    lines = []
    for name, c_type, values in names:
        every = np.broadcast_to(values, channels)
        lines.append(f"static const {c_type} {name}[{channels}] = {{")
        lines += [f"    {line}" for line in table_rows(every, c_type)]
        lines.append("};")
    return {"range_lines": lines, "range_size": channels, "range_top": 2**scaler.bits - 1}
