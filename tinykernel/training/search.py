"""The search for hyper-parameters: short trainings on a part of the rows.

The search changes one option after the other. Most trials are cheap: one fold, and half of the
components. The best candidates are then trained longer, with all components, before one is chosen.
A trial takes a fixed share of the work of the final training, so that the whole search takes about
as long as that training.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.compiled import seconds_compiling
from tinykernel.training.components.learner import Learner
from tinykernel.training.folds import Fold
from tinykernel.training.loop import run_epochs
from tinykernel.training.loss import judge
from tinykernel.training.options import form_of, parts_of
from tinykernel.training.options.recipe import Recipe
from tinykernel.training.readouts.blend import blended
from tinykernel.training.readouts.linear import LinearLearner, LinearRecipe, linear_dropout
from tinykernel.training.readouts.normal_equations import decided
from tinykernel.training.threads import side_by_side

_MOST_COMPONENTS, _MOST_IN_FOLDS, _MOST_AT_FULL_SIZE = 4096, 2048, 8192
_STEPS = 1000
_MOST_STEPS = 8
_FEWEST_EPOCHS, _MOST_EPOCHS = 4, 40
# A race: the work of a trial as a share of the training that follows, in the heats and the finals.
_HEAT, _FINAL = 1 / 28, 1 / 10
_FOLDS_OF_A_FINAL = 2
_WORD = 32
# What is so many times behind has no second chance.
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
    # Whether a linear part alone is blended (`blend_ahead`); None if that is not known yet.
    blend: bool | None = None


@dataclass(frozen=True)
class SearchTrial:
    """The result of one short training."""

    layout: str
    n_components: int
    linear_bits: int | None
    sigma_multiple: float
    noise: float
    # Mean of -log probability on the rows held out, at the best of a few temperatures: it varies
    # less from draw to draw than the accuracy. Of values the mean loss.
    log_loss: float
    accuracy: float  # see `tinykernel.training.loss.share_right`.


@dataclass(frozen=True)
class SearchOutcome:
    """The choice of a search, and its gain."""

    recipe: Recipe
    trials: list[SearchTrial]  # everything that was tried.
    # Log loss of the usual values and of what was chosen, by trials that can be compared.
    gain: tuple[float, float] | None = None
    interrupted: bool = False  # whether Ctrl-C ended the search; the best until then is taken.
    learned: str = ""  # of what the trials learned, where that is not the rows as they are.
    #: Other layouts, or a linear part alone, that are nearly as good.
    runners_up: tuple[Recipe, ...] = ()

    def best_of(self, recipe: Recipe) -> SearchTrial:
        """Return the best of the longest trials of the form of a recipe."""
        same = [
            trial
            for trial in self.trials
            if form_of(trial.layout if trial.n_components else None, trial.linear_bits)
            == recipe.form
        ]
        most = max(trial.n_components for trial in same)
        longest = (trial for trial in same if trial.n_components == most)
        return min(longest, key=lambda trial: trial.log_loss)

    def summary(self) -> dict[str, Any]:
        """Return the same in few words and numbers, for people and model files."""
        usual, chosen = self.gain or (None, None)
        return {
            "trials": len(self.trials),
            "chosen": _in_words(self.recipe),
            "log_loss_usual": None if usual is None else round(usual, 4),
            "log_loss": None if chosen is None else round(chosen, 4),
            "interrupted": self.interrupted,
            **({"learned": self.learned} if self.learned else {}),
        }


@dataclass
class _Search:
    """A search by coordinates that trains nothing twice."""

    data: TrialData
    capacity: Mapping[str, int]
    first: Recipe
    trials: dict[tuple[object, ...], SearchTrial] = field(default_factory=dict)
    #: Log loss and accuracy of a training, by what was trained and the fold.
    judged: dict[tuple[object, ...], tuple[float, float]] = field(default_factory=dict)
    #: Trials that are still to be expected, for the display.
    expected: int = 0
    #: The recipes that lead, the last one in front of all.
    leader: Recipe | None = None
    #: All that were in a final.
    finalists: dict[Recipe, None] = field(default_factory=dict)
    #: Ends the trainings that run.
    cancelled: threading.Event = field(default_factory=threading.Event)
    #: Of a clock that stands still while functions are compiled.
    _started: float = field(default_factory=lambda: time.perf_counter() - seconds_compiling())

    def score(self, recipe: Recipe, final: bool = False) -> float:
        """Return the log loss of a short training: a heat, or a final at full size."""
        trial = self._plan(recipe, final)
        key = (*_trained(trial), final)
        if key not in self.trials:
            n_folds = _FOLDS_OF_A_FINAL if final else 1
            self.trials[key] = self._train(trial, self.data.folds[-n_folds:])
            self._tell(trial, key)
        return self.trials[key].log_loss

    def _plan(self, recipe: Recipe, final: bool) -> Recipe:
        """Return how a trial of a recipe is trained."""
        p = self.capacity[recipe.form]
        n, d = self.data.folds[0].inside.size, self.data.mixed.shape[1]
        most = _MOST_COMPONENTS if len(self.data.folds) == 1 else _MOST_IN_FOLDS
        epochs = _STEPS * recipe.batch_rows // n
        most = _MOST_AT_FULL_SIZE if final else min(most, p // 2 // _WORD * _WORD)
        size = min(p, max(most, d))
        if p:
            # Work: rows times components times epochs. A linear part alone costs next to nothing.
            share = _FINAL / min(_FOLDS_OF_A_FINAL, len(self.data.folds)) if final else _HEAT
            work = share * self.first.epochs * len(self.data.truth) / n
            epochs = min(round(work * max(p, 1) / max(size, 1)), epochs)
        epochs = int(np.clip(epochs, _FEWEST_EPOCHS, _MOST_EPOCHS))
        return replace(recipe, n_components=size, epochs=epochs, peak_step=2 * recipe.peak_step)

    def _tell(self, recipe: Recipe, key: tuple[object, ...]) -> None:
        """Report a trial: what is compared, the best of its kind, and the time left."""
        done, trial = len(self.trials), self.trials[key]
        self.expected = max(self.expected, done)
        kind = [each for other, each in self.trials.items() if other[-1] == key[-1]]
        best = min(kind, key=lambda each: each.log_loss)
        passed = time.perf_counter() - seconds_compiling() - self._started
        left = passed / done * (self.expected - done)
        text = f"{_in_words(recipe)}: log loss {trial.log_loss:.4f}, "
        text += f"{100 * trial.accuracy:.2f} %; lowest {best.log_loss:.4f}; {left:.0f} s left"
        progress.report(STAGE, done, self.expected, text)

    def expect(self, more: int) -> None:
        """Say how many trials may still come."""
        self.expected = len(self.trials) + more

    def _train(self, recipe: Recipe, folds: Sequence[Fold]) -> SearchTrial:
        """Train once on each fold; losses and accuracies are averaged."""
        key = _trained(recipe)
        # A linear part is trained as long in a heat as in a final.
        left = self._missing(recipe, folds)
        # Side by side: short trainings do not fill two threads each.
        each = recipe if len(left) == 1 else replace(recipe, n_threads=1)
        tasks = [partial(_train_fold, self.data, fold, each, self.cancelled) for fold in left]
        results = side_by_side(tasks, recipe.n_threads, self.cancelled)
        for fold, result in zip(left, results, strict=True):
            self.judged[(*key, id(fold))] = result
        judged = np.array([self.judged[(*key, id(fold))] for fold in folds])
        log_loss, accuracy = judged.mean(axis=0).tolist()
        names = (field.name for field in fields(SearchTrial))
        chosen: dict[str, Any] = {k: getattr(recipe, k) for k in names if hasattr(recipe, k)}
        return SearchTrial(**chosen, log_loss=log_loss, accuracy=accuracy)

    def _missing(self, recipe: Recipe, folds: Sequence[Fold]) -> list[Fold]:
        key = _trained(recipe)
        return [fold for fold in folds if (*key, id(fold)) not in self.judged]

    def heats(self, recipes: Sequence[Recipe]) -> None:
        """Train heats side by side whose scores are likely to be asked for."""
        plans = [self._plan(recipe, final=False) for recipe in recipes]
        folds, n_threads = self.data.folds[-1:], self.first.n_threads
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
                if not self.score(candidate) < self.score(recipe):
                    break
                recipe, moved = candidate, True
                self.leader = recipe
            if moved:
                break
        return recipe

    def best_of(self, recipe: Recipe, noises: Sequence[float]) -> Recipe:
        candidates = [recipe, *(replace(recipe, noise=noise) for noise in noises)]
        self.heats(candidates)
        self.leader = min(candidates, key=self.score)
        return self.leader

    def final(self, candidates: Sequence[Recipe]) -> Recipe:
        """Take the best of recipes at their full size.

        A layout with smaller components has more of them, which only shows there.
        """
        distinct = list(dict.fromkeys(candidates))
        self.finalists |= dict.fromkeys(distinct)
        if len(distinct) > 1:
            self.leader = min(distinct, key=lambda each: self.score(each, final=True))
            return self.leader
        return distinct[0]


def _trained(recipe: Recipe) -> tuple[object, ...]:
    """Return what tells a short training from others of the same fold."""
    settings = (recipe.form, recipe.sigma_multiple, recipe.noise)
    return (*settings, recipe.n_components, recipe.epochs)


def _in_words(recipe: Recipe) -> str:
    """Say what a trial trains."""
    if not recipe.n_components:
        return recipe.form
    return f"{recipe.form}, sigma x {recipe.sigma_multiple:.3g}, noise {recipe.noise:.3g}"


def _train_fold(
    data: TrialData, fold: Fold, recipe: Recipe, cancelled: threading.Event
) -> tuple[float, float]:
    """Return log loss and accuracy on the rows held out."""
    decisions = decisions_of(data, fold, recipe, cancelled)
    return judge(decisions, data.truth[fold.outside], data.weight[fold.outside], recipe.losses)


def decisions_of(
    data: TrialData, fold: Fold, recipe: Recipe, cancelled: threading.Event | None = None
) -> NDArray[np.float32]:
    """Train components, a linear part or both on the rows inside a fold, and decide the others."""
    inputs, held = data.inputs[fold.inside], data.inputs[fold.outside]
    known = data.targets[fold.inside], data.weight[fold.inside]
    if recipe.n_components:
        mixed = data.mixed[fold.inside]
        learner = Learner(mixed, *known, recipe, cancelled=cancelled, inputs=inputs)
        learner.run()
        return learner.decide(data.mixed[fold.outside], held)
    assert recipe.linear_bits is not None
    steps = recipe.linear_bits, recipe.epochs, recipe.batch_rows
    more: dict[str, Any] = {"seed": recipe.seed, "losses": recipe.losses}
    linear = LinearRecipe(*steps, dropout=linear_dropout(inputs.shape[1]), **more)
    alone = LinearLearner(inputs, *known, linear)
    run_epochs(alone, recipe.epochs, stage=None)
    return decided(blended(alone), held) if data.blend else alone.decide(held)


def choose_recipe(
    data: TrialData,
    recipe: Recipe,
    capacity: Mapping[str, int],
    fixed: frozenset[str],
    beaten: Callable[[SearchOutcome], bool] | None = None,
) -> SearchOutcome:
    """Choose sigma, noise and, for a budget, the layout.

    `recipe` is where to start, `capacity` says how many components of each layout that may be
    chosen fit, `fixed` names what not to touch. The race ends early where a linear part alone is
    ahead of the first layout and of both together, or where `beaten` says that another model is
    ahead of the first layout. Ctrl-C ends the search, and the best so far is taken.
    """
    search = _Search(data, capacity, recipe)
    progress.report(STAGE, 0, None, "the log loss on rows held out decides")
    try:
        chosen, usual, is_beaten = _searched(search, recipe, fixed, beaten)
        if is_beaten:
            return SearchOutcome(chosen, list(search.trials.values()))
        others = _runners_up(search, chosen)
        gain = None
        if usual.form == chosen.form and chosen.n_components:
            gain = search.score(usual, final=True), search.score(chosen, final=True)
        return SearchOutcome(chosen, list(search.trials.values()), gain, runners_up=others)
    except KeyboardInterrupt:
        chosen = search.leader or recipe
        progress.report(STAGE, len(search.trials), None, f"stopped; taken: {_in_words(chosen)}")
        return SearchOutcome(chosen, list(search.trials.values()), interrupted=True)


def _runners_up(search: _Search, chosen: Recipe) -> tuple[Recipe, ...]:
    """Return the best of each other layout, and of a linear part alone, if nearly as good."""
    best: dict[str, tuple[float, Recipe]] = {}
    for recipe in search.finalists:
        kind, loss = _kind(recipe), search.score(recipe, final=True)
        if kind not in best or loss < best[kind][0]:
            best[kind] = loss, recipe
    best.pop(_kind(chosen), None)
    most = _FAR_BEHIND * search.score(chosen, final=True)
    return tuple(recipe for loss, recipe in best.values() if loss < most and not recipe.losses)


def _kind(recipe: Recipe) -> str:
    return recipe.layout if recipe.n_components else ""


def _searched(
    search: _Search,
    recipe: Recipe,
    fixed: frozenset[str],
    beaten: Callable[[SearchOutcome], bool] | None,
) -> tuple[Recipe, Recipe, bool]:
    """Return the best recipe, the same form with usual values, and whether it is beaten."""
    # Those without a linear part; if there is none, those with components, or all.
    forms = [form for form in search.capacity if parts_of(form)[1] is None]
    forms = forms or [form for form, n in search.capacity.items() if n] or list(search.capacity)
    rest = 0 if not fixed.isdisjoint({"noise"}) else 7
    usual = {form: recipe.in_form(form, search.capacity[form]) for form in search.capacity}
    finalists: list[Recipe] = []
    for number, form in enumerate(forms):
        search.expect(5 * (len(forms) - number) + len(search.capacity) + rest)
        recipe = recipe.in_form(form, search.capacity[form])
        if "sigma_multiple" not in fixed:
            recipe = search.climb(recipe, "sigma_multiple", 2.0)
        finalists.append(recipe)
        alone = None if number else _linear_ahead(search, recipe)
        if alone is not None:
            # Or the search would take many times the training.
            return alone, usual[alone.form], False
        if beaten and not number and recipe.n_components and beaten(_so_far(search, recipe)):
            return recipe, usual[form], True
    search.expect(len(search.capacity) + rest)
    recipe = search.final([_with_linear(search, finalist) for finalist in finalists])
    if search.capacity[recipe.form]:
        before = recipe
        recipe = _refined(search, recipe, fixed)
        # Heats are short, and may take too little noise for the better.
        search.expect(3)
        recipe = search.final([recipe, before, usual[recipe.form]])
    return recipe, usual[recipe.form], False


def _linear_ahead(search: _Search, recipe: Recipe) -> Recipe | None:
    """Return the widest linear part alone where components are behind it.

    Heats say so, and a final with both together, which can be as good as either.
    """
    capacity, alone = search.capacity, _alone(search, recipe)
    if not alone or not recipe.n_components or recipe.losses:
        return None
    if search.score(recipe) <= search.score(alone[0]):
        return None
    both = [
        recipe.in_form(form, n)
        for form, n in capacity.items()
        if parts_of(form)[0] == recipe.layout and parts_of(form)[1]
    ]
    first = search.final([alone[0], (both or [recipe])[0]])
    return first if first == alone[0] else None


def _so_far(search: _Search, recipe: Recipe) -> SearchOutcome:
    """Return heats of a first layout, and of a linear part alone where it had one."""
    search.score(recipe)
    alone = [] if recipe.losses else _alone(search, recipe)[:1]
    return SearchOutcome(recipe, list(search.trials.values()), runners_up=tuple(alone))


def _alone(search: _Search, recipe: Recipe) -> list[Recipe]:
    """Return linear parts alone, the widest first."""
    return [recipe.in_form(form, 0) for form in search.capacity if parts_of(form)[0] is None]


def _refined(search: _Search, recipe: Recipe, fixed: frozenset[str]) -> Recipe:
    """Choose the rest for a form: noise, and sigma in small steps."""
    search.expect(7)
    if "noise" not in fixed:
        recipe = search.best_of(recipe, list(_FURTHER_NOISE))
        recipe = search.best_of(recipe, _FURTHER_NOISE.get(recipe.noise, []))
    search.expect(4)
    if "sigma_multiple" not in fixed:
        recipe = search.climb(recipe, "sigma_multiple", float(np.sqrt(2.0)))
    return recipe


def _with_linear(search: _Search, recipe: Recipe) -> Recipe:
    """Return the best of a recipe, the same with a linear part, and a linear part alone."""
    candidates = [
        recipe.in_form(form, n)
        for form, n in search.capacity.items()
        if form != recipe.form and parts_of(form)[1] and parts_of(form)[0] in (None, recipe.layout)
    ]
    return search.final([recipe, *candidates])
