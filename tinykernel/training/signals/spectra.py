"""Training of separable convolutions on the spectra of signals."""

from dataclasses import replace

import numpy as np
from sklearn.utils import check_random_state

from tinykernel import progress
from tinykernel.errors import OptionError
from tinykernel.model.grid import Grid
from tinykernel.model.stages.plane import Plane
from tinykernel.model.stages.spectrum import Spectrum
from tinykernel.training.loop import History
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts import linear_training
from tinykernel.training.result import TrainingResult
from tinykernel.training.signals.planes import (
    EVERY,
    PlaneLearner,
    no_planes,
    plane_plan,
    variation_of,
)
from tinykernel.training.signals.spectrum import BANDS_OF_PLANES, spectrum_of
from tinykernel.training.trainset import TrainSet


def spectrum_of_planes(
    options: TrainerOptions, shape: tuple[int, ...], raw_dtype: str
) -> tuple[Spectrum | None, str]:
    """Return the spectrum of windows of (samples, channels), or why they have no convolutions."""
    every = EVERY if options.streaming == "on" else 1
    first, refused = spectrum_of(options, shape, raw_dtype, BANDS_OF_PLANES, every)
    grid = Grid.raw(raw_dtype, shape[0], 1, shape[1])
    if options.beside:
        refused = "numbers beside a window go with kernels only"
    return first, refused or no_planes(grid, first, options.augment)


def fit_planes(
    data: TrainSet,
    options: TrainerOptions,
    n_channels: int,
    bits: int,
    shape: tuple[int, ...],
    untrained: bool = False,
) -> TrainingResult:
    """Learn separable convolutions on the spectra of windows of (samples, channels).

    The last block has `n_channels`; the linear part has weights of so many bits.
    """
    grid = Grid.raw(data.raw_dtype, shape[0], 1, shape[1])
    first, refused = spectrum_of_planes(options, shape, data.raw_dtype)
    if refused:
        raise OptionError(f"model: {refused}")
    assert first is not None
    progress.report("spectra", 0, None)
    seed = int(check_random_state(options.random_state).randint(2**31 - 1))
    made = first.gives(grid)
    planes = -1, 1, made.rows, made.channels
    rows = linear_training.split_rows(data.seen(lambda raw: first.run(raw, grid)), options, seed)
    rows = rows.seen(lambda levels: levels.astype(np.uint8).reshape(planes))
    plan = plane_plan(options, n_channels, len(rows.rows), bits, data.losses)
    known = rows.rows, rows.targets, rows.weight, plan
    learner = PlaneLearner(*known, variation_of(options, first, made.rows))
    history = History([{"loss": float("nan")}])
    if not untrained:
        history = linear_training.run_training(learner, rows)
    stages = first, Plane(), *learner.layers_and_scale()
    model = linear_training.chained_model(stages, grid, data.meaning, learner.stored())
    return TrainingResult(replace(model, hop=options.hop), learner.plan, history)
