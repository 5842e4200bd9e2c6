"""A perceptron: one or two hidden layers and a linear part, on the inputs of a table.

Hidden layers are trained in the integers of the stage *dense*. With v the levels of the inputs, or
the units of the layer before, unit o is::

    u_o = min(max(floor((s_o - mean of s_o) / 2^shift + 64 a_o + 1/2), 0), 255)
    s_o = sum over i of L_oi v_i,    L_oi = clip(round(W_oi / step))

The shadow W has the mean square 1 for each unit and the mean is that of the batch (Salimans &
Kingma 2016, weight normalization with mean-only batch normalization). So one shift serves all
units, and the mean folds into the bias. Rounding has straight-through gradients, which units at 0
and 255 do not pass (PACT, Choi et al. 2018). The last layer is the linear part of
`learn.linear.training`.

All matrices are whole numbers: levels are, and gradients are rounded to 26 bits. Their products are
exact in float64, so BLAS may add them up in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import MOST_UNITS
from tinykernel.kinds.kind import Kind, Problem, Rounds, Spec, best_trial, candidate_of
from tinykernel.kinds.pace import Pace
from tinykernel.learn.choice import Candidate, Fold
from tinykernel.learn.inputs import choose_scaler
from tinykernel.learn.linear import training
from tinykernel.learn.loop import TrainingResult, one_blas_thread, run_epochs
from tinykernel.learn.perceptron import passes
from tinykernel.learn.perceptron.options import PERCEPTRON
from tinykernel.learn.signals.pool import count_scaler
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.spec import Levels

_UNIT = 64.0  # levels of one unit of `starts`
# Deviation of sums, in levels of units, to which the shift comes nearest; and of first starts.
_SPREAD, _START_SPREAD = 80.0, 0.3
_MOST_SHIFT, _LARGEST_BIAS = 30, 2**30
_MEASURED_ROWS = 8192
# Of an input about its mean, beyond which levels saturate.
_DEVIATIONS = 3.0
_FINE_STEP = 4 / 127  # of weights of 8 bits

_Floats = NDArray[np.float32]
_Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class PerceptronRecipe(training.LinearRecipe):
    """The hidden layers, and how they are trained; units are dropped before each later layer."""

    widths: tuple[int, ...] = (64,)  # units of each hidden layer.
    layer_bits: tuple[int, ...] = (4,)  # {2, 4, 8}: of the weights of each hidden layer.
    input_dropout: float = 0.0  # share of inputs set to their mean, at random for each row.
    weight_step: float = 0.06  # largest step of Adam, for weights of mean square 1.
    start_step: float = 0.02  # the same for the starts a.


class _HiddenLayer(NamedTuple):
    """Where a layer has its weights (inputs, units) and its units."""

    bits: int
    shape: tuple[int, int]
    weights: slice
    units: slice


class _HiddenPass(NamedTuple):
    """What a batch left in a layer, for the way back."""

    inputs: _Doubles  # (k, inputs), whole numbers
    levels: _Doubles  # (inputs, units)
    open: NDArray[np.bool_]  # (k, units): neither clipped nor dropped
    worth: float  # of one of a sum, in levels of units


class PerceptronLearner(training.LinearLearner):
    """Hidden layers and a linear part on inputs of levels, uint8 (n, n_inputs)."""

    recipe: PerceptronRecipe

    def draw(self) -> None:
        """Draw all that is learned; inputs that never vary have no weights."""
        recipe, inputs = self.recipe, self.inputs
        total = inputs.sum(axis=0, dtype=np.int64)
        self._centre = np.rint(total / len(inputs))
        self._layers = _layers_of(inputs.shape[1], recipe)
        last = self._layers[-1]
        self.shadow = self.rng.standard_normal(last.weights.stop, dtype=np.float32)
        self.starts = np.float32(_START_SPREAD) * self.rng.standard_normal(
            last.units.stop, dtype=np.float32
        )
        first = self._layers[0]
        self._of(first)[inputs.min(axis=0) == inputs.max(axis=0)] = 0
        self._normalise()
        self._measured = np.sort(self.rng.permutation(len(inputs))[:_MEASURED_ROWS])
        self._shifts: list[int] = []
        self._folded: list[tuple[_Doubles, _Doubles]] | None = None
        self.measure(self.features(inputs[self._measured]))
        self.spread[:] = 1  # units that are constant at first may learn
        self.draw_linear()

    def steps(self) -> dict[str, float]:
        """Return the names of all learned parameters, each with its largest step."""
        recipe = self.recipe
        return super().steps() | {"shadow": recipe.weight_step, "starts": recipe.start_step}

    def _of(self, layer: _HiddenLayer, flat: _Floats | None = None) -> _Floats:
        """Return the shadow of a layer, or another array of its form, as (inputs, units)."""
        return (self.shadow if flat is None else flat)[layer.weights].reshape(layer.shape)

    def _normalise(self) -> None:
        """Give the weights of each unit the mean square 1."""
        for layer in self._layers:
            passes.normalise(self._of(layer))

    def _round(self, layer: _HiddenLayer) -> _Doubles:
        """Return the whole weights of a layer (inputs, units)."""
        most, step = np.float32(2 ** (layer.bits - 1) - 1), np.float32(_step_of(layer.bits))
        return np.asarray(passes.round_weights(self._of(layer), step, most))

    @one_blas_thread
    def _fold(self) -> list[tuple[_Doubles, _Doubles]]:
        """Fold the means of some training rows into biases; returns weights and biases of layers.

        The first time that chooses the shifts, by which units fill their range.
        """
        if self._folded is None:
            values, self._folded = self._less_mean(self.inputs[self._measured]), []
            for number, layer in enumerate(self._layers):
                levels = self._round(layer)
                sums = values @ levels
                if number == len(self._shifts):
                    self._shifts.append(_shift_for(np.var(sums, axis=0)))
                start = _UNIT * self.starts[layer.units].astype(np.float64) + 0.5
                bias = np.rint(start * 2.0 ** self._shifts[number] - sums.sum(axis=0) / len(sums))
                self._folded.append((levels, np.clip(bias, -_LARGEST_BIAS, _LARGEST_BIAS)))
                values = self._clip(sums, number)
        return self._folded

    def _clip(self, sums: _Doubles, number: int) -> _Doubles:
        """Return the units of a layer by its folded bias."""
        assert self._folded is not None
        biased = (sums + self._folded[number][1]) * 2.0 ** -self._shifts[number]
        return np.clip(np.floor(biased), 0, passes.TOP)

    def _less_mean(self, levels: NDArray[np.uint8]) -> _Doubles:
        """Return levels less their whole mean."""
        return np.asarray(levels - self._centre)

    @one_blas_thread
    def features(self, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Compute the last units, what the linear part sees plus 128; shape (n, units)."""
        folded, parts = self._fold(), []
        for first in range(0, len(rows), _MEASURED_ROWS):
            values = self._less_mean(rows[first : first + _MEASURED_ROWS])
            for number, (levels, _) in enumerate(folded):
                values = self._clip(values @ levels, number)
            parts.append(values.astype(np.uint8))
        return np.concatenate(parts)

    def accumulate(self, rows: NDArray[np.int64]) -> None:
        """Compute the gradients of some rows."""
        self._folded = None
        batch = self.batch(rows)
        units, passed = self._forward(self._less_mean(self.inputs[rows]))
        d_features = self.learn_means(batch, units.astype(np.float32))
        self._backward(passed, d_features.astype(np.float64))

    def _forward(self, values: _Doubles) -> tuple[_Doubles, list[_HiddenPass]]:
        """Run a batch with the means of its own; the linear part drops of the last units."""
        passed: list[_HiddenPass] = []
        for layer, shift in zip(self._layers, self._shifts, strict=True):
            levels, worth = self._round(layer), 2.0**-shift
            dropout = self.recipe.dropout if passed else self.recipe.input_dropout
            if dropout:
                stays = self.rng.random(values.shape, dtype=np.float32) >= dropout
                worth /= 1 - dropout
                values *= stays
                if passed:
                    np.logical_and(passed[-1].open, stays, out=passed[-1].open)
            sums = values @ levels
            starts = _UNIT * self.starts[layer.units].astype(np.float64)
            passed.append(_HiddenPass(values, levels, passes.to_units(sums, starts, worth), worth))
            values = sums
        return values, passed

    def _backward(self, passed: list[_HiddenPass], d: _Doubles) -> None:
        """Store the gradients of shadows and starts, given that of the last units."""
        for layer, left in zip(self._layers[::-1], passed[::-1], strict=True):
            total, unit = passes.whole_slopes(d, left.open)
            self.gradients["starts"][0, layer.units] = (_UNIT * unit) * total
            factor = unit * left.worth
            d_levels = left.inputs.T @ d
            self._of(layer, self.gradients["shadow"][0])[...] = (
                factor / _step_of(layer.bits) * d_levels
            )
            if layer.weights.start:
                d = (d @ left.levels.T) * factor

    def update(self, share: float, factor: np.float32) -> None:
        """Let Adam move every learned parameter."""
        super().update(share, factor)
        self._normalise()

    def restore(self, state: list[_Floats]) -> None:
        """Put back learned parameters."""
        super().restore(state)
        self._folded = None

    def layers(self) -> tuple[Dense, ...]:
        """Return the stages of the hidden layers."""
        stages = []
        for number, (levels, bias) in enumerate(self._fold()):
            if not number:  # levels come with their mean
                bias = np.clip(bias - self._centre @ levels, -_LARGEST_BIAS, _LARGEST_BIAS)
            whole = levels.T.astype(np.int8), bias.astype(np.int32)
            stages.append(Dense(*whole, self._shifts[number]))
        return tuple(stages)


def _layers_of(n_inputs: int, recipe: PerceptronRecipe) -> list[_HiddenLayer]:
    layers, weight, unit, before = list[_HiddenLayer](), 0, 0, n_inputs
    for width, bits in zip(recipe.widths, recipe.layer_bits, strict=True):
        weights = slice(weight, weight + before * width)
        layers.append(_HiddenLayer(bits, (before, width), weights, slice(unit, unit + width)))
        weight, unit, before = weights.stop, unit + width, width
    return layers


def _step_of(bits: int) -> float:
    """Return the step between levels of weights of mean square 1."""
    return training.LEVEL_STEPS.get(bits, _FINE_STEP)


def _shift_for(variances: _Doubles) -> int:
    """Return the shift by which sums of these variances come nearest to the usual deviation.

    >>> _shift_for(np.array([80.0**2 * 2**6])), _shift_for(np.zeros(3))
    (3, 0)
    """
    # The exponent of twice the square, halved: log2 rounded, without a logarithm.
    _, exponent = np.frexp(2 * variances.mean() / _SPREAD**2)
    return min(max((int(exponent) - 1) // 2, 0), _MOST_SHIFT)


def levels_stage(rows: NDArray[Any], raw_dtype: str) -> Levels:
    """Return 256 levels of each input, over three deviations about its mean at most."""
    mean = rows.mean(axis=0, dtype=np.float64)
    away = _DEVIATIONS * rows.std(axis=0, dtype=np.float64)
    ends = [np.rint(end) if rows.dtype.kind != "f" else end for end in (mean - away, mean + away)]
    low, high = (end.astype(rows.dtype) for end in _inside(ends, rows))
    scaler = choose_scaler(np.clip(rows, low, high), raw_dtype, 8, "auto")
    # The stage takes no constant inputs; these have no weights.
    factor = np.where(scaler.multiplier == 0, 1, scaler.multiplier).astype(scaler.multiplier.dtype)
    return Levels(replace(scaler, multiplier=factor), 0, 1, np.eye(rows.shape[1], dtype=np.int8))


def _inside(ends: list[_Doubles], rows: NDArray[Any]) -> list[_Doubles]:
    """Return ends that no value of the rows is beyond."""
    return [np.clip(end, rows.min(axis=0), rows.max(axis=0)) for end in ends]


_DEFAULT, _MOST_INPUTS = 64, 1024
_HIDDEN_BITS, _LINEAR_BITS = 4, 4
# Epochs for 60,000 rows, as of a linear part.
_EPOCHS = 12
# Shares of the units that short trainings drop, the usual one second.
_DROPOUTS, _USUAL_DROPOUT = (0.35, 0.2, 0.1, 0.0), 0.2
_TRIAL_FOLDS, _TRIAL_SHARE = 1, 0.5
_IN_WORDS = {1: "one layer", 2: "two layers"}


@dataclass(frozen=True)
class PerceptronSpec(Spec):
    """The hidden layers, their units and the bits of their weights."""

    SIZE: ClassVar[str] = "n_units"
    FEWEST: ClassVar[int] = 2

    n_units: int = _DEFAULT  # of each hidden layer.
    n_layers: int = 2
    bits: int = _HIDDEN_BITS  # {2, 4, 8}: of the weights of hidden layers.
    linear_bits: int = _LINEAR_BITS  # {2, 4, 8}: of those of the linear part.
    dropout: float = _USUAL_DROPOUT  # share of units that a step leaves out.

    def __str__(self) -> str:
        """Describe them in words."""
        layers = f"{_IN_WORDS[self.n_layers]} of {self.n_units} units"
        return f"perceptron, {layers} of {self.bits} bits, dropout {self.dropout:g}"


class PerceptronKind(Kind[PerceptronSpec]):
    """A perceptron."""

    about = PERCEPTRON
    cost: ClassVar[int] = 2  # in time; in flash all fill a budget.
    behind: ClassVar[tuple[float, ...]] = (2.0, 1.3)
    price: ClassVar[tuple[float, float]] = (8e-6, 0.45e-9)
    trial_share: ClassVar[float] = 0.5

    def applies(self, problem: Problem) -> str:
        """Refuse many inputs, and options that exclude it."""
        options = problem.options
        if refused := super().applies(problem):
            return refused
        n_inputs = problem.data.X.shape[1]
        if n_inputs > _MOST_INPUTS:
            return f"a perceptron takes up to {_MOST_INPUTS} inputs, and rows have {n_inputs}"
        if options.model == self.name:
            return ""
        return "not compared" if options.linear == "off" or options.sigma is not None else ""

    def specs(self, problem: Problem) -> list[PerceptronSpec]:
        """Return two layers and one, of the most units."""
        options = problem.options
        n = options.n_units or (_DEFAULT if problem.limits is None else MOST_UNITS)
        bits = _LINEAR_BITS if options.linear in ("auto", "off") else int(options.linear)
        spec = PerceptronSpec(n, linear_bits=bits)
        if problem.limits is None or problem.is_quick:
            return [spec]
        return [spec, replace(spec, n_layers=1)]

    def skeleton(self, spec: PerceptronSpec, problem: Problem) -> IntegerModel:
        """Return layers with random weights."""
        few = problem.once(Problem.few)
        stage, rows = few.once(_rows)
        return _model(PerceptronLearner(rows, _recipe(spec, few)), stage, few)

    def epochs(self, spec: PerceptronSpec, problem: Problem) -> int:
        return _recipe(spec, problem).epochs

    def tune(self, specs: Sequence[PerceptronSpec], problem: Problem, pace: Pace) -> Rounds:
        """Compare numbers of layers by short trainings, then shares of dropout.

        Long trainings need more of it: the largest share within one standard error is taken.
        """
        folds = problem.folds[-_TRIAL_FOLDS:]
        share = _TRIAL_SHARE * pace.effort.share
        judged = self.judge_all(specs, problem, folds, share)
        best = best_trial(specs, judged, problem, folds)
        yield [best]
        assert isinstance(best.spec, PerceptronSpec)
        if problem.is_quick:
            return
        every = [replace(best.spec, dropout=dropout) for dropout in _DROPOUTS]
        tried = every[1 : 3 if pace.may_try(self.name) else 2]
        judged = self.judge_all(tried, problem, folds, share)
        if len(tried) > 1 and pace.may_try(self.name):
            # Where less is better, more is not, and the other way round.
            tried = every[1:] if problem.choose(judged, folds).best else every[:3]
            judged = self.judge_all(tried, problem, folds, share)
        ranked = [replace(candidate, cost=rank) for rank, candidate in enumerate(judged)]
        yield [best_trial(tried, ranked, problem, folds)]

    def judge(self, spec: PerceptronSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        decisions = problem.once(_decisions, spec, fold, share)
        return candidate_of(spec, decisions, problem, fold)

    def fit(self, spec: PerceptronSpec, problem: Problem, pace: Pace) -> TrainingResult:
        data, recipe = problem.data, _recipe(spec, problem)
        recipe = replace(recipe, epochs=pace.final_epochs(recipe.epochs))
        rows = training.split_rows(data, problem.options)
        stage, rows = _levels(rows, data.raw_dtype)
        learner = PerceptronLearner(rows, recipe)
        history = training.run_training(learner, rows, pace.replan)
        return TrainingResult(_model(learner, stage, problem), recipe, history)


def _decisions(
    problem: Problem, spec: PerceptronSpec, fold: Fold, share: float
) -> NDArray[np.float32]:
    """Train inside a fold for a share of the epochs, and decide the rows outside."""
    (_, rows), recipe = problem.once(_rows), _recipe(spec, problem)
    recipe = replace(recipe, n_threads=1, epochs=max(1, round(share * recipe.epochs)))
    learner = PerceptronLearner(rows.of(fold.inside), recipe)
    run_epochs(learner, recipe.epochs, stage=None)
    return learner.decide(learner.features(rows.inputs[fold.outside]))


def _recipe(spec: PerceptronSpec, problem: Problem) -> PerceptronRecipe:
    """Return how a perceptron is learned."""
    (n, n_inputs), losses = problem.data.X.shape, problem.data.losses
    linear = training.linear_recipe(problem.options, n, spec.linear_bits, _EPOCHS, losses)
    layers = {
        "widths": (spec.n_units,) * spec.n_layers,
        "layer_bits": (spec.bits,) * spec.n_layers,
        "dropout": spec.dropout,
        "input_dropout": training.linear_dropout(n_inputs),
    }
    return PerceptronRecipe(**(vars(linear) | layers))


def _rows(problem: Problem) -> tuple[Levels, training.TrainingRows]:
    """Return the levels of the inputs, as a stage and of all rows."""
    data = problem.data
    rows = training.TrainingRows(data.X, data.targets(), data.weight, groups=data.groups)
    return _levels(rows, data.raw_dtype)


def _levels(rows: training.TrainingRows, raw_dtype: str) -> tuple[Levels, training.TrainingRows]:
    stage, grid = levels_stage(rows.inputs, raw_dtype), Grid.table(raw_dtype, rows.inputs.shape[1])

    def levels(raw: NDArray[np.generic]) -> NDArray[np.generic]:
        return stage.run(raw, grid)

    return stage, rows.map_rows(levels)


def _model(learner: PerceptronLearner, stage: Levels, problem: Problem) -> IntegerModel:
    """Return the model of a learner."""
    data = problem.data
    chain = stage, *learner.layers(), count_scaler("uint8", int(passes.TOP))
    grid = Grid.table(data.raw_dtype, data.X.shape[1])
    return training.chained_model(chain, grid, data.meaning, learner.stored())


KINDS = (PerceptronKind(),)
