"""Storage of the stage that takes frames of a camera: sizes, and where the part begins."""

from __future__ import annotations

from tinykernel.codegen.pack import Code, Packed, Place
from tinykernel.model.stages.frame import FORMATS, Frame


def pack_frame(stage: Frame, place: Place) -> Packed:
    """Store the sizes; see ``tk_frame.h`` for the state."""
    top, left, high, wide = stage.box
    row = stage.columns * stage.channels
    return Packed(
        place.structure(
            "frame",
            stage,
            {},
            format=list(FORMATS).index(stage.pixel_format),
            top=top,
            left=left,
            high=high,
            wide=wide,
        ),
        # Three numbers, sums of a line and of a row, the image.
        state_words=3 + 2 * row + -(-stage.rows * row // 4),
    )


CODE = Code({"tk_frame.h": "frame"}, pack=pack_frame)
