"""Test images on a report page: those that a model gets wrong, and those it is unsure of."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import margins
from tinykernel.model.stages.frame import Frame

_SHOWN, _MOST_CLASSES = 9, 12


@dataclass(frozen=True)
class Picture:
    """One test image, and the answer to it."""

    address: str  # a data URI: a page stands alone
    label: str
    answer: str
    margin: int


@dataclass(frozen=True)
class Gallery:
    """Test images of a page."""

    wrong: tuple[Picture, ...]  # the answer is wrong; largest margin first
    unsure: tuple[Picture, ...]  # smallest margin first
    confused: tuple[tuple[Picture | None, ...], ...]  # by label, then answer; of few classes


def gallery_of(model: IntegerModel, X: ArrayLike, y: ArrayLike) -> Gallery | None:
    """Choose test images; None where the inputs are no images of 1 or 3 channels."""
    grid, frame = model.input, model.find(Frame)
    shown = grid if frame is None else frame.gives(grid)
    if shown.kind != "image" or shown.channels not in (1, 3):
        return None
    rows = grid.as_raw(X) if frame is None else np.asarray(frame.run(grid.as_raw(X), grid))
    answers, unsigned = margins(model.scores(X))
    margin, names = unsigned.astype(np.int64), [str(name) for name in model.classes]
    labels = [str(label) for label in np.asarray(y)]
    is_wrong = np.array(names)[answers] != np.array(labels)
    low, high = float(rows.min()), float(rows.max())
    shape = (-1, shown.rows, shown.columns, shown.channels)
    pixels = ((rows - low) * (255 / max(high - low, 1e-9))).astype(np.uint8).reshape(shape)

    def picture(at: int) -> Picture:
        data = base64.b64encode(png_of(pixels[at])).decode()
        address = f"data:image/png;base64,{data}"
        return Picture(address, labels[at], names[answers[at]], int(margin[at]))

    surest = np.argsort(-margin, kind="stable")
    wrong = surest[is_wrong[surest]]
    first = {(int(labels[at]), int(answers[at])): int(at) for at in wrong[::-1]}
    each = range(len(names) if len(names) <= _MOST_CLASSES else 0)
    confused = (
        tuple(picture(first[i, j]) if (i, j) in first else None for j in each) for i in each
    )
    return Gallery(
        tuple(picture(at) for at in wrong[:_SHOWN].tolist()),
        tuple(picture(at) for at in surest[::-1][:_SHOWN].tolist()),
        tuple(confused),
    )


def png_of(pixels: NDArray[np.uint8]) -> bytes:
    """Return an image (rows, columns, 1 or 3) as a PNG file, with the same bytes everywhere."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    # Uncompressed, since compressed bytes depend on the version of zlib.
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels), 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
