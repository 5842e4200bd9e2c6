"""Storage of offsets: the shape."""

import numpy as np

from tinykernel.pieces.offset.spec import Offset, mean_shift
from tinykernel.pieces.packing import Code, Packed, Place


def pack(stage: Offset, place: Place) -> Packed:
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


CODE = Code({"tk_offset.h": "offset"}, pack)
