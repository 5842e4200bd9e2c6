"""Training of images: convolutions are learned with the linear part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.stages.convolutions import MOST_CHANNELS
from tinykernel.model.stages.frame import Frame
from tinykernel.training.augment import Augmentation
from tinykernel.training.choice import Candidate, Choice, choose, joined
from tinykernel.training.folds import Fold, hold_out, trial_folds
from tinykernel.training.images.convolutions import (
    ConvolutionLearner,
    ImageLearner,
    as_levels,
    convolution_plan,
    no_convolutions,
)
from tinykernel.training.images.separable import (
    COARSE,
    SeparableLearner,
    no_separable,
    separable_plan,
)
from tinykernel.training.inputs import choose_scaler
from tinykernel.training.loop import run_epochs
from tinykernel.training.loss import WIDE_TEMPERATURES
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.linear_training import (
    TrainingRows,
    bits_of,
    chained_model,
    check_channels,
    linear_recipe,
    run_training,
    split_rows,
)
from tinykernel.training.result import TrainingResult
from tinykernel.training.trainset import TrainSet

# Epochs for 60,000 images.
_EPOCHS = {"on": 30, "deep": 30, "mixed": 20, COARSE: 20}
_MOST_EPOCHS_OF_MIXED = 50
# Default variation of images, without which convolutions overfit: in 16 KB, for 20,000 images of
# Fashion, the accuracy on held-out training rows is 89.45 % with it and 88.93 % without. Mirrored
# images may mean something else.
_VARIED = {form: {"affine": 0.3 if form in ("on", "deep") else 0.5} for form in _EPOCHS}
_NAMES = {"mixed": "mixed convolutions", COARSE: "coarse convolutions"}
# Epochs of the training over those of a short one. A quarter of them preferred chains on USPS in
# 8 KB, with a loss of 0.051 to 0.055; half have 0.045 to 0.036, and all 0.040 to 0.028.
_TRIAL_SHARE = 2
# Below this many images trainings have more epochs, and a quarter of them suffices (digits).
_FEW_IMAGES = 4000


def fit_images(data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]) -> TrainingResult:
    """Learn convolutions for images of (height, width, channels)."""
    seed = int(check_random_state(options.random_state).randint(2**31 - 1))
    rows = split_rows(data, options, seed)
    pixels = rows.rows.reshape(-1, shape[2])
    scope = "global" if shape[2] == 1 else "auto"
    scaler = choose_scaler(pixels, data.raw_dtype, 8, scope)
    check_channels(scaler)
    rows = rows.seen(lambda raw: as_levels(raw, scaler, shape))
    contest = None
    if isinstance(options.n_kernels, Mapping):
        options, contest = _better(data, rows, options, shape, seed)
    learner = _begun(rows, options, shape, data.losses)
    learner.stages(scaler)  # what cannot be is refused before the long training
    history = run_training(learner, rows)
    stages, taken = learner.stages(scaler), Grid.raw(scaler.raw_dtype, *shape)
    model = chained_model(stages, taken, data.meaning, learner.stored())
    return TrainingResult(model, learner.plan, history, contest=contest)


def fit_frames(data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]) -> TrainingResult:
    """Learn from the images that the stage `Frame` computes, and put it first in the chain."""
    assert options.frame is not None
    frame = Frame.of(options.frame, shape)
    if data.raw_dtype != "uint8":
        raise TinykernelError(
            f"frame: rows of a camera are uint8, not {data.raw_dtype}; convert them"
        )
    images = data.seen(lambda frames: frame.run(frames, frame.taken))
    result = fit_images(images, options, shape)
    model = result.machine
    model = replace(model, input=frame.taken, stages=(frame, *model.stages))
    return replace(result, machine=model)


def _begun(
    rows: TrainingRows, options: TrainerOptions, shape: tuple[int, ...], losses: tuple[float, ...]
) -> ImageLearner:
    """Begin with convolutions, on rows that are levels."""
    name, form = "convolutions", options.convolutions
    if form == "auto":
        name, form = "image_shape", "mixed" if no_convolutions(shape) else "on"
    is_separable = form in ("mixed", COARSE)
    refused = no_separable(shape, form) if is_separable else no_convolutions(shape, form)
    if refused:
        raise TinykernelError(f"{name}: {refused}")
    n = options.n_kernels or 32
    assert isinstance(n, int)
    if n > MOST_CHANNELS:
        raise TinykernelError(f"n_kernels: {n} channels; give at most {MOST_CHANNELS}")
    linear = linear_recipe(options, len(rows.rows), bits_of(options, shape), _EPOCHS[form], losses)
    if is_separable and options.epochs is None:
        linear = replace(linear, epochs=min(linear.epochs, _MOST_EPOCHS_OF_MIXED))
    varied = _VARIED.get(form) if options.augment is None else options.augment
    known, augmentation = (rows.rows, rows.targets, rows.weight), Augmentation.of(varied)
    if is_separable:
        plan = separable_plan(shape, n, linear, form=form)
        return SeparableLearner(*known, plan, augmentation)
    return ConvolutionLearner(*known, convolution_plan(shape, n, form, linear), augmentation)


def _better(
    data: TrainSet, rows: TrainingRows, options: TrainerOptions, shape: tuple[int, ...], seed: int
) -> tuple[TrainerOptions, Choice | None]:
    """Choose the form of convolutions by short trainings, judged on held-out rows."""
    codes, groups, truth = data.codes, data.groups, data.truth
    if options.validation_fraction:
        learned = ~hold_out(codes, groups, options.validation_fraction, seed)
        codes, truth = codes[learned], truth[learned]
        groups = None if groups is None else groups[learned]
    each = options.forms()
    folds = trial_folds(codes, groups, seed) if len(each) > 1 else []
    if not folds:
        return next(iter(each.values())), None
    judged: dict[str, list[Candidate]] = {form: [] for form in each}
    for number, fold in enumerate(folds):
        progress.report("choosing convolutions", number, len(folds))
        for form, plan in each.items():
            name = _NAMES.get(form, "convolutions")
            judged[form].append(_judged(name, rows, truth, fold, plan, shape, data.losses))
    candidates = [joined(parts) for parts in judged.values()]
    outside = np.concatenate([fold.outside for fold in folds])
    choice = choose(candidates, rows.weight[outside], of_values=bool(data.losses))
    return list(each.values())[choice.chosen], choice


def _judged(
    name: str,
    rows: TrainingRows,
    truth: NDArray[Any],
    fold: Fold,
    options: TrainerOptions,
    shape: tuple[int, ...],
    losses: tuple[float, ...],
) -> Candidate:
    """Train for a short time on the rows inside a fold, and judge those outside."""
    inside, outside = fold.inside, fold.outside
    part = TrainingRows(rows.rows[inside], rows.targets[inside], rows.weight[inside], None)
    learner = _begun(part, options, shape, losses)
    share = _TRIAL_SHARE if len(rows.rows) >= _FEW_IMAGES else 2 * _TRIAL_SHARE
    epochs = -(-learner.recipe.epochs // share)
    learner.recipe = replace(learner.recipe, epochs=epochs)
    run_epochs(learner, epochs, stage=None)
    decisions = learner.decide(learner.seen(rows.rows[outside]))
    held = truth[outside], rows.weight[outside], losses
    return Candidate.of(name, decisions, *held, WIDE_TEMPERATURES)
