"""The recipe of a training, its epochs with history, best state and Ctrl-C, and its result."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from tinykernel.base import progress
from tinykernel.base.checks import DEFAULT_LAYOUT, check_count, is_layout, thread_count
from tinykernel.base.compiled import seconds_compiling
from tinykernel.base.elementary import cos
from tinykernel.base.errors import OptionError
from tinykernel.base.hadamard import LANES
from tinykernel.learn.components.steps import adam
from tinykernel.learn.linear.passes import SLOTS
from tinykernel.learn.options import TrainerOptions
from tinykernel.model.integer import IntegerModel

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


# Epochs that tell how long the next ones take.
_RECENT = 3


class _OneBlasThread(ContextDecorator):
    """Keeps BLAS to one thread, as ours multiply matrices: its own wait for each other busily.

    Trainings in several threads share the limit of the process; the last to end lifts it. The
    libraries are looked for once: that reads which files the process has in memory.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.restore_original_limits()


one_blas_thread = _OneBlasThread()


#: Epochs in all, after so many of so many planned: fewer, where the time is short.
Replan = Callable[[int, int, float], int]


@dataclass(frozen=True)
class Schedule:
    """Planned epochs, and after how many of them the plan was cut to how many in all."""

    epochs: int
    cuts: tuple[tuple[int, int], ...] = ()

    @property
    def total(self) -> int:
        """Epochs of the last plan."""
        return self.cuts[-1][1] if self.cuts else self.epochs

    def share(self, batches: int, of_epoch: int) -> float:
        """Return the share of the training that is done after so many batches.

        It rises evenly to 1 from each cut on, so that steps end as small as without cuts.

        >>> [Schedule(4, ((1, 3),)).share(epoch, 1) for epoch in range(4)]
        [0.0, 0.25, 0.625, 1.0]
        """
        share, begin, end = 0.0, 0, self.epochs
        for done, total in self.cuts:
            if batches < done * of_epoch:
                break
            share += (done - begin) * (1 - share) / (end - begin)
            begin, end = done, total
        return share + (batches - begin * of_epoch) * (1 - share) / ((end - begin) * of_epoch)


@dataclass(frozen=True)
class History:
    """Loss, seconds and, with validation rows, accuracy of each epoch; and whether Ctrl-C came."""

    epochs: list[dict[str, float]]
    interrupted: bool = False
    remarks: tuple[str, ...] = ()  # on what was learned


class Learned(ABC):
    """Learned parameters, float32 attributes, with their gradients and the moments of Adam."""

    recipe: Any
    rng: np.random.Generator
    targets: NDArray[np.float32]  # (n, n_outputs)
    schedule: Schedule  # the epochs, as far as they are planned.
    remarks: tuple[str, ...] = ()  # on what was learned

    @cached_property
    def _executor(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=self.recipe.n_threads)

    def _in_threads(self, part: Callable[[int], None], n_parts: int) -> None:
        """Run all parts; an executor of one thread would cost as much as a small batch."""
        run = map if self.recipe.n_threads == 1 else self._executor.map
        list(run(part, range(n_parts)))

    def _begin(self, names: Iterable[str]) -> None:
        """Lay drawn parameters one after the other, and make room for their gradients."""
        drawn = {name: getattr(self, name) for name in names}
        self._ends = ends = np.cumsum([0, *(values.size for values in drawn.values())])
        self._values = np.concatenate([values.ravel() for values in drawn.values()])
        self._moments = np.zeros((2, ends[-1]), np.float32)
        self._sums = np.zeros((SLOTS, ends[-1]), np.float32)
        self.gradients: dict[str, NDArray[np.float32]] = {}
        for (name, values), first, last in zip(drawn.items(), ends[:-1], ends[1:], strict=True):
            setattr(self, name, self._values[first:last].reshape(values.shape))
            self.gradients[name] = self._sums[:, first:last].reshape(SLOTS, *values.shape)
        self.totals = np.zeros((SLOTS, 2))
        self._step, self._n_slots = 0, SLOTS

    def _clear(self, n_rows: int) -> None:
        """Set the gradients to 0 that a batch of so many rows adds to."""
        self._n_slots = min(SLOTS, -(-n_rows // LANES))
        self._sums[: self._n_slots] = 0
        self.totals[:] = 0

    def epoch(self, number: int) -> float:
        """Train on all rows once; return the mean loss."""
        recipe, n_rows, total, n_batches = self.recipe, len(self.targets), 0.0, 0
        for rows, done in batches(self.rng, n_rows, recipe.batch_rows, number, self.schedule):
            total += self.step(rows, done)
            n_batches += 1
        return total / n_batches

    @abstractmethod
    def step(self, rows: NDArray[np.int64], done: float) -> float:
        """Take one step on a batch, at a share of the training; return the mean loss."""

    def state(self) -> list[NDArray[np.float32]]:
        """Return copies of all learned parameters."""
        return [getattr(self, name).copy() for name in self.gradients]

    def restore(self, state: list[NDArray[np.float32]]) -> None:
        """Restore a result of `state`."""
        for name, value in zip(self.gradients, state, strict=True):
            getattr(self, name)[...] = value

    def _move(self, steps: Mapping[str, float], factor: np.float32) -> None:
        """Update parameters by Adam, in steps of this size; 0 leaves one as it is."""
        self._step += 1
        corrections = [np.float32(1 / (1 - beta**self._step)) for beta in (0.9, 0.999)]
        parts = self._sums[: self._n_slots]
        rates = np.array([steps[name] for name in self.gradients], np.float32)
        adam(self._values, parts, *self._moments, self._ends, rates, *corrections, factor)


@one_blas_thread
def run_epochs(
    learner: Learned,
    n_epochs: int,
    accuracy: Callable[[], float] | None = None,
    stage: str | None = "training",
    replan: Replan | None = None,
) -> History:
    """Train, and end in the best state if `accuracy` can find it.

    After each epoch `replan` tells how many there are to be in all. Ctrl-C ends the training and
    keeps the best state so far. It is passed on in the first epoch, and in a training that is not
    the last one, whose stage has no name.
    """
    interrupted = False
    history: list[dict[str, float]] = []
    best: tuple[float, list[NDArray[np.float32]]] | None = None
    learner.schedule = Schedule(n_epochs)
    if stage is not None:
        progress.report(stage, 0, n_epochs)
    try:
        while len(history) < n_epochs:
            number, begin = len(history), time.perf_counter() - seconds_compiling()
            entry = {"loss": learner.epoch(number)}
            if accuracy is not None:
                entry["accuracy"] = accuracy()
                if best is None or entry["accuracy"] >= best[0]:
                    best = entry["accuracy"], learner.state()
            entry["seconds"] = time.perf_counter() - seconds_compiling() - begin
            history.append(entry)
            if replan is not None and number + 1 < n_epochs:
                recent = [epoch["seconds"] for epoch in history[-_RECENT:]]
                planned = replan(number + 1, n_epochs, sum(recent) / len(recent))
                if planned != n_epochs:
                    cuts = *learner.schedule.cuts, (number + 1, planned)
                    learner.schedule, n_epochs = replace(learner.schedule, cuts=cuts), planned
            if stage is not None:
                progress.report(stage, number + 1, n_epochs, _message(history, n_epochs))
    except KeyboardInterrupt:
        if not history or stage is None:
            raise
        interrupted = True
        progress.report(stage, len(history), n_epochs, "stopped; the best is kept")
    if best is not None:
        learner.restore(best[1])
    return History(history, interrupted, learner.remarks)


def _message(history: list[dict[str, float]], n_epochs: int) -> str:
    """Say the last loss, and the time left by all epochs."""
    entry, seconds = history[-1], [epoch["seconds"] for epoch in history]
    parts = [f"loss {entry['loss']:.4f}"]
    if "accuracy" in entry:
        parts.append(f"validation {100 * entry['accuracy']:.2f} %")
    left = sum(seconds) / len(seconds) * (n_epochs - len(history))
    return ", ".join([*parts, f"{left:.0f} s left"])


def batches(
    rng: np.random.Generator, n_rows: int, batch_rows: int, epoch: int, schedule: Schedule
) -> Iterator[tuple[NDArray[np.int64], float]]:
    """Deal the rows of an epoch to mini-batches.

    Yielded are rows, and the share of the training that is done.
    """
    size = max(LANES, min(batch_rows, n_rows // LANES * LANES))
    count = max(1, n_rows // size)
    rows = np.resize(rng.permutation(n_rows), count * size).reshape(count, size)
    for done, batch in enumerate(rows, start=epoch * count):
        yield batch, schedule.share(done, count)


def one_cycle(done: float, warm_up: float) -> float:
    """Return the step at a share of the training, relative to its peak."""
    if done < warm_up:
        return max(done / warm_up, 1e-3)
    return max(0.5 * (1 + float(cos(math.pi * (done - warm_up) / (1 - warm_up)))), 1e-3)


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained machine, and how it was found."""

    machine: IntegerModel
    recipe: DataclassInstance  # all settings: a `Recipe`, or another recipe or plan.
    # Loss, seconds and, with validation rows, accuracy of each epoch; where Ctrl-C ended the
    # training, the machine is the best until then.
    history: History
    # Kernel width at the start of training, in scaled inputs; None without components.
    sigma: float | None = None


# Rows times components that a training of classes goes through, about, but in so many epochs.
_WORK, _FEWEST_EPOCHS = 1.2e9, 30


@dataclass(frozen=True)
class Recipe:
    """How one model is trained."""

    layout: str = DEFAULT_LAYOUT
    n_components: int = 4096
    epochs: int = 30
    batch_rows: int = 128  # a multiple of 32.
    sigma: float | None = None  # first kernel width, in scaled inputs; None: `sigma_multiple`.
    sigma_multiple: float = 1.0  # sigma over the mean distance to the 50th neighbour.
    noise: float = 0.3  # length of the noise added to P H B x, over sigma: radians of the phase.
    peak_step: float = 1.5e-3  # largest step of Adam, for the weights; one cycle.
    gain: float = 2.0  # first value of a in ``logits = a / sqrt(p) (W z) + offset``.
    linear_bits: int | None = None  # {2, 4, 8}, or None without a linear part.
    lead: float = 1.0  # of the linear part: its steps are so many times larger, the gain smaller.
    seed: int = 0
    draw: int | None = None  # of B and P, by number; None: the first one.
    n_threads: int = 1  # does not change the result.
    # Loss of each output of a regressor: 0 for the squared error, or the level of a quantile.
    losses: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse values that are not allowed."""
        if not is_layout(self.layout):
            raise OptionError(f"layout: {self.layout!r} is not a layout")
        check_count("n_components", self.n_components, 0)
        for name in ("epochs", "n_threads"):
            check_count(name, getattr(self, name))
        if self.batch_rows % LANES or self.batch_rows < LANES:
            raise OptionError(f"batch_rows: {self.batch_rows}; give a multiple of {LANES}")


def recipe_for(
    options: TrainerOptions, n_rows: int, losses: tuple[float, ...], **size: Any
) -> Recipe:
    """Return a recipe with usual values; `size` are its layout, components and linear part."""
    n_components = size["n_components"]
    values: dict[str, Any] = size | {
        "epochs": options.epochs or usual_epochs(n_rows, 0 if losses else n_components),
        "batch_rows": 64 if n_rows < 4000 else 128 if n_rows < 200000 else 256,
        "seed": seed_of(options),
        "n_threads": thread_count(options.n_jobs),
    }
    if options.sigma is not None:
        values |= {"sigma": float(options.sigma), "sigma_multiple": 1.0}
    if losses:
        values |= {"losses": losses, "gain": 0.5}
    return Recipe(**values)


def seed_of(options: TrainerOptions) -> int:
    """Return the seed of a training."""
    return int(check_random_state(options.random_state).randint(2**31 - 1))


def usual_epochs(n_rows: int, n_components: int = 0) -> int:
    """Return the epochs for a number of rows, fewer for very many components.

    3200 rows are learned as well by 31,520 components in 40 epochs as in 120.

    >>> usual_epochs(60000), usual_epochs(1000), usual_epochs(1000, 30000)
    (30, 120, 40)
    """
    usual = int(np.clip(round(30 * np.sqrt(60000 / n_rows)), 6, 120))
    enough = int(_WORK / (n_rows * max(n_components, 1)))
    return min(usual, max(enough, _FEWEST_EPOCHS))
