"""Storage of numbers beside a window: their scalers as tables, the rest as a structure."""

from __future__ import annotations

from tinykernel.codegen.definitions import Struct, Table
from tinykernel.codegen.pack import Code, Facts, Packed, Place, Work
from tinykernel.model.grid import Grid
from tinykernel.model.stages.beside import Beside

# Arrays of a scaler and the types that they are stored as, of integers and of floats.
_STORED = {
    "offset": ("int32_t", "float"),
    "multiplier": ("uint32_t", "float"),
    "span": ("uint32_t", ""),
    "pre_shift": ("uint8_t", ""),
}


def pack_beside(stage: Beside, place: Place) -> Packed:
    """Store how numbers become counts; ``tk_beside.h`` has the formats."""
    name, scaler = f"tk_beside_{place.number}", stage.scaler
    tables = {
        array: Table(
            f"{name}_{array}s", stored, scaler.arrays[array], "scaler", f"Numbers beside: {array}."
        )
        for array, stored in ((array, types[scaler.is_float]) for array, types in _STORED.items())
        if stored
    }
    source, text = f"{name}_sources", "Numbers beside: which one an entry looks at."
    names = {array: tables[array].name if array in tables else None for array in _STORED}
    made = stage.gives(place.grid)
    return Packed(
        "tk_beside.h",
        [
            *tables.values(),
            Table(source, "uint8_t", stage.source, "scaler", text),
            Struct.of(
                name,
                "tk_beside",
                counts=place.grid.size,
                entries=stage.n_entries,
                factor=stage.top + 1,
                sources=source,
                offsets=names["offset"],
                multipliers=names["multiplier"],
                spans=names["span"],
                shifts=names["pre_shift"],
            ),
        ],
        words=-(-made.size * (2 if made.dtype == "uint16" else 1) // 4),
        state_words=-(-stage.n_entries // 2),
        persists=True,
    )


def _work(stage: Beside, grid: Grid, facts: Facts) -> Work:
    # In the place of those of the kernels: all counts are copied, too.
    return {"local": {"signal, counts": float(2 * grid.size + stage.n_entries)}}


CODE = Code({"tk_beside.h": "local"}, _work, pack_beside)
