"""Models with random separable convolutions."""

from itertools import pairwise
from typing import Any

import numpy as np

from tests.convolutions import random_dense
from tests.random_fronts import model_behind, random_levels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.separable.spec import Separable


def random_separable(
    seed: int,
    given: Grid,
    channels: tuple[int, ...],
    strides: tuple[int, ...],
    row_strides: tuple[int, ...] | None = None,
    **layers_of: Any,
) -> Separable:
    """Return layers whose values are often inside of 0..255, with biases of all sizes.

    `layers_of` are `forms`, `flat` and `border` of the stage.
    """
    rng = np.random.default_rng([seed, 2])
    weights, units, high = [], [], float(given.high)
    layers = [(9 * given.channels, channels[0], 127)]
    forms = layers_of.get("forms") or [[0]] * len(channels)
    for (before, after), form in zip(pairwise(channels), forms[1:], strict=True):
        layers += [(9 * before, after, 127)] if form[0] else [(9, before, 7), (before, after, 7)]
    for n_inputs, n, most in layers:
        weights.append(rng.integers(-most, most + 1, (n, n_inputs)))
        reach = most * high * np.sqrt(n_inputs)
        multipliers = rng.integers(64, 128, n)
        shifts = np.rint(np.log2(np.maximum(reach * multipliers / 200, 1))).astype(int)
        biases = rng.integers(-int(reach / 4) - 1, int(reach / 2) + 2, n)
        units.append((biases, multipliers, np.clip(shifts + rng.integers(-1, 2, n), 0, 24)))
        high = 255.0
    flat = np.concatenate([each.ravel() for each in weights])
    of_units = (np.concatenate(each) for each in zip(*units, strict=True))
    return Separable(channels, strides, given.channels, flat, *of_units, row_strides, **layers_of)


def separable_model(
    seed: int,
    shape: tuple[int, int] = (9, 8),
    blocks: tuple[int, ...] = (4, 5),
    strides: tuple[int, ...] = (1, 2),
    *,
    weight_bits: int = 4,
    average: int = 1,
    n_classes: int = 3,
    layers_of: dict[str, Any] | None = None,
    units: int = 0,
    **front_fields: Any,
) -> IntegerModel:
    """Return a model whose linear part looks at the means of separable convolutions, or units."""
    sides = {"height": shape[0] * average, "width": shape[1] * average, "average": average}
    given, first = random_levels(seed, **sides, **front_fields)
    levels = first.gives(given)
    stages = [first, random_separable(seed, levels, blocks, strides, **layers_of or {})]
    if units:
        stages.append(random_dense(seed, stages[1].gives(levels), units, 8))
    options = {"weight_bits": weight_bits, "n_classes": n_classes}
    return model_behind(given, tuple(stages), seed, **options)
