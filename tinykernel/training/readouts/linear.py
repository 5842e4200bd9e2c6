"""The linear part, learned as it is stored: levels of 2, 4 or 8 bits from the first step on.

With q the integers that the machine sees (counts of a local stage, or quantized inputs)::

    f = scale * sum over i of V_oi (q_i - mean_i) * unit + offset_o,      V = step_o * level

The levels are rounded from a float shadow, whose gradient is that of V. The loss is that of the
components (`loss`), and Adam follows one cycle. The mean goes into the offsets of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.compiled import njit
from tinykernel.hadamard import LANES, run_on_rows
from tinykernel.model.answers.labels import Labels
from tinykernel.model.answers.values import Values
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.quantization.units import ValueUnits, to_fixed_point
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.readouts.readout import Readout
from tinykernel.model.stage import Stage
from tinykernel.training.components.steps import adam
from tinykernel.training.loop import batches, one_cycle
from tinykernel.training.loss import prior
from tinykernel.training.readouts.linear_passes import (
    LinearBatch,
    LinearGradients,
    gather_inputs,
    learn_group,
)

# Gradients of a batch are added up in this number of parts, whatever the number of threads.
SLOTS = 4
# Step of the levels over the root mean square of the weights: least squares for a normal law.
_STEPS = {2: 1.22, 4: 0.36}
_LARGEST_OFFSET = 2**30
_ROWS_AT_ONCE = 8192

_Floats = NDArray[np.float32]


@dataclass(frozen=True)
class LinearRecipe:
    """How a linear part is trained.

    Parameters
    ----------
    bits : {2, 4, 8}
    epochs : int
    batch_rows : int
        A multiple of 32.
    peak_step : float
        Largest step of Adam, for the weights.
    dropout : float
        Share of inputs set to their mean, at random for each row.
    decay : float
        L2: added to the gradient of the shadow in this share.
    warm_up : float
        Share of the steps.
    seed : int
    n_threads : int
        Changes nothing but the time.
    losses : tuple of float
        As in `tinykernel.training.options.Recipe`.
    """

    bits: int = 4
    epochs: int = 30
    batch_rows: int = 128
    peak_step: float = 0.01
    dropout: float = 0.0
    decay: float = 0.0
    warm_up: float = 0.1
    seed: int = 0
    n_threads: int = 1
    losses: tuple[float, ...] = ()


def linear_dropout(n_inputs: int) -> float:
    """Return which share of quantized inputs to leave out: none of few.

    On dna (180 inputs, 2000 rows) 0.2 gives 3 points on rows held out, on HAR nothing.
    """
    return 0.2 if n_inputs >= 32 else 0.0


def round_linear(linear: _Floats, bits: int) -> tuple[_Floats, np.float32]:
    """Round weights (inputs, outputs) to levels; returns these and the step between them."""
    most = np.float32(2 ** (bits - 1) - 1)
    step = np.abs(linear).max() / most
    if bits in _STEPS:
        size = np.sqrt(np.square(linear).mean(dtype=np.float64))
        step = min(step, np.float32(_STEPS[bits] * size))
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


class LinearLearner:
    """A linear part and the steps that change it.

    Inputs (n, n_inputs) are q of the training rows; targets (n, n_outputs) and weights (n,), of
    mean 1, are float32.
    """

    names: tuple[str, ...] = ("linear", "offset", "gain")

    def __init__(
        self, inputs: NDArray[Any], targets: _Floats, weight: _Floats, recipe: LinearRecipe
    ) -> None:
        self.inputs, self.targets, self.weight, self.recipe = inputs, targets, weight, recipe
        self.rng = np.random.default_rng([recipe.seed, 5])
        self.n_outputs = targets.shape[1]
        self.measure(inputs)
        self.draw_linear()
        self.begin()

    def measure(self, inputs: NDArray[Any]) -> None:
        """Take mean and unit from some rows."""
        self.n_inputs = inputs.shape[1]
        self.mean, self.spread, self.unit = input_moments(inputs)

    def draw_linear(self) -> None:
        """Draw the first weights; inputs that never vary have none."""
        shape = (self.n_inputs, self.n_outputs)
        self.linear = np.float32(0.01) * self.rng.standard_normal(shape, dtype=np.float32)
        self.offset = prior(self.targets, self.weight, self.recipe.losses)
        self.gain = np.ones(1, dtype=np.float32)

    def begin(self) -> None:
        """Make room for gradients and moments."""
        values = [getattr(self, name) for name in self.names]
        self._moments = [np.zeros((2, v.size), dtype=np.float32) for v in values]
        self.gradients = [np.zeros((SLOTS, *v.shape), dtype=np.float32) for v in values]
        self.totals = np.zeros((SLOTS, 2))
        self._step = 0
        self.losses = np.array(self.recipe.losses, dtype=np.float32)

    # -- the loop -----------------------------------------------------------------------------

    def state(self) -> list[_Floats]:
        """Return copies of all learned parameters."""
        return [getattr(self, name).copy() for name in self.names]

    def restore(self, state: list[_Floats]) -> None:
        """Put back learned parameters."""
        for name, value in zip(self.names, state, strict=True):
            getattr(self, name)[...] = value

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return int(self.targets.shape[0])

    def epoch(self, number: int) -> float:
        """Go through all rows once; returns the mean loss."""
        recipe, total, n_batches = self.recipe, 0.0, 0
        dealt = batches(self.rng, self.n_rows, recipe.batch_rows, number, recipe.epochs)
        with ThreadPoolExecutor(max_workers=recipe.n_threads) as executor:
            # One thread would only be waited for: half the time of small batches.
            run = map if recipe.n_threads == 1 else executor.map
            for rows, done in dealt:
                self.accumulate(rows, run)
                self.update(one_cycle(done, recipe.warm_up), np.float32(1.0 / rows.size))
                total += float(self.totals[:, 0].sum() / rows.size)
                n_batches += 1
        return total / n_batches

    def scale(self) -> np.float32:
        """Return what sums are multiplied with."""
        return np.float32(8 * self.gain[0] / np.sqrt(self.n_inputs))

    def kept(self, n_rows: int) -> NDArray[np.uint32]:
        """Draw which inputs are left out: bit k of a word is for row k of a group."""
        if not self.recipe.dropout:
            return np.empty((0, 0), dtype=np.uint32)
        shape = (n_rows // LANES, self.n_inputs, LANES)
        bits = self.rng.random(shape, dtype=np.float32) >= self.recipe.dropout
        return np.packbits(bits, axis=2, bitorder="little").view("<u4")[:, :, 0]

    def accumulate(self, rows: NDArray[np.int64], run: Callable[..., Iterable[None]]) -> None:
        """Compute the gradients of some rows."""
        batch = self.batch(rows, self.kept(rows.size))

        def part(slot: int) -> None:
            learn_rows(slot, SLOTS, self.inputs, batch, self.room(slot))

        list(run(part, range(SLOTS)))

    def batch(self, rows: NDArray[np.int64], keep: NDArray[np.uint32]) -> LinearBatch:
        """Say what some rows are learned by."""
        levels, step = round_linear(self.linear, self.recipe.bits)
        known = rows, self.targets, self.weight, self.losses, levels * step
        seen = self.scale(), self.offset, self.mean, self.unit
        return LinearBatch(*known, *seen, keep, np.float32(1 / (1 - self.recipe.dropout)))

    def room(self, slot: int) -> LinearGradients:
        """Return where a slot adds up the gradients of the linear part."""
        return LinearGradients(self.gradients[0][slot], self.gradients[1][slot], self.totals[slot])

    def steps(self) -> dict[str, float]:
        """Return the largest step of each parameter."""
        step = self.recipe.peak_step
        return {"linear": step, "offset": step, "gain": 3 * step}

    def update(self, share: float, factor: np.float32) -> None:
        """Let Adam move every learned parameter."""
        place = self.names.index("gain")
        self.gradients[place][:, 0] = self.totals[:, 1] * float(self.scale() / self.gain[0])
        if self.recipe.decay:
            shadow = self.gradients[self.names.index("linear")]
            shadow[0] += np.float32(self.recipe.decay / factor) * self.linear
        self._step += 1
        first = np.float32(1 / (1 - 0.9**self._step))
        second = np.float32(1 / (1 - 0.999**self._step))
        steps = self.steps()
        for name, moments, g in zip(self.names, self._moments, self.gradients, strict=True):
            value = getattr(self, name).reshape(-1)
            adam(
                value,
                g.reshape(SLOTS, -1),
                moments[0],
                moments[1],
                np.float32(share * steps[name]),
                first,
                second,
                factor,
            )

    # -- the result ---------------------------------------------------------------------------

    def decide(self, inputs: NDArray[Any]) -> _Floats:
        """Compute the decision values (n, n_outputs)."""
        levels, step = round_linear(self.linear, self.recipe.bits)
        out = np.empty((inputs.shape[0], self.n_outputs), dtype=np.float32)
        run_on_rows(
            decide_linear,
            inputs.shape[0],
            self.recipe.n_threads,
            inputs,
            levels * step,
            self.scale(),
            self.offset,
            self.mean,
            self.unit,
            out,
        )
        return out

    def stored(self) -> tuple[NDArray[np.int8], float, NDArray[np.float64]]:
        """Return levels (outputs, inputs), the worth of one a unit of q, and the offsets."""
        levels, step = round_linear(self.linear, self.recipe.bits)
        levels[self.spread == 0] = 0
        worth = float(self.scale()) * float(self.unit) * float(step)
        shift = worth * np.einsum("io,i->o", levels.astype(np.float64), self.mean)
        return levels.T.astype(np.int8), worth, self.offset.astype(np.float64) - shift


@njit(nogil=True, error_model="numpy")
def learn_rows(slot, n_slots, inputs, batch, gradients):  # type: ignore[no-untyped-def]
    """Accumulate the gradients of every n_slots-th group of the batch, beginning with `slot`."""
    n_inputs, n_outputs = batch.linear.shape
    f = np.empty((n_inputs, LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    dsums = np.empty((n_outputs, LANES), dtype=np.float32)
    gradients.linear[:] = 0
    gradients.offset[:] = 0
    gradients.totals[:] = 0
    for group in range(slot, batch.rows.shape[0] // LANES, n_slots):
        part = batch.rows[group * LANES : (group + 1) * LANES]
        gather_inputs(inputs, part, LANES, batch.mean, batch.unit, f)
        learn_group(f, group, batch, gradients, sums, dsums)


@njit(nogil=True, error_model="numpy")
def decide_linear(  # type: ignore[no-untyped-def]
    begin, end, inputs, linear, scale, offset, mean, unit, out
):
    """Fill out[begin:end], shape (n, outputs)."""
    for n in range(begin, end):
        for o in range(linear.shape[1]):
            total = np.float32(0)
            for i in range(linear.shape[0]):
                total += linear[i, o] * ((np.float32(inputs[n, i]) - mean[i]) * unit)
            out[n, o] = scale * total + offset[o]


def linear_model(
    stages: tuple[Stage, ...],
    taken: Grid,
    meaning: Sequence[Any] | ValueUnits,
    levels: NDArray[np.int8],
    worth: float,
    offset: NDArray[np.float64],
) -> IntegerModel:
    """Make the model of a linear part alone, behind stages that take `taken`.

    `meaning` are the classes, or units of values; the arguments after it are those of `stored`.
    """
    multiplier = np.ones(levels.shape[0], dtype=np.int32)
    answers: Labels | Values
    if isinstance(meaning, ValueUnits):
        given = taken
        for stage in stages:
            given = stage.gives(given)
        dots = -given.low * np.abs(levels.astype(np.float64)).sum(axis=1)
        fixed = to_fixed_point(meaning, 0.0 * dots, 0.0 * dots + worth, offset, 0 * dots, dots)
        rounded, multiplier, answers = fixed.offset, fixed.linear_multiplier, fixed.values
        worth = fixed.values.unit
    else:
        # Beside dot products of many levels, whole numbers of them are fine enough for offsets.
        rounded = np.clip(np.rint(offset / worth), -_LARGEST_OFFSET, _LARGEST_OFFSET)
        answers = Labels(tuple(meaning))
    return IntegerModel(
        input=taken,
        stages=stages,
        readout=Readout((Linear(levels, multiplier),), rounded.astype(np.int32)),
        answers=answers,
        decision_scale=worth,
    )
