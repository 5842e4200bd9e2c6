"""Random hidden layers."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.sample import random_levels
from tinykernel.pieces.piece import Sample


def random_dense(seed: int, grid: Grid, units: int, bits: int) -> Dense:
    """Return a hidden layer of weights of so many bits."""
    rng = np.random.default_rng([seed, 1])
    largest = {1: 1, 2: 1, 4: 7, 8: 127}[bits]
    weights = rng.integers(-largest, largest + 1, (units, grid.size))
    if bits == 1:
        weights = rng.choice([-1, 1], weights.shape)
    reach = np.sqrt(grid.size) * largest * grid.high
    shift = int(rng.integers(0, int(np.log2(max(reach / 64, 1))) + 1))
    return Dense(weights, rng.integers(-int(reach), int(reach) + 1, units), shift)


def samples(seed: int) -> Iterator[Sample]:
    """Yield layers of weights of every width, of a table and of an image."""
    for bits in (1, 2, 4, 8):
        sides = {"height": 1, "width": 1, "channels": 9} if bits < 4 else {}
        raw, levels = random_levels([seed, bits], **sides)
        first = random_dense(seed, levels.gives(raw), 8, bits)
        second = random_dense(seed + 1, first.gives(levels.gives(raw)), 5, bits)
        yield Sample(raw, (levels, first, second))
