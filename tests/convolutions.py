"""Models with random convolutions or hidden layers."""

from typing import Any

from tests.random_fronts import model_behind
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.convolutions.sample import random_convolutions
from tinykernel.pieces.dense.sample import random_dense
from tinykernel.pieces.levels.sample import random_levels


def convolution_model(
    seed: int,
    shape: tuple[int, int] = (12, 13),
    pools: tuple[int, ...] = (0, 1),
    *,
    channels: int = 3,
    bits: int = 8,
    padding: int = 0,
    units: int = 0,
    unit_bits: int = 4,
    weight_bits: int = 4,
    components: bool = False,
    average: int = 1,
    **front_fields: Any,
) -> IntegerModel:
    """Return a model whose linear part looks at maps, or at the units of a hidden layer."""
    sides = {"height": shape[0] * average, "width": shape[1] * average, "average": average}
    given, first = random_levels(seed, **sides, **front_fields)
    levels = first.gives(given)
    stages = [first, random_convolutions(seed, levels, pools, channels, bits, padding)]
    if units:
        stages.append(random_dense(seed, stages[1].gives(levels), units, unit_bits))
    options = {"weight_bits": weight_bits, "components": components}
    return model_behind(given, tuple(stages), seed, **options)


def dense_model(
    seed: int, units: tuple[int, ...], bits: int = 8, *, n: int = 0, **front_fields: Any
) -> IntegerModel:
    """Return a model of hidden layers alone, of a table of n inputs, or of an image."""
    table = {"height": 1, "width": 1, "channels": n} if n else {}
    given, first = random_levels(seed, **table, **front_fields)
    stages, grid = [first], first.gives(given)
    for layer, size in enumerate(units):
        stages.append(random_dense(seed + layer, grid, size, bits))
        grid = stages[-1].gives(grid)
    return model_behind(given, tuple(stages), seed, weight_bits=8)
