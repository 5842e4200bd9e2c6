"""Random levels."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.sample import random_scaler


def random_levels(
    seed: int | np.random.Generator,
    *,
    height: int = 12,
    width: int = 10,
    channels: int = 1,
    raw_dtype: str = "uint8",
    bits: int = 8,
    level_bits: int = 8,
    average: int = 1,
    terms: int = 0,
    n_mixed: int = 3,
) -> tuple[Grid, Levels]:
    """Return an input and levels of it; `terms` 0 leaves the channels as they are."""
    rng = np.random.default_rng(seed)
    scaler = random_scaler(rng, raw_dtype, bits, channels, channels == 1)
    if np.any(scaler.multiplier == 0):
        scaler = replace(scaler, multiplier=np.maximum(scaler.multiplier, 1))
    mix = np.eye(channels, dtype=np.int8)
    if terms:
        mix = np.zeros((n_mixed, channels), dtype=np.int8)
        for row in mix:
            used = rng.choice(channels, min(channels, int(rng.integers(1, terms + 1))), False)
            row[used] = rng.choice([-1, 1], used.size)
    levels = Levels(scaler, bits - level_bits, average, mix)
    return Grid.raw(raw_dtype, height, width, channels), levels


def samples(seed: int) -> Iterator[Sample]:
    """Yield levels of an image, averaged, and of a table, each before a hidden layer."""
    table = {"height": 1, "width": 1, "channels": 9, "raw_dtype": "float32"}
    for fields in ({"average": 2}, table):
        raw, levels = random_levels(seed, **fields)
        weights = np.random.default_rng(seed).integers(-7, 8, (4, levels.gives(raw).size))
        yield Sample(raw, (levels, Dense(weights, np.zeros(4), 2)))
