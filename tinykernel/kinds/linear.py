"""A linear part alone, on the inputs of a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.kinds.kind import Kind, RaceTrial, Spec, candidate_of
from tinykernel.kinds.problem import Problem
from tinykernel.model import IntegerModel
from tinykernel.model.stages.scale import Scale
from tinykernel.training.choice import Candidate, joined
from tinykernel.training.folds import Fold, trial_folds
from tinykernel.training.inputs import choose_scaler
from tinykernel.training.loop import run_epochs
from tinykernel.training.options import LINEAR_BITS
from tinykernel.training.readouts.blend import blend_ahead, blended
from tinykernel.training.readouts.linear import LinearLearner
from tinykernel.training.readouts.linear_training import (
    fit_linear,
    linear_of_table,
    may_blend,
    ridge_levels,
    table_recipe,
)
from tinykernel.training.readouts.normal_equations import decided
from tinykernel.training.result import TrainingResult

# Ridge regression with more inputs takes long.
_MOST_INPUTS = 1024
# Folds of a short training, and its share of the epochs.
_TRIAL_FOLDS, _TRIAL_SHARE = 2, 0.25


@dataclass(frozen=True)
class LinearSpec(Spec):
    """The bits of a linear part, and how it is learned."""

    bits: int = 8  # {2, 4, 8}
    #: "gradient": as it is stored, by gradients; "ridge": rounded ridge regression of values.
    solver: str = "gradient"
    #: One scaler for each input, or "global" for all, which takes no table.
    scaler_scope: str = "auto"

    def __str__(self) -> str:
        """Describe it in words."""
        scope = "" if self.scaler_scope == "auto" else ", one scale"
        solver = "" if self.solver == "gradient" else ", ridge regression"
        return f"linear part of {self.bits} bits{solver}{scope}"


class LinearKind(Kind[LinearSpec]):
    """A linear part alone."""

    name: ClassVar[str] = "linear"
    cost: ClassVar[int] = 0

    def applies(self, problem: Problem) -> str:
        """Refuse inputs that are no rows of tables, and options that exclude it."""
        if problem.shape is not None:
            return "a linear part alone is for tables"
        is_named = problem.options.model == self.name
        if not is_named and problem.options.linear == "off":
            return "linear is off"
        return "" if is_named or problem.options.sigma is None else "sigma is for components"

    def specs(self, problem: Problem) -> list[LinearSpec]:
        """Return the two widest that fit; `smaller` leads to others."""
        linear = problem.options.linear
        widths = LINEAR_BITS[::-1] if linear == "auto" else (int(linear),)
        if problem.limits is None or problem.is_quick:
            return [LinearSpec(widths[0])]
        solvers = ["gradient"]
        if problem.of_values and not any(problem.data.losses):
            solvers += ["ridge"] * (problem.data.X.shape[1] <= _MOST_INPUTS)
        return [LinearSpec(bits, solver) for bits in widths[:2] for solver in solvers]

    def skeleton(self, spec: LinearSpec, problem: Problem) -> IntegerModel:
        """Return a linear part with random weights."""
        scaler, inputs = _inputs(problem, spec.scaler_scope)
        data = problem.data
        # The largest possible dot products do not depend on the rows.
        rows = slice(min(len(inputs), 256))
        recipe = table_recipe(data, problem.options, spec.bits)
        learner = LinearLearner(inputs[rows], data.targets()[rows], data.weight[rows], recipe)
        return linear_of_table(data, scaler, learner.stored(), spec.bits)

    def smaller(
        self, spec: LinearSpec, n_bytes: int, model: IntegerModel, problem: Problem
    ) -> LinearSpec | None:
        """Return narrower weights, and then one scale for all inputs."""
        narrower = [bits for bits in LINEAR_BITS if bits < spec.bits]
        if problem.options.linear == "auto" and narrower:
            return replace(spec, bits=narrower[-1])
        return replace(spec, scaler_scope="global") if spec.scaler_scope == "auto" else None

    def contenders(self, sized: Sequence[LinearSpec], problem: Problem) -> Sequence[LinearSpec]:
        """Leave out one scale for all inputs where a scale for each of them fits."""
        separate = [spec for spec in sized if spec.scaler_scope == "auto"]
        return separate or sized

    def tune(self, specs: Sequence[LinearSpec], problem: Problem) -> Iterator[list[RaceTrial]]:
        """Compare widths and solvers."""
        folds = problem.folds[-_TRIAL_FOLDS:]
        trials = []
        for spec in specs:
            judged = joined([self.judge(spec, problem, fold, _TRIAL_SHARE) for fold in folds])
            weight = problem.data.weight[np.concatenate([fold.outside for fold in folds])]
            loss = float(np.average(judged.losses, weights=weight))
            trials.append(RaceTrial(spec, loss, judged.score))
        yield [min(trials, key=lambda trial: trial.loss)]

    def judge(self, spec: LinearSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        """Train inside a fold."""
        inputs = _inputs(problem, spec.scaler_scope)[1]
        data, inside = problem.data, fold.inside
        rows = inputs[inside], data.targets()[inside], data.weight[inside]
        others, recipe = inputs[fold.outside], table_recipe(data, problem.options, spec.bits)
        decisions: NDArray[np.float32]
        if spec.solver == "ridge":
            groups = None if data.groups is None else data.groups[inside]
            folds = trial_folds(data.codes[inside], groups, recipe.seed)
            decisions = decided(ridge_levels(*rows, folds, spec.bits), others)
        else:
            recipe = replace(recipe, n_threads=1, epochs=max(1, round(share * recipe.epochs)))
            learner = LinearLearner(*rows, recipe)
            run_epochs(learner, recipe.epochs, stage=None)
            is_blended = problem.once(_blend, spec.bits, spec.scaler_scope)
            decisions = decided(blended(learner), others) if is_blended else learner.decide(others)
        return candidate_of(spec, decisions, problem, fold)

    def fit(self, spec: LinearSpec, problem: Problem) -> TrainingResult:
        """Train a linear part."""
        blend = problem.once(_blend, spec.bits, spec.scaler_scope)
        settings: dict[str, Any] = {"scope": spec.scaler_scope, "ridge": spec.solver == "ridge"}
        return fit_linear(problem.data, problem.options, spec.bits, blend, **settings)


def _inputs(problem: Problem, scope: str) -> tuple[Scale, NDArray[Any]]:
    """Return the scaler, and the quantized inputs of all rows."""
    return problem.once(_quantized, scope)


def _quantized(problem: Problem, scope: str) -> tuple[Scale, NDArray[Any]]:
    data = problem.data
    scaler = choose_scaler(data.X, data.raw_dtype, problem.options.width(), scope)
    return scaler, scaler.quantize(data.X)


def _blend(problem: Problem, bits: int, scope: str) -> bool | None:
    """Whether weights are blended; None without groups: it is decided for the chosen model."""
    data, options = problem.data, problem.options
    if data.groups is None or not may_blend(data, options):
        return None
    learner = LinearLearner(
        _inputs(problem, scope)[1], data.targets(), data.weight, table_recipe(data, options, bits)
    )
    return blend_ahead(learner, data.groups)
