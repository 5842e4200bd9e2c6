"""Training of a linear part: rows, epochs and the model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel.checks import thread_count
from tinykernel.errors import DataError, RangeError, TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.stage import Stage
from tinykernel.model.stages.scale import Scale
from tinykernel.training.folds import Fold, hold_out, trial_folds
from tinykernel.training.inputs import choose_scaler
from tinykernel.training.loop import History, run_epochs
from tinykernel.training.loss import row_losses, share_right
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.blend import BlendRecipe, blended
from tinykernel.training.readouts.linear import (
    LinearLearner,
    LinearRecipe,
    linear_dropout,
    linear_model,
)
from tinykernel.training.readouts.normal_equations import Levels, decided, fit_levels
from tinykernel.training.result import TrainingResult
from tinykernel.training.trainset import TrainSet

_Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows, and validation rows where there are any."""

    rows: NDArray[Any]
    targets: _Floats
    weight: _Floats
    validation: tuple[NDArray[Any], NDArray[Any], _Floats] | None  # rows, truth, weights.
    groups: NDArray[np.int64] | None = None  # (n,), of the training rows.

    def map_rows(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> "TrainingRows":
        """Apply a function to all rows."""
        validation = self.validation and (function(self.validation[0]), *self.validation[1:])
        return replace(self, rows=function(self.rows), validation=validation)


def split_rows(data: TrainSet, options: TrainerOptions, seed: int) -> TrainingRows:
    """Return rows, targets and weights; validation rows are split off, their copies dropped."""
    weight, targets = data.weight, data.targets()
    if options.validation_fraction:
        out = hold_out(data.codes, data.groups, options.validation_fraction, seed)
        judging = out.copy()
        judging[len(out) - data.n_varied :] = False
        validation = (data.X[judging], data.truth[judging], weight[judging])
        groups = None if data.groups is None else data.groups[~out]
        groups = None if groups is None or np.unique(groups).size < 2 else groups
        return TrainingRows(data.X[~out], targets[~out], weight[~out], validation, groups)
    if data.validation is None:
        return TrainingRows(data.X, targets, weight, None, data.groups)
    rows, truth = data.validation
    validation = rows, truth, data.validation_weight(weight)
    return TrainingRows(data.X, targets, weight, validation, data.groups)


def run_training(learner: LinearLearner, rows: TrainingRows) -> History:
    """Run the epochs; validation rows are those of the learner."""

    def score() -> float:
        assert rows.validation is not None
        decisions = learner.decide(learner.features(rows.validation[0]))
        return share_right(decisions, *rows.validation[1:], learner.recipe.losses)

    return run_epochs(learner, learner.recipe.epochs, None if rows.validation is None else score)


def linear_recipe(
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


def check_channels(scaler: Scale) -> None:
    """Refuse a channel that never varies."""
    if np.any(scaler.multiplier == 0):
        channel = int(np.argmax(scaler.multiplier == 0))
        raise DataError(f"X: channel {channel} never varies (the first is 0); leave it out")


def chained_model(
    chain: tuple[Stage, ...],
    taken: Grid,
    meaning: Any,
    stored: tuple[NDArray[np.int8], float, NDArray[np.float64]],
) -> IntegerModel:
    """Make the model of a linear part on bytes, which are 128 less than in training."""
    weights, worth, offset = stored
    moved = offset + 128 * worth * weights.astype(np.int64).sum(axis=1)
    return linear_model(chain, taken, meaning, weights, worth, moved)


def table_recipe(data: TrainSet, options: TrainerOptions, bits: int) -> LinearRecipe:
    """Return the recipe of a linear part on the inputs of a table."""
    recipe = linear_recipe(options, len(data.X), bits, 25, data.losses)
    return replace(recipe, dropout=linear_dropout(data.X.shape[1]))


def ridge_levels(
    inputs: NDArray[Any], targets: _Floats, weight: _Floats, folds: Sequence[Fold], bits: int
) -> Levels:
    """Return rounded weights of ridge regression, whose penalty held-out rows choose."""
    return fit_levels(inputs.astype(np.int16, copy=False), targets, weight, folds, bits).stored


def linear_of_table(data: TrainSet, scaler: Scale, stored: Levels, bits: int) -> IntegerModel:
    """Return the model of a linear part on the inputs of a table."""
    try:
        taken = Grid.table(data.raw_dtype, data.X.shape[1])
        return linear_model((scaler,), taken, data.meaning, *stored)
    except TinykernelError as error:
        raise RangeError(
            f"linear: the sums of {data.X.shape[1]} inputs of {scaler.bits} bits and weights of "
            f"{bits} bits may pass 32 bits; give linear=4 or 2"
        ) from error


def fit_linear(
    data: TrainSet,
    options: TrainerOptions,
    bits: int,
    solver: str = "gradient",
    *,
    scope: str = "auto",
) -> TrainingResult:
    """Train a linear part on the quantized inputs of a table.

    Its solver is "gradient"; "blend", which blends that with discriminants; or "ridge" for values
    with squared errors.
    """
    recipe = table_recipe(data, options, bits)
    rows = split_rows(data, options, recipe.seed)
    scaler = choose_scaler(rows.rows, data.raw_dtype, options.width(), scope)
    rows = rows.map_rows(scaler.quantize)
    if solver == "ridge":
        is_whole = len(rows.rows) == len(data.X)
        folds = trial_folds(data.codes, data.groups, recipe.seed) if is_whole else []
        stored = ridge_levels(rows.rows, rows.targets, rows.weight, folds, bits)
        judged = decided(stored, rows.rows), rows.targets, rows.weight
        loss = float(row_losses(*judged, data.losses).mean())
        model = linear_of_table(data, scaler, stored, bits)
        return TrainingResult(model, replace(recipe, epochs=1), History([{"loss": loss}]))
    learner = LinearLearner(rows.rows, rows.targets, rows.weight, recipe)
    history = run_training(learner, rows)
    stored = learner.stored()
    if solver == "blend" and not history.interrupted:
        try:
            stored, recipe = blended(learner), BlendRecipe(**vars(recipe))
        except KeyboardInterrupt:
            history = replace(history, interrupted=True)
    return TrainingResult(linear_of_table(data, scaler, stored, bits), recipe, history)
