"""Decode one picture with Pillow and bring it to the input shape of a model."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.resizing import resized

#: Most pixels of a picture: turning it takes eight bytes a pixel.
MOST_PIXELS = 50_000_000
_TOO_MANY = f"has more than {MOST_PIXELS // 10**6} million pixels"
# Other readers of Pillow start programs, or take vector graphics.
_FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "GIF", "TIFF", "PPM", "JPEG2000", "AVIF")
_GREY = ("1", "L", "LA", "I;16", "I;16B", "I;16L", "I;16N")


class BrokenPictureError(Exception):
    """A picture that cannot be used; the message says why."""


def pillow() -> Any:
    """Import Pillow; TinykernelError if it is missing."""
    try:
        from PIL import Image
    except ImportError:
        raise TinykernelError(
            "pictures need Pillow; install it: pip install 'tinykernel[images]'"
        ) from None
    return Image


def has_colours(file: Path) -> bool:
    """Whether a picture is stored in colours; a broken one is not."""
    try:
        with _opened(file) as image:
            return image.mode not in _GREY
    except BrokenPictureError:
        return False


def decoded(file: Path, rows: int, columns: int, channels: int) -> NDArray[np.uint8]:
    """Return a picture, cropped and resized, uint8 (rows, columns, channels).

    It is turned by its EXIF orientation. Transparency becomes white, 16-bit greys lose their lower
    8 bits, and colours become grey (1 channel) before resizing by ``(19595 R + 38470 G + 7471 B +
    32768) >> 16`` (Pillow; ITU-R BT.601).
    """
    from PIL import ImageOps

    mode = "L" if channels == 1 else "RGB"
    try:
        with _opened(file) as image:
            image.load()
            turned = ImageOps.exif_transpose(image)
            width, height = turned.size

            def rows_of(top: int, end: int) -> NDArray[np.uint8]:
                part = np.asarray(_plain(turned.crop((0, top, width, end)), mode))
                return part.reshape(end - top, width, channels)

            return resized(rows_of, height, width, rows, columns)
    except Exception as error:  # Pillow raises any exception for damaged bytes
        raise _broken(error) from None


def _opened(file: Path) -> Any:
    """Open a picture; only its header is read."""
    Image = pillow()
    try:
        status = os.stat(file)
        if not stat.S_ISREG(status.st_mode):
            raise BrokenPictureError("is no file")
        if not status.st_size:
            raise BrokenPictureError("has 0 bytes")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes, which are checked below, and of metadata
            image = Image.open(file, formats=_FORMATS)
        width, height = image.size
        frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
        problem = ""
        if width * height > MOST_PIXELS:
            problem = _TOO_MANY
        elif frames > 1:
            problem = f"is animated, or has several pages ({frames})"
        elif image.mode in ("I", "F"):
            problem = "has 32 bits per pixel"
        if problem:
            image.close()
            raise BrokenPictureError(problem)
        return image
    except Image.DecompressionBombError:
        raise BrokenPictureError(_TOO_MANY) from None
    except Image.UnidentifiedImageError:
        raise BrokenPictureError("is no picture") from None
    except Exception as error:  # Pillow raises any exception for damaged bytes
        raise _broken(error) from None


def _broken(error: Exception) -> BrokenPictureError:
    """Return an error that says briefly what is wrong with a file."""
    if isinstance(error, BrokenPictureError):
        return error
    if isinstance(error, OSError) and error.strerror:
        return BrokenPictureError(f"cannot be read ({error.strerror})")
    if "truncated" in str(error).lower():
        return BrokenPictureError("is cut short")
    return BrokenPictureError("is damaged")


def _plain(image: Any, mode: str) -> Any:
    """Return a picture in 8-bit grey or RGB."""
    Image = pillow()
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    if image.mode not in ("1", "L", "RGB"):
        image = image.convert("RGB")
    return image.convert(mode)
