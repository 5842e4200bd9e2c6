"""Compare trees with components and a linear part on the same held-out rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.training.choice import Candidate, Choice, choose, joined
from tinykernel.training.folds import Fold, final_fold, trial_folds
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.forest import TreeOptions
from tinykernel.training.readouts.trees import (
    BEHIND,
    STAGE,
    TreeData,
    TreeTrial,
    decisions_of,
    searched,
    searched_again,
    tree_model,
)
from tinykernel.training.threads import side_by_side
from tinykernel.training.trainset import TrainSet

#: Trees of more inputs are not compared.
MOST_INPUTS = 1024
_QUICK_TREES = 64  # of each output, with effort="quick"
_IN_FULL = "training in full to compare with trees"  # a stage of the progress
# A model of one tree an output, as large as the tree that reports compare with.
_ONE_TREE = TreeOptions(leaves=64, rate=1.0)
# With so many times the rows of a trial the options are chosen again.
_MANY_ROWS = 2
# With fewer rows or groups all four quarters are held out in turn, not one alone.
_FEW_ROWS, _FEW_GROUPS = 1000, 40
# Ratio of losses in short trainings at which no model is trained in full. It is smaller for trees
# behind components, which gain more by a longer training.
_FAR_BEHIND, _BEHIND = 2.0, 1.05
# Loss of longer trials of components as a share of that of the first ones, about.
_LATER = 0.9
# Standard errors behind trees from which components hardly come back by more epochs.
_OUT_OF_REACH = 1.5
_TREES = "trees"


@dataclass(frozen=True, eq=False)
class Rival:
    """A model that trees are compared with."""

    name: str
    log_loss: float  # in short trainings.
    score: float
    #: Trains it in full inside a fold, and judges it on the rows outside; the event ends it.
    judged: Callable[[Fold, threading.Event], Candidate]
    cost: int = 2  # rank in flash and time; that of trees is 1.


def fit_trees(
    data: TrainSet, options: TrainerOptions, folds: Sequence[Fold]
) -> tuple[IntegerModel, TreeTrial]:
    """Train trees alone; TinykernelError where rows are too few to choose their number."""
    rows = TreeData.of(data, options)
    if options.model == "tree":
        trial = TreeTrial(_ONE_TREE, rows.aim.target.shape[1])
    elif options.effort == "quick":
        trial = TreeTrial(TreeOptions(), _QUICK_TREES * rows.aim.target.shape[1])
    elif folds:
        trial = _for_all(searched(rows, folds, np.inf), rows, folds)
    else:
        raise TinykernelError("trees: too few rows of a class to choose the number of trees")
    return tree_model(rows, trial), trial


@dataclass(eq=False)
class Contest:
    """Trees, and what they are compared with on the same held-out rows."""

    rows: TreeData
    folds: Sequence[Fold]  # choose the options of trees.
    final: Fold  # the rows outside have chosen nothing.
    trial: TreeTrial | None = None  # best of a search,
    limit: float = np.inf  # which ended early if it was far above this loss.
    #: The last choice, None if no tree could be grown; and the trees and their trial if they won.
    choice: Choice | None = None
    trees: tuple[IntegerModel, TreeTrial] | None = None

    @staticmethod
    def of(data: TrainSet, options: TrainerOptions, seed: int) -> Contest | None:
        """Return the contest for some rows; None where trees do not compete."""
        may = options.model == "auto" and options.tree_bytes and options.effort != "quick"
        if not may or data.X.shape[1] > MOST_INPUTS or any(data.losses):
            return None
        folds = trial_folds(data.codes, data.groups, seed)
        final = final_fold(data.codes, data.groups, seed)
        return Contest(TreeData.of(data, options), folds, final or folds[-1]) if folds else None

    def early(self, rivals: Sequence[Rival]) -> bool:
        """Whether trees are far ahead of a shorter training of components, the first rival.

        It runs beside the search for trees, which rarely fills two threads. Not for few rows, which
        train fast, nor for many, of which trials see a part. Rivals cost as much as each other, so
        that trees win only if they are ahead by the margin.
        """
        limit, rows, cancelled = rivals[0].log_loss, self.rows, threading.Event()
        if _all_rows_are_more(rows, self.folds) or _few(rows.data):
            return False

        def trees() -> Candidate:
            beside = replace(rows, n_threads=max(1, rows.n_threads - 1))
            self.limit = _LATER * limit
            self.trial = searched(beside, self.folds, self.limit, cancelled)
            if self.trial.log_loss >= limit:
                raise CancelledError
            return replace(_judged(rows, self.trial, self.final), cost=1)

        tasks: list[Callable[[], Candidate]] = [trees]
        tasks += [partial(each.judged, self.final, cancelled) for each in rivals]
        try:
            candidates = side_by_side(tasks, rows.n_threads, cancelled)
        except CancelledError:
            return False
        choice = _chosen(rows.data, candidates, [self.final], _OUT_OF_REACH)
        if self.trial is not None and choice.chosen == 0:
            self._take(choice, self.trial)
        return self.trees is not None

    def decide(self, rivals: Sequence[Rival]) -> None:
        """Compare trees with full trainings, or by short ones whose losses differ widely."""
        rows, data = self.rows, self.rows.data
        limit = min(rival.log_loss for rival in rivals)
        trial = self.trial
        if trial is None or (limit > self.limit and trial.log_loss > BEHIND * self.limit):
            trial = searched(rows, self.folds, limit)
        ratio = trial.log_loss / max(limit, 1e-30)
        # Trees of few rows are judged anew with all of them.
        behind = _FAR_BEHIND if _all_rows_are_more(rows, self.folds) else _BEHIND
        if 1 / _FAR_BEHIND < ratio < behind:
            others = [fold for fold in self.folds if _few(data) and fold is not self.final]
            self._take(_in_full(rows, [self.final, *others], rivals, trial), trial)
        else:
            self._take(_by_trials(rivals, trial, of_values=data.quantity is not None), trial)

    def _take(self, choice: Choice, trial: TreeTrial) -> None:
        """Keep a choice, and grow the trees if they won."""
        self.choice = choice
        if choice.name == _name_of(trial):
            trial = _for_all(trial, self.rows, self.folds)
            try:
                self.trees = tree_model(self.rows, trial), trial
            except TinykernelError:  # no tree helps: nothing can be learned from these rows
                self.choice = None
                return
        progress.report(STAGE, 0, None, choice.in_words)


def _judged(rows: TreeData, trial: TreeTrial, fold: Fold) -> Candidate:
    """Grow the trees of a trial inside a fold, and judge them outside."""
    data, out = rows.data, fold.outside
    held = data.truth[out], data.weight[out], data.losses
    return Candidate.of(_name_of(trial), decisions_of(rows, trial, fold), *held)


def _chosen(
    data: TrainSet, candidates: Sequence[Candidate], folds: Sequence[Fold], margin: float = 1.0
) -> Choice:
    """Choose by the losses outside all folds."""
    out = np.concatenate([fold.outside for fold in folds])
    groups = None if data.groups is None else data.groups[out]
    of_values = data.quantity is not None
    return choose(candidates, data.weight[out], groups, margin=margin, of_values=of_values)


def _in_full(
    rows: TreeData, quarters: Sequence[Fold], rivals: Sequence[Rival], trial: TreeTrial
) -> Choice:
    """Compare trees and rivals, trained in full inside each fold."""

    def judged(fold: Fold, _: threading.Event) -> Candidate:
        return _judged(rows, trial, fold)

    both = [*rivals, Rival(_name_of(trial), trial.log_loss, trial.accuracy, judged, 1)]

    def chosen(parts: Sequence[Sequence[Candidate]], folds: Sequence[Fold]) -> Choice:
        pairs = zip(both, parts, strict=True)
        candidates = [replace(joined(part), cost=each.cost) for each, part in pairs]
        return _chosen(rows.data, candidates, folds)

    def trained(folds: Sequence[Fold]) -> list[list[Candidate]]:
        """Train each on all folds, side by side."""
        cancelled = threading.Event()
        tasks = [partial(each.judged, fold, cancelled) for each in both for fold in folds]
        progress.report(_IN_FULL, 0, len(tasks))
        judged = side_by_side(tasks, rows.n_threads, cancelled, _IN_FULL)
        return [judged[i : i + len(folds)] for i in range(0, len(judged), len(folds))]

    parts = trained(quarters[:1])
    if len(quarters) > 1:
        # A candidate that costs more than the best and is much worse is not trained four times.
        first = chosen(parts, quarters[:1])
        far = _FAR_BEHIND * first.losses[first.best]
        cheap, losses = both[first.best].cost, first.losses
        stay = [i for i, each in enumerate(both) if each.cost <= cheap or losses[i] <= far]
        if len(stay) == 1:
            return first
        both, parts = [both[i] for i in stay], [parts[i] for i in stay]
        parts = [[*part, *rest] for part, rest in zip(parts, trained(quarters[1:]), strict=True)]
    return chosen(parts, quarters)


def _few(data: TrainSet) -> bool:
    """Whether a quarter of the rows, or of the groups, is too few for a comparison."""
    n_groups = 0 if data.groups is None else np.unique(data.groups).size
    return len(data.codes) <= _FEW_ROWS or 0 < n_groups <= _FEW_GROUPS


def _all_rows_are_more(rows: TreeData, folds: Sequence[Fold]) -> bool:
    """Whether a trial had a small part of the rows."""
    return len(rows.Q) >= _MANY_ROWS * folds[0].inside.size


def _name_of(trial: TreeTrial) -> str:
    return f"{_TREES} beside a linear part" if trial.options.lines else _TREES


def _by_trials(rivals: Sequence[Rival], trial: TreeTrial, *, of_values: bool) -> Choice:
    """Choose by the losses of short trainings."""
    judged = [(rival.name, rival.log_loss, rival.score) for rival in rivals]
    trees = _name_of(trial), trial.log_loss, trial.accuracy
    names, losses, scores = zip(*judged, trees, strict=True)
    best = int(np.argmin(losses))
    return Choice(names, losses, scores, best, best, of_values)


def _for_all(trial: TreeTrial, rows: TreeData, folds: Sequence[Fold]) -> TreeTrial:
    """Choose again with all rows outside each fold's test part, if trials had few of them."""
    if not _all_rows_are_more(rows, folds):
        return trial
    whole = [Fold(others(fold.outside, rows.data), fold.outside) for fold in folds]
    return searched_again(rows, whole, trial)


def others(outside: NDArray[np.int64], data: TrainSet) -> NDArray[np.int64]:
    """Return all rows except these and those of their groups."""
    if data.groups is not None:
        groups = np.asarray(data.groups)
        return np.flatnonzero(~np.isin(groups, groups[outside]))
    return np.setdiff1d(np.arange(len(data.codes)), outside)
