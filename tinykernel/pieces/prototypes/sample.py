"""Random prototypes."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.prototypes.spec import Prototypes
from tinykernel.pieces.scale.sample import random_scaler


def random_prototypes(rng: np.random.Generator, n_prototypes: int, n: int) -> Prototypes:
    """Return prototypes of n inputs."""
    return Prototypes(rng.integers(-8, 8, (n_prototypes, n)).astype(np.int8))


def samples(seed: int) -> Iterator[Sample]:
    """Yield prototypes of inputs of 8 and of 16 bits."""
    for bits in (8, 16):
        rng = np.random.default_rng([seed, bits])
        scale = random_scaler(rng, "int16", bits, 13, False)
        yield Sample(Grid.table("int16", 13), (scale,), random_prototypes(rng, 5, 13))
