"""The trainer: phase windows, diagonals and weights learned together, as they are stored.

The model is that of Lei & Lan 2021, (3)-(6). G, S, b, t and W are learned as far as the layout
stores them; B and P are the best of a few draws by short trainings::

    u = P H B x'                                        once for all blocks
    y = H (G_b * u)                                     one block of d projections
    z = sign(cos(S y + b) + t)                          one bit a row
    f = (a / sqrt(p)) W z + offset                      W in {-1, 1} or {-1, 0, 1}

The loss is in `loss`. Both steps without a derivative have straight-through gradients: the sign
``g(s) = k / (1 + (k s)^2 / 2)^2`` (`component_passes`), W that of its float shadow. Gaussian noise
on u regularises; Adam follows one cycle (`learner`). The inputs are the integers of the firmware
from the start (`inputs`); in the last part of the training the forward pass uses the integers of G,
S, start and width, too (`windows`), so that they are learned as they are exported.

A `Layout` defines the size of a component. Sigma and noise are chosen on held-out rows
(`components.trials`); the final training uses all rows.
"""

import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base import progress
from tinykernel.learn.choice import hold_out, trial_folds
from tinykernel.learn.components.learner import Learner, MixedRows, TrialData, Validation
from tinykernel.learn.components.passes import Arithmetic
from tinykernel.learn.inputs import SharedTransform, choose_scaling, draw_transform, layout_of
from tinykernel.learn.loop import Recipe, Replan, TrainingResult
from tinykernel.learn.loss import Truth
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.smooth import Smooth, smooth_rows
from tinykernel.learn.trainset import TrainSet
from tinykernel.model.fixed import Stored, Sums, kernel_model, quantize_windows
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.proof import choose_schedules

RecipeT = TypeVar("RecipeT", bound=Recipe)
#: Draws of B and P that short trainings compare.
N_DRAWS = 4


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows as components learn them."""

    data: TrainSet  # rows to learn: those known, or those of a smooth fit.
    source: TrainSet
    smooth: Smooth | None
    usual: Recipe  # with the seed, and the epochs and noise of the rows to learn.
    transform: SharedTransform
    rows: TrialData

    @staticmethod
    def of(source: TrainSet, options: TrainerOptions, recipe: Recipe) -> "Prepared":
        """Transform the rows, or those of a smooth fit."""
        data, usual, smooth = smooth_rows(source, options, recipe)
        transform = _transform(data, options, recipe.seed)
        folds = trial_folds(data.codes, data.groups, recipe.seed)
        rows = TrialData(_mixed_rows(data, transform), folds, len(data.X))
        return Prepared(data, source, smooth, usual, transform, rows)

    def adapt(self, recipe: RecipeT) -> RecipeT:
        """Return a recipe for the rows of a smooth fit, which come without noise."""
        if self.smooth is None:
            return recipe
        return replace(recipe, noise=self.usual.noise, epochs=self.usual.epochs)

    def relative_to_values(self, loss: float, score: float) -> tuple[float, float]:
        """Turn loss and R2 relative to the smooth fit into those relative to the values."""
        if self.smooth is None:
            return loss, score
        folds = trial_folds(self.source.codes, self.source.groups, self.usual.seed)
        lost, explained = self.smooth.judge(self.source, folds)
        return lost + loss, 1 - (1 - explained) * (lost + loss) / max(lost, 1e-30)

    def draw(self, draw: int | None) -> SharedTransform:
        """Return the scaler with a draw of B and P; the first one is that of `rows`."""
        if not draw:
            return self.transform
        parts = self.transform.scaling, self.transform.scaler.bits, self.data.raw_dtype
        return draw_transform(*parts, np.random.default_rng([self.usual.seed, 8, draw]))

    def best_draw(self, recipe: Recipe) -> int | None:
        """Return the draw of B and P with the least loss on held-out rows, by short trainings.

        All learn from the same rows, and are judged on the same others. Ctrl-C ends the trials.
        None says that none were compared.
        """
        if not self.rows.folds:
            return None
        fold, losses = self.rows.folds[-1], []
        rows, raw = self.rows.of(fold), self.data.X[np.concatenate([fold.inside, fold.outside])]
        # An event of its own: Ctrl-C may have set that of the search.
        planned, cancelled = rows.plan(recipe), threading.Event()
        with suppress(KeyboardInterrupt):
            for draw in progress.steps("choosing B and P", range(N_DRAWS)):
                mixed = replace(rows.whole, mixed=self.draw(draw).mix(raw))
                trial = replace(rows, whole=mixed)
                losses.append(trial.judge(rows.folds[0], planned, cancelled)[0])
        return int(np.argmin(losses)) if len(losses) > 1 else None

    def train(
        self,
        recipe: Recipe,
        validation_fraction: float | None,
        replan: Replan | None = None,
        *,
        small_code: bool,
    ) -> TrainingResult:
        """Train on all rows except those that choose the best epoch."""
        data, transform, rows = self.data, self.draw(recipe.draw), self.rows.whole
        # In place, as there may be gigabytes of them; a training before has subtracted its mean.
        transform.mix(data.X, out=rows.mixed)
        validation = None
        if data.validation is not None:
            raw, truth = data.validation
            judged = Truth(truth, data.validation_weight(rows.weight), recipe.losses)
            validation = Validation(transform.mix(raw), transform.scaler.quantize(raw), judged)
        if validation_fraction:
            out = hold_out(data.codes, data.groups, validation_fraction, recipe.seed)
            judged = Truth(rows.truth[out], rows.weight[out], recipe.losses)
            validation = Validation(rows.mixed[out], rows.inputs[out], judged)
            rows = rows.of(~out)
        learner = _learner(rows, recipe, transform)
        history = learner.run(validation, replan)
        model = stored_model(learner, transform, data, small_code=small_code)
        return TrainingResult(model, recipe, history, learner.sigma)


def draw_machine(
    data: TrainSet, options: TrainerOptions, recipe: Recipe, *, small_code: bool
) -> IntegerModel:
    """Return a model of random components for a few rows, as large as a trained one."""
    transform = _transform(data, options, recipe.seed)
    learner = _learner(_mixed_rows(data, transform), recipe, transform)
    learner.prove()
    learner.quantized = True
    model = stored_model(learner, transform, data, small_code=small_code)
    components = model.find(Components)
    assert components is not None
    # Training gives each block a scale of its own, which takes a table.
    factor = np.random.default_rng(0).uniform(0.7, 1.0, components.n_blocks)
    blocks = np.nonzero(components.row_kept)[0]
    scale = np.maximum(np.rint(components.scale * factor[blocks]), 1).astype(np.uint8)
    other = replace(components, scale=scale)
    stages = (other if stage is components else stage for stage in model.stages)
    return replace(model, stages=tuple(stages))


def _transform(data: TrainSet, options: TrainerOptions, seed: int) -> SharedTransform:
    bits, scaler = choose_scaling(data.X, data.raw_dtype, options.width(), "auto")
    return draw_transform(scaler, bits, data.raw_dtype, np.random.default_rng([seed, 0]))


def _mixed_rows(data: TrainSet, transform: SharedTransform) -> MixedRows:
    learned = data.targets(), data.weight, data.truth
    return MixedRows(transform.mix(data.X), *learned, transform.scaler.quantize(data.X))


def _learner(rows: MixedRows, recipe: Recipe, transform: SharedTransform) -> Learner:
    """Create the learner, which subtracts the mean from the mixed rows in place."""

    def arithmetic(levels: NDArray[np.int8]) -> Arithmetic:
        parts = transform.live_sign, transform.scaler.bits, transform.permutation, levels
        halve = choose_schedules(*parts, layout_of(recipe.layout).diagonal_kind)[1]
        return Arithmetic(transform.unit, halve)

    return Learner(rows, recipe, arithmetic)


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
