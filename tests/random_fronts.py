"""Random levels and kernels, and models of them."""

from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.random_models import random_model, random_scaler, with_linear
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.beside.spec import Beside
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.kernels.spec import Kernels
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.offset.spec import Offset
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.scale.spec import Scale


class Front(NamedTuple):
    """What counts, and what it takes."""

    input: Grid
    levels: Levels
    kernels: Kernels
    hop: int

    @property
    def counts(self) -> Grid:
        """What it gives."""
        return self.kernels.gives(self.levels.gives(self.input))


def random_taps(rng: np.random.Generator, n_kernels: int) -> NDArray[np.int8]:
    """Return kernels of every kind, mostly MiniRocket's."""
    places = list(combinations(range(9), 3))
    taps = np.full((n_kernels, 9, 1), -1)
    for kernel in taps:
        kernel[list(places[rng.integers(len(places))])] = 2
    taps[rng.random(n_kernels) < 0.1] = 1
    newest = rng.random(n_kernels) < 0.1
    taps[newest] = 0
    taps[newest, 8] = 1
    return taps.astype(np.int8)


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


def random_signal_stage(
    seed: int,
    *,
    height: int = 64,
    channels: int = 3,
    n_kernels: int = 20,
    raw_dtype: str = "int16",
    bits: int = 16,
    level_bits: int = 10,
    average: int = 2,
    n_mixed: int = 4,
    dilations: tuple[int, ...] = (1, 2),
    cells: tuple[int, int] = (1, 1),
    terms: int = 2,
    hop: int = 32,
) -> Front:
    """Return levels and kernels of signals."""
    rng = np.random.default_rng(seed)
    shape = {"height": height, "width": 1, "channels": channels, "n_mixed": n_mixed}
    fields = {"bits": bits, "level_bits": level_bits, "average": average, "terms": terms}
    given, levels = random_levels(rng, raw_dtype=raw_dtype, **shape, **fields)
    taps = random_taps(rng, n_kernels)
    top, flat = (1 << level_bits) - 1, taps.reshape(n_kernels, 9).astype(int)
    low, high = top * np.minimum(flat, 0).sum(1), top * np.maximum(flat, 0).sum(1)
    threshold = rng.integers(low // 2, high // 2 + 1)
    kernels = Kernels(
        taps=taps,
        dilation=rng.choice(dilations, n_kernels),
        channel=rng.integers(0, levels.mix.shape[0], n_kernels),
        threshold=np.clip(threshold, high - 32768, low + 32767),  # differences have 16 bits
        cells=cells,
    )
    return Front(given, levels, kernels, hop)


def random_beside(seed: int, n: int, raw_dtype: str, top: int = 255) -> Beside:
    """Return n numbers beside a window, all but the first looked at twice, with random scalers."""
    source = np.concatenate([np.arange(n), np.arange(1, n)])
    found = random_scaler(np.random.default_rng(seed), raw_dtype, 8, source.size, False)
    arrays = {name: np.broadcast_to(a, source.size).copy() for name, a in found.arrays.items()}
    arrays["multiplier"] = np.maximum(arrays["multiplier"], 1)
    return Beside(Scale(raw_dtype, 8, **arrays), source, top)


def model_behind(
    given: Grid,
    stages: tuple[Stage, ...],
    seed: int,
    *,
    weight_bits: int = 4,
    components: bool = False,
    hop: int = 0,
    **changes: Any,
) -> IntegerModel:
    """Return a model whose linear part looks at what stages give; `weight_bits` 0: has none."""
    made = given
    for stage in stages:
        made = stage.gives(made)
    model = random_model(
        seed, n_features=made.size, raw_dtype=made.dtype, shared_scaler=True, **changes
    )
    # Levels of the values that there can be, not of the whole type.
    bits = model.scaler.bits
    factor = min(((1 << (16 + bits)) - 1) // made.high, 2**32 - 1)
    scaler = Scale(made.dtype, bits, [0], [factor], [made.high])
    model = replace(model, input=given, stages=(*stages, scaler, *model.stages[1:]), hop=hop)
    return with_linear(model, seed, weight_bits, components) if weight_bits else model


def local_model(
    stage: Front, seed: int, *, beside: Beside | None = None, **options: Any
) -> IntegerModel:
    """Return a machine with a linear part behind kernels; `options` are those of `model_behind`."""
    joined = () if beside is None else (beside,)
    chain = (stage.levels, stage.kernels, *joined)
    return model_behind(stage.input, chain, seed, hop=stage.hop, **options)


def offset_model(
    seed: int, dtype: str = "int16", *, weight_bits: int = 4, n_numbers: int = 0, **changes: Any
) -> IntegerModel:
    """Return a model of a signal whose windows are taken without their means."""
    front = random_signal_stage(seed, **{"raw_dtype": "int32"} | changes)
    given = Grid.raw(dtype, front.input.rows, 1, front.input.channels)
    # Levels of the differences that there can be.
    span = given.high - given.low
    factor = np.array([((1 << 16) - 1 << 16) // (2 * span + 1) or 1])
    scaler = Scale("int32", 16, np.array([-span]), factor, np.array([2 * span]))
    front = front._replace(levels=replace(front.levels, scaler=scaler))
    beside = random_beside(seed, n_numbers, "int32") if n_numbers else None
    model = local_model(front, seed, weight_bits=weight_bits, beside=beside)
    own = random_beside(seed, n_numbers, dtype) if n_numbers else None
    stages = (own if stage is beside else stage for stage in model.stages)
    return replace(model, input=given, stages=(Offset(), *stages))
