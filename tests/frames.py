"""Random frames of a camera, and models of them."""

from dataclasses import replace
from typing import Any

import numpy as np

from tests.convolutions import convolution_model
from tests.separable import separable_model
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.frame.spec import FORMATS, Frame


def random_frame(seed: int, rows: int, columns: int, channels: int = 1) -> Frame:
    """Draw a camera that is often larger than the image, and at times smaller."""
    rng = np.random.default_rng([seed, 3])
    formats = [name for name in FORMATS if channels == 1 or name != "grey8"]
    width, height = (int(rng.integers(2, 4 * side)) for side in (columns, rows))
    return Frame(str(rng.choice(formats)), width + width % 2, height, rows, columns, channels)


def frame_model(
    seed: int, rows: int, columns: int, channels: int = 1, *, layers: int = 0, **options: Any
) -> IntegerModel:
    """Return a model that takes frames, of convolutions; layers 0: separable ones."""
    if layers:
        model = convolution_model(seed, (rows, columns), (1,) * layers, **options)
    else:
        model = separable_model(seed, (rows, columns), channels=channels, **options)
    frame = random_frame(seed, rows, columns, channels)
    return replace(model, input=frame.taken, stages=(frame, *model.stages))
