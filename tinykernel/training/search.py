"""The search for hyper-parameters of components: short trainings on a part of the rows.

The search changes one option after the other. Most trials are cheap: one fold, and half of the
components. The best candidates are then trained longer, with all components, before one is chosen.
A trial takes a fixed share of the work of the final training, so that the whole search takes about
as long as that training.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.compiled import seconds_compiling
from tinykernel.training.components.learner import Learner
from tinykernel.training.folds import Fold
from tinykernel.training.loss import judge
from tinykernel.training.options.recipe import Recipe
from tinykernel.training.threads import side_by_side

_MOST_COMPONENTS, _MOST_IN_FOLDS, _MOST_AT_FULL_SIZE = 4096, 2048, 8192
_STEPS = 1000
_MOST_STEPS = 8
_FEWEST_EPOCHS, _MOST_EPOCHS = 4, 40
# A race: the work of a trial as a share of the training that follows, in the heats and the finals.
_HEAT, _FINAL = 1 / 28, 1 / 10
_FOLDS_OF_A_FINAL = 2
_WORD = 32
# A layout that is so many times behind is no finalist.
_FAR_BEHIND = 1.5
STAGE = "choosing hyper-parameters"
# Noise that is tried, and what is tried where that was the best.
_FURTHER_NOISE = {0.1: [0.0], 0.5: [0.75]}


@dataclass(frozen=True, eq=False)
class TrialData:
    """Rows for short trainings, and which of them each learns from."""

    mixed: NDArray[np.float32]  # (n, d)
    targets: NDArray[np.float32]  # (n, n_outputs)
    weight: NDArray[np.float32]  # (n,)
    truth: NDArray[Any]  # (n,) or (n, n_outputs): codes of the labels, or the targets of values.
    folds: Sequence[Fold]  # each trial is made once on each.
    inputs: NDArray[Any]  # (n, n_features): quantized inputs.


@dataclass(frozen=True)
class SearchTrial:
    """The result of one short training."""

    layout: str
    n_components: int
    linear_bits: int | None
    sigma_multiple: float
    noise: float
    # Mean of -log probability on the rows held out, at the best of a few temperatures: it varies
    # less from draw to draw than the accuracy. Mean loss for values.
    log_loss: float
    accuracy: float  # see `tinykernel.training.loss.share_right`.


@dataclass
class Search:
    """A search by coordinates that trains nothing twice.

    `recipes` are the candidates at their full size, the first ones first; `fixed` names what not to
    change.
    """

    data: TrialData
    recipes: Sequence[Recipe]
    fixed: frozenset[str]
    n_rows: int
    #: Ends the trainings that run.
    cancelled: threading.Event
    trials: dict[tuple[object, ...], SearchTrial] = field(default_factory=dict)
    #: Log loss and accuracy of a training, by what was trained and the fold.
    judged: dict[tuple[object, ...], tuple[float, float]] = field(default_factory=dict)
    #: Trials that are still to be expected, for the display.
    expected: int = 0
    #: All that were in a final.
    finalists: dict[Recipe, None] = field(default_factory=dict)
    #: Start time, excluding compilation.
    _started: float = field(default_factory=lambda: time.perf_counter() - seconds_compiling())

    def rounds(self) -> Iterator[Recipe]:
        """Yield the best recipe: of the first layout in heats, then of all in finals."""
        bare = [each for each in self.recipes if each.linear_bits is None] or list(self.recipes)
        rest = 0 if "noise" in self.fixed else 7
        climbed: list[Recipe] = []
        for number, recipe in enumerate(bare):
            self.expect(5 * (len(bare) - number) + len(self.recipes) + rest)
            if climbed:  # sigma of the layout before is a good start
                recipe = replace(recipe, sigma_multiple=climbed[-1].sigma_multiple)
            if "sigma_multiple" not in self.fixed:
                recipe = self.climb(recipe, "sigma_multiple", 2.0)
            climbed.append(recipe)
            if not number:
                self.heat(recipe)
                yield recipe
        self.expect(len(self.recipes) + rest)
        beside = [
            replace(each, sigma_multiple=recipe.sigma_multiple)
            for recipe in climbed
            for each in self.recipes
            if each.layout == recipe.layout and each.linear_bits != recipe.linear_bits
        ]
        before = self.final([*climbed, *beside])
        recipe = self._refined(before)
        # Heats are short, and may take too little noise for the better.
        self.expect(3)
        yield self.final([recipe, before, self.usual(recipe)])

    def usual(self, recipe: Recipe) -> Recipe:
        """Return the same candidate before the search."""
        same = recipe.layout, recipe.linear_bits
        return next(each for each in self.recipes if (each.layout, each.linear_bits) == same)

    def runners_up(self, chosen: Recipe) -> list[Recipe]:
        """Return the best recipe of each other layout that is nearly as good."""
        best: dict[str, Recipe] = {}
        for recipe in sorted(self.finalists, key=self.full):
            best.setdefault(recipe.layout, recipe)
        best.pop(chosen.layout, None)
        most = _FAR_BEHIND * self.full(chosen)
        return [each for each in best.values() if self.full(each) < most and not each.losses]

    def heat(self, recipe: Recipe) -> float:
        """Return the log loss of a cheap training."""
        return self.trial(recipe, final=False).log_loss

    def full(self, recipe: Recipe) -> float:
        """Return the log loss of a short training at full size."""
        return self.trial(recipe, final=True).log_loss

    def trial(self, recipe: Recipe, *, final: bool) -> SearchTrial:
        """Return the result of a heat, or of a final at full size."""
        planned = self._plan(recipe, final)
        key = planned, final
        if key not in self.trials:
            n_folds = _FOLDS_OF_A_FINAL if final else 1
            self.trials[key] = self._train(planned, self.data.folds[-n_folds:])
            self._tell(planned, key)
        return self.trials[key]

    def _plan(self, recipe: Recipe, final: bool) -> Recipe:
        """Return how a trial of a recipe is trained."""
        p = recipe.n_components
        n, d = self.data.folds[0].inside.size, self.data.mixed.shape[1]
        most = _MOST_COMPONENTS if len(self.data.folds) == 1 else _MOST_IN_FOLDS
        most = _MOST_AT_FULL_SIZE if final else min(most, p // 2 // _WORD * _WORD)
        size = min(p, max(most, d))
        # Work: rows times components times epochs.
        share = _FINAL / min(_FOLDS_OF_A_FINAL, len(self.data.folds)) if final else _HEAT
        work = share * recipe.epochs * self.n_rows / n
        epochs = min(round(work * p / size), _STEPS * recipe.batch_rows // n)
        epochs = int(np.clip(epochs, _FEWEST_EPOCHS, _MOST_EPOCHS))
        return replace(recipe, n_components=size, epochs=epochs, peak_step=2 * recipe.peak_step)

    def _tell(self, recipe: Recipe, key: tuple[Recipe, bool]) -> None:
        """Report a trial: what is compared, the best of its kind, and the time left."""
        done, trial = len(self.trials), self.trials[key]
        self.expected = max(self.expected, done)
        alike = [each for other, each in self.trials.items() if other[-1] == key[-1]]
        best = min(alike, key=lambda each: each.log_loss)
        passed = time.perf_counter() - seconds_compiling() - self._started
        left = passed / done * (self.expected - done)
        text = f"{_in_words(recipe)}: log loss {trial.log_loss:.4f}, "
        text += f"{100 * trial.accuracy:.2f} %; lowest {best.log_loss:.4f}; {left:.0f} s left"
        progress.report(STAGE, done, self.expected, text)

    def _train(self, recipe: Recipe, folds: Sequence[Fold]) -> SearchTrial:
        """Train once on each fold; losses and accuracies are averaged."""
        left = self._missing(recipe, folds)
        # Side by side: short trainings do not fill two threads each.
        single = recipe if len(left) == 1 else replace(recipe, n_threads=1)
        tasks = [partial(_train_fold, self.data, fold, single, self.cancelled) for fold in left]
        results = side_by_side(tasks, recipe.n_threads, self.cancelled)
        key = _trained(recipe)
        for fold, result in zip(left, results, strict=True):
            self.judged[(*key, id(fold))] = result
        log_loss, accuracy = np.mean([self.judged[(*key, id(f))] for f in folds], axis=0).tolist()
        return SearchTrial(
            recipe.layout,
            recipe.n_components,
            recipe.linear_bits,
            recipe.sigma_multiple,
            recipe.noise,
            log_loss,
            accuracy,
        )

    def _missing(self, recipe: Recipe, folds: Sequence[Fold]) -> list[Fold]:
        key = _trained(recipe)
        return [fold for fold in folds if (*key, id(fold)) not in self.judged]

    def heats(self, recipes: Sequence[Recipe]) -> None:
        """Train heats side by side whose results are likely to be needed."""
        plans = [self._plan(recipe, final=False) for recipe in recipes]
        folds, n_threads = self.data.folds[-1:], self.recipes[0].n_threads
        waiting = [plan for plan in plans if self._missing(plan, folds)]
        if len(waiting) > 1 and n_threads > 1:  # one alone has all threads
            alone = [replace(plan, n_threads=1) for plan in waiting]
            tasks = [partial(self._train, plan, folds) for plan in alone]
            side_by_side(tasks, n_threads, self.cancelled)

    def climb(self, recipe: Recipe, name: str, factor: float) -> Recipe:
        """Multiply or divide one option by `factor` as long as that helps."""
        directions, value = (factor, 1 / factor), getattr(recipe, name)
        self.heats([recipe, *(replace(recipe, **{name: value * each}) for each in directions)])
        for direction in directions:
            moved = False
            for _ in range(_MOST_STEPS):
                candidate = replace(recipe, **{name: getattr(recipe, name) * direction})
                if not self.heat(candidate) < self.heat(recipe):
                    break
                recipe, moved = candidate, True
            if moved:
                break
        return recipe

    def best_of(self, recipe: Recipe, noises: Sequence[float]) -> Recipe:
        """Return the recipe with the best noise."""
        candidates = [recipe, *(replace(recipe, noise=noise) for noise in noises)]
        self.heats(candidates)
        return min(candidates, key=self.heat)

    def final(self, candidates: Sequence[Recipe]) -> Recipe:
        """Return the best of recipes at their full size.

        A layout with smaller components has more of them, which only shows there.
        """
        distinct = list(dict.fromkeys(candidates))
        self.finalists |= dict.fromkeys(distinct)
        return min(distinct, key=self.full) if len(distinct) > 1 else distinct[0]

    def _refined(self, recipe: Recipe) -> Recipe:
        """Choose the rest: noise, and sigma in small steps."""
        self.expect(7)
        if "noise" not in self.fixed:
            recipe = self.best_of(recipe, list(_FURTHER_NOISE))
            recipe = self.best_of(recipe, _FURTHER_NOISE.get(recipe.noise, []))
        self.expect(4)
        if "sigma_multiple" not in self.fixed:
            recipe = self.climb(recipe, "sigma_multiple", float(np.sqrt(2.0)))
        return recipe

    def expect(self, more: int) -> None:
        """Say how many trials may still come."""
        self.expected = len(self.trials) + more


def _trained(recipe: Recipe) -> tuple[object, ...]:
    """Return what tells a short training from others of the same fold."""
    form = recipe.layout, recipe.linear_bits
    return (*form, recipe.sigma_multiple, recipe.noise, recipe.n_components, recipe.epochs)


def _in_words(recipe: Recipe) -> str:
    """Say what a trial trains."""
    beside = "" if recipe.linear_bits is None else f" + linear part of {recipe.linear_bits} bits"
    return f"{recipe.layout}{beside}, sigma x {recipe.sigma_multiple:.3g}, noise {recipe.noise:.3g}"


def _train_fold(
    data: TrialData, fold: Fold, recipe: Recipe, cancelled: threading.Event
) -> tuple[float, float]:
    """Return log loss and accuracy on the rows held out."""
    decisions = decisions_of(data, fold, recipe, cancelled)
    return judge(decisions, data.truth[fold.outside], data.weight[fold.outside], recipe.losses)


def decisions_of(
    data: TrialData, fold: Fold, recipe: Recipe, cancelled: threading.Event | None = None
) -> NDArray[np.float32]:
    """Train components on the rows inside a fold, and decide the others."""
    inputs, held = data.inputs[fold.inside], data.inputs[fold.outside]
    known = data.targets[fold.inside], data.weight[fold.inside]
    mixed = data.mixed[fold.inside]
    learner = Learner(mixed, *known, recipe, cancelled=cancelled, inputs=inputs)
    learner.run()
    return learner.decide(data.mixed[fold.outside], held)
