"""The training loop of components, and short trainings that compare settings."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.learn.choice import Fold
from tinykernel.learn.components import passes
from tinykernel.learn.components import steps as kernels
from tinykernel.learn.inputs import WORD, layout_of, neighbour_distance
from tinykernel.learn.linear.passes import SLOTS
from tinykernel.learn.linear.training import input_moments, linear_dropout, round_linear
from tinykernel.learn.loop import History, Learned, Recipe, Replan, one_cycle, run_epochs
from tinykernel.learn.loss import Truth, prior

_POOL = 1 << 20
_NO_INPUTS = np.zeros((0, 0), dtype=np.int16)
_SLOPE = 2.0  # k of the surrogate derivative
# Steps of start and width (radians), G (unit variance), S (times 1 / sigma), and the linear part,
# as multiples of that of the weights.
_WINDOW_STEP, _DIAGONAL_STEP, _FREQUENCY_STEP, _LINEAR_STEP = 10.0, 15.0, 0.5, 7.0
_GAIN_STEP = 10.0
_WARM_UP = 0.1  # share of the training in which the steps grow
# Ternary weights are 0 below this multiple of the mean magnitude of their output.
_THRESHOLD = 0.7
_WEIGHT_SPREAD = 0.01  # standard deviation of the first shadow weights
# Share of the training after which the forward pass uses the integers that are exported.
_QUANTIZE_FROM = 0.7
_NAMES = ("diagonal", "rate", "centre", "level", "shadow", "offset", "gain", "linear")

_Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows as components learn them."""

    mixed: _Floats  # (n, d): ``P H B x / sqrt(d)``.
    targets: _Floats  # (n, n_outputs): values, or probabilities (of the second of two classes).
    weight: _Floats  # (n,), of mean 1.
    truth: NDArray[Any]  # (n,) codes of the labels, or the targets of values.
    inputs: NDArray[Any]  # (n, n_features): quantized.

    def of(self, rows: NDArray[Any]) -> "MixedRows":
        """Return some of the rows."""
        return MixedRows(*(part[rows] for part in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Validation:
    """Validation rows."""

    mixed: _Floats  # (n, d)
    inputs: NDArray[Any]  # (n, n_features)
    truth: Truth


class Learner(Learned):
    """All learned parameters of one model and the steps that change them.

    Learned starts are relative to the mean of the mixed rows, which is subtracted in place.
    `arithmetic` gives the firmware's arithmetic for levels of G; without it, as in short trainings,
    the transforms stay exact, which needs no proof. `cancelled` ends a training with
    `CancelledError`. A linear part takes the quantized inputs.
    """

    def __init__(
        self,
        rows: MixedRows,
        recipe: Recipe,
        arithmetic: Callable[[NDArray[np.int8]], passes.Arithmetic] | None = None,
        cancelled: threading.Event | None = None,
    ) -> None:
        # Always in 16 bits, as the steps would be compiled once more for others.
        self.inputs = _NO_INPUTS
        if recipe.linear_bits is not None:
            self.inputs = rows.inputs.astype(np.int16, copy=False)
        self.recipe, self.layout = recipe, layout_of(recipe.layout)
        self.mixed, self.targets, self.weight = rows.mixed, rows.targets, rows.weight
        mixed, targets = self.mixed, self.targets
        self.mean = np.zeros(mixed.shape[1], dtype=np.float32)
        if self.layout.start_bits:
            self.mean = mixed.mean(axis=0)
            mixed -= self.mean
        self.rng = np.random.default_rng([recipe.seed, 1])
        self.n_outputs = targets.shape[1]
        self._losses = np.array(recipe.losses, dtype=np.float32)
        self.dimension = mixed.shape[1]
        self.n_blocks = -(-recipe.n_components // self.dimension)
        self.n_rows = self.n_blocks * self.dimension
        distance = neighbour_distance(mixed, self.rng)
        self.sigma = recipe.sigma or distance * recipe.sigma_multiple
        self._noise = np.float32(recipe.noise * self.sigma / np.sqrt(self.dimension))
        self.quantized = False
        self._arithmetic_of, self._cancelled = arithmetic, cancelled
        self._arithmetic: passes.Arithmetic | None = None
        self._draw()
        self.shadow[recipe.n_components :] = 0
        self._pool = self.rng.standard_normal(_POOL + self.dimension, dtype=np.float32)
        self._begin(_NAMES)
        self._weights = np.zeros_like(self.shadow)

    def _draw(self) -> None:
        """Draw the first parameters: Fastfood's, Lei & Lan 2021 (3)."""
        rng, layout = self.rng, self.layout
        shape = (self.n_blocks, self.dimension)
        diagonal = rng.standard_normal(shape)
        norm = np.sqrt(np.square(diagonal).sum(axis=1, keepdims=True))
        length = np.full(shape, np.sqrt(self.dimension))
        if layout.scale_per_row:
            length = np.sqrt(rng.chisquare(self.dimension, shape))
        self.diagonal = (diagonal * np.sqrt(self.dimension) / norm).astype(np.float32)
        rate = length / np.sqrt(self.dimension) / (2 * np.pi * self.sigma)
        self.rate = rate.astype(np.float32).ravel()
        self.centre = rng.random(self.rate.size, dtype=np.float32)
        if not layout.start_bits:
            self.centre[:] = np.resize(np.array([0.0, 0.25], dtype=np.float32), self.centre.size)
        self.level = np.zeros(self.rate.size, dtype=np.float32)
        if layout.width_bits:
            self.level[:] = rng.uniform(-1, 1, self.level.size)
        self._draw_outputs()

    def _draw_outputs(self) -> None:
        """Draw the first weights."""
        rng, recipe = self.rng, self.recipe
        padded = -(-self.n_outputs // passes.OUTPUT_MULTIPLE) * passes.OUTPUT_MULTIPLE
        self.shadow = np.zeros((self.n_rows, padded), dtype=np.float32)
        drawn = rng.standard_normal((self.n_rows, self.n_outputs), dtype=np.float32)
        self.shadow[:, : self.n_outputs] = np.float32(_WEIGHT_SPREAD) * drawn
        self.offset = np.zeros(padded, dtype=np.float32)
        self.offset[: self.n_outputs] = prior(self.targets, self.weight, recipe.losses)
        self.gain = np.array([recipe.gain / recipe.lead], dtype=np.float32)
        self._draw_linear()

    def _draw_linear(self) -> None:
        """Draw the first weights of the linear part, whose sums are as large as the components'."""
        n = self.inputs.shape[1]
        self.linear = np.zeros((n, self.n_outputs), dtype=np.float32)
        self._linear_mean, self._linear_unit = np.zeros(n, dtype=np.float32), np.float32(1)
        if n:
            mean, spread, unit = input_moments(self.inputs)
            drawn = self.rng.standard_normal(self.linear.shape, dtype=np.float32)
            self.linear = np.float32(0.01) * drawn * (spread > 0).astype(np.float32)[:, np.newaxis]
            ratio = 8 * np.sqrt(self.recipe.n_components / n) / float(self.gain[0])
            self._linear_mean, self._linear_unit = mean, np.float32(unit * ratio)

    def _rounded_linear(self) -> tuple[_Floats, np.float32]:
        """Return the levels of the linear part, and the value of one level."""
        if self.recipe.linear_bits is None:
            return self.linear, np.float32(1)
        return round_linear(self.linear, self.recipe.linear_bits)

    def stored_linear(self) -> tuple[NDArray[np.int8], float, NDArray[np.float64]] | None:
        """Return levels (outputs, n_features), the value of one per unit of q, and offsets."""
        if self.recipe.linear_bits is None:
            return None
        levels, step = self._rounded_linear()
        worth = float(self._scale()) * float(step) * float(self._linear_unit)
        shift = np.einsum("io,i->o", levels.astype(np.float64), self._linear_mean)
        return levels.T.astype(np.int8), worth, -worth * shift

    def _scale(self) -> np.float32:
        return np.float32(self.gain[0] / np.sqrt(self.recipe.n_components))

    def forward(self) -> tuple[passes.PhaseWindows, kernels.Outputs]:
        """Return windows and read-out; the arrays may be reused by the next step."""
        threshold = _THRESHOLD if self.layout.ternary else 0.0
        n_live = np.float32(self.recipe.n_components)
        kernels.ternarise(self.shadow, np.float32(threshold), n_live, self._weights)
        windows = passes.PhaseWindows(self.diagonal, self.rate, self.centre, self.level, self.mean)
        if self.quantized and self._arithmetic is not None:
            windows = passes.stored_windows(windows, self.layout, self._arithmetic)
        elif self.quantized:
            windows = passes.rounded_windows(windows, self.layout)
        levels, worth = self._rounded_linear()
        linear = levels * worth, self._linear_mean, self._linear_unit
        return windows, kernels.Outputs(self._weights, self._scale(), self.offset, *linear)

    def prove(self) -> None:
        """Update the firmware's arithmetic, whose shifts depend on the size of G."""
        if self._arithmetic_of is None:
            return
        levels, _ = passes.diagonal_levels(self.diagonal, self.layout)
        self._arithmetic = self._arithmetic_of(levels.astype(np.int8))

    def decide(self, mixed: _Floats, inputs: NDArray[Any] | None = None) -> _Floats:
        """Compute the decision values (n, n_outputs) of mixed rows (n, d) and their inputs."""
        windows, outputs = self.forward()
        mixed = mixed - self.mean
        q = _NO_INPUTS if inputs is None else inputs.astype(np.int16, copy=False)
        out = np.empty((mixed.shape[0], self.n_outputs), dtype=np.float32)
        edges = np.linspace(0, mixed.shape[0], 2 * self.recipe.n_threads + 1).astype(np.int64)

        def part(i: int) -> None:
            kernels.decide_rows(mixed, q, edges[i], edges[i + 1], windows, outputs, out)

        self._in_threads(part, edges.size - 1)
        return out

    def learn(self, rows: NDArray[np.int64], step: float) -> float:
        """Take one step on a batch of rows; return their mean loss."""
        starts = self.rng.integers(0, _POOL, rows.size)
        seeds = self.rng.integers(0, 2**32, rows.size, dtype=np.uint32)
        windows, outputs = self.forward()
        dropout = linear_dropout(self.inputs.shape[1])
        batch = kernels.Batch(self.mixed, self.inputs, self.targets, self.weight, rows)
        shares = np.uint32(int(dropout * 2**32)), np.float32(1 / (1 - dropout))
        noise = kernels.Noise(self._pool, starts, self._noise, seeds, *shares)
        model = (windows, outputs, np.float32(_SLOPE), self._losses, self.n_outputs)
        learned = (g for name, g in self.gradients.items() if name != "gain")
        sums: list[NDArray[Any]] = [*learned, self.totals]
        self._clear(rows.size)

        def part(slot: int) -> None:
            kernels.learn_slot(
                slot, SLOTS, batch, noise, *model, kernels.Gradients(*(g[slot] for g in sums))
            )

        self._in_threads(part, self._n_slots)
        self.gradients["gain"][:, 0] = self.totals[:, 1] / np.sqrt(self.recipe.n_components)
        if windows.are_stored:
            self._from_levels(windows)
        self._update(step, np.float32(1.0 / rows.size))
        return float(self.totals[:, 0].sum() / rows.size)

    def _from_levels(self, windows: passes.PhaseWindows) -> None:
        """Turn gradients of levels of G and turns a unit of v into those of G and the rate."""
        diagonal, rate, centre = (self.gradients[name] for name in ("diagonal", "rate", "centre"))
        diagonal /= windows.worth.astype(np.float32)
        by_block = rate.reshape(SLOTS, self.n_blocks, self.dimension)
        by_block *= windows.worth.astype(np.float32)
        rate -= windows.shift * centre

    def _update(self, step: float, factor: np.float32) -> None:
        """Update every learned parameter by Adam."""
        layout = self.layout
        if not layout.scale_per_row:
            tied = self.gradients["rate"].reshape(SLOTS, self.n_blocks, self.dimension)
            tied[:] = tied.mean(axis=2, keepdims=True)
        steps = (
            step * _DIAGONAL_STEP,
            step * _FREQUENCY_STEP / (2 * np.pi * self.sigma),
            step * _WINDOW_STEP / (2 * np.pi) if layout.start_bits else 0.0,
            step * _WINDOW_STEP if layout.width_bits else 0.0,
            step,
            step,
            step * _GAIN_STEP,
            step * _LINEAR_STEP * self.recipe.lead,
        )
        self._move(dict(zip(_NAMES, steps, strict=True)), factor)
        self.shadow[self.recipe.n_components :] = 0

    def run(self, validation: Validation | None = None, replan: Replan | None = None) -> History:
        """Train, and end with the best state, quantized; `validation` rows select it."""
        judge = None if validation is None else partial(self.accuracy, validation)
        stage = "training" if self._cancelled is None else None
        history = run_epochs(self, self.recipe.epochs, judge, stage, replan)
        self.prove()
        self.quantized = True
        return history

    def epoch(self, number: int) -> float:
        """Train on all rows once; return the mean loss."""
        if self.schedule.share(number + 1, 1) > _QUANTIZE_FROM:
            self.prove()
        return super().epoch(number)

    def step(self, rows: NDArray[np.int64], done: float) -> float:
        """Take one step on a batch, at a share of the training; return the mean loss."""
        self.quantized = done >= _QUANTIZE_FROM
        if self._cancelled is not None and self._cancelled.is_set():
            raise CancelledError
        return self.learn(rows, self.recipe.peak_step * one_cycle(done, _WARM_UP))

    def accuracy(self, validation: Validation) -> float:
        """Return the accuracy of the quantized parameters, see `Truth.score`."""
        was, self.quantized = self.quantized, True
        self.prove()
        decisions = self.decide(validation.mixed, validation.inputs)
        self.quantized = was
        return validation.truth.score(decisions)


_MOST_COMPONENTS, _MOST_IN_FOLDS, _MOST_AT_FULL_SIZE = 4096, 2048, 8192
_MOST_STEPS = 1000
_FEWEST_EPOCHS, _MOST_EPOCHS = 4, 40
# The work of a heat and of a final, as shares of the training that follows.
_HEAT, _FINAL = 1 / 28, 1 / 10
#: Folds that a final is judged on; a heat is judged on one.
FOLDS_OF_A_FINAL = 2


@dataclass(frozen=True, eq=False)
class TrialData:
    """Rows of short trainings, and which of them each training learns from."""

    whole: MixedRows
    folds: Sequence[Fold]
    n_rows: int  # of the training that follows.
    share: float = 1.0  # of the usual epochs.

    def of(self, fold: Fold) -> "TrialData":
        """Return the rows of a fold, which is the only one then."""
        used, n = np.concatenate([fold.inside, fold.outside]), fold.inside.size
        place = np.arange(used.size)
        folds = [Fold(place[:n], place[n:])]
        return replace(self, whole=self.whole.of(used), folds=folds, share=1.0)

    def plan(self, recipe: Recipe, *, final: bool = False) -> Recipe:
        """Return how a heat of a recipe is trained, or a final, which has all components.

        Its work is a fixed share of that of the training that follows, so that a whole search takes
        about as long as that training.
        """
        p, n_folds = recipe.n_components, len(self.folds)
        n, d = self.folds[0].inside.size, self.whole.mixed.shape[1]
        most = _MOST_COMPONENTS if n_folds == 1 else _MOST_IN_FOLDS
        most = _MOST_AT_FULL_SIZE if final else min(most, p // 2 // WORD * WORD)
        size = min(p, max(most, d))
        share = _FINAL / min(FOLDS_OF_A_FINAL, n_folds) if final else _HEAT
        epochs = round(share * self.share * recipe.epochs * self.n_rows / n * p / size)
        epochs = min(epochs, _MOST_STEPS * recipe.batch_rows // n)
        epochs = int(np.clip(epochs, _FEWEST_EPOCHS, _MOST_EPOCHS))
        return replace(recipe, n_components=size, epochs=epochs, peak_step=2 * recipe.peak_step)

    def decisions(
        self, fold: Fold, recipe: Recipe, cancelled: threading.Event | None = None
    ) -> NDArray[np.float32]:
        """Train on the rows inside a fold, and decide the others."""
        whole, out = self.whole, fold.outside
        learner = Learner(whole.of(fold.inside), recipe, cancelled=cancelled)
        learner.run()
        return learner.decide(whole.mixed[out], whole.inputs[out])

    def judge(
        self, fold: Fold, recipe: Recipe, cancelled: threading.Event | None = None
    ) -> tuple[float, float]:
        """Train on the rows inside a fold; return loss and score of the others."""
        whole, out = self.whole, fold.outside
        decisions = self.decisions(fold, recipe, cancelled)
        return Truth(whole.truth[out], whole.weight[out], recipe.losses).judge(decisions)
