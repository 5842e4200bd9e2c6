"""Random linear parts."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.sample import random_scaler
from tinykernel.pieces.scale.spec import Scale


def random_linear(
    rng: np.random.Generator, scale: Scale, n_outputs: int, n: int, weight_bits: int
) -> Linear:
    """Return a linear part of weights of so many bits."""
    largest = {1: 1, 2: 1, 4: 7, 8: 127}[weight_bits]
    weights = rng.integers(-largest, largest + 1, (n_outputs, n))
    if weight_bits == 1:
        weights = rng.choice([-1, 1], weights.shape)
    weights = np.where(scale.constant(n), 0, weights)
    limit = max(1, min(300, (1 << 29) // (largest * n << scale.bits)))
    return Linear(weights.astype(np.int8), rng.integers(-limit, limit + 1, n_outputs))


def samples(seed: int) -> Iterator[Sample]:
    """Yield weights of every width."""
    for bits in (1, 2, 4, 8):
        rng = np.random.default_rng([seed, bits])
        scale = random_scaler(rng, "int16", (8, 16)[bits % 8 // 4], 37, bits == 1)
        yield Sample(Grid.table("int16", 37), (scale,), random_linear(rng, scale, 3, 37, bits))
