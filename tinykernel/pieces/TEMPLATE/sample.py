"""Random scaled stages."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.dense.sample import random_dense
from tinykernel.pieces.levels.sample import random_levels
from tinykernel.pieces.piece import Sample

from .spec import Scaled


def samples(seed: int) -> Iterator[Sample]:
    """Yield one behind a hidden layer of a table, that of a random factor and shift."""
    rng = np.random.default_rng(seed)
    raw, levels = random_levels(seed, height=1, width=1, channels=9)
    dense = random_dense(seed, levels.gives(raw), 7, 4)
    scaled = Scaled(int(rng.integers(1, 256)), int(rng.integers(0, 9)))
    yield Sample(raw, (levels, dense, scaled))
