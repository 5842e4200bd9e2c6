"""Random squares."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.sample import random_scaler
from tinykernel.pieces.squares.spec import Squares


def samples(seed: int) -> Iterator[Sample]:
    """Yield squares of three classes, with rows of one weight and of all inputs."""
    n, rows = 9, 7
    for bits, width in ((8, n), (16, 1), (16, n)):
        rng = np.random.default_rng([seed, bits, width])
        scale = random_scaler(rng, "int16", bits, n, False)
        lengths = np.minimum(width, n - np.arange(rows))
        constant = np.concatenate([scale.constant(n)[r : r + k] for r, k in enumerate(lengths)])
        most = 127 if bits == 8 else 32767 // (2 * width)
        weights = rng.integers(-most, most + 1, (3, constant.size))
        offset = rng.integers(-(2**29), 2**29, (3, rows))
        weights, drop = np.where(constant, 0, weights), rng.integers(10, 20, (3, rows))
        squares = Squares(weights, offset, drop, width, int(rng.integers(0, 9)))
        yield Sample(Grid.table("int16", n), (scale,), squares)
