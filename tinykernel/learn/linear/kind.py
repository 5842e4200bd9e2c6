"""A linear part alone, on the inputs of a table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import LINEAR_BITS
from tinykernel.base.errors import RangeError
from tinykernel.kinds.kind import Kind, Problem, Rounds, Spec, best_trial, candidate_of
from tinykernel.kinds.pace import Pace
from tinykernel.learn.choice import Candidate, Fold, trial_folds
from tinykernel.learn.inputs import choose_scaler
from tinykernel.learn.linear import training
from tinykernel.learn.linear.normal_equations import RoundedWeights, decide, fit_levels
from tinykernel.learn.linear.options import LINEAR
from tinykernel.learn.loop import History, TrainingResult, run_epochs, seed_of
from tinykernel.learn.loss import Truth
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.scale.spec import Scale

# Normal equations of more inputs or rows take long.
_MOST_INPUTS, _MOST_ROWS = 1024, 1 << 20
# Folds of a short training, and its share of the epochs.
_TRIAL_FOLDS, _TRIAL_SHARE = 2, 0.25
_EPOCHS = 25  # for 60,000 rows.
_ROWS_OF_A_SKELETON = 256
_IN_WORDS = {"gradient": "", "blend": ", blended with discriminants", "ridge": ", ridge regression"}


@dataclass(frozen=True)
class LinearSpec(Spec):
    """The bits of a linear part, and how it is learned."""

    bits: int = 8  # {2, 4, 8}
    #: "gradient": as it is stored, by gradients; "blend": that, blended with discriminants;
    #: "ridge": rounded ridge regression of values.
    solver: str = "gradient"
    #: One scaler for each input, or "global" for all, which takes no table.
    scaler_scope: str = "auto"

    def __str__(self) -> str:
        """Describe it in words."""
        scope = "" if self.scaler_scope == "auto" else ", one scale"
        return f"linear part of {self.bits} bits{_IN_WORDS[self.solver]}{scope}"


class LinearKind(Kind[LinearSpec]):
    """A linear part alone."""

    about = LINEAR
    cost: ClassVar[int] = 0
    # What is no finalist has no long trainings of blends.
    behind: ClassVar[tuple[float, ...]] = (1.5, 1.5)
    behind_peers: ClassVar[float] = 1.2

    def applies(self, problem: Problem) -> str:
        """Refuse options that exclude it."""
        if refused := super().applies(problem):
            return refused
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
        scaler, rows = problem.once(_rows, spec.scaler_scope)
        # The largest possible dot products do not depend on the rows.
        few = rows.of(np.arange(min(len(rows.inputs), _ROWS_OF_A_SKELETON)))
        learner = training.LinearLearner(few, _recipe(spec.bits, problem))
        return _model(spec, problem, scaler, learner.stored())

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

    def tune(self, specs: Sequence[LinearSpec], problem: Problem, pace: Pace) -> Rounds:
        """Compare widths and solvers by short trainings; then each with its blend, by whole ones.

        A short training overrates a blend, which has to be ahead by one standard error. So have
        narrower weights: where both fit, folds hardly tell them apart, and rounding only loses.
        """
        folds = problem.folds[-_TRIAL_FOLDS:]
        judged = _wider_first(self.judge_all(specs, problem, folds, _TRIAL_SHARE), specs)
        yield [best_trial(specs, judged, problem, folds)]
        alone = [spec for spec in specs if _may_blend(spec, problem)]
        blends = [replace(spec, solver="blend") for spec in alone]
        judged = self.judge_all(alone, problem, folds, 1.0)
        winners = list(alone)
        for place, other in enumerate(self.judge_all(blends, problem, folds, 1.0)):
            if problem.choose([judged[place], replace(other, cost=1)], folds).chosen:
                winners[place], judged[place] = blends[place], other
        if winners:
            judged = _wider_first(judged, winners)
            yield [best_trial(winners, judged, problem, folds)]

    def judge(self, spec: LinearSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        _, rows = problem.once(_rows, spec.scaler_scope)
        others = rows.inputs[fold.outside]
        if spec.solver == "ridge":
            codes = problem.data.codes[fold.inside]
            decisions = decide(_ridge(spec, problem, rows.of(fold.inside), codes), others)
        else:
            learner = problem.once(_learn, spec.bits, spec.scaler_scope, fold, share)
            is_blend = spec.solver == "blend"
            decisions = (
                decide(training.blend(learner), others) if is_blend else learner.decide(others)
            )
        return candidate_of(spec, decisions, problem, fold)

    def fit(self, spec: LinearSpec, problem: Problem, pace: Pace) -> TrainingResult:
        data, options, recipe = problem.data, problem.options, _recipe(spec.bits, problem)
        rows = training.split_rows(data, options)
        scaler = choose_scaler(rows.inputs, data.raw_dtype, options.width(), spec.scaler_scope)
        rows = rows.map_rows(scaler.quantize)
        if spec.solver == "ridge":
            is_whole = len(rows.inputs) == len(data.X)
            stored = _ridge(spec, problem, rows, data.codes if is_whole else None)
            truth = Truth(rows.targets, rows.weight, data.losses)
            loss = truth.row_losses(decide(stored, rows.inputs)).mean()
            history = History([{"loss": float(loss)}])
            recipe = replace(recipe, epochs=1)
        else:
            learner = training.LinearLearner(rows, recipe)
            history, stored = training.run_training(learner, rows), learner.stored()
            if spec.solver == "blend" and not history.interrupted:
                try:
                    stored, recipe = training.blend(learner), training.BlendRecipe(**vars(recipe))
                except KeyboardInterrupt:
                    history = replace(history, interrupted=True)
        return TrainingResult(_model(spec, problem, scaler, stored), recipe, history)


KINDS = (LinearKind(),)


def _wider_first(judged: Sequence[Candidate], specs: Sequence[LinearSpec]) -> list[Candidate]:
    """Return trials whose cost is the bits that they lack."""
    return [
        replace(each, cost=max(LINEAR_BITS) - spec.bits)
        for each, spec in zip(judged, specs, strict=True)
    ]


def _recipe(bits: int, problem: Problem) -> training.LinearRecipe:
    """Return how a linear part on the inputs of a table is learned."""
    n, n_inputs = problem.data.X.shape
    recipe = training.linear_recipe(problem.options, n, bits, _EPOCHS, problem.data.losses)
    return replace(recipe, dropout=training.linear_dropout(n_inputs))


def _ridge(
    spec: LinearSpec, problem: Problem, rows: training.TrainingRows, codes: NDArray[np.int64] | None
) -> RoundedWeights:
    """Return rounded weights of ridge regression; with codes, held-out rows choose the penalty."""
    seed = seed_of(problem.options)
    folds = [] if codes is None else trial_folds(codes, rows.groups, seed)
    inputs = rows.inputs.astype(np.int16, copy=False)
    return fit_levels(inputs, rows.targets, rows.weight, folds, spec.bits).stored


def _model(
    spec: LinearSpec, problem: Problem, scaler: Scale, stored: RoundedWeights
) -> IntegerModel:
    """Return the model of a linear part on the inputs of a table."""
    data, n = problem.data, problem.data.X.shape[1]
    try:
        return training.linear_model(
            (scaler,), Grid.table(data.raw_dtype, n), data.meaning, *stored
        )
    except RangeError as error:
        raise RangeError(
            f"linear: the sums of {n} inputs of {scaler.bits} bits and weights of {spec.bits} bits "
            "may pass 32 bits; give {linear}, or 2",
            linear=4,
        ) from error


def _learn(
    problem: Problem, bits: int, scope: str, fold: Fold, share: float
) -> training.LinearLearner:
    """Train inside a fold by gradients."""
    (_, rows), recipe = problem.once(_rows, scope), _recipe(bits, problem)
    recipe = replace(recipe, n_threads=1, epochs=max(1, round(share * recipe.epochs)))
    learner = training.LinearLearner(rows.of(fold.inside), recipe)
    run_epochs(learner, recipe.epochs, stage=None)
    return learner


def _rows(problem: Problem, scope: str) -> tuple[Scale, training.TrainingRows]:
    """Return the scaler, and all rows with quantized inputs."""
    data = problem.data
    scaler = choose_scaler(data.X, data.raw_dtype, problem.options.width(), scope)
    rows = training.TrainingRows(data.X, data.targets(), data.weight, groups=data.groups)
    return scaler, rows.map_rows(scaler.quantize)


def _may_blend(spec: LinearSpec, problem: Problem) -> bool:
    """Whether a blend may be ahead: of classes, where rounding does not lose more than it gains."""
    n, n_inputs = problem.data.X.shape
    is_small = n_inputs <= _MOST_INPUTS and n <= _MOST_ROWS
    return not problem.of_values and spec.bits >= training.FEWEST_BITS and is_small
