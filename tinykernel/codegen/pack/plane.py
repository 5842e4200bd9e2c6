"""Storage of the stage that keeps the rows of a window as an image: its shape."""

from __future__ import annotations

from tinykernel.codegen.pack import Code, Packed, Place
from tinykernel.model.stages.plane import Plane


def pack_plane(stage: Plane, place: Place) -> Packed:
    """Store the shape; see ``tk_plane.h`` for the state."""
    grid = place.grid
    return Packed(
        place.structure("plane", stage, {}, rows=grid.rows, bands=grid.channels, hop=place.hop),
        # Two numbers, and the rows of a window.
        state_words=2 + -(-grid.size // 4),
    )


CODE = Code({"tk_plane.h": "plane"}, pack=pack_plane)
