"""Random kernels."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.kernels.spec import Kernels
from tinykernel.pieces.levels.sample import random_levels
from tinykernel.pieces.piece import Sample


def random_taps(rng: np.random.Generator, n_kernels: int) -> NDArray[np.int8]:
    """Return kernels of every kind, mostly MiniRocket's."""
    places = list(combinations(range(9), 3))
    taps = np.full((n_kernels, 9, 1), -1)
    for kernel in taps:
        kernel[list(places[rng.integers(len(places))])] = 2
    taps[rng.random(n_kernels) < 0.1] = 1
    newest = rng.random(n_kernels) < 0.1
    taps[newest] = 0
    taps[newest, 8] = 1
    return taps.astype(np.int8)


def random_kernels(
    rng: np.random.Generator,
    levels: Grid,
    n_kernels: int = 20,
    dilations: tuple[int, ...] = (1, 2),
    cells: tuple[int, int] = (1, 1),
) -> Kernels:
    """Return kernels of levels whose thresholds lie within the responses."""
    taps = random_taps(rng, n_kernels)
    top, flat = levels.high, taps.reshape(n_kernels, 9).astype(int)
    low, high = top * np.minimum(flat, 0).sum(1), top * np.maximum(flat, 0).sum(1)
    threshold = rng.integers(low // 2, high // 2 + 1)
    return Kernels(
        taps=taps,
        dilation=rng.choice(dilations, n_kernels),
        channel=rng.integers(0, levels.channels, n_kernels),
        threshold=np.clip(threshold, high - 32768, low + 32767),  # differences have 16 bits
        cells=cells,
    )


def signal(seed: int, n_channels: int = 3, n_kernels: int = 20) -> Sample:
    """Return levels of a signal of int16, averaged and mixed, and kernels of them."""
    rng = np.random.default_rng(seed)
    mixed = {"average": 2, "terms": 2, "n_mixed": 4, "bits": 16, "level_bits": 10}
    shape = {"height": 64, "width": 1, "channels": n_channels}
    raw, levels = random_levels(rng, raw_dtype="int16", **shape, **mixed)
    stages = levels, random_kernels(rng, levels.gives(raw), n_kernels)
    return Sample(raw, stages, hop=32)


def samples(seed: int) -> Iterator[Sample]:
    """Yield kernels of one channel and of three, with and without a stream."""
    yield signal(seed)
    yield signal(seed + 1, 1)._replace(hop=0)
