"""Storage of the stage that takes windows less their means: their shape."""

from __future__ import annotations

import numpy as np

from tinykernel.codegen.pack import Code, Packed, Place
from tinykernel.model.stages.offset import Offset, mean_shift


def pack_offset(stage: Offset, place: Place) -> Packed:
    """Store the shape; see ``tk_offset.h`` for the state."""
    grid = place.grid
    window = -(-grid.size * np.dtype(grid.dtype).itemsize // 4) if place.streams else 0
    return Packed(
        place.structure(
            "offset",
            stage,
            {},
            rows=grid.rows,
            channels=grid.channels,
            hop=place.hop,
            shift=mean_shift(grid),
        ),
        # Two numbers, means and a row, the window.
        state_words=2 + 2 * grid.channels + window,
        kept_words=window,
        persists=True,
    )


CODE = Code({"tk_offset.h": "offset"}, pack=pack_offset)
