"""Random ternary weights."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.components.sample import random_components
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.sample import random_scaler
from tinykernel.pieces.ternary.spec import Ternary


def random_ternary(
    rng: np.random.Generator,
    n_outputs: int,
    n_components: int,
    zero_weights: bool = True,
    packed: bool | None = None,
) -> Ternary:
    """Return weights of components, with or without zeros."""
    choices = [-1, 0, 1] if zero_weights else [-1, 1]
    return Ternary(
        rng.choice(choices, (n_outputs, n_components)).astype(np.int8),
        rng.integers(-1000, 1000, n_outputs).astype(np.int32),
        packed,
    )


def samples(seed: int) -> Iterator[Sample]:
    """Yield weights with zeros, without any, and packed ones."""
    for number, (zeros, packed) in enumerate(((True, False), (False, None), (True, True))):
        rng = np.random.default_rng([seed, number])
        scale = random_scaler(rng, "uint8", 8, 70, False)
        components = random_components(rng, scale, 70, n_blocks=3, rows="tail")
        part = random_ternary(rng, 3, components.n_components, zeros, packed)
        yield Sample(Grid.table("uint8", 70), (scale, components), part)
