"""Storage of numbers beside a window."""

from typing import Any

from tinykernel.pieces.beside.spec import Beside
from tinykernel.pieces.packing import Code, Packed, Place

# Tables: the array of the scaler that each holds, and its types of integers and of floats.
_ARRAYS = {
    "offsets": ("offset", "int32_t", "float"),
    "multipliers": ("multiplier", "uint32_t", "float"),
    "spans": ("span", "uint32_t", ""),
    "shifts": ("pre_shift", "uint8_t", ""),
}


def pack(stage: Beside, place: Place) -> Packed:
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


CODE = Code(
    {"tk_beside.h": "local"},
    pack,
    # In the place of those of the kernels: all counts are copied, too.
    lambda stage, grid, _: {"local": {"signal, counts": 2.0 * grid.size + stage.n_entries}},
)
