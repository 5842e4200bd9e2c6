"""Spectra and samples to try them with: random ones, and those where most could go wrong."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.random_fronts import local_model, model_behind, random_signal_stage
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.beside.sample import random_beside
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.plane.spec import Plane
from tinykernel.pieces.separable.sample import random_separable
from tinykernel.pieces.spectrum.spec import Spectrum


def hard_frames(stage: Spectrum, dtype: str, seed: int) -> NDArray[Any]:
    """Return windows (8, samples) of two frames and a rest: silence, full scale, tones, noise."""
    rng = np.random.default_rng([seed, 2])
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    n = stage.length + stage.hop + int(rng.integers(stage.hop))
    t = np.arange(n)
    middle, half = (low + high + 1) // 2, (high - low) // 2
    tone = np.sin(2 * np.pi * rng.uniform(0, 0.5) * t + rng.uniform(0, 7))
    rows = [
        *(np.full(n, middle), np.full(n, low), np.where(t % 2, low, high)),
        *(np.where(t == rng.integers(n), low, middle), np.where(tone > 0, high, low)),
        *(middle + np.floor(half * tone), rng.integers(low, high, n, endpoint=True)),
        middle + rng.integers(-3, 4, n),
    ]
    return np.clip(np.array(rows), low, high).astype(dtype)


def spectral_model(
    seed: int,
    *,
    length: int = 64,
    frames: int = 20,
    channels: int = 1,
    dtype: str = "int16",
    bands: int = 5,
    output: Mapping[str, int] | None = None,
    n_numbers: int = 0,
    **changes: Any,
) -> IntegerModel:
    """Return a model of windows of frames and a rest, whose stream decides every 6 frames."""
    hop = 3 * length // 8
    edges = np.linspace(2, length // 2, bands + 1).astype(int)
    spectrum = Spectrum(length, hop, edges, 2, 70)
    grid = Grid.raw(dtype, length + (frames - 1) * hop + hop // 2, 1, channels)
    fields: dict[str, Any] = {
        "height": spectrum.gives(grid).rows,
        "channels": bands * channels,
        "raw_dtype": "uint8",
        "bits": 8,
        "level_bits": 8,
        "average": 1,
        "cells": (2, 1),
        "hop": 6,
    }
    beside = random_beside(seed, n_numbers, "uint8") if n_numbers else None
    front = random_signal_stage(seed, **fields | changes)
    model = local_model(front, seed, beside=beside, **output or {})
    own = random_beside(seed, n_numbers, dtype) if n_numbers else None
    stages = (spectrum, *(own if stage is beside else stage for stage in model.stages))
    return replace(model, input=grid, stages=stages, hop=model.hop * hop)


def plane_model(
    seed: int,
    blocks: tuple[int, ...] = (4, 5),
    strides: tuple[int, ...] = (1, 2),
    output: Mapping[str, int] | None = None,
    hop: int = 6,
    row_strides: tuple[int, ...] | None = None,
    **changes: Any,
) -> IntegerModel:
    """Return the same with separable convolutions, whose stream decides every `hop` frames."""
    model = spectral_model(seed, **changes)
    plane = Plane().gives(model.grids()[1])
    stages = (model.stages[0], Plane(), random_separable(seed, plane, blocks, strides, row_strides))
    found = model_behind(model.input, stages, seed, **output or {})
    return replace(found, hop=hop * model.stages[0].step)
