"""Random levels and kernels, and models of them."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tests.random_models import random_model, with_linear
from tinykernel.model.answers import Labels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.beside.sample import random_beside
from tinykernel.pieces.beside.spec import Beside
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.kernels.sample import random_kernels
from tinykernel.pieces.kernels.spec import Kernels
from tinykernel.pieces.levels.sample import random_levels
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.linear.sample import random_linear
from tinykernel.pieces.offset.spec import Offset
from tinykernel.pieces.piece import Readout, Sample, Stage
from tinykernel.pieces.scale.sample import scaled
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.ternary.sample import random_ternary


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
    kernels = random_kernels(rng, levels.gives(given), n_kernels, dilations, cells)
    return Front(given, levels, kernels, hop)


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
    scaler = scaled(made, model.scaler.bits)
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


def model_of(sample: Sample, seed: int) -> IntegerModel:
    """Return a model of a sample of a piece, with what the sample leaves open."""
    rng, part, port = np.random.default_rng(seed), sample.part, sample.stages[-1].GIVES
    if part is None and port not in ("inputs", "components"):
        return model_behind(sample.input, sample.stages, seed, hop=sample.hop)
    scale = sample.stages[-1 - (port == "components")]
    if part is None and port == "inputs":
        part = random_linear(rng, scale, 3, sample.input.size, 4)
    if part is None:
        part = random_ternary(rng, 3, sample.stages[-1].n_components)
    n_outputs = 1 if part.ONE_CLASS else 3
    offset = rng.integers(-1000, 1000, n_outputs)
    answers = Labels(("normal", "novel") if part.ONE_CLASS else (0, 1, 2))
    return IntegerModel(sample.input, sample.stages, Readout((part,), offset), answers)
