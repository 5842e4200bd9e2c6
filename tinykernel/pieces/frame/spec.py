"""Frame: lines of a camera to an image of few pixels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.resizing import area_sums, crop_box
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.proof import Range
from tinykernel.pieces.record import limits

#: Formats of a pixel by the number that the firmware has for them, with its bytes.
FORMATS = {"grey8": 1, "rgb888": 3, "rgb565": 2, "rgb565le": 2, "yuyv": 2}
_MOST_SIDE, _MOST_AREA = 4096, 1 << 22
_FRAMES_AT_ONCE = 32
_UINT32 = (1 << 32) - 1


@dataclass(frozen=True, eq=False)
class Frame(Stage):
    """The stage *frame*: the centre of a camera's frame, resized by the mean of areas.

    It takes an image of bytes, one channel a byte of a pixel, and gives an image of `rows` x
    `columns` pixels of `channels`. ``>>`` rounds down.

    **1. Pixels.** Values of 8 bits from the bytes of a pixel:

    * ``grey8``: the byte. ``rgb888``: red, green, blue.
    * ``rgb565``: 16 bits, the upper byte first; ``rgb565le``: the lower byte first. Red is ``r << 3
      | r >> 2`` of the upper 5 bits r, green ``g << 2 | g >> 4`` of the next 6, blue as red.
    * ``yuyv``: two pixels are the bytes Y0 U Y1 V. With u = U - 128 and v = V - 128, red is ``Y +
      ((91881 v + 32768) >> 16)``, green ``Y - ((22554 u + 46802 v + 32768) >> 16)`` and blue ``Y +
      ((116130 u + 32768) >> 16)``, each clipped to 0..255 (JFIF's full range).

    Grey (`channels` 1) is Y of yuyv, else ``(19595 red + 38470 green + 7471 blue + 32768) >> 16``.

    **2. Crop and mean.** The centre with the ratio of the image, and the mean of areas, as
    `tinykernel.base.resizing` has them: ``(2 sum + N M) // (2 N M)`` for a part of N x M pixels.

    Lines may come one by one: a row of sums and the image are all that is stored.

    >>> frame = Frame("grey8", 4, 2, 1, 1, 1)
    >>> frame.run(np.array([[0, 10, 20, 90, 30, 40, 50, 90]], np.uint8), frame.taken).tolist()
    [[30]]
    """

    KIND = "frame"
    TAKES = ("samples",)
    GIVES = "image"
    SIMPLER = ""

    pixel_format: str  # a key of `FORMATS`
    width: int = field(metadata=limits(2, _MOST_SIDE))  # a column alone would be a signal
    height: int = field(metadata=limits(2, _MOST_SIDE))
    rows: int = field(metadata=limits(1, 1024))
    columns: int = field(metadata=limits(1, 1024))
    channels: int  # 3: red, green and blue; not of grey8

    def check(self) -> None:
        if self.pixel_format not in FORMATS:
            raise self.refuse(f"{self.pixel_format!r} is no format; give {', '.join(FORMATS)}")
        if self.channels not in (1, 3) or (self.channels == 3 and self.pixel_format == "grey8"):
            raise self.refuse(f"{self.channels} channels of {self.pixel_format}")
        if self.pixel_format == "yuyv" and self.width % 2:
            raise self.refuse("two pixels of yuyv share their colour; give an even width")
        if self.area > _MOST_AREA:
            raise self.refuse(f"{self.area} pixels of a frame; {_MOST_AREA} are the most")

    @classmethod
    def of(cls, text: str, shape: tuple[int, ...]) -> Frame:
        """Return the stage of a camera, as 160x120:rgb565, for images (rows, columns, channels).

        >>> Frame.of("160x120:rgb565", (32, 32, 3)).box
        (0, 20, 120, 120)
        """
        size, _, pixel_format = text.partition(":")
        width, height = map(int, size.split("x"))
        return cls(pixel_format, width, height, *shape)

    @property
    def taken(self) -> Grid:
        """The grid of a frame."""
        return Grid.raw("uint8", self.height, self.width, FORMATS[self.pixel_format])

    @property
    def frame(self) -> tuple[int, int, int]:
        """Rows, columns and bytes of a pixel of a frame."""
        return self.height, self.width, self.taken.channels

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Top, left, height and width of the crop."""
        return crop_box(self.height, self.width, self.rows, self.columns)

    @property
    def area(self) -> int:
        """Pixels of the crop."""
        return self.box[2] * self.box[3]

    @property
    def title(self) -> str:
        return f"frames of {self.width} x {self.height} {self.pixel_format}"

    def gives(self, grid: Grid) -> Grid:
        if (grid.rows, grid.columns, grid.channels, grid.dtype) != (
            *self.taken.shape[:2],
            self.taken.channels,
            "uint8",
        ):
            raise self.refuse(f"it takes {self.title}, not {grid.title} of {grid.dtype}")
        return Grid.raw("uint8", self.rows, self.columns, self.channels)

    def run(self, values: NDArray[np.generic], grid: Grid) -> NDArray[np.generic]:
        top, left, high, wide = self.box
        images = np.empty((len(values), self.rows * self.columns * self.channels), np.uint8)
        for first in range(0, len(values), _FRAMES_AT_ONCE):
            part = slice(first, first + _FRAMES_AT_ONCE)
            lines = values[part].reshape(-1, grid.rows, grid.columns, grid.channels)
            pixels = self._pixels(lines[:, top : top + high])[:, :, left : left + wide]
            sums = area_sums(pixels.transpose(2, 1, 0, 3), self.columns)
            sums = area_sums(sums.transpose(1, 0, 2, 3), self.rows).transpose(2, 0, 1, 3)
            means = (2 * sums + self.area) // (2 * self.area)
            images[part] = means.reshape(len(means), -1)
        return images

    def _pixels(self, lines: NDArray[Any]) -> NDArray[np.int64]:
        """Return the values of step 1, shape (n, lines, width, channels)."""
        whole = lines.astype(np.int64)
        if self.pixel_format == "grey8":
            return whole
        if self.pixel_format == "yuyv":
            light = whole[..., :1]
            if self.channels == 1:
                return light
            u = np.repeat(whole[:, :, ::2, 1] - 128, 2, axis=2)
            v = np.repeat(whole[:, :, 1::2, 1] - 128, 2, axis=2)
            red = (91881 * v + 32768) >> 16
            green = -((22554 * u + 46802 * v + 32768) >> 16)
            blue = (116130 * u + 32768) >> 16
            return np.clip(light + np.stack([red, green, blue], axis=-1), 0, 255)
        colours = whole
        if self.pixel_format != "rgb888":
            upper, lower = (0, 1) if self.pixel_format == "rgb565" else (1, 0)
            word = whole[..., upper] << 8 | whole[..., lower]
            red, green, blue = word >> 11, word >> 5 & 63, word & 31
            colours = np.stack(
                [red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2], axis=-1
            )
        if self.channels == 3:
            return colours
        grey: NDArray[np.int64] = (colours @ np.array([19595, 38470, 7471]) + 32768) >> 16
        return grey[..., None]

    def encoded(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Encode red, green and blue (height, width, 3) as bytes (height, width, bytes)."""
        red, green, blue = np.moveaxis(pixels.astype(np.int64), -1, 0)
        light = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
        if self.pixel_format == "grey8":
            return np.asarray(light[..., None], np.uint8)
        if self.pixel_format == "rgb888":
            return pixels
        if self.pixel_format == "yuyv":
            u = 128 + ((-11059 * red - 21709 * green + 32768 * blue + 32768) >> 16)
            v = 128 + ((32768 * red - 27439 * green - 5329 * blue + 32768) >> 16)
            shared = np.stack([u[:, ::2], v[:, 1::2]], axis=-1).reshape(light.shape)
            return np.asarray(np.clip(np.stack([light, shared], axis=-1), 0, 255), np.uint8)
        word = red >> 3 << 11 | green >> 2 << 5 | blue >> 3
        both = [word >> 8, word & 255]
        if self.pixel_format == "rgb565le":
            both.reverse()
        return np.asarray(np.stack(both, axis=-1), np.uint8)

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        return (
            Range("sum of a line", 0, 255 * self.box[3], 0, _UINT32),
            Range("sum of an area", 0, 255 * self.area, 0, _UINT32),
            Range("sum before its division", 0, 511 * self.area, 0, _UINT32),
        )

    def work(self, grid: Grid) -> dict[str, float]:
        """Return lines, pixels by format, whose prices differ, sums and means; see `Stage`."""
        made = float(self.columns * self.channels)
        colour = "grey" if self.channels == 1 else "colour"
        return {
            "line": float(self.height),
            f"{self.pixel_format} to {colour} pixel": float(self.area),
            "sum": made * (self.box[2] + self.rows),
            "mean": made * self.rows,
        }
