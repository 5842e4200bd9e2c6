"""Random frames of a camera."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.frame.spec import FORMATS, Frame
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.separable.sample import random_separable


def random_frame(seed: int, rows: int, columns: int, channels: int = 1) -> Frame:
    """Draw a camera that is often larger than the image, and at times smaller."""
    rng = np.random.default_rng([seed, 3])
    formats = [name for name in FORMATS if channels == 1 or name != "grey8"]
    width, height = (int(rng.integers(2, 4 * side)) for side in (columns, rows))
    return Frame(str(rng.choice(formats)), width + width % 2, height, rows, columns, channels)


def samples(seed: int) -> Iterator[Sample]:
    """Yield a camera before levels and separable convolutions."""
    frame = random_frame(seed, 9, 8)
    image = frame.gives(frame.taken)
    levels = Levels(Scale("uint8", 8, [0], [65536], [255]), 0, 1, np.eye(1, dtype=np.int8))
    separable = random_separable(seed, levels.gives(image), (4, 5), (1, 2))
    yield Sample(frame.taken, (frame, levels, separable))
