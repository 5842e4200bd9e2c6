"""Storage of a plane: the shape."""

from tinykernel.pieces.packing import Code, Packed, Place
from tinykernel.pieces.plane.spec import Plane


def pack(stage: Plane, place: Place) -> Packed:
    """Store the shape; see ``tk_plane.h`` for the state."""
    grid = place.grid
    streams = place.following is not None and place.following.streams
    return Packed(
        place.structure("plane", stage, {}, rows=grid.rows, bands=grid.channels, hop=place.hop),
        # Two numbers and the rows of a window, or what a stream counts.
        state_words=1 if streams else 2 + -(-grid.size // 4),
    )


CODE = Code({"tk_plane.h": "plane"}, pack)
