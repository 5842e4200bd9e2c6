"""Random separable convolutions."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.sample import random_levels
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.separable.spec import Separable


def random_separable(
    seed: int,
    grid: Grid,
    channels: tuple[int, ...],
    strides: tuple[int, ...],
    row_strides: tuple[int, ...] | None = None,
    **layers_of: Any,
) -> Separable:
    """Return layers whose values are often inside of 0..255, with biases of all sizes.

    `layers_of` are `forms`, `flat` and `border` of the stage.
    """
    rng = np.random.default_rng([seed, 2])
    weights, units, high = [], [], float(grid.high)
    layers = [(9 * grid.channels, channels[0], 127)]
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
    flat = np.concatenate([layer.ravel() for layer in weights])
    of_units = (np.concatenate(column) for column in zip(*units, strict=True))
    return Separable(channels, strides, grid.channels, flat, *of_units, row_strides, **layers_of)


def samples(seed: int) -> Iterator[Sample]:
    """Yield blocks of a single and a point layer, and mixed ones with patches."""
    raw, levels = random_levels(seed, height=9, width=8)
    grid = levels.gives(raw)
    yield Sample(raw, (levels, random_separable(seed, grid, (4, 5), (1, 2))))
    forms = [[1, 1, 2, 2, 0], [1, 1, 1, 1, 0]]
    mixed = random_separable(seed, grid, (4, 5), (1, 1), forms=forms, flat=True)
    yield Sample(raw, (levels, mixed))
