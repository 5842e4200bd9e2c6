"""A perceptron: one or two hidden layers and a linear part, on the inputs of a table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import MOST_UNITS
from tinykernel.kinds.kind import Kind, Rounds, Spec, best_trial, candidate_of
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.problem import Problem
from tinykernel.learn.choice import Candidate
from tinykernel.learn.folds import Fold
from tinykernel.learn.linear.training import (
    TrainingRows,
    chained_model,
    linear_dropout,
    linear_recipe,
    run_training,
    split_rows,
)
from tinykernel.learn.loop import TrainingResult, run_epochs
from tinykernel.learn.perceptron.options import PERCEPTRON
from tinykernel.learn.perceptron.training import (
    PerceptronLearner,
    PerceptronRecipe,
    levels_stage,
)
from tinykernel.learn.signals.pool import count_scaler
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.spec import Levels

_DEFAULT, _MOST_INPUTS = 64, 1024
_HIDDEN_BITS, _LINEAR_BITS = 4, 4
_TOP = 255
# Epochs for 60,000 rows, as of a linear part.
_EPOCHS = 12
# Shares of the units that short trainings drop.
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
        judged = self.judged(specs, problem, folds, share)
        best = best_trial(specs, judged, problem, folds)
        yield [best]
        assert isinstance(best.spec, PerceptronSpec)
        if problem.is_quick:
            return
        dropouts = [dropout for dropout in _DROPOUTS if pace.may_try(self.name)]
        tried = [replace(best.spec, dropout=dropout) for dropout in dropouts] or [best.spec]
        judged = self.judged(tried, problem, folds, share)
        ranked = [replace(candidate, cost=rank) for rank, candidate in enumerate(judged)]
        yield [best_trial(tried, ranked, problem, folds)]

    def judge(self, spec: PerceptronSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        decisions = problem.once(_decisions, spec, fold, share)
        return candidate_of(spec, decisions, problem, fold)

    def fit(self, spec: PerceptronSpec, problem: Problem, pace: Pace) -> TrainingResult:
        data, recipe = problem.data, _recipe(spec, problem)
        recipe = replace(recipe, epochs=pace.final_epochs(recipe.epochs))
        rows = split_rows(data, problem.options)
        stage, rows = _levels(rows, data.raw_dtype)
        learner = PerceptronLearner(rows, recipe)
        history = run_training(learner, rows, pace.replanned)
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
    linear = linear_recipe(problem.options, n, spec.linear_bits, _EPOCHS, losses)
    layers = {
        "widths": (spec.n_units,) * spec.n_layers,
        "layer_bits": (spec.bits,) * spec.n_layers,
        "dropout": spec.dropout,
        "input_dropout": linear_dropout(n_inputs),
    }
    return PerceptronRecipe(**(vars(linear) | layers))


def _rows(problem: Problem) -> tuple[Levels, TrainingRows]:
    """Return the levels of the inputs, as a stage and of all rows."""
    data = problem.data
    rows = TrainingRows(data.X, data.targets(), data.weight, groups=data.groups)
    return _levels(rows, data.raw_dtype)


def _levels(rows: TrainingRows, raw_dtype: str) -> tuple[Levels, TrainingRows]:
    stage, grid = levels_stage(rows.inputs, raw_dtype), Grid.table(raw_dtype, rows.inputs.shape[1])

    def levels(raw: NDArray[np.generic]) -> NDArray[np.generic]:
        return stage.run(raw, grid)

    return stage, rows.map_rows(levels)


def _model(learner: PerceptronLearner, stage: Levels, problem: Problem) -> IntegerModel:
    """Return the model of a learner."""
    data = problem.data
    chain = stage, *learner.layers(), count_scaler("uint8", _TOP)
    grid = Grid.table(data.raw_dtype, data.X.shape[1])
    return chained_model(chain, grid, data.meaning, learner.stored())


KINDS = (PerceptronKind(),)
