"""Storage of a scaled stage: its constants, memory, and what it costs."""

from tinykernel.pieces.packing import Code, Packed, Place

from .spec import Scaled


def pack(stage: Scaled, place: Place) -> Packed:
    """Store the shape; see ``tk_scaled.h``, whose structure has these members."""
    return Packed(
        # Members that are fields of the stage need no words here; tables have a place in {}.
        place.structure("scaled", stage, {}, values=place.grid.size),
        more_words=-(-place.grid.size // 4),  # the scaled values
    )


CODE = Code(
    {"tk_scaled.h": "local"},  # the line of `bench` on which its functions count
    pack,
    # Bytes and instructions until benchmarks/code_size.py and instruction_counts.py measure them.
    flash=64,
    prices={"scaled, products": 8.0},
)
