"""Permutation importance of inputs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.coding.frames import in_numbers
from tinykernel.decisions.shares import is_positive
from tinykernel.errors import TinykernelError
from tinykernel.evaluation.baselines import equal_classes
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.answers.values import Values
from tinykernel.model.stages.beside import as_rows, as_windows

_MOST_ROWS = 2_000
_REPEATS = 5
_WORK = 1_000_000  # most predicted rows, over all inputs and repeats
#: Largest total loss of spare inputs, in accuracy and as a fraction of the RMSE.
_LITTLE = {"accuracy": 0.005, "rmse": 0.01}


@dataclass(frozen=True)
class InputImportance:
    """The importance of an input."""

    name: str
    loss: float  # of accuracy, or gain of RMSE, with values of other rows.
    matters: bool  # whether the loss is significant, by a one-sided t test at the level of 5 %.


@dataclass(frozen=True)
class Importance:
    """The importance of the inputs of a model."""

    by: str  # {"accuracy", "balanced_accuracy", "rmse"}: the measure of the loss.
    rows: int  # number of rows used.
    inputs: tuple[InputImportance, ...]  # the most important first.
    spare: tuple[str, ...]  # inputs that can be left out at a small loss.
    spare_loss: float  # their total loss.

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types."""
        return asdict(self)


def input_importance(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    class_weight: str | None = None,
) -> Importance:
    """Rank inputs by permutation (Breiman 2001, "Random forests", section 10).

    The values of an input are shuffled among at most 2,000 of the rows X (n, n_inputs) or
    (n, samples, channels), up to five times, and the model predicts again. An input is a column, or
    a channel with all its samples; numbers beside a window come last. If two inputs are redundant,
    neither matters alone; so spare inputs are shuffled together. `groups` are used by the test of
    significance; with `class_weight="balanced"` all classes count the same. Images are refused.
    """
    integer, true = as_integer_model(model), np.asarray(y)
    if integer.input.columns > 1:
        raise TinykernelError("inputs: no pixel matters alone; give a model of tables or signals")
    rows = as_windows(integer.as_raw(in_numbers(model, X)), integer.input)
    if len(rows) != len(true) or len(true) < 2:
        raise TinykernelError(f"inputs: {len(true)} labels for {len(rows)} rows; give two or more")
    rng = np.random.default_rng(0)
    drawn = np.sort(rng.permutation(len(true))[:_MOST_ROWS])
    rows, true = rows[drawn], true[drawn]
    group = None if groups is None else np.asarray(groups)[drawn]
    trial = _ShuffledRows(integer, rows, true, class_weight == "balanced")
    n_inputs = rows.shape[-1]
    repeats = int(np.clip(_WORK // (n_inputs * len(true)), 1, _REPEATS))
    orders = [rng.permutation(len(true)) for _ in range(repeats)]
    losses = [trial.losses([at], orders) for at in range(n_inputs)]
    numbers = tuple(map(str, range(n_inputs)))
    names = numbers if integer.input.rows > 1 else integer.feature_names or numbers
    worth = np.array([trial.figure(loss) for loss in losses])
    matters = [is_positive(loss, group) for loss in losses]
    most_first = np.argsort(-worth, kind="stable")
    # Unused inputs come first; a gain is chance as well.
    ends = [int(at) for at in np.argsort(np.abs(worth), kind="stable") if not matters[at]]
    spare, spare_loss = _spare(trial, ends, rng, group)
    return Importance(
        trial.by,
        len(true),
        tuple(InputImportance(names[at], float(worth[at]), matters[at]) for at in most_first),
        tuple(names[at] for at in sorted(spare)),
        spare_loss,
    )


class _ShuffledRows:
    """Rows that are predicted with shuffled inputs."""

    def __init__(
        self, model: IntegerModel, rows: NDArray[Any], y: NDArray[Any], balanced: bool
    ) -> None:
        self.model, self.rows, self.true = model, rows, y
        self.is_values = isinstance(model.answers, Values)
        self.by = "balanced_accuracy" if balanced else "accuracy"
        if self.is_values:
            self.by, self.true = "rmse", y.astype(np.float64)
        self.weight = equal_classes(y) if balanced else np.ones(len(y))
        self.errors = self._errors(rows)

    def _errors(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return squared errors, or which labels are wrong."""
        answers = np.asarray(self.model.predict(as_rows(rows, self.model.n_numbers)))
        if not self.is_values:
            return np.asarray(self.weight * (answers != self.true))
        outputs = answers.reshape(len(rows), -1)
        return np.asarray(np.square(outputs[:, outputs.shape[1] // 2] - self.true))

    def losses(self, inputs: list[int], orders: list[NDArray[np.intp]]) -> NDArray[np.float64]:
        """Return the mean increase of the error of each row, over the orders."""
        rows, more = self.rows.copy(), np.zeros(len(self.rows))
        for order in orders:
            for at in inputs:
                rows[..., at] = self.rows[..., at][order]
                order = np.roll(order, 1)  # else the inputs of a row stay together
            more += self._errors(rows) - self.errors
        return more / len(orders)

    def figure(self, losses: NDArray[np.float64]) -> float:
        """Return the loss in accuracy, or the gain in RMSE."""
        if not self.is_values:
            return float(losses.mean())
        before = float(self.errors.mean())
        return float(np.sqrt(max(0.0, before + losses.mean())) - np.sqrt(before))


def _spare(
    trial: _ShuffledRows, inputs: list[int], rng: np.random.Generator, groups: NDArray[Any] | None
) -> tuple[list[int], float]:
    """Return the least important inputs that together cost little, and their total loss."""
    most = _LITTLE["accuracy"]
    if trial.is_values:
        most = _LITTLE["rmse"] * float(np.sqrt(trial.errors.mean()))
    inputs = inputs[: trial.rows.shape[-1] - 1]
    orders = [rng.permutation(len(trial.rows)) for _ in range(_REPEATS)]
    while inputs:
        losses = trial.losses(inputs, orders)
        loss = trial.figure(losses)
        if loss <= most and not is_positive(losses, groups):
            return inputs, loss
        inputs = inputs[: len(inputs) * 3 // 4]
    return [], 0.0
