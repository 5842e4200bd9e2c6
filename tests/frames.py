"""Random frames of a camera, and models of them."""

from dataclasses import replace
from typing import Any

from tests.convolutions import convolution_model
from tests.separable import separable_model
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.frame.sample import random_frame


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
