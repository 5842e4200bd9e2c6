"""Convolutions: what they are called, and the options of images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinykernel.base import checks
from tinykernel.base.checks import Check, at_least, one_of, sides
from tinykernel.base.options import option
from tinykernel.base.reading import augmentation, shape
from tinykernel.learn.announcement import IMAGES, SIGNALS, Announcement

_HINT = "only for convolutions; tables have components, signals kernels"
CHAINS = Announcement(
    "chains",
    "chains of convolutions, for images of one channel",
    (IMAGES,),
    rank=5,
    size="n_channels",
    options=("epochs",),
    hint=_HINT,
)
SEPARABLE = Announcement(
    "separable",
    "separable convolutions, whose layers mix channels",
    (SIGNALS, IMAGES),
    rank=6,
    size="n_channels",
    options=("epochs",),
    hint=_HINT,
)


@dataclass(kw_only=True, eq=False, repr=False)
class ConvolutionsOptions:
    """The options of images and convolutions."""

    n_channels: int | None = option(
        None,
        at_least(1),
        "Number of channels of convolutions, in the last layer. Flash and time grow in proportion.",
        chosen="as many as fit a budget, or 32",
    )
    image_shape: tuple[int, ...] | None = option(
        None,
        sides("(height, width) or (height, width, channels)", 2, 3),
        "Height, width and channels of an image. Rows are images in row-major order. An array "
        "(n, height, width, channels) needs no shape; (n, height, width) does.",
        type="(int, int) or (int, int, int) or None",
        form="HxW[xC]",
        read=shape("HEIGHTxWIDTH", (2, 3), "28x28 or 32x32x3"),
        typed={"part": "data"},
    )
    frame: str | None = option(
        None,
        checks.frame,
        "Images: size and format of camera frames, such as 160x120:rgb565. Formats are grey8, "
        "rgb888, rgb565 (upper byte first), rgb565le and yuyv. The rows are then frames, which the "
        "model crops and resizes to the image_shape, line by line.",
        form="WxH:FORMAT",
        read=str,
    )
    augment: Mapping[str, float] | None = option(
        None,
        Check(checks.augmentation, "0 to 10"),
        "Augmentation, such as %s. Images: "
        '"shift" in pixels; "affine" for small rotations, scalings, shifts and shears of strength '
        '0 to 1; "flip" as the share of mirrored images. Signals: "shift" in samples; "scale" and '
        '"noise" as relative deviations; "rotate" in radians, of every three channels about a '
        'random axis. Spectra: "affine" stretches and moves time and frequency, and scales the '
        'loudness; "rotate" does not apply, and "shift" is rounded to segments. Convolutions have '
        "affine 0.3 by default; 0 turns it off.",
        type="mapping or None",
        form="KIND[:AMOUNT],...",
        read=augmentation,
        example={"shift": 1, "affine": 0.5},
    )
    streaming: str = option(
        "off",
        one_of("off", "on"),
        "Separable convolutions of a spectrum: whether a stream computes each segment once and can "
        "decide at every other one. Else each decision computes all segments of its window.",
    )
    teachers: int = option(
        0,
        at_least(0),
        "Separable convolutions of a spectrum: so many are trained first, and their mean teaches "
        "the model. It knows more of what belongs to no class; training takes several times as "
        "long. 3 to 5 are usual.",
    )
