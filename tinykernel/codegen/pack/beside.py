"""Storage of numbers beside a window: their scalers as tables, the rest as a structure."""

from __future__ import annotations

from typing import Any

from tinykernel.codegen.pack import Code, Facts, Packed, Place, Work
from tinykernel.model.grid import Grid
from tinykernel.model.stages.beside import Beside

# Tables: the array of the scaler that each holds, and its types of integers and of floats.
_ARRAYS = {
    "offsets": ("offset", "int32_t", "float"),
    "multipliers": ("multiplier", "uint32_t", "float"),
    "spans": ("span", "uint32_t", ""),
    "shifts": ("pre_shift", "uint8_t", ""),
}


def pack_beside(stage: Beside, place: Place) -> Packed:
    """Store how numbers become counts; ``tk_beside.h`` has the formats."""
    scaler, made = stage.scaler, stage.gives(place.grid)
    tables: dict[str, tuple[Any, ...] | None] = {}
    for member, (array, *types) in _ARRAYS.items():
        c_type, comment = types[scaler.is_float], f"Numbers beside: {array}."
        tables[member] = (c_type, scaler.arrays[array], "scaler", comment) if c_type else None
    comment = "Numbers beside: which one an entry looks at."
    tables["sources"] = ("uint8_t", stage.source, "scaler", comment)
    return Packed(
        place.structure(
            "beside",
            stage,
            tables,
            counts=place.grid.size,
            entries=stage.n_entries,
            factor=stage.top + 1,
        ),
        more_words=-(-made.size * (2 if made.dtype == "uint16" else 1) // 4),
        state_words=-(-stage.n_entries // 2),
        persists=True,
    )


def _work(stage: Beside, grid: Grid, facts: Facts) -> Work:
    # In the place of those of the kernels: all counts are copied, too.
    return {"local": {"signal, counts": float(2 * grid.size + stage.n_entries)}}


CODE = Code({"tk_beside.h": "local"}, _work, pack_beside)
