"""Training of signals: kernels are chosen from a pool, then the linear part is learned."""

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base import progress
from tinykernel.base.errors import DataError, OptionError, ShapeError
from tinykernel.learn.augment import with_spectra, with_windows
from tinykernel.learn.choice import Fold, trial_folds
from tinykernel.learn.linear import ridge as closed_form
from tinykernel.learn.linear.normal_equations import (
    LIKELY,
    LIKELY_PENALTIES,
    MOST_INPUTS,
    LevelFit,
    RoundedWeights,
    decide,
    fit_levels,
    round_to_plane,
    standard_of,
)
from tinykernel.learn.linear.training import (
    LinearLearner,
    TrainingRows,
    chained_model,
    check_channels,
    linear_recipe,
    run_training,
    split_rows,
)
from tinykernel.learn.loop import History, TrainingResult
from tinykernel.learn.loss import Truth, codes_of, targets_of
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.signals.pool import CountingStages, SignalPlan, SignalPool, reach
from tinykernel.learn.signals.spectrum import spectrum_of
from tinykernel.learn.trainset import TrainSet
from tinykernel.model.scale import InputScaling, quantize_scaler
from tinykernel.pieces.beside.spec import MOST_ENTRIES, Beside
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.offset.spec import Offset
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.spectrum.spec import Spectrum

_Floats = NDArray[np.float32]
#: A fit to more windows takes time with the cube of the inputs, not of the windows.
FEW_WINDOWS = 1000
_FEW_POOL, _FEW_LEVEL_SHARE = 4032, 0.2
# Windows a count that a fit by maximum likelihood takes, and those that tell its loss.
_WINDOWS_A_COUNT, _LOSS_ROWS = 2, 8192
# With more cells, kernels are fewer, and those of samples see no level.
_FEW_CELLS = 2
# Kernels to choose from, and with cells counts.
_POOL, _POOL_OF_CELLS = 1344, 4096
#: Windows that kernels are chosen by.
RANKING_WINDOWS = 3000
# Kernels on levels of bands: few see the level itself, which is that of the speaker, too.
_MIXES = 60
_ON_LEVELS: dict[str, Any] = {"level_share": 0.1, "level_bits": 8, "dilations": (1, 2, 3, 4, 5)}
# Where the ramps of a number meet, in shares of the training rows.
_RAMPS = (0.001, 0.25, 0.5, 0.75, 0.999)
_MOST_NUMBERS = MOST_ENTRIES // (len(_RAMPS) - 1)


@dataclass(frozen=True)
class KernelSettings:
    """What decides the size of kernels with a linear part."""

    n_kernels: int = 256
    bits: int = 4  # {2, 4, 8}: of the weights on counts.
    cells: int = 1  # parts of a window, each with its own counts.
    on_spectrum: bool = False  # whether kernels take levels of bands, not samples.
    without_mean: bool = False  # whether the mean of each channel is subtracted from a window.


class _Chosen(NamedTuple):
    """What a training ends in: the pool, the stages of the kernels that are kept, the weights."""

    pool: SignalPool
    stages: CountingStages
    stored: RoundedWeights
    history: History


def some_rows(targets: _Floats, weight: _Floats, most: int) -> tuple[NDArray[np.int64], _Floats]:
    """Choose at most so many rows, of each class as many, and weights that make up for that."""
    n = len(targets)
    if n <= most:
        return np.arange(n), weight
    codes = codes_of(targets)
    count = np.bincount(codes)
    chosen, room, row_weight = list[NDArray[np.int64]](), most, weight.copy()
    for left, code in enumerate(np.argsort(count, kind="stable"), start=-count.size):
        members = np.flatnonzero(codes == code)  # in an order that looks random
        chosen.append(members[: room // -left])
        room -= chosen[-1].size
        row_weight[chosen[-1]] *= np.float32(members.size / max(chosen[-1].size, 1))
    rows = np.sort(np.concatenate(chosen))
    return rows, row_weight[rows] / row_weight[rows].mean()


def signal_plan(
    options: TrainerOptions,
    settings: KernelSettings,
    shape: tuple[int, ...],
    n_rows: int,
    losses: tuple[float, ...] = (),
    unit: str = "samples",
) -> SignalPlan:
    """Return how kernels for signals are chosen; windows have so many of the unit."""
    samples = shape[0]
    if samples < 12:
        raise ShapeError(
            f"windows of {samples} samples are too short for kernels of nine; give 12 or more"
        )
    if options.hop > samples:
        raise OptionError(f"hop: {options.hop}; give at most a window, {samples} samples")
    average = 2 if samples >= 64 and samples % 2 == 0 and options.hop % 2 == 0 else 1
    n, cells = settings.n_kernels, settings.cells
    if samples // average < 8 + cells:
        raise OptionError(
            f"cells: {cells} are too many for windows of {samples} {unit}; give fewer"
        )
    plan = SignalPlan(
        n_kernels=n,
        n_pool=max(_POOL, 2 * n),
        average=average,
        cells=cells,
        linear=replace(linear_recipe(options, n_rows, settings.bits, 6, losses), decay=1e-4),
    )
    if cells <= _FEW_CELLS:
        return plan
    plan = replace(plan, n_pool=max(_POOL_OF_CELLS // cells, 2 * n))
    if settings.without_mean:
        return plan
    return replace(
        plan,
        level_share=0.0,  # with it, recall on beats of other persons is 6 points lower
        dilations=reach(max(samples // average // 2, 9), 1),
    )


def fit_windows(
    data: TrainSet,
    options: TrainerOptions,
    settings: KernelSettings,
    shape: tuple[int, ...],
    untrained: bool = False,
) -> TrainingResult:
    """Choose kernels for windows of (samples, channels), or for their spectra.

    An `untrained` model has random kernels and weights: it is as large as others.
    """
    first: Stage | None = Offset() if settings.without_mean else None
    if settings.on_spectrum:
        first, _ = spectrum_of(options, shape, data.raw_dtype)
    beside, data = with_levels(data, shape, options)
    grid, seen_shape = Grid.raw(data.raw_dtype, shape[0], 1, shape[1]), (shape[0], shape[1])

    def levels_of(rows: NDArray[Any]) -> NDArray[Any]:
        assert first is not None
        levels = first.run(rows[:, : grid.size], grid)
        return np.hstack([levels, rows[:, grid.size :].astype(np.uint8)])

    if isinstance(first, Spectrum):
        with progress.briefly("spectra"):
            data, output = with_spectra(data, first, grid, levels_of, options), first.gives(grid)
        seen_shape = output.rows, output.channels
        plan, scaler = _plan_of_levels(data, options, settings, seen_shape)
    else:
        data = with_windows(data, grid, options)
        if first is not None:
            data = replace(data.map_rows(levels_of), raw_dtype=first.gives(grid).dtype)
        plan = signal_plan(options, settings, shape, len(data.X), data.losses)
        scaler = signal_scaler(data.X, data.raw_dtype, shape)
        plan = replace(plan, level_bits=min(plan.level_bits, scaler.bits))
    plan = replace(plan, beside=0 if beside is None else beside.n_entries)
    rows = split_rows(data, options)
    chosen = _Windows(rows, seen_shape, scaler, plan, data.quantity is None).chosen(untrained)
    stages = chosen.stages.then_scaled(chosen.pool.stages.largest_count, beside)
    before = () if first is None else (first,)
    model = chained_model((*before, *stages), grid, data.meaning, chosen.stored)
    model = replace(model, hop=options.hop)
    return TrainingResult(model, chosen.pool.plan, chosen.history)


def _plan_of_levels(
    data: TrainSet, options: TrainerOptions, settings: KernelSettings, shape: tuple[int, int]
) -> tuple[SignalPlan, Scale]:
    """Return how kernels for frames of levels are chosen; they look at these as they are."""
    plain = replace(options, hop=0)
    plan = signal_plan(plain, settings, shape, len(data.X), data.losses, unit="segments")
    plan = replace(plan, **_ON_LEVELS, n_mixes=max(_MIXES, shape[1]), average=1)
    return plan, Scale("uint8", 8, *np.array([[0], [1 << 16], [255]]))


@dataclass(frozen=True, eq=False)
class _Windows:
    """Windows as kernels see them."""

    rows: TrainingRows
    shape: tuple[int, int]
    scaler: Scale
    plan: SignalPlan
    of_classes: bool  # which are fitted in closed form; values are learned by gradients.

    def chosen(self, untrained: bool) -> _Chosen:
        """Draw kernels, choose among them, and fit the linear part to their counts."""
        rows, plan = self.rows, self.plan
        n, cells = plan.n_kernels, plan.cells
        if self.of_classes and n * cells + plan.beside > MOST_INPUTS:
            raise OptionError(
                f"n_kernels: {n} kernels of {cells} cells make {n * cells} counts, and there is "
                f"memory for {MOST_INPUTS}; give at most {MOST_INPUTS // cells}"
            )
        is_few = len(rows.inputs) <= FEW_WINDOWS and rows.validation is None
        if self.of_classes and is_few and not untrained:
            return self._of_few()
        progress.report("choosing kernels", 0, None)
        codes = rows.targets if self.of_classes else np.zeros_like(rows.targets)
        numbers, weight = some_rows(codes, rows.weight, RANKING_WINDOWS)
        ranked = replace(rows.of(numbers), weight=weight)
        pool = SignalPool(ranked, self.shape, self.scaler, plan)
        _, stages = pool.reduced(pool.drawn() if untrained else pool.ranked())
        counts = rows.map_rows(lambda raw: pool.counts(raw, stages))
        if untrained:
            history = History([{"loss": float("nan")}])
            return _Chosen(pool, stages, pool.untrained(counts.inputs.shape[1]), history)
        if self.of_classes:
            progress.report("fitting weights", 0, None)
            return _Chosen(pool, stages, *_fit_classes(plan, counts))
        learner = LinearLearner(counts, plan.linear)
        history = run_training(learner, counts)
        return _Chosen(pool, stages, learner.stored(), history)

    def _of_few(self) -> _Chosen:
        """Choose kernels and weights for few windows, by the error of held-out windows or groups.

        Kernels that were chosen by the labels fit these too well: their error left out is too
        small, and so is the penalty that it chooses. They learn what one fit to all pools says
        instead, which gives 1 point more (``benchmarks/series.py``, 512 kernels).
        """
        started, rows, plan = time.perf_counter(), self.rows, self.plan
        wanted, codes = 2.0 * rows.targets - 1.0, codes_of(rows.targets)
        pools, losses = list[SignalPool](), list[float]()
        averages = (1, 2) if plan.average == 2 else (1,)
        weighed = wanted, rows.weight, rows.groups, plan.beside
        for average in progress.steps("choosing kernels", averages):
            plan_of_pool = self._plan_of_few(average)
            pools.append(SignalPool(rows, self.shape, self.scaler, plan_of_pool))
            whole, deviation = closed_form.fit_standardised(pools[-1].inputs, *weighed)
            losses.append(float(np.square(whole.left_out - wanted).mean()))
        chosen = int(np.argmin(losses))
        pool = pools[chosen]
        n = pool.inputs.shape[1] - plan.beside
        counts = (other.inputs[:, :n] for other in pools)
        inputs = np.concatenate([*counts, pool.inputs[:, n:]], axis=1)
        if len(pools) > 1:
            whole, deviation = closed_form.fit_standardised(inputs, *weighed)
        power = np.square(whole.weights).sum(axis=1) * np.square(deviation)
        by_kernel = power[: n * len(pools)].reshape(len(pools), pool.plan.n_pool, -1)[chosen]
        strongest = np.argsort(-by_kernel.sum(axis=1), kind="stable")[: plan.n_kernels]
        strongest, stages = pool.reduced(np.sort(strongest))
        columns, bits = pool.inputs[:, pool.columns(strongest)], plan.linear.bits
        ended = False
        if rows.targets.shape[1] < closed_form.MANY_CLASSES:
            fit, _ = pool.ridge(strongest, rows.groups, whole.fitted(inputs))
            stored = closed_form.round_fit(fit, columns, bits)
        else:
            fit, _ = pool.ridge(strongest, rows.groups)
            fit = closed_form.discriminate(fit, codes, rows.weight)
            standard = standard_of(columns, rows.weight, fit.penalty)
            stored, ended = round_to_plane(fit, standard, bits)
        took = time.perf_counter() - started
        return _Chosen(
            pool, stages, stored, History([{"loss": losses[chosen], "seconds": took}], ended)
        )

    def _plan_of_few(self, average: int) -> SignalPlan:
        """Return the plan of a pool for few windows, whose kernels reach farther."""
        plan, (length, channels) = replace(self.plan, average=average), self.shape
        if plan.cells > _FEW_CELLS:
            return plan
        return replace(
            plan,
            n_pool=max(_FEW_POOL, 2 * plan.n_kernels),
            dilations=reach(length // average, min(plan.n_mixes, channels**2)),
            level_share=_FEW_LEVEL_SHARE,
        )


def _fit_classes(plan: SignalPlan, counts: TrainingRows) -> tuple[RoundedWeights, History]:
    """Fit by maximum likelihood where there are enough windows, else by ridge regression.

    With the same kernels, ridge regression recognises beats of other people 4.5 points worse, but
    words, of which there are fewer, 0.3 points better.
    """
    started, (n, n_counts) = time.perf_counter(), counts.inputs.shape
    is_enough = plan.beside or n >= _WINDOWS_A_COUNT * n_counts
    stored, loss, ended = (_likeliest if is_enough else _ridge)(plan, counts)
    return stored, History([{"loss": loss, "seconds": time.perf_counter() - started}], ended)


def _likeliest(plan: SignalPlan, counts: TrainingRows) -> LevelFit:
    """Fit by maximum likelihood; validation rows choose the penalty, else some rows tell the loss.

    Ctrl-C keeps the best fit so far.
    """
    learned = counts.inputs, 2 * counts.targets - 1, counts.weight, list[Fold](), plan.linear.bits
    first, fits, ended = slice(_LOSS_ROWS), list[LevelFit](), False
    judging = counts.inputs[first], codes_of(counts.targets[first]), counts.weight[first]
    rows, *truth = counts.validation or judging
    try:
        for penalty in LIKELY_PENALTIES if counts.validation else (LIKELY,):
            fits.append(fit_levels(*learned, likely=penalty))
            loss, _ = Truth(*truth).judge(decide(fits[-1].stored, rows))
            fits[-1] = fits[-1]._replace(error=loss)
            if fits[-1].interrupted:
                break
    except KeyboardInterrupt:
        if not fits:
            raise
        ended = True
    best = min(fits, key=attrgetter("error"))  # one that was not judged has NaN
    return best._replace(interrupted=ended or fits[-1].interrupted)


def _ridge(plan: SignalPlan, counts: TrainingRows) -> LevelFit:
    """Fit ridge regression, with the penalty that suits validation rows, or folds."""
    inputs, targets, weight, n = counts.inputs, counts.targets, counts.weight, len(counts.inputs)
    if counts.validation is None:
        folds = trial_folds(codes_of(targets), counts.groups, plan.linear.seed)
    else:
        rows, codes, of_rows = counts.validation
        folds = [Fold(np.arange(n), n + np.arange(len(rows)))]
        inputs = np.concatenate([inputs, rows])
        targets = np.concatenate([targets, targets_of(codes, max(2, targets.shape[1]))])
        weight = np.concatenate([weight, of_rows])
    return fit_levels(inputs, 2 * targets - 1, weight, folds, plan.linear.bits, n_learned=n)


def pooled_signals(
    rows: NDArray[Any],
    raw_dtype: str,
    options: TrainerOptions,
    settings: KernelSettings,
    shape: tuple[int, ...],
) -> tuple[Grid, tuple[Stage, ...]]:
    """Draw kernels for windows of (samples, channels) without any label, and scale their counts.

    Returns what the stages take, and the stages.
    """
    plan = signal_plan(options, settings, shape, len(rows))
    scaler = signal_scaler(rows, raw_dtype, shape)
    plan = replace(plan, level_bits=min(plan.level_bits, scaler.bits))
    nothing = np.zeros((len(rows), 1), dtype=np.float32)
    windows = TrainingRows(rows, nothing, nothing[:, 0])
    pool = SignalPool(windows, (shape[0], shape[1]), scaler, plan)
    _, stages = pool.reduced(pool.drawn())
    return stages.grid, stages.then_scaled(pool.stages.largest_count)


def signal_scaler(rows: NDArray[Any], raw_dtype: str, shape: tuple[int, ...]) -> Scale:
    """Scale each channel by the range of nearly all its samples, and a tenth more."""
    samples = rows[:, : shape[0] * shape[1]].reshape(-1, shape[1])
    bits = 8 if raw_dtype in ("uint8", "int8") else 16
    low, high = np.quantile(samples.astype(np.float64), [0.001, 0.999], axis=0)
    least, most = samples.min(axis=0).astype(np.float64), samples.max(axis=0).astype(np.float64)
    still = high <= low
    low, high = np.where(still, least, low), np.where(still, most, high)
    margin = 0.1 * (high - low)
    scaler = scaler_between(low - margin, high + margin, raw_dtype, bits)
    check_channels(scaler)
    return scaler


def with_levels(
    data: TrainSet, shape: tuple[int, ...], options: TrainerOptions
) -> tuple[Beside | None, TrainSet]:
    """Return the stage of the numbers, and rows of windows and levels of their numbers."""
    if not options.beside:
        return None, data
    size = shape[0] * shape[1]
    if data.X.shape[1] - size != options.beside:
        raise OptionError(
            "beside: give rows of the values of a window and its numbers, with a {window_shape}",
            window_shape=None,
        )
    if options.beside > _MOST_NUMBERS:
        raise OptionError(f"beside: {options.beside} numbers; give at most {_MOST_NUMBERS}")
    stage = _beside(data.X[:, size:], data.raw_dtype)

    def levels(rows: NDArray[Any]) -> NDArray[Any]:
        return np.hstack([rows[:, :size], stage.levels(rows[:, size:]).astype(np.uint8)])

    return stage, data.map_rows(levels)


def _beside(numbers: NDArray[Any], raw_dtype: str) -> Beside:
    """Return the stage of the numbers of training rows.

    Each number has ramps between quartiles of the training rows, so that the linear part can bend:
    beats with the time since the last one are classified 2.5 points better than by one range.
    """
    ranges, source = list[tuple[float, float]](), list[int]()
    for number, values in enumerate(numbers.astype(np.float64).T):
        edges = np.unique(np.quantile(values, _RAMPS))
        if edges.size < 2:
            edges = np.unique([values.min(), values.max()])
        if edges.size < 2:
            raise DataError(
                f"X: number {number} beside never varies (the first is 0); leave it out"
            )
        ranges += pairwise(edges.tolist())
        source += [number] * (len(ranges) - len(source))
    low, high = np.array(ranges).T
    scaler = scaler_between(low, high, raw_dtype, 8)
    arrays = {name: np.broadcast_to(array, len(source)) for name, array in scaler.arrays.items()}
    return Beside(Scale(scaler.raw_dtype, 8, **arrays), np.array(source), 255)


def scaler_between(
    low: NDArray[np.float64], high: NDArray[np.float64], raw_dtype: str, bits: int
) -> Scale:
    """Return the scaler of these ranges; of none it is constant."""
    varies = high > low
    scale = np.where(varies, (2 - 2.0 ** (1 - bits)) / np.where(varies, high - low, 1.0), 0.0)
    lowest, highest = np.full(low.size, -1.0), np.full(low.size, 1 - 2.0 ** (1 - bits))
    scaling = InputScaling((low + high) / 2, scale, lowest, highest)
    return quantize_scaler(scaling, raw_dtype, bits).scaler
