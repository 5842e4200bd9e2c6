"""The linear part: weights of 2, 4 or 8 bits from the first step.

With q the integers that the machine sees (counts, or quantized inputs)::

    f = scale * sum over i of V_oi (q_i - mean_i) * unit + offset_o,      V = step_o * level

Levels are rounded from a float shadow, which takes the gradient of V. The mean goes into the
offsets of the model.

Discriminants in closed form (`normal_equations.fit_discriminants`) fit the training rows less well
than learned weights, and vary less from one group of rows to the next. Both are linear in the
inputs: their mean costs the firmware nothing. Of har with persons left out (seven folds) the log
loss is 0.206 learned, 0.206 by discriminants, and 0.181 blended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import thread_count
from tinykernel.base.errors import DataError
from tinykernel.base.hadamard import LANES, run_on_rows
from tinykernel.learn.choice import hold_out
from tinykernel.learn.linear import passes
from tinykernel.learn.linear.normal_equations import (
    RoundedWeights,
    fit_discriminants,
    round_to_plane,
)
from tinykernel.learn.loop import History, Learned, Replan, one_cycle, run_epochs, seed_of
from tinykernel.learn.loss import Truth, codes_of, prior
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.trainset import TrainSet
from tinykernel.model.answers import Labels, Values
from tinykernel.model.fixed import ValueUnits, to_fixed_point
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.piece import Readout, Stage
from tinykernel.pieces.scale.spec import Scale

#: Step between levels by bits, over the root mean square of the weights: least squares for normal
#: weights.
LEVEL_STEPS = {2: 1.22, 4: 0.36}
_LARGEST_OFFSET = 2**30
_ROWS_AT_ONCE = 8192
_NO_GRADIENTS = np.empty((0, 0), dtype=np.float32)

_Floats = NDArray[np.float32]


@dataclass(frozen=True)
class LinearRecipe:
    """How a linear part is trained."""

    bits: int = 4  # {2, 4, 8}
    epochs: int = 30
    batch_rows: int = 128  # a multiple of 32.
    peak_step: float = 0.01  # largest step of Adam, for the weights.
    dropout: float = 0.0  # share of inputs set to their mean, at random for each row.
    decay: float = 0.0  # L2: added to the gradient of the shadow in this share.
    warm_up: float = 0.1  # share of the steps.
    seed: int = 0
    n_threads: int = 1  # changes nothing but the time.
    losses: tuple[float, ...] = ()  # as in `tinykernel.learn.options.Recipe`.


def linear_dropout(n_inputs: int) -> float:
    """Return the dropout of quantized inputs, 0 for few of them.

    On dna (180 inputs, 2000 rows) 0.2 gives 3 points on held-out rows, on HAR nothing.
    """
    return 0.2 if n_inputs >= 32 else 0.0


def round_linear(linear: _Floats, bits: int) -> tuple[_Floats, np.float32]:
    """Round weights (inputs, outputs) to levels; returns these and the step between them."""
    most = np.float32(2 ** (bits - 1) - 1)
    step = np.abs(linear).max() / most
    if bits in LEVEL_STEPS:
        size = np.sqrt(np.square(linear).mean(dtype=np.float64))
        step = min(step, np.float32(LEVEL_STEPS[bits] * size))
    step = max(step, np.float32(1e-12))
    return np.clip(np.rint(linear / step), -most, most), step


def input_moments(inputs: NDArray[Any]) -> tuple[_Floats, NDArray[np.float64], np.float32]:
    """Return mean and deviation of each input, and the unit in which they have a variance of 1."""
    # Sums of integers do not depend on their order.
    total = inputs.sum(axis=0, dtype=np.int64)
    squares = np.zeros_like(total)
    for first in range(0, len(inputs), _ROWS_AT_ONCE):
        squares += np.square(inputs[first : first + _ROWS_AT_ONCE].astype(np.int64)).sum(axis=0)
    mean = total / len(inputs)
    variance = np.maximum(squares / len(inputs) - np.square(mean), 0.0)
    unit = np.float32(1 / np.sqrt(max(float(variance.mean()), 1e-6)))
    return mean.astype(np.float32), np.sqrt(variance), unit


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn, and validation rows where there are any."""

    inputs: NDArray[Any]  # (n, ...): raw, or as a learner takes them.
    targets: _Floats  # (n, n_outputs)
    weight: _Floats  # (n,), of mean 1.
    validation: tuple[NDArray[Any], NDArray[Any], _Floats] | None = None  # rows, truth, weights.
    groups: NDArray[np.int64] | None = None  # (n,), of the rows to learn.

    def of(self, rows: NDArray[np.int64]) -> "TrainingRows":
        """Return some of the rows, without those of validation."""
        groups = None if self.groups is None else self.groups[rows]
        return TrainingRows(self.inputs[rows], self.targets[rows], self.weight[rows], groups=groups)

    def map_rows(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> "TrainingRows":
        """Apply a function to all rows."""
        validation = self.validation and (function(self.validation[0]), *self.validation[1:])
        return replace(self, inputs=function(self.inputs), validation=validation)


class LinearLearner(Learned):
    """A linear part and the steps that change it, on inputs q (n, n_inputs).

    A subclass with stages before the linear part overrides `draw`, `steps` and `accumulate`.
    """

    def __init__(self, rows: TrainingRows, recipe: LinearRecipe) -> None:
        self.inputs, self.targets, self.weight = rows.inputs, rows.targets, rows.weight
        self.recipe, self.n_outputs = recipe, self.targets.shape[1]
        self.rng = np.random.default_rng([recipe.seed, 5])
        self.losses = np.array(recipe.losses, dtype=np.float32)
        self.draw()
        self._begin(self.steps())

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Compute what the linear part sees, plus 128 behind stages."""
        return rows

    def draw(self) -> None:
        """Draw all learned parameters."""
        self.measure(self.inputs)
        self.draw_linear()

    def measure(self, inputs: NDArray[Any]) -> None:
        """Measure mean and unit of the inputs on some rows."""
        self.n_inputs = inputs.shape[1]
        self.mean, self.spread, self.unit = input_moments(inputs)

    def draw_linear(self) -> None:
        """Draw the first weights; inputs that never vary have none."""
        shape = (self.n_inputs, self.n_outputs)
        self.linear = np.float32(0.01) * self.rng.standard_normal(shape, dtype=np.float32)
        self.offset = prior(self.targets, self.weight, self.recipe.losses)
        self.gain = np.ones(1, dtype=np.float32)

    def steps(self) -> dict[str, float]:
        """Return the names of all learned parameters, each with its largest step."""
        step = self.recipe.peak_step
        return {"linear": step, "offset": step, "gain": 3 * step}

    def step(self, rows: NDArray[np.int64], done: float) -> float:
        """Take one step on a batch, at a share of the training; return the mean loss."""
        self.accumulate(rows)
        self.update(one_cycle(done, self.recipe.warm_up), np.float32(1.0 / rows.size))
        return float(self.totals[:, 0].sum() / rows.size)

    def scale(self) -> np.float32:
        """Return the factor of the sums."""
        return np.float32(8 * self.gain[0] / np.sqrt(self.n_inputs))

    def accumulate(self, rows: NDArray[np.int64]) -> None:
        """Compute the gradients of some rows."""
        self._learn(self.inputs, rows, self.batch(rows), self.room(), _NO_GRADIENTS)

    def learn_means(self, batch: passes.LinearBatch, features: _Floats) -> _Floats:
        """Accumulate the gradients of the linear part on features; return those of these."""
        d_features = np.empty_like(features)
        self._learn(features, np.arange(len(features)), batch, self.room(), d_features)
        return d_features

    def _learn(self, *arguments: Any) -> None:
        """Add up the gradients of a batch, see `passes`; one thread has all slots at once."""
        ends = range(0, self._n_slots + 1, self._n_slots if self.recipe.n_threads == 1 else 1)

        def part(i: int) -> None:
            passes.learn_rows(ends[i], ends[i + 1], *arguments)

        self._in_threads(part, len(ends) - 1)

    def batch(self, rows: NDArray[np.int64]) -> passes.LinearBatch:
        """Begin a step on some rows: return its arguments, with dropout drawn."""
        self._clear(rows.size)
        recipe, keep = self.recipe, np.empty((0, 0, 0), dtype=np.bool_)
        if recipe.dropout:
            shape = (rows.size // LANES, self.n_inputs, LANES)
            keep = self.rng.random(shape, dtype=np.float32) >= recipe.dropout
        arguments, inverse = self._weights(), np.float32(1 / (1 - recipe.dropout))
        return passes.LinearBatch(
            rows, self.targets, self.weight, self.losses, *arguments, keep, inverse
        )

    def _weights(self) -> tuple[_Floats, np.float32, _Floats, _Floats, np.float32]:
        """Return the rounded weights, their scale, the offsets, and mean and unit of inputs."""
        levels, step = round_linear(self.linear, self.recipe.bits)
        return levels * step, self.scale(), self.offset, self.mean, self.unit

    def room(self, slot: int | slice = slice(None)) -> passes.LinearGradients:
        """Return the gradients of a slot, or of all."""
        linear, offset = self.gradients["linear"][slot], self.gradients["offset"][slot]
        return passes.LinearGradients(linear, offset, self.totals[slot])

    def update(self, share: float, factor: np.float32) -> None:
        """Update every learned parameter by Adam."""
        self.gradients["gain"][:, 0] = self.totals[:, 1] * float(self.scale() / self.gain[0])
        if self.recipe.decay:
            self.gradients["linear"][0] += np.float32(self.recipe.decay / factor) * self.linear
        self._move({name: share * step for name, step in self.steps().items()}, factor)

    def decide(self, inputs: NDArray[Any]) -> _Floats:
        """Compute the decision values (n, n_outputs)."""
        out = np.empty((len(inputs), self.n_outputs), dtype=np.float32)
        arguments = len(inputs), self.recipe.n_threads, inputs, *self._weights()
        run_on_rows(passes.decide_linear, *arguments, out)
        return out

    def stored(self) -> tuple[NDArray[np.int8], float, NDArray[np.float64]]:
        """Return levels (outputs, inputs), the value of one per unit of q, and the offsets."""
        levels, step = round_linear(self.linear, self.recipe.bits)
        levels[self.spread == 0] = 0
        worth = float(self.scale()) * float(self.unit) * float(step)
        shift = worth * np.einsum("io,i->o", levels.astype(np.float64), self.mean)
        return levels.T.astype(np.int8), worth, self.offset.astype(np.float64) - shift


def linear_model(
    stages: tuple[Stage, ...],
    grid: Grid,
    meaning: Sequence[Any] | ValueUnits,
    levels: NDArray[np.int8],
    worth: float,
    offset: NDArray[np.float64],
) -> IntegerModel:
    """Make the model of a linear part alone, behind stages on inputs of a `grid`.

    `meaning` are the classes, or units of values; the arguments after it are those of `stored`.
    """
    multiplier = np.ones(levels.shape[0], dtype=np.int32)
    answers: Labels | Values
    if isinstance(meaning, ValueUnits):
        inputs = grid
        for stage in stages:
            inputs = stage.gives(inputs)
        dots = -inputs.low * np.abs(levels.astype(np.float64)).sum(axis=1)
        fixed = to_fixed_point(meaning, 0.0 * dots, 0.0 * dots + worth, offset, 0 * dots, dots)
        rounded, multiplier, answers = fixed.offset, fixed.linear_multiplier, fixed.values
        worth = fixed.values.unit
    else:
        # Beside dot products of many levels, whole numbers of them are fine enough for offsets.
        rounded = np.clip(np.rint(offset / worth), -_LARGEST_OFFSET, _LARGEST_OFFSET)
        answers = Labels(tuple(meaning))
    return IntegerModel(
        input=grid,
        stages=stages,
        readout=Readout((Linear(levels, multiplier),), rounded.astype(np.int32)),
        answers=answers,
        decision_scale=worth,
    )


#: Share of discriminants. Half, or all, is worse where classes are no clouds of one shape.
SHARE = 0.25
#: Rounding to fewer bits loses more than a blend gains.
FEWEST_BITS = 4


@dataclass(frozen=True)
class BlendRecipe(LinearRecipe):
    """How a linear part is trained and blended."""

    discriminants: float = SHARE


def blend(learner: LinearLearner) -> RoundedWeights:
    """Return weights of few bits (n_outputs, n_inputs), their unit, and offsets (n_outputs,).

    Without rows of some class, or with 2 bits, these are the learned ones. Ctrl-C is passed on.
    """
    codes, n_classes = codes_of(learner.targets), max(2, learner.n_outputs)
    if learner.recipe.bits < FEWEST_BITS or np.unique(codes).size < n_classes:
        return learner.stored()
    rows = learner.inputs, codes, learner.targets, learner.weight.astype(np.float64)
    fit, standard = fit_discriminants(*rows)
    levels, worth, offset = learner.stored()
    weights = (1 - SHARE) * worth * levels.T + SHARE * fit.weights
    fit = fit._replace(weights=weights, offset=(1 - SHARE) * offset + SHARE * fit.offset)
    stored, ended = round_to_plane(fit, standard, learner.recipe.bits)
    if ended:
        raise KeyboardInterrupt
    return stored


def split_rows(data: TrainSet, options: TrainerOptions) -> TrainingRows:
    """Return rows, targets and weights; validation rows are split off, their copies dropped."""
    weight, targets = data.weight, data.targets()
    if options.validation_fraction:
        out = hold_out(data.codes, data.groups, options.validation_fraction, seed_of(options))
        judging = out.copy()
        judging[len(out) - data.n_varied :] = False
        validation = (data.X[judging], data.truth[judging], weight[judging])
        groups = None if data.groups is None else data.groups[~out]
        groups = None if groups is None or np.unique(groups).size < 2 else groups
        return TrainingRows(data.X[~out], targets[~out], weight[~out], validation, groups)
    if data.validation is None:
        return TrainingRows(data.X, targets, weight, groups=data.groups)
    rows, truth = data.validation
    validation = rows, truth, data.validation_weight(weight)
    return TrainingRows(data.X, targets, weight, validation, data.groups)


def run_training(
    learner: LinearLearner, rows: TrainingRows, replan: Replan | None = None
) -> History:
    """Run the epochs; validation rows are those of the learner."""

    def score() -> float:
        assert rows.validation is not None
        decisions = learner.decide(learner.features(rows.validation[0]))
        return Truth(*rows.validation[1:], learner.recipe.losses).score(decisions)

    judge = None if rows.validation is None else score
    return run_epochs(learner, learner.recipe.epochs, judge, replan=replan)


def linear_recipe(
    options: TrainerOptions, n_rows: int, bits: int, epochs: int, losses: tuple[float, ...]
) -> LinearRecipe:
    """Return the recipe of a linear part; `epochs` are those for 60,000 rows."""
    usual = int(np.clip(round(epochs * np.sqrt(60000 / n_rows)), epochs, 10 * epochs))
    return LinearRecipe(
        bits=bits,
        epochs=options.epochs or usual,
        batch_rows=64 if n_rows < 4000 else 128,
        seed=seed_of(options),
        n_threads=thread_count(options.n_jobs),
        losses=losses,
    )


def check_channels(scaler: Scale) -> None:
    """Refuse a channel that never varies."""
    if np.any(scaler.multiplier == 0):
        channel = int(np.argmax(scaler.multiplier == 0))
        raise DataError(f"X: channel {channel} never varies (the first is 0); leave it out")


def chained_model(
    chain: tuple[Stage, ...], grid: Grid, meaning: Any, stored: RoundedWeights
) -> IntegerModel:
    """Make the model of a linear part on bytes, which are 128 less than in training."""
    weights, worth, offset = stored
    moved = offset + 128 * worth * weights.astype(np.int64).sum(axis=1)
    return linear_model(chain, grid, meaning, weights, worth, moved)
