"""The trainer: phase windows, diagonals and weights learned together, as they are stored.

The model is that of Lei & Lan 2021, (3)-(6), with everything but B and P learned::

    u = P H B x'                                        once for all blocks
    y = H (G_b * u)                                     one block of d projections
    z = sign(cos(S y + b) + t)                          one bit a row
    f = (a / sqrt(p)) W z + offset                      W in {-1, 1} or {-1, 0, 1}

The loss is in `loss`. Both steps without a derivative have straight-through gradients: the sign
``g(s) = k / (1 + (k s)^2 / 2)^2`` (`component_passes`), W that of its float shadow. Gaussian noise
on u regularises; Adam follows one cycle (`learner`). The inputs are the integers of the firmware
from the start (`inputs`); in the last part of the training the forward pass uses the integers of G,
S, start and width, too (`windows`), so that they are learned as they are exported.

A `Layout` defines the size of a component. Sigma, noise and the layout are chosen on held-out rows
(`search`); the final training uses all rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.model.proof import choose_schedules
from tinykernel.model.quantization.outputs import Sums, kernel_model
from tinykernel.model.quantization.phases import Stored, quantize_windows
from tinykernel.model.stages.frame import Frame
from tinykernel.training.choice import Candidate
from tinykernel.training.components.learner import Learner, Validation
from tinykernel.training.components.windows import Arithmetic
from tinykernel.training.folds import Fold, hold_out, trial_folds
from tinykernel.training.images.training import fit_frames, fit_images
from tinykernel.training.inputs import (
    SharedTransform,
    choose_scaler,
    choose_scaling,
    draw_transform,
)
from tinykernel.training.layouts import layout_of
from tinykernel.training.loop import History
from tinykernel.training.options import OF_TREES, TrainerOptions, parts_of
from tinykernel.training.options.recipe import Recipe, recipe_for, usual_epochs
from tinykernel.training.readouts.blend import blend_ahead
from tinykernel.training.readouts.contest import Contest, Rival, fit_trees
from tinykernel.training.readouts.linear import LinearLearner
from tinykernel.training.readouts.linear_training import fit_linear, may_blend, table_recipe
from tinykernel.training.readouts.trees import TreeTrial
from tinykernel.training.result import TrainingResult
from tinykernel.training.search import STAGE, SearchOutcome, TrialData, choose_recipe, decisions_of
from tinykernel.training.signals.training import fit_windows
from tinykernel.training.trainset import TrainSet
from tinykernel.training.values.smooth import Smooth, smoothed

# Epochs of components that are compared with trees before other options are tried, as a share.
_PILOT = 0.25
_SEARCHED = frozenset(("sigma_multiple", "noise"))
_Floats = NDArray[np.float32]


def fit(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...] | None = None
) -> TrainingResult:
    """Train a machine; TinykernelError for options that are not allowed or do not fit the rows.

    `shape` is that of an input for a local stage: (samples, channels) or (height, width, channels).
    Ctrl-C before the end of the first epoch raises KeyboardInterrupt.

    >>> from sklearn.datasets import load_iris
    >>> from tinykernel.training.trainset import prepare
    >>> _, data = prepare(*load_iris(return_X_y=True))
    >>> fit(data, TrainerOptions(n_components=64, epochs=20, effort="quick")).machine.n_outputs
    3
    """
    options.check()
    options.check_for(shape)
    check_rows(data, options)
    if options.model in OF_TREES:
        return _trees_alone(data, options)
    if shape is not None:
        return _with_shape(data, options, shape)
    if not any(options.capacity().values()):
        return _linear_or_trees(data, options)
    return _components_or_others(data, options)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Rows as components learn them."""

    data: TrainSet  # rows to learn: the given ones, or those of a smooth fit.
    known: TrainSet  # the given rows.
    first: Recipe  # where the search begins.
    fixed: frozenset[str]  # options that are not searched.
    smooth: Smooth | None
    transform: SharedTransform
    rows: TrialData

    @staticmethod
    def of(known: TrainSet, options: TrainerOptions) -> _Prepared:
        """Transform the rows, or those of a smooth fit."""
        usual = recipe_for(options, known.codes.size, known.losses)
        data, first, smooth = smoothed(known, options, usual)
        # The rows of a smooth fit come without noise, and need none on their inputs.
        fixed = frozenset({"noise"} if first.noise != usual.noise else ())
        bits, scaler = choose_scaling(data.X, data.raw_dtype, options.width(), options.scaler_scope)
        drawn = np.random.default_rng([first.seed, 0])
        transform = draw_transform(scaler, bits, data.raw_dtype, drawn)
        mixed, inputs = transform.mixed(data.X), transform.scaler.quantize(data.X)
        folds = trial_folds(data.codes, data.groups, first.seed)
        blend = _blend(data, options, inputs)
        rows = TrialData(mixed, data.targets(), data.weight, data.truth, folds, inputs, blend=blend)
        return _Prepared(data, known, first, fixed, smooth, transform, rows)


def _components_or_others(known: TrainSet, options: TrainerOptions) -> TrainingResult:
    """Search, compare the result with trees, and train the better one."""
    prepared = _Prepared.of(known, options)
    contest = Contest.of(known, options, prepared.first.seed)

    def beaten(heats: SearchOutcome) -> bool:
        """Whether trees are far ahead of the heats of the first layout."""
        assert contest is not None
        return contest.early([*_rivals(prepared, options, heats, _PILOT).values()])

    early = None if contest is None or prepared.smooth is not None else beaten
    recipe, outcome = _choose(prepared.rows, options, prepared.first, prepared.fixed, early)
    if outcome is not None and contest is not None and not outcome.interrupted:
        if contest.trees is None:
            rivals = _rivals(prepared, options, outcome)
            contest.decide([*rivals.values()])
        if contest.trees is not None:
            return replace(_of_trees(*contest.trees), trials=outcome.trials, contest=contest.choice)
        if contest.choice is not None:
            recipe = next(each for each in rivals if each.form == contest.choice.name)
    if outcome is not None:
        outcome = replace(outcome, learned="a smooth fit" if prepared.smooth is not None else "")
    trials = [] if outcome is None else outcome.trials
    choice, contest = None if contest is None else contest.choice, None  # frees its rows
    if recipe.n_components:
        result = _trained(prepared, options, recipe)
    else:
        result = fit_linear(prepared.data, options, recipe.linear_bits or 8, prepared.rows.blend)
    return replace(result, trials=trials, outcome=outcome, contest=choice)


def _rivals(
    prepared: _Prepared, options: TrainerOptions, outcome: SearchOutcome, share: float = 1.0
) -> dict[Recipe, Rival]:
    """Return the chosen recipe and the runners-up; components train a share of the epochs."""
    known, smooth, recipe = prepared.known, prepared.smooth, outcome.recipe
    rivals = {}
    for finalist in (recipe, *outcome.runners_up):
        each = recipe.in_form(finalist.form, options.capacity()[finalist.form])
        each = replace(each, sigma_multiple=finalist.sigma_multiple, noise=finalist.noise)
        trial = outcome.best_of(each)
        loss, score = trial.log_loss, trial.accuracy
        epochs = max(1, round(share * each.epochs)) if each.n_components else options.epochs
        step = each.peak_step * (2 if share < 1 else 1)  # as in other short trainings
        one_thread = replace(each, peak_step=step, n_threads=1)
        judged = partial(_judged, prepared.rows, known, one_thread, epochs)
        if smooth is not None:
            judged = partial(_judged_smooth, smooth, known, each.form, loss)
            # The loss of the smooth fit, plus that of components against the fit.
            folds = trial_folds(known.codes, known.groups, recipe.seed)
            lost, explained = smooth.judged(known, folds)
            loss, score = lost + loss, 1 - (1 - explained) * (lost + loss) / max(lost, 1e-30)
        # In regression, trees are the best of many trials on few rows: they must be clearly ahead.
        # On diabetes, trees with R2 0.508 against 0.506 had 0.44 on new rows, components 0.52.
        cost = 0 if not each.n_components or known.quantity is not None else 2
        rivals[each] = Rival(each.form, loss, score, judged, cost)
    return rivals


def _judged(
    rows: TrialData,
    known: TrainSet,
    recipe: Recipe,
    epochs: int | None,
    fold: Fold,
    cancelled: threading.Event,
) -> Candidate:
    """Train a recipe on the rows inside a fold, and judge it on those outside."""
    # A linear part trains fast, so it gets the usual number of epochs.
    epochs = epochs or usual_epochs(fold.inside.size)
    decisions = decisions_of(rows, fold, replace(recipe, epochs=epochs), cancelled)
    held = known.truth[fold.outside], known.weight[fold.outside], known.losses
    return Candidate.of(recipe.form, decisions, *held)


def _judged_smooth(
    smooth: Smooth, data: TrainSet, name: str, missed: float, fold: Fold, _: threading.Event
) -> Candidate:
    """Judge a smooth fit to the rows inside a fold, plus the mean loss of components to it."""
    values, out = smooth.held_out(fold), fold.outside
    fit = Candidate.of(name, values, data.truth[out], data.weight[out], data.losses)
    loss = float(np.average(fit.losses, weights=data.weight[out]))
    score = 1 - (1 - fit.score) * (loss + missed) / max(loss, 1e-30)
    return Candidate(name, fit.losses + missed, score)


def _trained(prepared: _Prepared, options: TrainerOptions, recipe: Recipe) -> TrainingResult:
    """Train components on all rows except those that choose the best epoch."""
    data, transform, rows = prepared.data, prepared.transform, prepared.rows
    mixed, inputs, targets, weight = rows.mixed, rows.inputs, rows.targets, rows.weight
    held = None
    if data.validation is not None:
        raw, truth = data.validation
        seen = transform.mixed(raw), truth, data.validation_weight(weight)
        held = Validation(*seen, transform.scaler.quantize(raw))
    if options.validation_fraction:
        out = hold_out(data.codes, data.groups, options.validation_fraction, recipe.seed)
        held = Validation(mixed[out], data.truth[out], weight[out], inputs[out])
        mixed, inputs, targets, weight = mixed[~out], inputs[~out], targets[~out], weight[~out]
    learner = _learner(mixed, inputs, targets, weight, recipe, transform)
    history = learner.run(held)
    model = stored_model(learner, transform, data, small_code=options.code == "small")
    return TrainingResult(model, recipe, history, learner.sigma)


def _trees_alone(data: TrainSet, options: TrainerOptions) -> TrainingResult:
    """Train trees, without a comparison."""
    if any(data.losses):
        raise TinykernelError(f'model="{options.model}": only for loss="squared"')
    seed = recipe_for(options, data.codes.size, data.losses).seed
    return _of_trees(*fit_trees(data, options, trial_folds(data.codes, data.groups, seed)))


def _linear_or_trees(data: TrainSet, options: TrainerOptions) -> TrainingResult:
    """Train a linear part alone, or trees where they are ahead of it."""
    recipe = recipe_for(options, data.codes.size, data.losses)
    contest, blend = Contest.of(data, options, recipe.seed), None
    if contest is not None:
        scaler = choose_scaler(data.X, data.raw_dtype, options.width(), options.scaler_scope)
        inputs, folds = scaler.quantize(data.X), contest.folds
        none = np.empty((len(inputs), 0), np.float32)
        blend = _blend(data, options, inputs)
        rows = TrialData(none, data.targets(), data.weight, data.truth, folds, inputs, blend)
        judged = partial(_judged, rows, data, recipe, recipe.epochs)
        first = judged(folds[0], threading.Event())
        loss = float(np.average(first.losses, weights=data.weight[folds[0].outside]))
        contest.decide([Rival(recipe.form, loss, first.score, judged, cost=0)])
        if contest.trees is not None:
            return replace(_of_trees(*contest.trees), contest=contest.choice)
    result = fit_linear(data, options, recipe.linear_bits or 8, blend)
    return replace(result, contest=None if contest is None else contest.choice)


def _of_trees(model: IntegerModel, trial: TreeTrial) -> TrainingResult:
    # The loss is that on held-out rows.
    return TrainingResult(model, trial.recipe, History([{"loss": trial.log_loss}]))


def _blend(data: TrainSet, options: TrainerOptions, inputs: NDArray[Any]) -> bool | None:
    """Whether a linear part alone is blended; without groups this is decided where it has won."""
    widths = (bits for layout, bits in map(parts_of, options.capacity()) if layout is None)
    bits = next(widths, None)
    if bits is None or data.groups is None or not may_blend(data, options):
        return None
    recipe = table_recipe(data, options, bits)
    return blend_ahead(LinearLearner(inputs, data.targets(), data.weight, recipe), data.groups)


def _with_shape(data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]) -> TrainingResult:
    """Train a linear part on the counts of a local stage."""
    if len(shape) == 2:
        return fit_windows(data, options, shape)
    return (fit_images if options.frame is None else fit_frames)(data, options, shape)


def check_width(options: TrainerOptions, n_inputs: int) -> None:
    """Refuse a shape of images or windows that rows of `n_inputs` cannot have."""
    if options.frame is not None and options.image_shape is not None:
        frame = Frame.of(options.frame, (*options.image_shape, 1)[:3])
        if frame.taken.size != n_inputs:
            raise TinykernelError(
                f"frame: {options.frame} makes {frame.taken.size} bytes, but rows have {n_inputs}"
            )
        return
    for name in ("image_shape", "window_shape"):
        shape = getattr(options, name)
        if shape is not None and np.prod(shape) + options.beside != n_inputs:
            beside = f" and {options.beside} beside" if options.beside else ""
            raise TinykernelError(
                f"{name}: {' x '.join(map(str, shape))} makes {np.prod(shape)} values{beside}, but "
                f"rows have {n_inputs} inputs"
            )


def check_rows(data: TrainSet, options: TrainerOptions) -> None:
    """Refuse options that do not fit the rows."""
    check_width(options, data.X.shape[1])
    if data.validation is not None and options.validation_fraction is not None:
        raise TinykernelError("validation_fraction: validation rows are given, too; leave one out")


def _choose(
    data: TrialData,
    options: TrainerOptions,
    recipe: Recipe,
    fixed: frozenset[str],
    beaten: Callable[[SearchOutcome], bool] | None,
) -> tuple[Recipe, SearchOutcome | None]:
    """Choose options that are not given; with too few rows, the first layout and the defaults."""
    capacity = options.capacity()
    if options.sigma is not None:
        fixed |= {"sigma_multiple"}
    if options.noise is not None:
        fixed |= {"noise"}
    outcome, searched = None, options.effort != "quick"
    if (searched or len(capacity) > 1) and data.folds:
        fixed = fixed if searched else fixed | _SEARCHED
        outcome = choose_recipe(data, recipe, capacity, fixed, beaten)
        recipe = outcome.recipe
    elif searched:
        progress.report(STAGE, 0, None, "too few rows; defaults are taken")
    return replace(recipe, n_components=capacity[recipe.form]), outcome


def _learner(
    mixed: _Floats,
    inputs: NDArray[Any],
    targets: _Floats,
    weight: _Floats,
    recipe: Recipe,
    transform: SharedTransform,
) -> Learner:
    """Create the learner, which subtracts the mean from `mixed` in place."""

    def arithmetic(levels: NDArray[np.int8]) -> Arithmetic:
        parts = transform.live_sign, transform.scaler.bits, transform.permutation, levels
        halve = choose_schedules(*parts, layout_of(recipe.layout).diagonal_kind)[1]
        return Arithmetic(transform.unit, halve)

    return Learner(mixed, targets, weight, recipe, arithmetic, inputs=inputs)


def stored_model(
    learner: Learner, transform: SharedTransform, data: TrainSet, *, small_code: bool
) -> IntegerModel:
    """Return the integer model of a quantized learner."""
    (windows, outputs), n_outputs = learner.forward(), learner.n_outputs
    shape = learner.n_blocks, learner.dimension
    weights = outputs.weights[:, :n_outputs].T.astype(np.int8).reshape(-1, *shape)
    blocks = np.flatnonzero(np.any(weights != 0, axis=(0, 2)))
    if not blocks.size:
        blocks = np.zeros(1, dtype=np.int64)
    start, width, rate = (
        part.astype(np.float64).reshape(shape)[blocks]
        for part in (windows.start, windows.width, windows.rate)
    )
    rounded = quantize_windows(start, width, rate)
    halve = tuple(factor < 1 for factor in windows.factors.tolist())
    levels, kind = windows.diagonal[blocks].astype(np.int8), learner.layout.diagonal_kind
    stored = Stored(
        transform.live_sign, transform.permutation, levels, kind, (transform.halve, halve), rounded
    )
    components, ternary, constant = stored.components(weights[:, blocks], small_code)
    scale = np.full(n_outputs, float(outputs.scale))
    offset = outputs.offset[:n_outputs].astype(np.float64) + scale * constant
    sums, linear = Sums(scale, offset), learner.stored_linear()
    if linear is not None:
        levels, worth, moved = linear
        # The trainer's unit of an input is 2**(bits - 1) levels, from 0.
        worth *= 2.0 ** (transform.scaler.bits - 1)
        moved += worth * (levels.astype(np.float64) * transform.inputs.centre).sum(axis=1)
        sums = Sums(scale, offset + moved, levels, worth * transform.inputs.step)
    packed = learner.layout.ternary or None
    return kernel_model(transform.scaler, components, ternary, sums, data.meaning, packed)
