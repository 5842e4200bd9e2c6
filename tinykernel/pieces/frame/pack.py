"""Storage of frames: the sizes."""

from tinykernel.pieces.frame.spec import FORMATS, Frame
from tinykernel.pieces.packing import Code, Packed, Place


def pack(stage: Frame, place: Place) -> Packed:
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


CODE = Code({"tk_frame.h": "frame"}, pack)
