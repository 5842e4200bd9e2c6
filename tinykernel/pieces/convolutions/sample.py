"""Random convolutions that do not mix channels."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.convolutions.spec import Convolutions
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.sample import random_levels
from tinykernel.pieces.piece import Sample


def random_convolutions(
    seed: int,
    grid: Grid,
    pools: tuple[int, ...],
    channels: int = 3,
    bits: int = 8,
    padding: int = 0,
) -> Convolutions:
    """Return layers whose responses are often inside of 0..255, with biases of all sizes."""
    rng = np.random.default_rng(seed)
    layers, most = len(pools), {4: 8, 8: 127}[bits]
    weights = rng.integers(-most, most + (bits == 8), (layers, channels, 3, 3))
    reach = np.abs(weights).sum(axis=(2, 3)) * np.array([[grid.high], *[[255]] * (layers - 1)])
    shifts = np.log2(np.maximum(reach.mean(axis=1) / 255, 1)).astype(int)
    shifts = np.maximum(shifts - rng.integers(0, 4, layers), 0)
    biases = rng.integers(-reach // 8, reach // 4 + 1)
    return Convolutions(weights, biases, shifts, np.array(pools, dtype=bool), padding)


def samples(seed: int) -> Iterator[Sample]:
    """Yield taps of 4 and of 8 bits, pooled."""
    for bits in (4, 8):
        raw, levels = random_levels([seed, bits], height=12, width=13)
        grid = levels.gives(raw)
        yield Sample(raw, (levels, random_convolutions(seed, grid, (0, 1), 3, bits, bits // 8)))
