"""Training of images: kernels or convolutions are learned with the linear part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.quantization.scale import quantize_scaler
from tinykernel.model.stages.convolutions import MOST_CHANNELS
from tinykernel.model.stages.kernels import WIDEST_CELL
from tinykernel.training.augment import Augmentation
from tinykernel.training.choice import Candidate, Choice, choose, joined
from tinykernel.training.folds import Fold, keep_aside, trial_folds
from tinykernel.training.images.convolutions import (
    ConvolutionLearner,
    ConvolutionPlan,
    no_convolutions,
    plan_for,
)
from tinykernel.training.images.kernels import ImageLearner, ImagePlan, as_levels
from tinykernel.training.images.separable import (
    SeparableLearner,
    SeparablePlan,
    no_separable,
    separable_plan,
)
from tinykernel.training.inputs import choose_scaling
from tinykernel.training.loop import run_epochs
from tinykernel.training.loss import WIDE_TEMPERATURES
from tinykernel.training.options import TrainerOptions
from tinykernel.training.options.ranges import FORMS
from tinykernel.training.readouts.counts import CountingStages
from tinykernel.training.readouts.linear_training import (
    Rows,
    bits_of,
    chained_model,
    check_channels,
    counting_model,
    linear_recipe,
    run_training,
    split_rows,
)
from tinykernel.training.result import TrainingResult
from tinykernel.training.trainset import TrainSet

_Floats = NDArray[np.float32]
_SMALL_IMAGE = 10
_LARGE_IMAGE = 40
# Convolutions learn single images by heart: in 16 KB, 20,000 images of Fashion have 89.45 % of
# held-out training rows with it, and 88.93 without.
_USUALLY_VARIED = {"affine": 0.3}
# Of mixed ones; mirrored images may mean something else.
_VARIED_WHEN_MIXED = {"affine": 0.5}
_MOST_EPOCHS = 50
# Epochs of the training over those of a short one.
_TRIAL_SHARE = 4
# With more images short trainings see too few: of 60,000 of Fashion they chose kernels. Trained
# whole, 96 of these had 88.2 % of held-out training rows, 32 channels in 2.2 KB of tables 90.0.
_MANY_IMAGES = 32000


def image_plan(
    options: TrainerOptions,
    shape: tuple[int, ...],
    n_rows: int,
    bits: int,
    losses: tuple[float, ...] = (),
) -> ImagePlan:
    """Return how kernels for images are trained."""
    side = min(shape[:2])
    if side < 4:
        raise TinykernelError(
            f"image_shape: {shape[0]} x {shape[1]} is too small for a local stage; at least 4 x 4"
        )
    n = options.n_kernels or 64
    assert isinstance(n, int)
    size = 3 if side <= _SMALL_IMAGE else 5
    return ImagePlan(
        n_kernels=n,
        size=size,
        taps=7 if size == 3 else 14,
        average=2 if side >= _LARGE_IMAGE else 1,
        linear=linear_recipe(options, n_rows, bits, 15, losses),
    )


def convolution_plan(
    options: TrainerOptions,
    shape: tuple[int, ...],
    n_rows: int,
    bits: int,
    losses: tuple[float, ...] = (),
) -> ConvolutionPlan:
    """Return how convolutions of images are trained."""
    refused = no_convolutions(shape, options.convolutions)
    if refused:
        raise TinykernelError(f"convolutions: {refused}")
    n = options.n_kernels or 32
    assert isinstance(n, int)
    if n > MOST_CHANNELS:
        raise TinykernelError(f"n_kernels: {n} channels; {MOST_CHANNELS} are the most")
    linear = linear_recipe(options, n_rows, bits, 30, losses)
    return plan_for(shape, n, options.convolutions, linear)


def mixed_plan(
    options: TrainerOptions,
    shape: tuple[int, ...],
    n_rows: int,
    bits: int,
    losses: tuple[float, ...] = (),
) -> SeparablePlan:
    """Return how separable convolutions of images are trained."""
    refused = no_separable(shape)
    if refused:
        raise TinykernelError(f"convolutions: {refused}")
    n = options.n_kernels or 32
    assert isinstance(n, int)
    if n > MOST_CHANNELS:
        raise TinykernelError(f"n_kernels: {n} channels; {MOST_CHANNELS} are the most")
    linear = linear_recipe(options, n_rows, bits, 20, losses)
    if options.epochs is None:
        linear = replace(linear, epochs=min(linear.epochs, _MOST_EPOCHS))
    return separable_plan(shape, n, linear)


def fit_images(data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]) -> TrainingResult:
    """Learn kernels or convolutions for images of (height, width, channels)."""
    seed = int(check_random_state(options.random_state).randint(2**31 - 1))
    rows = split_rows(data, options, seed)
    pixels = rows.rows.reshape(-1, shape[2])
    scope = "global" if shape[2] == 1 else "auto"
    _, scaling = choose_scaling(pixels, data.raw_dtype, 8, scope)
    scaler = quantize_scaler(scaling, data.raw_dtype, 8).scaler
    check_channels(scaler)
    held = rows.held
    if held is not None:
        rows = replace(rows, held=(as_levels(held[0], scaler, shape), *held[1:]))
    rows = replace(rows, rows=as_levels(rows.rows, scaler, shape))
    contest = None
    if isinstance(options.n_kernels, Mapping):
        options, contest = _better(data, rows, options, shape, seed)
    learner = _image_learner(rows, options, shape, data.losses)
    taken = Grid.raw(scaler.raw_dtype, *shape)
    if isinstance(learner, ImageLearner):  # before the long training
        _check_image(learner.stages(scaler, np.arange(learner.plan.n_kernels)))
    history = run_training(learner, learner.seen, rows, options)
    if not isinstance(learner, ImageLearner):
        made = chained_model(learner.stages(scaler), taken, data.meaning, learner.stored())
        return TrainingResult(made, learner.plan, history, contest=contest)
    kept = learner.used()
    if kept.size == 0:
        kept = np.arange(1)
    weights, worth, offset = learner.stored()
    n_cells = learner.plan.cells[0] * learner.plan.cells[1]
    columns = (kept[:, np.newaxis] * n_cells + np.arange(n_cells)).ravel()
    stages, stored = learner.stages(scaler, kept), (weights[:, columns], worth, offset)
    model = counting_model(stages, learner.largest_count, data.meaning, stored)
    return TrainingResult(model, learner.plan, history, contest=contest)


def _image_learner(
    rows: Rows, options: TrainerOptions, shape: tuple[int, ...], losses: tuple[float, ...]
) -> ImageLearner | ConvolutionLearner | SeparableLearner:
    """Begin with kernels or convolutions, on rows that are levels."""
    bits = bits_of(options, shape)
    given = rows.rows, rows.targets, rows.weight
    if options.convolutions == "mixed":
        mixed = mixed_plan(options, shape, len(rows.rows), bits, losses)
        augment = _VARIED_WHEN_MIXED if options.augment is None else options.augment
        return SeparableLearner(*given, mixed, Augmentation.of(augment))
    if options.convolutions not in ("auto", "off"):
        plan = convolution_plan(options, shape, len(rows.rows), bits, losses)
        augment = _USUALLY_VARIED if options.augment is None else options.augment
        return ConvolutionLearner(*given, plan, Augmentation.of(augment))
    counting = image_plan(options, shape, len(rows.rows), bits, losses)
    return ImageLearner(*given, counting, Augmentation.of(options.augment))


def _better(
    data: TrainSet, rows: Rows, options: TrainerOptions, shape: tuple[int, ...], seed: int
) -> tuple[TrainerOptions, Choice | None]:
    """Choose between kernels and convolutions by short trainings, on rows that these do not see."""
    assert isinstance(options.n_kernels, Mapping)
    codes, groups, truth = data.codes, data.groups, data.truth
    if options.validation_fraction:
        kept = ~keep_aside(codes, groups, options.validation_fraction, seed)
        codes, groups = codes[kept], None if groups is None else np.asarray(groups)[kept]
        truth = truth if len(truth) == len(codes) else truth[kept]
    forms = list(options.n_kernels)
    layers = next((form for form in forms if form != "kernels"), "")
    if len(codes) > _MANY_IMAGES and layers:
        return _of_form(options, layers, options.n_kernels[layers]), None
    folds = trial_folds(codes, groups, seed) if len(forms) > 1 else []
    if not folds:
        return _of_form(options, forms[0], options.n_kernels[forms[0]]), None
    judged: dict[str, list[Candidate]] = {form: [] for form in forms}
    for number, fold in enumerate(folds):
        progress.report("choosing kernels or convolutions", number, len(folds))
        held = truth[fold.outside], rows.weight[fold.outside], data.losses
        for form in forms:
            one = _of_form(options, form, options.n_kernels[form])
            decisions = _short_training(rows, fold, one, shape, data.losses)
            name = "kernels" if form == "kernels" else "convolutions"
            judged[form].append(Candidate.of(name, decisions, *held, WIDE_TEMPERATURES))
    candidates = [joined(parts) for parts in judged.values()]
    outside = np.concatenate([fold.outside for fold in folds])
    choice = choose(candidates, rows.weight[outside], of_values=bool(data.losses))
    best = forms[choice.chosen]
    return _of_form(options, best, options.n_kernels[best]), choice


def _short_training(
    rows: Rows,
    fold: Fold,
    options: TrainerOptions,
    shape: tuple[int, ...],
    losses: tuple[float, ...],
) -> NDArray[np.float32]:
    """Train for a short time on the rows inside a fold; return decisions of those outside."""
    inside = fold.inside
    part = Rows(rows.rows[inside], rows.targets[inside], rows.weight[inside], None)
    learner = _image_learner(part, options, shape, losses)
    epochs = -(-learner.recipe.epochs // _TRIAL_SHARE)
    learner.recipe = replace(learner.recipe, epochs=epochs)
    run_epochs(learner, epochs, stage=None)
    return learner.decide(learner.seen(rows.rows[fold.outside]))


def _of_form(options: TrainerOptions, form: str, n: int) -> TrainerOptions:
    return replace(options, convolutions=FORMS[form], n_kernels=n)


def _check_image(stages: CountingStages) -> None:
    """Refuse what the firmware has no C for; the stages refuse what is too large."""
    taken, across = stages.taken, stages.kernels.cells[1]
    if stages.kernels.cell_columns(stages.placed) > WIDEST_CELL:
        most = across * WIDEST_CELL * stages.levels.average
        raise TinykernelError(
            f"image_shape: {taken.rows} x {taken.columns} is too wide for a local stage of "
            f"{across} cells across, at most {most} columns; scale the images down"
        )
