"""How hyper-parameters are chosen: short trainings on part of the rows."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.training.folds import Fold
from tinykernel.training.layouts import LAYOUTS
from tinykernel.training.learner import Learner
from tinykernel.training.linear.readout import LinearLearner, LinearRecipe, linear_dropout
from tinykernel.training.loop import run_epochs
from tinykernel.training.loss import judge
from tinykernel.training.options import Recipe, parts_of

__all__ = ["Trial", "TrialData", "choose_recipe"]

_MOST_COMPONENTS, _MOST_IN_FOLDS, _MOST_AT_FULL_SIZE = 4096, 2048, 16384
_STEPS = 1000
_MOST_STEPS = 8
_LESS_NOISE, _MORE_NOISE, _MOST_NOISE = 0.1, 0.5, 0.75


@dataclass(frozen=True, eq=False)
class TrialData:
    """Rows for short trainings, and which of them each learns from.

    Parameters
    ----------
    mixed : ndarray of float32, shape (n, d)
    targets : ndarray of float32, shape (n, n_outputs)
    weight : ndarray of float32, shape (n,)
    truth : ndarray, shape (n,) or (n, n_outputs)
        Codes of the labels, or the targets of values.
    folds : sequence of Fold
        Each trial is made once on each.
    inputs : ndarray of integers, shape (n, n_features)
        Quantized inputs.
    """

    mixed: NDArray[np.float32]
    targets: NDArray[np.float32]
    weight: NDArray[np.float32]
    truth: NDArray[Any]
    folds: Sequence[Fold]
    inputs: NDArray[Any]


@dataclass(frozen=True)
class Trial:
    """What one short training gave.

    Parameters
    ----------
    layout : str
    n_components : int
    linear_bits : int or None
    sigma_multiple, noise, slope, dropout : float
    log_loss : float
        Mean of -log probability on the rows held out, at the best of a few temperatures: it varies
        less from draw to draw than the accuracy. Of values the mean loss.
    accuracy : float
        See `tinykernel.training.loss.share_right`.
    """

    layout: str
    n_components: int
    linear_bits: int | None
    sigma_multiple: float
    noise: float
    slope: float
    dropout: float
    log_loss: float
    accuracy: float


@dataclass
class _Search:
    """A search by coordinates that trains nothing twice."""

    data: TrialData
    capacity: Mapping[str, int]
    trials: dict[tuple[object, ...], Trial] = field(default_factory=dict)

    def score(self, recipe: Recipe, most: int | None = None) -> float:
        """Return the log loss of a short training, with at most so many components."""
        most = most or (_MOST_COMPONENTS if len(self.data.folds) == 1 else _MOST_IN_FOLDS)
        p = min(self.capacity[recipe.form], max(most, self.data.mixed.shape[1]))
        key = (
            p,
            recipe.form,
            recipe.sigma_multiple,
            recipe.noise,
            recipe.slope,
            recipe.dropout,
        )
        if key not in self.trials:
            self.trials[key] = self._train(replace(recipe, n_components=p))
            text = f"{recipe.form}, sigma x {recipe.sigma_multiple:.3g}, noise "
            text += f"{recipe.noise:.3g}, slope {recipe.slope:.3g}, dropout {recipe.dropout:.3g}"
            text = text if p else recipe.form
            text += f": {100 * self.trials[key].accuracy:.2f} %"
            progress.report("choosing hyper-parameters", len(self.trials), None, text)
        return self.trials[key].log_loss

    def _train(self, recipe: Recipe) -> Trial:
        """Train once on each fold; losses and accuracies are averaged."""
        n = self.data.folds[0].inside.size
        recipe = replace(
            recipe,
            epochs=int(np.clip(_STEPS * recipe.batch_rows // n, 4, 40)),
            peak_step=2 * recipe.peak_step,
        )
        judged = np.array(self._on_each_fold(recipe))
        log_loss, accuracy = judged.mean(axis=0).tolist()
        return Trial(
            layout=recipe.layout,
            n_components=recipe.n_components,
            linear_bits=recipe.linear_bits,
            sigma_multiple=recipe.sigma_multiple,
            noise=recipe.noise,
            slope=recipe.slope,
            dropout=recipe.dropout,
            log_loss=log_loss,
            accuracy=accuracy,
        )

    def _on_each_fold(self, recipe: Recipe) -> list[tuple[float, float]]:
        """Train on all folds, side by side: short trainings do not fill two threads each."""
        cancelled, folds = threading.Event(), self.data.folds
        if len(folds) == 1 or recipe.n_threads == 1:
            return [_train_fold(self.data, fold, recipe, cancelled) for fold in folds]
        alone = replace(recipe, n_threads=1)
        with ThreadPoolExecutor(max_workers=recipe.n_threads) as executor:
            try:
                parts = [executor.submit(_train_fold, self.data, fold, alone, cancelled)
                         for fold in folds]  # fmt: skip
                return [part.result() for part in parts]
            except BaseException:
                cancelled.set()  # Ctrl-C need not wait for the others
                raise

    def climb(self, recipe: Recipe, name: str, factor: float) -> Recipe:
        """Multiply or divide one option by `factor` as long as that helps."""
        for direction in (factor, 1 / factor):
            moved = False
            for _ in range(_MOST_STEPS):
                candidate = _with(recipe, name, getattr(recipe, name) * direction)
                if not self.score(candidate) < self.score(recipe):
                    break
                recipe, moved = candidate, True
            if moved:
                break
        return recipe

    def best_of(self, recipe: Recipe, name: str, values: Sequence[object]) -> Recipe:
        """Take the best value of one option."""
        candidates = [recipe, *(_with(recipe, name, value) for value in values)]
        return min(candidates, key=self.score)


def _train_fold(
    data: TrialData, fold: Fold, recipe: Recipe, cancelled: threading.Event
) -> tuple[float, float]:
    """Return log loss and accuracy on the rows held out."""
    if not recipe.n_components:
        return _train_linear(data, fold, recipe)
    mixed, held_out = data.mixed[fold.inside], data.mixed[fold.outside]
    mean = np.zeros(mixed.shape[1], dtype=np.float32)
    if LAYOUTS[recipe.layout].learns_start:
        mean = mixed.mean(axis=0)
        mixed -= mean
        held_out -= mean
    learner = Learner(
        mixed, data.targets[fold.inside], data.weight[fold.inside], recipe, mean,
        cancelled=cancelled, inputs=data.inputs[fold.inside],
    )  # fmt: skip
    learner.run()
    decisions = learner.decide(held_out, data.inputs[fold.outside])
    return judge(decisions, data.truth[fold.outside], data.weight[fold.outside], recipe.losses)


def _train_linear(data: TrialData, fold: Fold, recipe: Recipe) -> tuple[float, float]:
    """Do the same for a linear part alone."""
    assert recipe.linear_bits is not None
    learner = LinearLearner(
        data.inputs[fold.inside], data.targets[fold.inside], data.weight[fold.inside],
        LinearRecipe(
            recipe.linear_bits, recipe.epochs, recipe.batch_rows, seed=recipe.seed,
            dropout=linear_dropout(data.inputs.shape[1]), losses=recipe.losses,
        ),
    )  # fmt: skip
    run_epochs(learner, recipe.epochs, None, None, None)
    decisions = learner.decide(data.inputs[fold.outside])
    return judge(decisions, data.truth[fold.outside], data.weight[fold.outside], recipe.losses)


def _with(recipe: Recipe, name: str, value: Any) -> Recipe:
    """Return a recipe with one value changed."""
    return replace(recipe, **{name: value})


def choose_recipe(
    data: TrialData, recipe: Recipe, capacity: Mapping[str, int], fixed: frozenset[str]
) -> tuple[Recipe, list[Trial]]:  # fmt: skip
    """Choose sigma, noise, slope, dropout and, for a budget, the layout.

    `recipe` is where to start, `capacity` says how many components of each layout that may be
    chosen fit, `fixed` names what not to touch. Where "phases" is not the best of the others,
    "pruned" is left out. Returned are what was best, and everything that was tried.
    """
    search = _Search(data, capacity)
    # "pruned" last: whether it is tried depends on the others.
    forms = sorted(_first_forms(capacity), key=lambda form: parts_of(form)[0] == "pruned")
    finalists: list[Recipe] = []
    for form in forms:
        if parts_of(form)[0] == "pruned" and _phases_are_behind(search, finalists):
            continue  # as it is "phases" with rows left out; trials take time
        recipe = recipe.in_form(form, capacity[form])
        if "sigma_multiple" not in fixed:
            recipe = search.climb(recipe, "sigma_multiple", 2.0)
        finalists.append(recipe)
    recipe = _with_linear(search, _best(search, finalists))
    if not capacity[recipe.form]:
        return recipe, list(search.trials.values())
    if "noise" not in fixed:
        recipe = search.best_of(recipe, "noise", [_LESS_NOISE, _MORE_NOISE])
        if recipe.noise == _LESS_NOISE:
            recipe = search.best_of(recipe, "noise", [0.0])
        elif recipe.noise == _MORE_NOISE:
            recipe = search.best_of(recipe, "noise", [_MOST_NOISE])
    if "sigma_multiple" not in fixed:
        recipe = search.climb(recipe, "sigma_multiple", float(np.sqrt(2.0)))
    if "slope" not in fixed:
        recipe = search.best_of(recipe, "slope", [1.0])
    if "dropout" not in fixed:
        recipe = search.best_of(recipe, "dropout", [0.2])
    return recipe, list(search.trials.values())


def _first_forms(capacity: Mapping[str, int]) -> list[str]:
    """Return the forms without a linear part; if there is none, those with components, or all."""
    forms = [form for form in capacity if parts_of(form)[1] is None]
    return forms or [form for form in capacity if capacity[form]] or list(capacity)


def _with_linear(search: _Search, recipe: Recipe) -> Recipe:
    """Return the best of a recipe, the same with a linear part, and a linear part alone."""
    candidates = [
        recipe.in_form(form, n)
        for form, n in search.capacity.items()
        if form != recipe.form and parts_of(form)[1] and parts_of(form)[0] in (None, recipe.layout)
    ]
    if not candidates:
        return recipe
    return min([recipe, *candidates], key=lambda each: search.score(each, _MOST_AT_FULL_SIZE))


def _best(search: _Search, finalists: Sequence[Recipe]) -> Recipe:
    """Return the best of one candidate for each layout.

    A layout with smaller components has more of them, which only shows at its full size.
    """
    if len(finalists) == 1:
        return finalists[0]
    return min(finalists, key=lambda each: search.score(each, _MOST_AT_FULL_SIZE))


def _phases_are_behind(search: _Search, finalists: Sequence[Recipe]) -> bool:
    """Return whether "phases" was tried and another layout was better."""
    tried = {each.layout for each in finalists}
    return "phases" in tried and _best(search, finalists).layout != "phases"
