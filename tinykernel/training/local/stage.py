"""Training with a local stage, or with a linear part alone: from checked rows to the model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel import progress
from tinykernel.checks import thread_count
from tinykernel.errors import TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.quantization.scale import quantize_scaler
from tinykernel.model.quantization.scaling import InputScaling
from tinykernel.model.stage import Stage
from tinykernel.model.stages import FIRST
from tinykernel.model.stages.kernels import WIDEST_CELL
from tinykernel.model.stages.scale import Scale
from tinykernel.training.folds import keep_aside, trial_folds
from tinykernel.training.inputs import choose_scaling
from tinykernel.training.local.augment import Augmentation
from tinykernel.training.local.convolutions import (
    ConvolutionLearner,
    ConvolutionPlan,
    frame_for,
    hidden_units,
    no_convolutions,
)
from tinykernel.training.local.counts import CountingStages
from tinykernel.training.local.images import ImageLearner, ImagePlan, as_levels
from tinykernel.training.local.signals import SignalPlan, SignalPool, reach
from tinykernel.training.local.spectrum import spectrum_of
from tinykernel.training.loop import History, run_epochs
from tinykernel.training.loss import judge, share_right
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.closed_form import Fit, round_fit
from tinykernel.training.readouts.contest import Contest
from tinykernel.training.readouts.linear import (
    LinearLearner,
    LinearRecipe,
    linear_dropout,
    linear_model,
)
from tinykernel.training.trainset import TrainSet

_Floats = NDArray[np.float32]
# More windows are learned by gradients: ridge regression takes time with their cube.
_FEW_WINDOWS = 1000
_FEW_POOL, _FEW_LEVEL_SHARE = 4032, 0.2
#: Cells that compete with none.
CELLS = 16
# In so many windows, with so many counts each, and by how much they have to be ahead.
_CONTEST_ROWS, _CONTEST_COUNTS, _AHEAD = 600, 1024, 0.01
# With more cells, kernels are fewer, and those of samples see no level.
_FEW_CELLS = 2
# Kernels to choose from, and with cells counts; the windows by which they are chosen.
_POOL, _POOL_OF_CELLS, _CHOOSING = 1344, 4096, 8192
_SMALL_IMAGE = 10
_LARGE_IMAGE = 40
# Epochs of the training over those of a short one.
_TRIAL_SHARE = 4
# With more images short trainings see too few: of 60,000 of Fashion they chose kernels. Trained
# whole, 96 of these had 88.2 % of held-out training rows, 32 channels in 2.2 KB of tables 90.0.
_MANY_IMAGES = 32000
# Kernels on levels of bands: few see the level itself, which is that of the speaker, too.
_MIXES = 60
_ON_LEVELS: dict[str, Any] = {
    "level_share": 0.1,
    "level_bits": 8,
    "dilations": (1, 2, 3, 4, 5),
}


@dataclass(frozen=True, eq=False)
class LocalResult:
    """A trained model without components and how it came about.

    Parameters
    ----------
    model : IntegerModel
    recipe : LinearRecipe, ImagePlan, ConvolutionPlan or SignalPlan
    history : History
    contest : Contest or None
        Of convolutions with kernels, where there was one.
    """

    model: IntegerModel
    recipe: LinearRecipe | ImagePlan | ConvolutionPlan | SignalPlan
    history: History
    contest: Contest | None = None


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows to learn from, and rows to choose the best epoch by, where there are any."""

    rows: NDArray[Any]
    targets: _Floats
    weight: _Floats
    held: tuple[NDArray[Any], NDArray[Any], _Floats] | None


def _split(data: TrainSet, options: TrainerOptions, seed: int) -> _Rows:
    """Bring targets and weights into the form of the learners, and keep rows aside."""
    weight = (data.sample_weight / data.sample_weight.mean()).astype(np.float32)
    targets = data.targets()
    if options.validation_fraction:
        out = keep_aside(data.codes, data.groups, options.validation_fraction, seed)
        held = (data.X[out], data.truth[out], weight[out])
        return _Rows(data.X[~out], targets[~out], weight[~out], held)
    if data.validation is None:
        return _Rows(data.X, targets, weight, None)
    rows, truth = data.validation
    return _Rows(data.X, targets, weight, (rows, truth, data.validation_weight(weight)))


def _some(targets: _Floats, weight: _Floats, most: int) -> tuple[NDArray[np.int64], _Floats]:
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


def _run(
    learner: LinearLearner,
    inputs: Callable[[NDArray[Any]], NDArray[Any]],
    rows: _Rows,
    options: TrainerOptions,
) -> History:
    """Run the epochs; `inputs` turns held-out rows into what the linear part sees."""
    judge = None
    if rows.held is not None:
        given, truth, weight = rows.held

        def judge() -> float:
            return share_right(learner.decide(inputs(given)), truth, weight, learner.recipe.losses)

    return run_epochs(learner, learner.recipe.epochs, judge, options.patience)


def _recipe(
    options: TrainerOptions, n_rows: int, bits: int, epochs: int, losses: tuple[float, ...]
) -> LinearRecipe:
    """Return the recipe of a linear part; `epochs` are those for 60,000 rows."""
    usual = int(np.clip(round(epochs * np.sqrt(60000 / n_rows)), epochs, 10 * epochs))
    return LinearRecipe(
        bits=bits,
        epochs=options.epochs or usual,
        batch_rows=64 if n_rows < 4000 else 128,
        seed=int(check_random_state(options.random_state).randint(2**31 - 1)),
        n_threads=thread_count(options.n_jobs),
        losses=losses,
    )


# -- images ---------------------------------------------------------------------------------------


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
        linear=_recipe(options, n_rows, bits, 15, losses),
    )


def convolution_plan(
    options: TrainerOptions,
    shape: tuple[int, ...],
    n_rows: int,
    bits: int,
    losses: tuple[float, ...] = (),
) -> ConvolutionPlan:
    """Return how convolutions of images are trained."""
    refused = no_convolutions(shape)
    if refused:
        raise TinykernelError(f"convolutions: {refused}")
    average, pools = frame_for(shape)
    n = options.n_kernels or 32
    assert isinstance(n, int)
    return ConvolutionPlan(
        n_channels=n,
        n_hidden=hidden_units(n),
        average=average,
        pools=pools,
        linear=_recipe(options, n_rows, bits, 30, losses),
    )


def fit_images(data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]) -> LocalResult:
    """Learn kernels or convolutions for images of (height, width, channels)."""
    seed = int(check_random_state(options.random_state).randint(2**31 - 1))
    rows = _split(data, options, seed)
    pixels = rows.rows.reshape(-1, shape[2])
    scope = "global" if shape[2] == 1 else options.scaler_scope
    _, scaling = choose_scaling(pixels, data.raw_dtype, 8, scope)
    scaler = quantize_scaler(scaling, data.raw_dtype, 8).scaler
    _check_channels(scaler)
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
    history = _run(learner, learner.seen, rows, options)
    if isinstance(learner, ConvolutionLearner):
        made = _chained_model(learner.stages(scaler), taken, data.meaning, learner.stored())
        return LocalResult(made, learner.plan, history, contest)
    kept = learner.used()
    if kept.size == 0:
        kept = np.arange(1)
    weights, worth, offset = learner.stored()
    n_cells = learner.plan.cells[0] * learner.plan.cells[1]
    columns = (kept[:, np.newaxis] * n_cells + np.arange(n_cells)).ravel()
    stages, stored = learner.stages(scaler, kept), (weights[:, columns], worth, offset)
    model = _counting_model(stages, learner.largest_count, data.meaning, stored)
    return LocalResult(model, learner.plan, history, contest)


def _image_learner(
    rows: _Rows, options: TrainerOptions, shape: tuple[int, ...], losses: tuple[float, ...]
) -> ImageLearner | ConvolutionLearner:
    """Begin with kernels or convolutions, on rows that are levels."""
    bits = options.linear_bits(shape)
    assert bits is not None
    given, augmentation = (rows.rows, rows.targets, rows.weight), Augmentation.of(options.augment)
    if options.convolutions == "on":
        plan = convolution_plan(options, shape, len(rows.rows), bits, losses)
        return ConvolutionLearner(*given, plan, augmentation)
    counting = image_plan(options, shape, len(rows.rows), bits, losses)
    return ImageLearner(*given, counting, augmentation)


def _better(
    data: TrainSet, rows: _Rows, options: TrainerOptions, shape: tuple[int, ...], seed: int
) -> tuple[TrainerOptions, Contest | None]:
    """Choose between kernels and convolutions by short trainings, on rows that these do not see."""
    assert isinstance(options.n_kernels, Mapping)
    codes, groups = data.codes, data.groups
    if options.validation_fraction:
        kept = ~keep_aside(codes, groups, options.validation_fraction, seed)
        codes, groups = codes[kept], None if groups is None else np.asarray(groups)[kept]
    truth = data.truth if len(data.truth) == len(codes) else data.truth[kept]
    if len(codes) > _MANY_IMAGES and "convolutions" in options.n_kernels:
        return _of_form(options, "convolutions", options.n_kernels["convolutions"]), None
    judged: dict[str, list[tuple[float, float]]] = {form: [] for form in options.n_kernels}
    folds = trial_folds(codes, groups, seed) if len(judged) > 1 else []
    for number, fold in enumerate(folds):
        progress.report("choosing kernels or convolutions", number, len(folds))
        inside = fold.inside
        part = _Rows(rows.rows[inside], rows.targets[inside], rows.weight[inside], None)
        for form, n in options.n_kernels.items():
            one = _of_form(options, form, n)
            learner = _image_learner(part, one, shape, data.losses)
            epochs = -(-learner.recipe.epochs // _TRIAL_SHARE)
            learner.recipe = replace(learner.recipe, epochs=epochs)
            run_epochs(learner, epochs, None, None, None)
            decisions = learner.decide(learner.seen(rows.rows[fold.outside]))
            weight = rows.weight[fold.outside]
            judged[form].append(judge(decisions, truth[fold.outside], weight, data.losses))
    best, contest = next(iter(judged)), None
    if folds:
        means = {name: tuple(np.mean(found, axis=0).tolist()) for name, found in judged.items()}
        contest = Contest(means["convolutions"], means["kernels"], "kernels", "convolutions")
        best = min(means, key=lambda form: means[form][0])
    return _of_form(options, best, options.n_kernels[best]), contest


def _of_form(options: TrainerOptions, form: str, n: int) -> TrainerOptions:
    on = "on" if form == "convolutions" else "off"
    return replace(options, convolutions=on, n_kernels=n)


def _check_image(stages: CountingStages) -> None:
    """Refuse what the firmware has no C for; the stages refuse what is too large."""
    taken, across = stages.taken, stages.kernels.cells[1]
    if stages.kernels.cell_columns(stages.placed) > WIDEST_CELL:
        most = across * WIDEST_CELL * stages.levels.average
        raise TinykernelError(
            f"image_shape: {taken.rows} x {taken.columns} is too wide for a local stage of "
            f"{across} cells across, at most {most} columns; scale the images down"
        )


def _check_channels(scaler: Scale) -> None:
    if np.any(scaler.multiplier == 0):
        channel = int(np.argmax(scaler.multiplier == 0))
        raise TinykernelError(f"X: channel {channel} never varies; leave it out")


def _chained_model(
    chain: tuple[Stage, ...],
    taken: Grid,
    meaning: Any,
    stored: tuple[NDArray[np.int8], float, NDArray[np.float64]],
) -> IntegerModel:
    """Make the model of a linear part on bytes, which it learned without the 128 less."""
    weights, worth, offset = stored
    moved = offset + 128 * worth * weights.astype(np.int64).sum(axis=1)
    return linear_model(chain, taken, meaning, weights, worth, moved)


def _counting_model(
    stages: CountingStages, largest: int, meaning: Any, stored: Any
) -> IntegerModel:
    return _chained_model(stages.then_scaled(largest), stages.taken, meaning, stored)


# -- signals --------------------------------------------------------------------------------------


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
            f"window_shape: {samples} samples are too few for kernels of nine; give at least 12"
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
        linear=replace(_recipe(options, n_rows, bits, 6, losses), decay=1e-4),
    )
    if cells <= _FEW_CELLS:
        return plan
    return replace(
        plan,
        n_pool=max(_POOL_OF_CELLS // cells, 2 * n),
        level_share=0.0,  # with it, beats of other persons are told 6 points less often
        dilations=reach(max(samples // average // 2, 9), 1),
    )


def fit_windows(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], held: tuple[Stage, ...] = ()
) -> LocalResult:
    """Choose kernels for windows of (samples, channels), or take the stages of another model."""
    first = held[0] if held and isinstance(held[0], FIRST) else None
    if not held:
        first, why = spectrum_of(options, shape, data.raw_dtype)
        if why:
            warnings.warn(why, stacklevel=2)
    if first is None:
        return _fit_samples(data, options, shape, held)
    grid = Grid.raw(data.raw_dtype, shape[0], 1, shape[1])
    made = first.gives(grid)
    progress.report("spectra", 0, None)
    levels = replace(data, X=first.run(data.X, grid), raw_dtype=made.dtype)
    if data.validation is not None:
        rows, truth = data.validation
        levels = replace(levels, validation=(first.run(rows, grid), truth))
    cells = 2 if options.cells == "auto" else options.cells
    augment = _moved_frames(options.augment, shape[0] / made.rows)
    plain = replace(options, hop=0, cells=cells, augment=augment)
    found = _fit_levels(levels, plain, (made.rows, made.channels), held[1:])
    model = replace(found.model, input=grid, stages=(first, *found.model.stages), hop=options.hop)
    return replace(found, model=model)


def cells_ahead(data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]) -> bool:
    """Say whether 16 cells tell classes better than one, by some windows or groups left out."""
    rows, weight = _some(data.targets(), data.sample_weight.astype(np.float32), _CONTEST_ROWS)
    # Of all windows: a channel may vary in few of them.
    scaler = _signal_scaler(data.X.reshape(-1, shape[1]), data.raw_dtype)
    _check_channels(scaler)
    data = replace(data, X=data.X[rows], codes=data.codes[rows])
    groups = None if data.groups is None else data.groups[rows]
    right = []
    for number, cells in enumerate((1, CELLS)):
        progress.report("choosing cells", number, 2)
        plan = signal_plan(replace(options, cells=cells), shape, len(rows), 4)
        bits = min(plan.level_bits, scaler.bits)
        one = replace(plan, n_pool=_CONTEST_COUNTS // cells, level_bits=bits)
        pool = SignalPool(
            data.X, (shape[0], shape[1]), scaler, data.targets(), weight, one, Augmentation()
        )
        fit, _ = pool.ridge(np.arange(one.n_pool), groups)
        right.append(share_right(fit.left_out.astype(np.float32), data.codes, weight))
    progress.report("choosing cells", 2, 2)
    return right[1] > right[0] + _AHEAD


def _moved_frames(augment: Mapping[str, float] | None, samples: float) -> dict[str, float] | None:
    """Return a shift of samples as one of frames, of so many samples each."""
    given = {kind: amount for kind, amount in (augment or {}).items() if amount}
    if not given:
        return None
    if set(given) != {"shift"}:
        raise TinykernelError("augment: with a spectrum only shift; or give spectrum=off")
    return {"shift": max(1, round(given["shift"] / samples))}


def _fit_samples(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], held: tuple[Stage, ...]
) -> LocalResult:
    """Choose kernels for windows of samples."""
    plan = signal_plan(options, shape, len(data.X), _bits(options, shape), data.losses)
    scaler = _signal_scaler(data.X.reshape(-1, shape[1]), data.raw_dtype)
    _check_channels(scaler)
    plan = replace(plan, level_bits=min(plan.level_bits, scaler.bits))
    return _fit_pool(data, options, shape, plan, scaler, held)


def _fit_levels(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], held: tuple[Stage, ...]
) -> LocalResult:
    """Choose kernels for frames of levels, which they look at as they are."""
    bits = _bits(options, shape)
    plan = signal_plan(options, shape, len(data.X), bits, data.losses, unit="frames")
    plan = replace(plan, **_ON_LEVELS, n_mixes=max(_MIXES, shape[1]), average=1)
    whole = Scale("uint8", 8, *np.array([[0], [1 << 16], [255]]))
    return _fit_pool(data, options, shape, plan, whole, held)


def _bits(options: TrainerOptions, shape: tuple[int, ...]) -> int:
    bits = options.linear_bits(shape)
    assert bits is not None
    return bits


def _fit_pool(
    data: TrainSet,
    options: TrainerOptions,
    shape: tuple[int, ...],
    plan: SignalPlan,
    scaler: Scale,
    held: tuple[Stage, ...],
) -> LocalResult:
    """Draw kernels, choose among them, and train the linear part on their counts."""
    rows = _split(data, options, plan.linear.seed)
    augmentation = Augmentation.of(options.augment)
    if not held and rows.held is None and _in_closed_form(data, options, augmentation):
        return _fit_few(data, plan, shape, scaler, rows)
    # Varied copies are made of all rows.
    most = len(rows.rows) if augmentation != Augmentation() else _CHOOSING
    kinds = rows.targets if data.quantity is None else np.zeros_like(rows.targets)
    some, weight = _some(kinds, rows.weight, most)
    pool = SignalPool(
        rows.rows[some],
        (shape[0], shape[1]),
        scaler,
        rows.targets[some],
        weight,
        plan,
        augmentation,
        held,
    )
    kept, stages = pool.reduced(pool.choose())
    if some.size == len(rows.rows):
        learner = pool.learner(kept, plan.linear)
    else:
        inputs = pool.counts(rows.rows, stages)
        learner = LinearLearner(inputs, rows.targets, rows.weight, plan.linear)
    if rows.held is not None:
        rows = replace(rows, held=(pool.counts(rows.held[0], stages), *rows.held[1:]))
    history = _run(learner, lambda counts: counts, rows, options)
    model = _counting_model(stages, pool.stages.largest_count, data.meaning, learner.stored())
    return LocalResult(replace(model, hop=plan.hop), plan, history)


def _in_closed_form(data: TrainSet, options: TrainerOptions, augmentation: Augmentation) -> bool:
    """Say whether ridge regression fits: few windows of classes, and no option of its epochs."""
    plain = data.quantity is None and data.teacher is None and augmentation == Augmentation()
    return plain and len(data.X) <= _FEW_WINDOWS and options.epochs is None


def _fit_few(
    data: TrainSet, plan: SignalPlan, shape: tuple[int, ...], scaler: Scale, rows: _Rows
) -> LocalResult:
    """Choose kernels and weights for few windows, by the error of windows or groups left out.

    Kernels that were chosen by the labels fit these too well: their error left out is too small,
    and so is the penalty that it chooses. They learn what the fit to the whole pool says instead,
    which gives 1 point more (``benchmarks/series.py``, 512 kernels).
    """
    started = time.perf_counter()
    best: tuple[float, SignalPool, Fit, NDArray[np.int64]] | None = None
    averages = (1, 2) if plan.average == 2 else (1,)
    for number, average in enumerate(averages):
        progress.report("choosing kernels", number, len(averages))
        n_mixes = min(plan.n_mixes, shape[1] ** 2)
        one = replace(
            plan,
            average=average,
            n_pool=max(_FEW_POOL, 2 * plan.n_kernels),
            dilations=reach(shape[0] // average, n_mixes),
            level_share=_FEW_LEVEL_SHARE,
        )
        if plan.cells > _FEW_CELLS:
            one = replace(plan, average=average)
        pool = SignalPool(
            rows.rows, (shape[0], shape[1]), scaler, rows.targets, rows.weight, one, Augmentation()
        )
        fit, deviation = pool.ridge(np.arange(one.n_pool), data.groups)
        error = float(np.square(fit.left_out - (2.0 * rows.targets - 1.0)).mean())
        if best is None or error < best[0]:
            power = np.square(fit.weights).sum(axis=1) * np.square(deviation)
            size = np.sqrt(power.reshape(one.n_pool, -1).sum(axis=1))
            kept = np.sort(np.argsort(-size, kind="stable")[: plan.n_kernels])
            best = error, pool, fit, kept
    assert best is not None
    loss, pool, whole, kept = best
    kept, stages = pool.reduced(kept)
    fit, _ = pool.ridge(kept, data.groups, whole.fitted(pool.inputs))
    stored = round_fit(fit, pool.inputs[:, pool.columns(kept)], plan.linear.bits)
    model = _counting_model(stages, pool.stages.largest_count, data.meaning, stored)
    model = replace(model, hop=plan.hop)
    progress.report("choosing kernels", len(averages), len(averages))
    history = History([{"loss": loss, "seconds": time.perf_counter() - started}], False)
    return LocalResult(model, pool.plan, history)


def pooled_signals(
    rows: NDArray[Any], raw_dtype: str, options: TrainerOptions, shape: tuple[int, ...]
) -> tuple[Grid, tuple[Stage, ...]]:
    """Draw kernels for windows of (samples, channels) without any label, and scale their counts.

    Returns what the stages take, and the stages.
    """
    plan = signal_plan(options, shape, len(rows), 4)
    plan = replace(plan, linear=replace(plan.linear, n_threads=thread_count(options.n_jobs)))
    scaler = _signal_scaler(rows.reshape(-1, shape[1]), raw_dtype)
    _check_channels(scaler)
    plan = replace(plan, level_bits=min(plan.level_bits, scaler.bits))
    nothing = np.zeros((len(rows), 1), dtype=np.float32)
    pool = SignalPool(
        rows, (shape[0], shape[1]), scaler, nothing, nothing[:, 0], plan, Augmentation()
    )
    drawn = np.random.default_rng([plan.linear.seed, 8]).permutation(plan.n_pool)
    _, stages = pool.reduced(np.sort(drawn[: plan.n_kernels]))
    return stages.taken, stages.then_scaled(pool.stages.largest_count)


def _signal_scaler(samples: NDArray[Any], raw_dtype: str) -> Scale:
    """Scale each channel by the range of nearly all its samples, and a tenth more."""
    bits = 8 if raw_dtype in ("uint8", "int8") else 16
    low, high = np.quantile(samples.astype(np.float64), [0.001, 0.999], axis=0)
    least, most = samples.min(axis=0).astype(np.float64), samples.max(axis=0).astype(np.float64)
    still = high <= low
    low, high = np.where(still, least, low), np.where(still, most, high)
    margin = 0.1 * (high - low)
    low, high = low - margin, high + margin
    varies = high > low
    scale = np.where(varies, (2 - 2.0 ** (1 - bits)) / np.where(varies, high - low, 1.0), 0.0)
    lowest, highest = np.full(low.size, -1.0), np.full(low.size, 1 - 2.0 ** (1 - bits))
    scaling = InputScaling((low + high) / 2, scale, lowest, highest)
    return quantize_scaler(scaling, raw_dtype, bits).scaler


# -- tables ---------------------------------------------------------------------------------------


def fit_linear(data: TrainSet, options: TrainerOptions, bits: int) -> LocalResult:
    """Train a linear part on the quantized inputs of plain rows."""
    recipe = replace(
        _recipe(options, len(data.X), bits, 25, data.losses),
        dropout=linear_dropout(data.X.shape[1]),
    )
    rows = _split(data, options, recipe.seed)
    width, scaling = choose_scaling(
        rows.rows, data.raw_dtype, options.width(), options.scaler_scope
    )
    scaler = quantize_scaler(scaling, data.raw_dtype, width).scaler
    if data.passes is not None and options.epochs is None:
        recipe = replace(recipe, epochs=data.passes.epochs(recipe.epochs, len(data.X)))
    learner = LinearLearner(scaler.quantize(rows.rows), rows.targets, rows.weight, recipe)
    learner.blocks = data.blocks(options.class_weight, lambda rows: (scaler.quantize(rows),))
    history = _run(learner, scaler.quantize, rows, options)
    try:
        taken = Grid.table(data.raw_dtype, data.X.shape[1])
        model = linear_model((scaler,), taken, data.meaning, *learner.stored())
    except TinykernelError as error:
        raise TinykernelError(
            f"linear: the sums of {data.X.shape[1]} inputs of {width} bits and weights of {bits} "
            "bits may pass 32 bits; give linear=4 or 2, or input_bits=8"
        ) from error
    return LocalResult(model, recipe, history)
