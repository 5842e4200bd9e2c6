"""A linear part beside trees: it is trained first, and trees are grown to its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.training.loop import run_epochs
from tinykernel.training.readouts.linear import (
    LinearLearner,
    LinearRecipe,
    linear_dropout,
    round_linear,
)

_Floats = NDArray[np.float64]
_BITS = 8
# Epochs for 60,000 rows; fewer rows take more.
_EPOCHS, _ROWS, _MOST_EPOCHS = 25, 60_000, 60


@dataclass(frozen=True, eq=False)
class Lines:
    """A linear part in integers: output o is ``offset_o + worth_o * (weights_o . q)``."""

    weights: NDArray[np.int8]  # (n_outputs, n_inputs)
    worth: _Floats  # (n_outputs,): powers of two in units of the scores.
    offset: _Floats  # (n_outputs,)

    @staticmethod
    def of(
        Q: NDArray[Any],
        targets: _Floats,
        weight: _Floats,
        losses: tuple[float, ...],
        scale: _Floats,
    ) -> Lines:
        """Train it on levels Q; `scale` is the unit of each output in the scores."""
        epochs = min(_MOST_EPOCHS, round(_EPOCHS * max(1.0, np.sqrt(_ROWS / len(Q)))))
        recipe = LinearRecipe(
            _BITS, epochs, batch_rows=64, dropout=linear_dropout(Q.shape[1]), losses=losses
        )
        learner = LinearLearner(Q, targets.astype(np.float32), weight.astype(np.float32), recipe)
        run_epochs(learner, epochs, stage=None)
        levels, step = round_linear(learner.linear, _BITS)
        fine = float(learner.scale()) * float(learner.unit) * float(step)
        worth = 2.0 ** np.ceil(np.log2(fine * scale)) / scale
        weights = np.rint(levels.T.astype(np.float64) * (fine / worth)[:, np.newaxis])
        weights[:, learner.spread == 0] = 0
        shift = worth * np.einsum("oi,i->o", weights, learner.mean.astype(np.float64))
        return Lines(weights.astype(np.int8), worth, learner.offset.astype(np.float64) - shift)

    def outputs(self, Q: NDArray[Any]) -> _Floats:
        """Return its outputs for levels, shape (n, n_outputs)."""
        dots = Q.astype(np.int64) @ self.weights.T.astype(np.int64)
        return np.asarray(self.offset + self.worth * dots)
