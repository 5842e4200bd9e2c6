"""Storage of the stage that takes windows less their means: their shape."""

from __future__ import annotations

import numpy as np

from tinykernel.codegen.definitions import Struct
from tinykernel.codegen.pack.front import Code, Facts, Packed, Place, Work
from tinykernel.model.grid import Grid
from tinykernel.model.stages.offset import Offset, mean_shift


def pack_offset(stage: Offset, place: Place) -> Packed:
    """Store the shape; see ``tk_offset.h`` for the state."""
    name, given = f"tk_offset_{place.number}", place.given
    window = -(-given.size * np.dtype(given.dtype).itemsize // 4) if place.streams else 0
    shape = {"rows": given.rows, "channels": given.channels, "hop": place.hop}
    return Packed(
        "tk_offset.h",
        [Struct.of(name, "tk_offset", **shape, shift=mean_shift(given))],
        # Two numbers, means and a row, the window.
        state_words=2 + 2 * given.channels + window,
        kept_words=window,
        persists=True,
    )


def _work(stage: Offset, given: Grid, facts: Facts) -> Work:
    return {"offset": {f"{name}s": float(n) for name, n in stage.work(given).items()}}


CODE = Code({"tk_offset.h": "offset"}, _work, pack_offset)
