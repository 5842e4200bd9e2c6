"""Storage of the stages that keep a window: its shape, and what becomes of sums."""

from __future__ import annotations

import numpy as np

from tinykernel.codegen.definitions import Struct, Table
from tinykernel.codegen.pack.front import Packed, Place
from tinykernel.model.stage import Stage
from tinykernel.model.stages.offset import mean_shift
from tinykernel.model.stages.sums import Summed


def pack_offset(stage: Stage, place: Place) -> Packed:
    """Store the shape; see ``tk_whole.h`` for the state."""
    name, given = f"tk_{stage.KIND}_{place.number}", place.given
    window = -(-given.size * np.dtype(given.dtype).itemsize // 4) if place.streams else 0
    shape = {"rows": given.rows, "channels": given.channels, "hop": place.hop}
    return Packed(
        [Struct.of(name, "tk_whole", **shape, shift=mean_shift(given))],
        # Two numbers, means and a row or five bytes a channel, the window.
        state_words=2 + 2 * given.channels + window,
        kept_words=window,
    )


pack_sums = pack_offset


def pack_summed(stage: Summed, place: Place) -> Packed:
    """Store what makes counts of the numbers; the formats are those of ``tk_sums.h``."""
    name, made = f"tk_summed_{place.number}", stage.gives(place.given)
    tables = {
        f"{array}s": Table(
            f"{name}_{array}s", "uint8_t", getattr(stage, array), "scaler", f"Sums: {array}s."
        )
        for array in ("source", "low", "factor")
    }
    names = {array: table.name for array, table in tables.items()}
    shape = {"counts": place.given.size, "entries": stage.source.size, "factor": stage.top + 1}
    return Packed(
        [*tables.values(), Struct.of(name, "tk_summed", **shape, **names)],
        words=-(-made.size * (2 if made.dtype == "uint16" else 1) // 4),
    )
