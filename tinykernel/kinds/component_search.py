"""The search for layout, linear part, sigma and noise of components, by short trainings.

It changes one setting after the other. Most trials are heats: one fold, and half of the components.
Finals have all components, as a layout with smaller components has more of them.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from tinykernel.base import progress
from tinykernel.base.compiled import seconds_compiling
from tinykernel.learn.choice import side_by_side
from tinykernel.learn.components.learner import FOLDS_OF_A_FINAL, TrialData
from tinykernel.learn.recipe import Recipe

STAGE = "choosing hyper-parameters"
_MOST_STEPS = 8
# A layout whose loss is so many times the least is no finalist.
_FAR_BEHIND = 1.5
# Noise that is tried, and what is tried where that was the best.
_FURTHER_NOISE = {0.1: [0.0], 0.5: [0.75]}
# Lead of a linear part that is tried where rows are few: components learn what it leaves over.
_LEAD = 10.0

RecipeT = TypeVar("RecipeT", bound=Recipe)


@dataclass(frozen=True)
class SearchRound(Generic[RecipeT]):
    """The best recipe so far, and those of other layouts that are nearly as good."""

    best: RecipeT
    runners_up: Sequence[RecipeT] = ()
    is_final: bool = True


@dataclass(eq=False)
class ComponentSearch(Generic[RecipeT]):
    """A search by coordinates that trains nothing twice.

    `recipes` are the candidates at their full size, the first ones first; `fixed` names the
    settings that stay.
    """

    data: TrialData
    recipes: Sequence[RecipeT]
    fixed: frozenset[str]
    #: Ends the trainings that run.
    cancelled: threading.Event
    #: Whether one more trial may be made; the first one always is.
    may_try: Callable[[], bool] = lambda: True
    #: Loss and score of short trainings, by what was trained and the number of the fold.
    judged: dict[tuple[Recipe, int], tuple[float, float]] = field(default_factory=dict)
    #: All that were in a final.
    finalists: dict[RecipeT, None] = field(default_factory=dict)
    #: Start time, excluding compilation.
    _started: float = field(default_factory=lambda: time.perf_counter() - seconds_compiling())
    #: Trials that were reported, and how many are still to be expected.
    _shown: set[tuple[Recipe, bool]] = field(default_factory=set)
    _left: int = 0

    def rounds(self) -> Iterator[SearchRound[RecipeT]]:
        """Yield the best recipe: of the first layout in heats, then of all in finals."""
        bare = [recipe for recipe in self.recipes if recipe.linear_bits is None] or self.recipes
        climbed: list[RecipeT] = []
        for number, recipe in enumerate(bare):
            if number and not self.may_try():
                break
            self._left = 5 * (len(bare) - number) + 2 * len(self.recipes) + 7
            if climbed:  # sigma of the layout before is a good start
                recipe = replace(recipe, sigma_multiple=climbed[-1].sigma_multiple)
            climbed.append(self._climb(recipe, 2.0))
            if not number:
                self.trial(climbed[0])
                yield SearchRound(climbed[0], is_final=False)
        if not self.may_try():
            if len(climbed) > 1:
                yield SearchRound(min(climbed, key=self._heat), is_final=False)
            return
        beside = [
            replace(other, sigma_multiple=recipe.sigma_multiple)
            for recipe in climbed
            for other in self.recipes
            if other.layout == recipe.layout and other.linear_bits != recipe.linear_bits
        ]
        best_of: dict[str, RecipeT] = {}
        for recipe in self._ranked([*climbed, *beside, *self._led(beside, climbed)]):
            best_of.setdefault(recipe.layout, recipe)
        before = self._final(list(best_of.values()))
        recipe = before
        if "noise" not in self.fixed:
            recipe = self._with_best_noise(recipe, list(_FURTHER_NOISE))
            recipe = self._with_best_noise(recipe, _FURTHER_NOISE.get(recipe.noise, []))
        recipe = self._climb(recipe, float(np.sqrt(2.0)))
        # Heats are short, and may take too little noise for the better.
        best = self._final([recipe, before, self.usual(recipe)])
        yield SearchRound(best, self._runners_up(best))

    def _led(self, beside: Sequence[RecipeT], climbed: Sequence[RecipeT]) -> list[RecipeT]:
        """Return the best recipe beside a linear part, with a lead.

        There is none where one fold judges, or if its heat is far behind those without such a part.
        """
        if not beside or beside[0].losses or len(self.data.folds) == 1:
            return []
        best = replace(self._ranked(beside)[0], lead=_LEAD)
        if self._heat(best) > _FAR_BEHIND * min(map(self._heat, climbed)):
            return []
        if "sigma_multiple" in self.fixed:
            return [best]
        return [min((best, self._moved(best, 2.0)), key=self._heat)]

    def usual(self, recipe: RecipeT) -> RecipeT:
        """Return the same candidate before the search."""
        form = recipe.layout, recipe.linear_bits
        return next(other for other in self.recipes if (other.layout, other.linear_bits) == form)

    def trial(self, recipe: RecipeT, *, final: bool = False) -> tuple[float, float]:
        """Return mean loss and score of a heat on one fold, or of a final on two."""
        planned, n_folds = self._planned(recipe, final), FOLDS_OF_A_FINAL if final else 1
        folds = range(len(self.data.folds))[-n_folds:]
        self._train((planned, fold) for fold in folds)
        results = [self.judged[planned, fold] for fold in folds]
        loss, score = np.mean(results, axis=0).tolist()
        if (planned, final) not in self._shown:
            self._shown.add((planned, final))
            self._show(f"{_in_words(recipe)}: log loss {loss:.4f}, {100 * score:.2f} %")
        return loss, score

    def _planned(self, recipe: RecipeT, final: bool) -> Recipe:
        return replace(self.data.planned(recipe, final=final), n_threads=1)

    def _train(self, jobs: Iterable[tuple[Recipe, int]]) -> None:
        """Train what was not trained yet, side by side; one alone has all threads."""
        new = [job for job in dict.fromkeys(jobs) if job not in self.judged]
        n_threads = self.recipes[0].n_threads
        alone = n_threads if len(new) == 1 else 1
        tasks = [
            partial(
                self.data.judged,
                self.data.folds[fold],
                replace(recipe, n_threads=alone),
                self.cancelled,
            )
            for recipe, fold in new
        ]
        results = side_by_side(tasks, n_threads, self.cancelled)
        self.judged |= dict(zip(new, results, strict=True))

    def _show(self, text: str) -> None:
        """Report a trial and the time left."""
        done = len(self._shown)
        self._left = max(self._left - 1, 0)
        passed = time.perf_counter() - seconds_compiling() - self._started
        text += f"; {passed / done * self._left:.0f} s left"
        progress.report(STAGE, done, done + self._left, text)

    def _heats(self, recipes: Sequence[RecipeT]) -> None:
        """Train heats side by side whose results are likely to be needed."""
        if self.recipes[0].n_threads > 1:
            last = len(self.data.folds) - 1
            self._train((self._planned(recipe, final=False), last) for recipe in recipes)

    def _heat(self, recipe: RecipeT) -> float:
        return self.trial(recipe)[0]

    def _full(self, recipe: RecipeT) -> float:
        return self.trial(recipe, final=True)[0]

    def _climb(self, recipe: RecipeT, factor: float) -> RecipeT:
        """Multiply or divide sigma by `factor` as long as that helps."""
        if "sigma_multiple" in self.fixed or not self.may_try():
            return recipe
        directions, first = (factor, 1 / factor), recipe
        self._heats([recipe, *(self._moved(recipe, by) for by in directions)])
        for by in directions:
            for _ in range(_MOST_STEPS):
                if not self.may_try():
                    return recipe
                if not self._heat(self._moved(recipe, by)) < self._heat(recipe):
                    break
                recipe = self._moved(recipe, by)
            if recipe != first:
                break
        return recipe

    def _moved(self, recipe: RecipeT, by: float) -> RecipeT:
        return replace(recipe, sigma_multiple=recipe.sigma_multiple * by)

    def _with_best_noise(self, recipe: RecipeT, noises: Sequence[float]) -> RecipeT:
        others = (replace(recipe, noise=noise) for noise in noises)
        candidates = [recipe, *(other for other in others if self.may_try())]
        self._heats(candidates)
        return min(candidates, key=self._heat)

    def _final(self, candidates: Sequence[RecipeT]) -> RecipeT:
        """Return the best of recipes at their full size, the first ones if little time is left."""
        first, *others = dict.fromkeys(candidates)
        distinct = [first, *(other for other in others if self.may_try())]
        self.finalists |= dict.fromkeys(distinct)
        return min(distinct, key=self._full) if len(distinct) > 1 else distinct[0]

    def _ranked(self, recipes: Sequence[RecipeT]) -> list[RecipeT]:
        """Return recipes by their loss on the first fold of a final, the best one first."""
        last = len(self.data.folds) - 1
        jobs = {recipe: (self._planned(recipe, final=True), last) for recipe in recipes}
        done: list[RecipeT] = []
        for first in range(0, len(recipes), 2):
            if first and not self.may_try():
                break
            done += recipes[first : first + 2]
            self._train([jobs[recipe] for recipe in done])
        return sorted(done, key=lambda recipe: self.judged[jobs[recipe]][0])

    def _runners_up(self, best: RecipeT) -> list[RecipeT]:
        """Return the best recipe of each other layout that is nearly as good."""
        others: dict[str, RecipeT] = {}
        for recipe in sorted(self.finalists, key=self._full):
            others.setdefault(recipe.layout, recipe)
        others.pop(best.layout, None)
        most = _FAR_BEHIND * self._full(best)
        return [other for other in others.values() if self._full(other) < most and not other.losses]


def _in_words(recipe: Recipe) -> str:
    beside = "" if recipe.linear_bits is None else f" + linear part of {recipe.linear_bits} bits"
    beside += " that leads" if recipe.lead > 1 else ""
    return f"{recipe.layout}{beside}, sigma x {recipe.sigma_multiple:.3g}, noise {recipe.noise:.3g}"
