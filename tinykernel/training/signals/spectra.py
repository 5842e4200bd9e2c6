"""Training of convolutions on spectra, and the choice between these and kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.stages.plane import Plane
from tinykernel.training.choice import Candidate, Choice, choose
from tinykernel.training.folds import Fold, trial_folds
from tinykernel.training.loop import History
from tinykernel.training.loss import WIDE_TEMPERATURES
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts import linear_training
from tinykernel.training.result import TrainingResult
from tinykernel.training.signals.planes import PlaneLearner, no_planes, plane_plan, variation_of
from tinykernel.training.signals.spectrum import spectrum_of
from tinykernel.training.trainset import TrainSet

#: A training without the choice, of rows, options and the shape of a window.
Training = Callable[[TrainSet, TrainerOptions, tuple[int, ...]], TrainingResult]
# Trainings that decide: epochs of convolutions over those of the training, and standard errors.
_TRIALS = (4, 2.0), (2, 1.0)
_NAMES = {"kernels": "kernels", "mixed": "convolutions"}


def fit_planes(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], untrained: bool = False
) -> TrainingResult:
    """Learn separable convolutions on the spectra of windows of (samples, channels)."""
    grid = Grid.raw(data.raw_dtype, shape[0], 1, shape[1])
    first, _ = spectrum_of(options, shape, data.raw_dtype)
    refused = "" if not options.beside else "numbers beside a window go with kernels only"
    refused = refused or no_planes(grid, first, options.augment)
    if refused:
        raise TinykernelError(f"convolutions: {refused}")
    assert first is not None
    progress.report("spectra", 0, None)
    seed = int(check_random_state(options.random_state).randint(2**31 - 1))
    made = first.gives(grid)
    planes = -1, 1, made.rows, made.channels
    rows = linear_training.split_rows(data.seen(lambda raw: first.run(raw, grid)), options, seed)
    rows = rows.seen(lambda levels: levels.astype(np.uint8).reshape(planes))
    plan = plane_plan(options, len(rows.rows), linear_training.bits_of(options, shape), data.losses)
    known = rows.rows, rows.targets, rows.weight, plan
    learner = PlaneLearner(*known, variation_of(options, first, made.rows))
    history = History([{"loss": float("nan")}])
    if not untrained:
        history = linear_training.run_training(learner, rows)
    stages = first, Plane(), *learner.layers_and_scale()
    model = linear_training.chained_model(stages, grid, data.meaning, learner.stored())
    return TrainingResult(replace(model, hop=options.hop), learner.plan, history)


def better(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], each: Training
) -> tuple[TrainerOptions, Choice | None]:
    """Choose between kernels and convolutions on held-out rows.

    Short trainings of convolutions decide: if these are better, so is the full training. They
    take far more instructions, so the shortest training must be better by two standard errors,
    a longer one by one.
    """
    if data.quantity is not None:
        raise TinykernelError("n_kernels: of windows a mapping is for classes; give one number")
    forms = options.forms()
    seed = int(check_random_state(options.random_state).randint(2**31 - 1))
    folds = trial_folds(data.codes, data.groups, seed)[:1] if len(forms) > 1 else []
    if not folds:
        return next(iter(forms.values())), None
    fold, trial = folds[0], "choosing kernels or convolutions"
    groups = None if data.groups is None else data.groups[fold.outside]
    judged: dict[str, Candidate] = {}
    for number, (share, margin) in enumerate(_TRIALS):
        progress.report(trial, number, len(_TRIALS))
        for form, asked in forms.items():
            if form == "mixed" or not number:
                with progress.observing(None):
                    judged[form] = _judged(form, data, fold, asked, share, shape, each)
        choice = choose(list(judged.values()), data.weight[fold.outside], groups, margin=margin)
        if list(forms)[choice.chosen] == "mixed":
            break
    progress.report(trial, len(_TRIALS), len(_TRIALS))
    return list(forms.values())[choice.chosen], choice


def _judged(
    form: str,
    data: TrainSet,
    fold: Fold,
    options: TrainerOptions,
    share: int,
    shape: tuple[int, ...],
    each: Training,
) -> Candidate:
    """Train on the rows inside a fold, convolutions for a share of the epochs, and judge it."""
    if form == "mixed":
        epochs = plane_plan(options, len(fold.inside), 4).linear.epochs
        options = replace(options, epochs=-(-epochs // share))
    model = each(_part(data, fold.inside), options, shape).machine
    held = data.truth[fold.outside], data.weight[fold.outside]
    totals = model.readout.totals(model.run(model.quantize_inputs(data.X[fold.outside])))
    decisions = (totals * model.decision_scale).astype(np.float32)
    candidate = Candidate.of(_NAMES[form], decisions, *held, temperatures=WIDE_TEMPERATURES)
    return replace(candidate, cost=int(form == "mixed"))


def _part(data: TrainSet, rows: NDArray[np.int64]) -> TrainSet:
    """Return some of the rows, without those of validation."""
    return replace(
        data,
        X=data.X[rows],
        codes=data.codes[rows],
        sample_weight=data.sample_weight[rows],
        groups=None if data.groups is None else data.groups[rows],
        validation=None,
    )
