"""How the joint trainer chooses its hyper-parameters: short trainings on part of the rows."""

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
from tinykernel.training.learner import JointLearner
from tinykernel.training.options import JointOptions

__all__ = ["Trial", "TrialData", "choose_options"]

_TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
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
    codes : ndarray of int64, shape (n,)
    folds : sequence of Fold
        Each trial is made once on each.
    """

    mixed: NDArray[np.float32]
    targets: NDArray[np.float32]
    weight: NDArray[np.float32]
    codes: NDArray[np.int64]
    folds: Sequence[Fold]


@dataclass(frozen=True)
class Trial:
    """What one short training gave.

    Parameters
    ----------
    layout : str
    n_components : int
    sigma_multiple, noise, slope, dropout : float
    log_loss : float
        Mean of -log probability on the rows held out, at the best of a few temperatures: it varies
        less from draw to draw than the accuracy.
    accuracy : float
    """

    layout: str
    n_components: int
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

    def score(self, options: JointOptions, most: int | None = None) -> float:
        """Return the log loss of a short training, with at most so many components."""
        most = most or (_MOST_COMPONENTS if len(self.data.folds) == 1 else _MOST_IN_FOLDS)
        p = self.capacity.get(options.layout, options.n_components)
        p = min(p, max(most, self.data.mixed.shape[1]))
        key = (
            p,
            options.layout,
            options.sigma_multiple,
            options.noise,
            options.slope,
            options.dropout,
        )
        if key not in self.trials:
            self.trials[key] = self._train(replace(options, n_components=p))
            text = f"{options.layout}, sigma x {options.sigma_multiple:.3g}, noise "
            text += f"{options.noise:.3g}, slope {options.slope:.3g}, dropout {options.dropout:.3g}"
            text += f": {100 * self.trials[key].accuracy:.2f} %"
            progress.report("choosing hyper-parameters", len(self.trials), None, text)
        return self.trials[key].log_loss

    def _train(self, options: JointOptions) -> Trial:
        """Train once on each fold; losses and accuracies are averaged."""
        n = self.data.folds[0].inside.size
        options = replace(
            options,
            epochs=int(np.clip(_STEPS * options.batch_rows // n, 4, 40)),
            peak_step=2 * options.peak_step,
        )
        judged = np.array(self._on_each_fold(options))
        log_loss, accuracy = judged.mean(axis=0).tolist()
        return Trial(
            layout=options.layout,
            n_components=options.n_components,
            sigma_multiple=options.sigma_multiple,
            noise=options.noise,
            slope=options.slope,
            dropout=options.dropout,
            log_loss=log_loss,
            accuracy=accuracy,
        )

    def _on_each_fold(self, options: JointOptions) -> list[tuple[float, float]]:
        """Train on all folds, side by side: short trainings do not fill two threads each."""
        cancelled, folds = threading.Event(), self.data.folds
        if len(folds) == 1 or options.n_threads == 1:
            return [_train_fold(self.data, fold, options, cancelled) for fold in folds]
        alone = replace(options, n_threads=1)
        with ThreadPoolExecutor(max_workers=options.n_threads) as executor:
            try:
                parts = [executor.submit(_train_fold, self.data, fold, alone, cancelled)
                         for fold in folds]  # fmt: skip
                return [part.result() for part in parts]
            except BaseException:
                cancelled.set()  # Ctrl-C need not wait for the others
                raise

    def climb(self, options: JointOptions, name: str, factor: float) -> JointOptions:
        """Multiply or divide one option by `factor` as long as that helps."""
        for direction in (factor, 1 / factor):
            moved = False
            for _ in range(_MOST_STEPS):
                candidate = _with(options, name, getattr(options, name) * direction)
                if not self.score(candidate) < self.score(options):
                    break
                options, moved = candidate, True
            if moved:
                break
        return options

    def best_of(self, options: JointOptions, name: str, values: Sequence[object]) -> JointOptions:
        """Take the best value of one option."""
        candidates = [options, *(_with(options, name, value) for value in values)]
        return min(candidates, key=self.score)


def _train_fold(
    data: TrialData, fold: Fold, options: JointOptions, cancelled: threading.Event
) -> tuple[float, float]:
    """Return log loss and accuracy on the rows held out."""
    mixed, held_out = data.mixed[fold.inside], data.mixed[fold.outside]
    mean = np.zeros(mixed.shape[1], dtype=np.float32)
    if options.format.learns_start:
        mean = mixed.mean(axis=0)
        mixed -= mean
        held_out -= mean
    learner = JointLearner(
        mixed, data.targets[fold.inside], data.weight[fold.inside], options, mean,
        cancelled=cancelled,
    )  # fmt: skip
    learner.run()
    return _judge(learner.decide(held_out), data.codes[fold.outside], data.weight[fold.outside])


def _with(options: JointOptions, name: str, value: Any) -> JointOptions:
    """Return options with one of them changed."""
    return replace(options, **{name: value})


def choose_options(
    data: TrialData, options: JointOptions, capacity: Mapping[str, int], fixed: frozenset[str]
) -> tuple[JointOptions, list[Trial]]:  # fmt: skip
    """Choose sigma, noise, slope, dropout and, for a budget, the layout.

    Parameters
    ----------
    data : TrialData
    options : JointOptions
        Where to start.
    capacity : mapping of str to int
        How many components of each format that may be chosen fit; empty keeps the format. Where
        "phases" is not the best of the others, "pruned" is left out.
    fixed : frozenset of str
        Options not to touch.

    Returns
    -------
    JointOptions, list of Trial
        What was best, and everything that was tried.
    """
    search = _Search(data, capacity)
    # "pruned" last: whether it is tried depends on the others.
    storages = sorted(capacity, key=lambda name: name == "pruned")
    storages = storages if "layout" not in fixed else []
    finalists: list[JointOptions] = []
    for layout in storages or [options.layout]:
        if layout == "pruned" and _phases_are_behind(search, finalists):
            continue  # as it is "phases" with rows left out; trials take time
        options = replace(options, layout=layout)
        if "sigma_multiple" not in fixed:
            options = search.climb(options, "sigma_multiple", 2.0)
        finalists.append(options)
    options = _best(search, finalists)
    if "noise" not in fixed:
        options = search.best_of(options, "noise", [_LESS_NOISE, _MORE_NOISE])
        if options.noise == _LESS_NOISE:
            options = search.best_of(options, "noise", [0.0])
        elif options.noise == _MORE_NOISE:
            options = search.best_of(options, "noise", [_MOST_NOISE])
    if "sigma_multiple" not in fixed:
        options = search.climb(options, "sigma_multiple", float(np.sqrt(2.0)))
    if "slope" not in fixed:
        options = search.best_of(options, "slope", [1.0])
    if "dropout" not in fixed:
        options = search.best_of(options, "dropout", [0.2])
    return options, list(search.trials.values())


def _best(search: _Search, finalists: Sequence[JointOptions]) -> JointOptions:
    """Return the best of one candidate for each format.

    A format with smaller features has more of them, which only shows at its full size.
    """
    if len(finalists) == 1:
        return finalists[0]
    return min(finalists, key=lambda each: search.score(each, _MOST_AT_FULL_SIZE))


def _phases_are_behind(search: _Search, finalists: Sequence[JointOptions]) -> bool:
    """Return whether "phases" was tried and another format was better."""
    tried = {each.layout for each in finalists}
    return "phases" in tried and _best(search, finalists).layout != "phases"


def _judge(
    decisions: NDArray[np.float32], codes: NDArray[np.int64], weight: NDArray[np.float32]
) -> tuple[float, float]:
    """Return the log loss, at the best temperature, and the accuracy; both by weight."""
    values = decisions.astype(np.float64)
    if values.shape[1] == 1:
        values = np.concatenate([-values / 2, values / 2], axis=1)
    values -= values.max(axis=1, keepdims=True)
    rows = np.arange(codes.size)
    losses = []
    for temperature in _TEMPERATURES:
        scaled = values * temperature
        lost = np.log(np.exp(scaled).sum(axis=1)) - scaled[rows, codes]
        losses.append(np.average(lost, weights=weight))
    hit = values.argmax(axis=1) == codes
    return float(min(losses)), float(np.average(hit, weights=weight))
