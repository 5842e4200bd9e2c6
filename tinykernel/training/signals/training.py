"""Training of signals: kernels are chosen from a pool, then the linear part is learned."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.checks import thread_count
from tinykernel.errors import TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.stage import Stage
from tinykernel.model.stages.beside import Beside
from tinykernel.model.stages.offset import NARROW, Offset
from tinykernel.model.stages.scale import Scale
from tinykernel.model.stages.spectrum import Spectrum
from tinykernel.training.folds import Fold, trial_folds
from tinykernel.training.loop import History
from tinykernel.training.loss import share_right, targets_of
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.closed_form import fit_standardised, round_fit
from tinykernel.training.readouts.linear import LinearLearner
from tinykernel.training.readouts.linear_training import (
    Rows,
    bits_of,
    check_channels,
    counting_model,
    linear_recipe,
    run_training,
    split_rows,
)
from tinykernel.training.readouts.normal_equations import MOST_INPUTS, LevelFit, fit_levels
from tinykernel.training.result import TrainingResult
from tinykernel.training.signals.copies import with_spectra, with_windows
from tinykernel.training.signals.numbers import (
    joined_numbers,
    scaler_between,
    seen_by,
    with_own,
)
from tinykernel.training.signals.pool import SignalPlan, SignalPool, reach
from tinykernel.training.signals.spectrum import spectrum_of
from tinykernel.training.trainset import TrainSet

_Floats = NDArray[np.float32]
#: Of more windows ridge regression takes time with the cube of the inputs, not of the windows.
FEW_WINDOWS = 1000
_FEW_POOL, _FEW_LEVEL_SHARE = 4032, 0.2
#: Cells that compete with none.
CELLS = 16
# In so many windows, with so many counts each, and by how much they have to be ahead.
_CONTEST_ROWS, _CONTEST_COUNTS, _AHEAD = 600, 1024, 0.01
# With more cells, kernels are fewer, and those of samples see no level.
_FEW_CELLS = 2
# Kernels to choose from, and with cells counts; windows to choose by.
_POOL, _POOL_OF_CELLS, _RANKING = 1344, 4096, 3000
# Kernels on levels of bands: few see the level itself, which is that of the speaker, too.
_MIXES = 60
_ON_LEVELS: dict[str, Any] = {
    "level_share": 0.1,
    "level_bits": 8,
    "dilations": (1, 2, 3, 4, 5),
}


def some_rows(targets: _Floats, weight: _Floats, most: int) -> tuple[NDArray[np.int64], _Floats]:
    """Choose at most so many rows, of each class as many, and weights that make up for that."""
    n = len(targets)
    if n <= most:
        return np.arange(n), weight
    codes = targets.argmax(axis=1) if targets.shape[1] > 1 else (targets[:, 0] > 0.5).astype(int)
    count = np.bincount(codes)
    taken, room, own = [], most, weight.copy()
    for left, code in enumerate(np.argsort(count, kind="stable"), start=-count.size):
        members = np.flatnonzero(codes == code)  # in an order that looks random
        taken.append(members[: room // -left])
        room -= taken[-1].size
        own[taken[-1]] *= np.float32(members.size / max(taken[-1].size, 1))
    rows = np.sort(np.concatenate(taken))
    return rows, own[rows] / own[rows].mean()


def signal_plan(
    options: TrainerOptions,
    shape: tuple[int, ...],
    n_rows: int,
    bits: int,
    losses: tuple[float, ...] = (),
    unit: str = "samples",
) -> SignalPlan:
    """Return how kernels for signals are chosen; windows have so many of the unit."""
    samples = shape[0]
    if samples < 12:
        raise TinykernelError(
            f"windows of {samples} samples are too short for kernels of nine; give 12 or more"
        )
    if options.hop > samples:
        raise TinykernelError(f"hop: {options.hop}; give at most a window, {samples} samples")
    average = 2 if samples >= 64 and samples % 2 == 0 and options.hop % 2 == 0 else 1
    n = options.n_kernels or 256
    assert isinstance(n, int)
    cells = 1 if options.cells == "auto" else int(options.cells)
    if samples // average < 8 + cells:
        raise TinykernelError(f"cells: {cells} are too many for windows of {samples} {unit}")
    plan = SignalPlan(
        n_kernels=n,
        n_pool=max(_POOL, 2 * n),
        average=average,
        cells=cells,
        hop=options.hop,
        beside=options.beside,
        linear=replace(linear_recipe(options, n_rows, bits, 6, losses), decay=1e-4),
    )
    if cells <= _FEW_CELLS:
        return plan
    plan = replace(plan, n_pool=max(_POOL_OF_CELLS // cells, 2 * n))
    if options.offset == "remove":
        return plan
    return replace(
        plan,
        level_share=0.0,  # with it, beats of other persons are told 6 points less often
        dilations=reach(max(samples // average // 2, 9), 1),
    )


def fit_windows(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], untrained: bool = False
) -> TrainingResult:
    """Choose kernels for windows of (samples, channels).

    An `untrained` model has random kernels and weights: it is as large as others.
    """
    first: Stage | None
    first, why = spectrum_of(options, shape, data.raw_dtype)
    if why:
        warnings.warn(why, stacklevel=2)
    if options.offset == "remove":
        first = Offset()
    beside, data = joined_numbers(data, shape, options)
    options = replace(options, beside=0 if beside is None else beside.n_entries)
    return _fit_first(data, options, shape, first, beside, untrained)


def _fit_first(
    data: TrainSet,
    options: TrainerOptions,
    shape: tuple[int, ...],
    first: Stage | None,
    beside: Beside | None,
    untrained: bool,
) -> TrainingResult:
    """Choose kernels for windows, or for what a first stage makes of them."""
    grid = Grid.raw(data.raw_dtype, shape[0], 1, shape[1])
    if first is None:
        found = _fit_samples(with_windows(data, grid, options), options, shape, untrained)
        assert isinstance(found.machine, IntegerModel)
        stages = with_own(found.machine.stages, beside)
        return replace(found, machine=replace(found.machine, stages=stages))
    made = first.gives(grid)
    if not first.WHOLE:
        progress.report("spectra", 0, None)

    def seen(rows: NDArray[Any]) -> NDArray[Any]:
        levels = first.run(rows[:, : grid.size], grid)
        return np.hstack([levels, rows[:, grid.size :].astype(np.uint8)])

    if isinstance(first, Spectrum):
        levels = with_spectra(data, first, grid, seen, options)
        cells = 2 if options.cells == "auto" else options.cells
        plain = replace(options, hop=0, cells=cells)
        found = _fit_levels(levels, plain, (made.rows, made.channels), untrained)
    else:
        levels = replace(seen_by(with_windows(data, grid, options), seen), raw_dtype=made.dtype)
        found = _fit_samples(levels, options, shape, untrained)
    model = found.machine
    assert isinstance(model, IntegerModel)
    stages = (first, *with_own(model.stages, beside))
    return replace(found, machine=replace(model, input=grid, stages=stages, hop=options.hop))


def counted_ahead(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]
) -> dict[str, Any]:
    """Return the options by which some windows or groups left out are told better, if any are.

    16 cells compete with one, and where these are ahead windows less their means with those.
    """
    data = replace(data, X=data.X[:, : shape[0] * shape[1]])
    options = replace(options, beside=0)
    rows, weight = some_rows(data.targets(), data.sample_weight.astype(np.float32), _CONTEST_ROWS)
    groups = None if data.groups is None else data.groups[rows]
    choices: list[dict[str, Any]] = [{}, {"cells": CELLS}]
    if options.offset == "auto" and data.raw_dtype in NARROW:
        choices.append({"cells": CELLS, "offset": "remove"})
    best, most = choices[0], 0.0
    for number, choice in enumerate(choices):
        progress.report("choosing cells", number, len(choices))
        if number == 2 and not best:
            break
        taken = replace(options, **choice)
        given = _without_means(data, shape) if taken.offset == "remove" else data
        # Of all windows: a channel may vary in few of them.
        scaler = _signal_scaler(given.X.reshape(-1, shape[1]), given.raw_dtype)
        check_channels(scaler)
        given = replace(given, X=given.X[rows], codes=given.codes[rows])
        plan = signal_plan(taken, shape, len(rows), 4)
        bits = min(plan.level_bits, scaler.bits)
        one = replace(plan, n_pool=_CONTEST_COUNTS // plan.cells, level_bits=bits)
        pool = SignalPool(given.X, (shape[0], shape[1]), scaler, given.targets(), weight, one)
        fit, _ = pool.ridge(np.arange(one.n_pool), groups)
        right = share_right(fit.left_out.astype(np.float32), given.codes, weight)
        if number == 0 or right > most + _AHEAD:
            best, most = choice, right
    progress.report("choosing cells", len(choices), len(choices))
    return best


def _without_means(data: TrainSet, shape: tuple[int, ...]) -> TrainSet:
    """Return the windows as the stage "offset" gives them."""
    grid = Grid.raw(data.raw_dtype, shape[0], 1, shape[1])
    return replace(data, X=Offset().run(data.X, grid), raw_dtype="int32")


def _fit_samples(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], untrained: bool
) -> TrainingResult:
    """Choose kernels for windows of samples."""
    plan = signal_plan(options, shape, len(data.X), bits_of(options, shape), data.losses)
    samples = data.X[:, : shape[0] * shape[1]].reshape(-1, shape[1])
    scaler = _signal_scaler(samples, data.raw_dtype)
    check_channels(scaler)
    plan = replace(plan, level_bits=min(plan.level_bits, scaler.bits))
    return _fit_pool(data, options, shape, plan, scaler, untrained)


def _fit_levels(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], untrained: bool
) -> TrainingResult:
    """Choose kernels for frames of levels, which they look at as they are."""
    bits = bits_of(options, shape)
    plan = signal_plan(options, shape, len(data.X), bits, data.losses, unit="frames")
    plan = replace(plan, **_ON_LEVELS, n_mixes=max(_MIXES, shape[1]), average=1)
    whole = Scale("uint8", 8, *np.array([[0], [1 << 16], [255]]))
    return _fit_pool(data, options, shape, plan, whole, untrained)


def _fit_pool(
    data: TrainSet,
    options: TrainerOptions,
    shape: tuple[int, ...],
    plan: SignalPlan,
    scaler: Scale,
    untrained: bool,
) -> TrainingResult:
    """Draw kernels, choose among them, and train the linear part on their counts.

    Ridge regression learns classes, epochs of gradients learn values.
    """
    rows, started = split_rows(data, options, plan.linear.seed), time.perf_counter()
    sides = (shape[0], shape[1])
    closed = data.quantity is None
    if closed:
        check_counts(plan)
    if closed and len(data.X) <= FEW_WINDOWS and rows.held is None and not untrained:
        return _fit_few(data, plan, sides, scaler, rows)
    kinds = rows.targets if closed else np.zeros_like(rows.targets)
    some, weight = some_rows(kinds, rows.weight, _RANKING)
    chosen = rows.rows[some], sides, scaler, rows.targets[some], weight, plan
    pool = SignalPool(*chosen)
    _, stages = pool.reduced(pool.drawn() if untrained else pool.ranked())
    inputs = pool.counts(rows.rows, stages)
    if rows.held is not None:
        rows = replace(rows, held=(pool.counts(rows.held[0], stages), *rows.held[1:]))
    if untrained:
        history, stored = History([{"loss": float("nan")}], False), pool.untrained(inputs.shape[1])
    elif closed:
        fit, took = _fit_classes(data, plan, rows, inputs), time.perf_counter() - started
        history = History([{"loss": fit.error, "seconds": took}], fit.interrupted)
        stored = fit.stored
    else:
        learner = LinearLearner(inputs, rows.targets, rows.weight, plan.linear)
        history = run_training(learner, lambda counts: counts, rows, options)
        stored = learner.stored()
    largest = pool.stages.largest_count
    model = counting_model(stages, largest, data.meaning, stored, plan.beside)
    return TrainingResult(replace(model, hop=plan.hop), plan, history)


def check_counts(plan: SignalPlan) -> None:
    """Refuse more counts than ridge regression takes."""
    n = plan.n_kernels
    if n * plan.cells + plan.beside > MOST_INPUTS:
        raise TinykernelError(
            f"n_kernels: {n} kernels of {plan.cells} cells make {n * plan.cells} counts, and ridge "
            f"regression has memory for {MOST_INPUTS}; give at most {MOST_INPUTS // plan.cells}"
        )


def _fit_classes(
    data: TrainSet, plan: SignalPlan, rows: Rows, inputs: NDArray[np.int16]
) -> LevelFit:
    """Fit ridge regression, with the penalty that suits rows held out, or folds.

    Numbers beside a window are few and say much: the likelihood tells beats 4 points better.
    """
    wanted, weight, n = 2 * rows.targets - 1, rows.weight, len(inputs)
    likely, folds = plan.beside > 0, list[Fold]()
    if rows.held is None and not likely:
        folds = trial_folds(data.codes, data.groups, plan.linear.seed)
    elif rows.held is not None:
        counts, codes, own = rows.held
        folds = [Fold(np.arange(n), n + np.arange(len(counts)))]
        inputs = np.concatenate([inputs, counts])
        wanted = np.concatenate([wanted, 2 * targets_of(codes, data.n_classes) - 1])
        weight = np.concatenate([weight, own])
    return fit_levels(inputs, wanted, weight, folds, plan.linear.bits, likely=likely, n_learned=n)


def _fit_few(
    data: TrainSet, plan: SignalPlan, shape: tuple[int, int], scaler: Scale, rows: Rows
) -> TrainingResult:
    """Choose kernels and weights for few windows, by the error of windows or groups left out.

    Kernels that were chosen by the labels fit these too well: their error left out is too small,
    and so is the penalty that it chooses. They learn what one fit to all pools says instead, which
    gives 1 point more (``benchmarks/series.py``, 512 kernels).
    """
    started = time.perf_counter()
    wanted = 2.0 * rows.targets - 1.0
    pools: list[SignalPool] = []
    losses: list[float] = []
    averages = (1, 2) if plan.average == 2 else (1,)
    for number, average in enumerate(averages):
        progress.report("choosing kernels", number, len(averages))
        one = _few_plan(replace(plan, average=average), shape)
        pools.append(SignalPool(rows.rows, shape, scaler, rows.targets, rows.weight, one))
        fitted = rows.weight, data.groups, plan.beside
        whole, deviation = fit_standardised(pools[-1].inputs, wanted, *fitted)
        losses.append(float(np.square(whole.left_out - wanted).mean()))
    chosen = int(np.argmin(losses))
    pool = pools[chosen]
    n = pool.inputs.shape[1] - plan.beside
    inputs = np.concatenate([*(each.inputs[:, :n] for each in pools), pool.inputs[:, n:]], axis=1)
    if len(pools) > 1:
        whole, deviation = fit_standardised(inputs, wanted, *fitted)
    power = np.square(whole.weights).sum(axis=1) * np.square(deviation)
    own = power[: n * len(pools)].reshape(len(pools), pool.plan.n_pool, -1)[chosen]
    kept = np.argsort(-own.sum(axis=1), kind="stable")[: plan.n_kernels]
    kept, stages = pool.reduced(np.sort(kept))
    fit, _ = pool.ridge(kept, data.groups, whole.fitted(inputs))
    stored = round_fit(fit, pool.inputs[:, pool.columns(kept)], plan.linear.bits)
    largest = pool.stages.largest_count
    model = counting_model(stages, largest, data.meaning, stored, plan.beside)
    model = replace(model, hop=plan.hop)
    progress.report("choosing kernels", len(averages), len(averages))
    history = [{"loss": losses[chosen], "seconds": time.perf_counter() - started}]
    return TrainingResult(model, pool.plan, History(history, False))


def _few_plan(plan: SignalPlan, shape: tuple[int, int]) -> SignalPlan:
    """Return the plan of a pool for few windows, whose kernels reach farther."""
    if plan.cells > _FEW_CELLS:
        return plan
    return replace(
        plan,
        n_pool=max(_FEW_POOL, 2 * plan.n_kernels),
        dilations=reach(shape[0] // plan.average, min(plan.n_mixes, shape[1] ** 2)),
        level_share=_FEW_LEVEL_SHARE,
    )


def pooled_signals(
    rows: NDArray[Any], raw_dtype: str, options: TrainerOptions, shape: tuple[int, ...]
) -> tuple[Grid, tuple[Stage, ...]]:
    """Draw kernels for windows of (samples, channels) without any label, and scale their counts.

    Returns what the stages take, and the stages.
    """
    plan = signal_plan(options, shape, len(rows), 4)
    plan = replace(plan, linear=replace(plan.linear, n_threads=thread_count(options.n_jobs)))
    scaler = _signal_scaler(rows.reshape(-1, shape[1]), raw_dtype)
    check_channels(scaler)
    plan = replace(plan, level_bits=min(plan.level_bits, scaler.bits))
    nothing = np.zeros((len(rows), 1), dtype=np.float32)
    pool = SignalPool(rows, (shape[0], shape[1]), scaler, nothing, nothing[:, 0], plan)
    _, stages = pool.reduced(pool.drawn())
    return stages.taken, stages.then_scaled(pool.stages.largest_count)


def _signal_scaler(samples: NDArray[Any], raw_dtype: str) -> Scale:
    """Scale each channel by the range of nearly all its samples, and a tenth more."""
    bits = 8 if raw_dtype in ("uint8", "int8") else 16
    low, high = np.quantile(samples.astype(np.float64), [0.001, 0.999], axis=0)
    least, most = samples.min(axis=0).astype(np.float64), samples.max(axis=0).astype(np.float64)
    still = high <= low
    low, high = np.where(still, least, low), np.where(still, most, high)
    margin = 0.1 * (high - low)
    return scaler_between(low - margin, high + margin, raw_dtype, bits)
