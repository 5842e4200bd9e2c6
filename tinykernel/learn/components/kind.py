"""The kernel machine: binary components, perhaps with a linear part beside them.

The search for layout, linear part, sigma and noise, by short trainings, changes one setting after
the other. Most trials are heats: one fold, and half of the components. Finals have all components,
as a layout with smaller components has more of them.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from tinykernel.base import progress
from tinykernel.base.checks import MOST_COMPONENTS
from tinykernel.base.compiled import seconds_compiling
from tinykernel.base.errors import TinykernelError
from tinykernel.base.hadamard import padded_dimension
from tinykernel.kinds.kind import Kind, Problem, RaceTrial, Rounds, Spec, candidate_of
from tinykernel.kinds.pace import Pace
from tinykernel.learn.choice import Candidate, Fold, side_by_side
from tinykernel.learn.components.learner import FOLDS_OF_A_FINAL, TrialData
from tinykernel.learn.components.options import COMPONENTS
from tinykernel.learn.components.training import Prepared, draw_machine
from tinykernel.learn.inputs import WORD, components_within, layout_of
from tinykernel.learn.loop import Recipe, TrainingResult, recipe_for, usual_epochs
from tinykernel.learn.smooth import MOST_ROWS
from tinykernel.model.integer import IntegerModel
from tinykernel.run.report import MOST_CHOSEN, cut

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
        for recipe in self._rank([*climbed, *beside, *self._led(beside, climbed)]):
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
        best = replace(self._rank(beside)[0], lead=_LEAD)
        if self._heat(best) > _FAR_BEHIND * min(map(self._heat, climbed)):
            return []
        if "sigma_multiple" in self.fixed:
            return [best]
        return [min((best, self._move(best, 2.0)), key=self._heat)]

    def usual(self, recipe: RecipeT) -> RecipeT:
        """Return the same candidate before the search."""
        form = recipe.layout, recipe.linear_bits
        return next(other for other in self.recipes if (other.layout, other.linear_bits) == form)

    def trial(self, recipe: RecipeT, *, final: bool = False) -> tuple[float, float]:
        """Return mean loss and score of a heat on one fold, or of a final on two."""
        planned, n_folds = self._plan(recipe, final), FOLDS_OF_A_FINAL if final else 1
        folds = range(len(self.data.folds))[-n_folds:]
        self._train((planned, fold) for fold in folds)
        results = [self.judged[planned, fold] for fold in folds]
        loss, score = np.mean(results, axis=0).tolist()
        if (planned, final) not in self._shown:
            self._shown.add((planned, final))
            self._show(f"{_in_words(recipe)}: log loss {loss:.4f}, {100 * score:.2f} %")
        return loss, score

    def _plan(self, recipe: RecipeT, final: bool) -> Recipe:
        return replace(self.data.plan(recipe, final=final), n_threads=1)

    def _train(self, jobs: Iterable[tuple[Recipe, int]]) -> None:
        """Train what was not trained yet, side by side; one alone has all threads."""
        new = [job for job in dict.fromkeys(jobs) if job not in self.judged]
        n_threads = self.recipes[0].n_threads
        alone = n_threads if len(new) == 1 else 1
        tasks = [
            partial(
                self.data.judge,
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
            self._train((self._plan(recipe, final=False), last) for recipe in recipes)

    def _heat(self, recipe: RecipeT) -> float:
        return self.trial(recipe)[0]

    def _full(self, recipe: RecipeT) -> float:
        return self.trial(recipe, final=True)[0]

    def _climb(self, recipe: RecipeT, factor: float) -> RecipeT:
        """Multiply or divide sigma by `factor` as long as that helps."""
        if "sigma_multiple" in self.fixed or not self.may_try():
            return recipe
        directions, first = (factor, 1 / factor), recipe
        self._heats([recipe, *(self._move(recipe, by) for by in directions)])
        for by in directions:
            for _ in range(_MOST_STEPS):
                if not self.may_try():
                    return recipe
                if not self._heat(self._move(recipe, by)) < self._heat(recipe):
                    break
                recipe = self._move(recipe, by)
            if recipe != first:
                break
        return recipe

    def _move(self, recipe: RecipeT, by: float) -> RecipeT:
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

    def _rank(self, recipes: Sequence[RecipeT]) -> list[RecipeT]:
        """Return recipes by their loss on the first fold of a final, the best one first."""
        last = len(self.data.folds) - 1
        jobs = {recipe: (self._plan(recipe, final=True), last) for recipe in recipes}
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


_DEFAULT = 2048
# Layouts that are compared for a budget: b and t are learned in each, and weights can be 0.
_LAYOUTS = ("full", "windows")
# Bits of a linear part beside components: most of classes, and where they take less than this
# share of the flash, or are of values.
_BESIDE, _BESIDE_EXACT, _EXACT_SHARE = 4, 8, 1 / 32
# With fewer components a linear part is better, where nothing is compared.
_FEW = 128
# Code is small where fast code would fill more than this of the flash.
_CODE_SHARE = 0.3


@dataclass(frozen=True)
class ComponentsSpec(Recipe, Spec):
    """Layout, number and training of components, and the bits of a linear part beside them."""

    SIZE: ClassVar[str] = COMPONENTS.size
    STEP: ClassVar[int] = WORD
    FEWEST: ClassVar[int] = WORD
    small_code: bool = False
    missed: float = 0.0  # mean loss of short trainings to the values of a smooth fit.

    def __str__(self) -> str:
        """Describe it without hyper-parameters."""
        beside = f" and a linear part of {self.linear_bits} bits" if self.linear_bits else ""
        return f"{self.n_components} components ({self.layout}){beside}"

    @property
    def recipe(self) -> Recipe:
        """The part that decides the training."""
        return Recipe(**{item.name: getattr(self, item.name) for item in fields(Recipe)})


class ComponentsKind(Kind[ComponentsSpec]):
    """The kernel machine."""

    about = COMPONENTS
    cost = 2
    # A short training of components gains more than those of others by a longer one.
    behind = (float("inf"), 1.5)
    behind_peers = 1.3
    share = 0.5
    price, trial_share = (8e-6, 0.85e-9), 1 / 14

    def cost_for(self, spec: ComponentsSpec, problem: Problem) -> int:
        """Return the rank; components of values are cheaper than trees, see `TreesKind`."""
        return 1 if problem.of_values else self.cost

    def specs(self, problem: Problem) -> list[ComponentsSpec]:
        """Return each layout that competes, alone and with a linear part."""
        options = problem.options
        usual = options.usual_layout if options.layout == "auto" else options.layout
        layouts: Sequence[str] = (usual,)
        if options.layout == "auto" and self._is_open(problem) and not problem.is_quick:
            layouts = (usual, *(name for name in _LAYOUTS if name != usual))
        small = options.code == "small" or (options.code == "auto" and problem.once(_is_small))
        specs = []
        for layout in layouts:
            most = self._most(layout, problem)
            for bits in self._beside(problem):
                size = {"layout": layout, "n_components": most, "linear_bits": bits}
                recipe = recipe_for(options, len(problem.data.X), problem.data.losses, **size)
                specs.append(ComponentsSpec(**vars(recipe), small_code=small))
        return specs

    def _is_open(self, problem: Problem) -> bool:
        return problem.limits is not None and problem.options.n_components is None

    def _most(self, layout: str, problem: Problem) -> int:
        """Return the number that the user fixed, or the largest useful one."""
        if not self._is_open(problem):
            return problem.options.n_components or _DEFAULT
        assert problem.limits is not None
        data, flash = problem.data, problem.limits.flash or MOST_CHOSEN
        n_outputs, dimension = data.targets().shape[1], padded_dimension(data.X.shape[1])
        most = components_within(flash, layout_of(layout), dimension, n_outputs)
        return min(max(most, ComponentsSpec.FEWEST), MOST_CHOSEN)

    def _beside(self, problem: Problem) -> list[int | None]:
        """Return the bits of linear parts to compare; None for components alone."""
        options = problem.options
        if options.linear != "auto":
            return [options.linear_bits(None)]
        if problem.of_values:
            return [_BESIDE_EXACT]
        if not self._is_open(problem) or problem.is_quick or options.sigma is not None:
            return [None]
        assert problem.limits is not None
        n_weights = problem.data.X.shape[1] * problem.data.targets().shape[1]
        is_small = n_weights < _EXACT_SHARE * (problem.limits.flash or MOST_CHOSEN)
        return [None, _BESIDE_EXACT if is_small else _BESIDE]

    def resize(self, spec: ComponentsSpec, size: int, problem: Problem) -> ComponentsSpec:
        """Return the spec with so many components, and the epochs that these take."""
        n = 0 if problem.of_values else size
        epochs = problem.options.epochs or usual_epochs(len(problem.data.X), n)
        return replace(spec, n_components=size, epochs=epochs)

    def epochs(self, spec: ComponentsSpec, problem: Problem) -> int:
        """Return the epochs; none for the rows of a smooth fit, which are few."""
        return 0 if problem.of_values and len(problem.data.X) <= MOST_ROWS else spec.epochs

    def skeleton(self, spec: ComponentsSpec, problem: Problem) -> IntegerModel:
        """Return components of random values."""
        form = spec.layout, spec.linear_bits, spec.small_code
        largest = problem.once(
            _largest, *form, max(spec.n_components, self._most(form[0], problem))
        )
        return cut(largest, spec.n_components)

    def contenders(
        self, sized: Sequence[ComponentsSpec], problem: Problem
    ) -> Sequence[ComponentsSpec]:
        """Leave out too few components where nothing is compared."""
        if not self._is_open(problem) or not problem.is_quick or problem.options.model != "auto":
            return sized
        return [spec for spec in sized if spec.n_components >= _FEW]

    def tune(self, specs: Sequence[ComponentsSpec], problem: Problem, pace: Pace) -> Rounds:
        """Search sigma, layout, linear part and noise."""
        prepared, fixed = problem.once(_prepare), set[str]()
        if prepared.smooth is not None:
            fixed.add("noise")
        if problem.options.sigma is not None:
            fixed.add("sigma_multiple")
        adapted = [prepared.adapt(spec) for spec in specs]
        may_try = partial(pace.may_try, self.name)
        rows = replace(prepared.rows, share=pace.effort.share)
        search = ComponentSearch(rows, adapted, frozenset(fixed), problem.cancelled, may_try)
        relative = prepared.relative_to_values

        def trial(spec: ComponentsSpec, *, final: bool, usual: float | None = None) -> RaceTrial:
            short = search.trial(spec, final=final)
            if final and prepared.smooth is not None:
                spec = replace(spec, missed=short[0])
            return RaceTrial(spec, *relative(*short), usual_loss=usual)

        for step in search.rounds():
            best, final = step.best, step.is_final
            usual = None
            if final and may_try():
                usual = relative(*search.trial(search.usual(best), final=True))[0]
            others = [trial(spec, final=final) for spec in step.runners_up]
            yield [trial(best, final=final, usual=usual), *others]

    def judge(self, spec: ComponentsSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        """Train inside a fold; of a smooth fit, add the mean loss of components that learn it."""
        prepared = problem.once(_prepare)
        if prepared.smooth is not None:
            fitted = candidate_of(spec, prepared.smooth.held_out(fold), problem, fold)
            loss = float(np.average(fitted.losses, weights=problem.data.weight[fold.outside]))
            score = 1 - (1 - fitted.score) * (loss + spec.missed) / max(loss, 1e-30)
            return replace(fitted, losses=fitted.losses + spec.missed, score=score)
        step = spec.peak_step * (2 if share < 1 else 1)  # as in other short trainings
        epochs = max(1, round(share * spec.epochs))
        recipe = replace(spec.recipe, epochs=epochs, peak_step=step, n_threads=1)
        decisions = prepared.rows.decisions(fold, recipe, problem.cancelled)
        return candidate_of(spec, decisions, problem, fold)

    def settle(self, spec: ComponentsSpec, problem: Problem, pace: Pace) -> ComponentsSpec:
        """Choose a draw of B and P."""
        if problem.is_quick:
            return spec
        return replace(
            spec, draw=problem.once(_prepare).best_draw(self._recipe(spec, problem, pace))
        )

    def fit(self, spec: ComponentsSpec, problem: Problem, pace: Pace) -> TrainingResult:
        """Train components, and a linear part beside them."""
        recipe, judging = self._recipe(spec, problem, pace), problem.options.validation_fraction
        return problem.once(_prepare).train(
            recipe, judging, pace.replan, small_code=spec.small_code
        )

    def _recipe(self, spec: ComponentsSpec, problem: Problem, pace: Pace) -> Recipe:
        """Return the recipe of a final training."""
        recipe = problem.once(_prepare).adapt(spec.recipe)
        recipe = replace(recipe, epochs=pace.final_epochs(recipe.epochs))
        # Without a search noise is what suits the rows.
        return recipe if problem.is_quick else replace(recipe, noise=spec.noise)


KINDS = (ComponentsKind(),)


def _prepare(problem: Problem) -> Prepared:
    """Return the rows as components learn them."""
    data, options = problem.data, problem.options
    size = {"layout": options.usual_layout, "n_components": _DEFAULT, "linear_bits": None}
    return Prepared.of(data, options, recipe_for(options, len(data.X), data.losses, **size))


def _largest(
    problem: Problem, layout: str, linear_bits: int | None, small_code: bool, most: int
) -> IntegerModel:
    """Return an untrained model of the most components, to be cut."""
    size: dict[str, Any] = {"layout": layout, "n_components": most, "linear_bits": linear_bits}
    data = problem.once(Problem.few).data
    recipe = recipe_for(problem.options, len(data.X), data.losses, **size)
    return draw_machine(data, problem.options, recipe, small_code=small_code)


def _is_small(problem: Problem) -> bool:
    """Whether flash is so scarce that more components are worth slower code."""
    limits = problem.limits
    if limits is None or limits.flash is None or limits.beside_flash:
        return False  # who limits the time does not want it doubled
    kind = ComponentsKind()
    # Blocks, as trained models have, but for very many inputs.
    several = min(2 * padded_dimension(problem.data.X.shape[1]), MOST_COMPONENTS)
    options = problem.options
    layout = options.usual_layout if options.layout == "auto" else options.layout
    beside = kind._beside(problem)[0]
    with suppress(TinykernelError):  # its size is unknown without a compiler
        fast = problem.once(_largest, layout, beside, False, several)
        return problem.report(fast).flash_parts["code"] > limits.flash * _CODE_SHARE
    return False
