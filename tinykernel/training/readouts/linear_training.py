"""Training of a linear part: rows, recipe, epochs, and the model behind stages."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.checks import thread_count
from tinykernel.errors import DataError
from tinykernel.model import Grid, IntegerModel
from tinykernel.model.stage import Stage
from tinykernel.model.stages.scale import Scale
from tinykernel.training.folds import hold_out
from tinykernel.training.loop import History, Replan, run_epochs
from tinykernel.training.loss import Truth
from tinykernel.training.options import TrainerOptions
from tinykernel.training.options.recipe import seed_of
from tinykernel.training.readouts.linear import (
    LinearLearner,
    LinearRecipe,
    TrainingRows,
    linear_model,
)
from tinykernel.training.readouts.normal_equations import Levels
from tinykernel.training.trainset import TrainSet

_Floats = NDArray[np.float32]


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
    chain: tuple[Stage, ...], grid: Grid, meaning: Any, stored: Levels
) -> IntegerModel:
    """Make the model of a linear part on bytes, which are 128 less than in training."""
    weights, worth, offset = stored
    moved = offset + 128 * worth * weights.astype(np.int64).sum(axis=1)
    return linear_model(chain, grid, meaning, weights, worth, moved)
