"""Models with random convolutions or hidden layers."""

from typing import Any

import numpy as np

from tests.random_fronts import model_behind, random_levels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.convolutions.spec import Convolutions
from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.grid import Grid


def random_convolutions(
    seed: int,
    given: Grid,
    pools: tuple[int, ...],
    channels: int = 3,
    bits: int = 8,
    padding: int = 0,
) -> Convolutions:
    """Return layers whose responses are often inside of 0..255, with biases of all sizes."""
    rng = np.random.default_rng(seed)
    layers, most = len(pools), {4: 8, 8: 127}[bits]
    weights = rng.integers(-most, most + (bits == 8), (layers, channels, 3, 3))
    reach = np.abs(weights).sum(axis=(2, 3)) * np.array([[given.high], *[[255]] * (layers - 1)])
    shifts = np.log2(np.maximum(reach.mean(axis=1) / 255, 1)).astype(int)
    shifts = np.maximum(shifts - rng.integers(0, 4, layers), 0)
    biases = rng.integers(-reach // 8, reach // 4 + 1)
    return Convolutions(weights, biases, shifts, np.array(pools, dtype=bool), padding)


def random_dense(seed: int, given: Grid, units: int, bits: int) -> Dense:
    """Return a hidden layer of weights of so many bits."""
    rng = np.random.default_rng([seed, 1])
    largest = {1: 1, 2: 1, 4: 7, 8: 127}[bits]
    weights = rng.integers(-largest, largest + 1, (units, given.size))
    if bits == 1:
        weights = rng.choice([-1, 1], weights.shape)
    reach = np.sqrt(given.size) * largest * given.high
    shift = int(rng.integers(0, int(np.log2(max(reach / 64, 1))) + 1))
    return Dense(weights, rng.integers(-int(reach), int(reach) + 1, units), shift)


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
