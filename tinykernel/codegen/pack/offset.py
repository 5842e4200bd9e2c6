"""Storage of the stage that takes windows less their means: their shape."""

from __future__ import annotations

import numpy as np

from tinykernel.codegen.definitions import Struct
from tinykernel.codegen.pack import Code, Packed, Place
from tinykernel.model.stages.offset import Offset, mean_shift


def pack_offset(stage: Offset, place: Place) -> Packed:
    """Store the shape; see ``tk_offset.h`` for the state."""
    name, grid = f"tk_offset_{place.number}", place.grid
    window = -(-grid.size * np.dtype(grid.dtype).itemsize // 4) if place.streams else 0
    shape = {"rows": grid.rows, "channels": grid.channels, "hop": place.hop}
    return Packed(
        "tk_offset.h",
        [Struct.of(name, "tk_offset", **shape, shift=mean_shift(grid))],
        # Two numbers, means and a row, the window.
        state_words=2 + 2 * grid.channels + window,
        kept_words=window,
        persists=True,
    )


CODE = Code({"tk_offset.h": "offset"}, pack=pack_offset)
