"""Storage of the squares: weights, offsets and shifts of the rows of all classes."""

import numpy as np

from tinykernel.pieces.packing import Code, Packed, Place
from tinykernel.pieces.squares.spec import Squares
from tinykernel.pieces.tables import Definition, Parts, Table


def pack(part: Squares, place: Place) -> Packed:
    """Store the rows; see ``tk_squares.h``."""
    bits = 8 if np.abs(part.weights).max() < 128 else 16
    numbers: dict[str, tuple[int, str]] = {
        "ROWS": (part.offset.shape[1], "rows of weights of each class"),
        "WIDTH": (part.width, "most weights of a row"),
        "SHIFT": (part.shift, "right shift of squares"),
        "BITS": (bits, "width of a weight of the squares"),
    }
    parts: Parts = [
        Definition(f"TK_SQUARES_{name}", f"{n}u", text) for name, (n, text) in numbers.items()
    ]
    for name, c_type, values, text in (
        ("weights", f"int{bits}_t", part.weights, "weights of each row, class by class"),
        ("offsets", "int32_t", part.offset, "offset of each row"),
        ("drops", "uint8_t", part.drop, "right shift of each row"),
    ):
        parts.append(
            Table(f"tk_squares_{name}", c_type, values.ravel(), "weights", f"Squares: {text}.")
        )
    return Packed(parts)


CODE = Code(
    {"tk_squares.h": "scores"}, pack, flash=85, prices={"weighted inputs": 12.0, "squares": 20.0}
)
