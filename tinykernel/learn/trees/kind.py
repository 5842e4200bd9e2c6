"""Boosted trees, or one tree for each output."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import RowsError
from tinykernel.compile.targets import find_target
from tinykernel.kinds.kind import Kind, Problem, RaceTrial, Rounds, Spec, candidate_of, too_small
from tinykernel.kinds.pace import Pace
from tinykernel.learn.choice import Candidate, Fold, join_folds
from tinykernel.learn.loop import History, TrainingResult
from tinykernel.learn.trainset import TrainSet
from tinykernel.learn.trees import search
from tinykernel.learn.trees.forest import Room, TreeOptions
from tinykernel.learn.trees.options import TREES
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.trees.pack import tree_bytes
from tinykernel.pieces.trees.spec import Trees
from tinykernel.run.estimate import steps_within
from tinykernel.run.report import allowed_bytes, needed_bytes

_DEFAULT_BYTES = 8192  # of tables, without a budget.
_QUICK_TREES = 64  # of each output, with effort="quick"
# A model of one tree an output, as large as the tree that reports compare with.
_ONE_TREE = TreeOptions(leaves=64, rate=1.0)
# Trees of more inputs are not compared.
_MOST_INPUTS = 1024
# Share of the tables of many trees that one tree needs at most to be worth a word.
_MUCH_SMALLER = 1 / 8
# Bytes of the leaves that one level of a tree adds, and seconds that an input of a row takes in it.
_BYTES_A_LEVEL, _SECONDS_A_LEVEL = 16.0, 1e-9
# Tables and steps of the fewest trees that are chosen.
_LEAST_BYTES, _LEAST_STEPS = 64, 4


@dataclass(frozen=True)
class TreesSpec(Spec):
    """Limits of trees, and their options once these are chosen."""

    n_bytes: int = _DEFAULT_BYTES  # of tables in flash.
    n_steps: float = np.inf  # sum of the depths of all trees plus one each.
    trial: search.TreeTrial | None = None  # options, once these are chosen.

    def __str__(self) -> str:
        """Describe them in words."""
        return f"trees{' beside a linear part' * bool(self.trial and self.trial.options.lines)}"


class TreesKind(Kind[TreesSpec]):
    """Boosted trees."""

    about = TREES
    # After the first trial, after the sizes of trees, and at the end, as short trainings of trees
    # are as long as final ones.
    behind: ClassVar[tuple[float, ...]] = (1.5, 1.15, 1.05)
    price: ClassVar[tuple[float, float]] = (0.0, _SECONDS_A_LEVEL)

    def cost_for(self, spec: TreesSpec, problem: Problem) -> int:
        """Return the rank: trees of values are the best of many trials on few rows.

        They must be clearly ahead: on diabetes, trees with R2 0.508 against 0.506 had 0.44 on new
        rows, components 0.52.
        """
        return 2 if problem.of_values else self.cost

    def applies(self, problem: Problem) -> str:
        """Refuse losses that trees do not have, and many inputs."""
        options, data = problem.options, problem.data
        if refused := super().applies(problem):
            return refused
        if any(data.losses):
            return 'only for loss="squared"'
        if options.model != "auto":
            return ""
        if data.X.shape[1] > _MOST_INPUTS:
            return "not compared"
        return "" if options.linear != "off" and options.sigma is None else "not compared"

    def specs(self, problem: Problem) -> list[TreesSpec]:
        """Return trees that use what a budget leaves; none if that is too little."""
        limits, spec, n_outputs = problem.limits, TreesSpec(), problem.data.targets().shape[1]
        if limits is not None and limits.flash is not None:
            model = self.skeleton(spec, problem)
            trees = model.find(Trees)
            assert trees is not None
            needed = needed_bytes(problem.report(model)) - tree_bytes(trees)
            room = allowed_bytes(limits.flash) - needed
            most = limits.most_instructions(find_target(problem.target).cycles[1])
            steps = np.inf if most is None else steps_within(model, problem.target, most)
            if room < _LEAST_BYTES or steps < _LEAST_STEPS:
                raise too_small(problem, needed + _LEAST_BYTES)
            spec = TreesSpec(room, steps)
        if problem.options.model == "tree":
            return [replace(spec, trial=search.TreeTrial(_ONE_TREE, n_outputs))]
        if problem.is_quick and problem.options.model != "auto":
            return [replace(spec, trial=search.TreeTrial(TreeOptions(), _QUICK_TREES * n_outputs))]
        return [spec]

    def skeleton(self, spec: TreesSpec, problem: Problem) -> IntegerModel:
        """Return few trees, grown on few rows."""
        return problem.once(_few_trees)

    def smaller(
        self, spec: TreesSpec, n_bytes: int, model: IntegerModel, problem: Problem
    ) -> TreesSpec | None:
        fewer = spec.n_bytes - n_bytes - _LEAST_BYTES // 2
        return replace(spec, n_bytes=fewer) if fewer >= _LEAST_BYTES // 2 else None

    def work(self, spec: TreesSpec, problem: Problem) -> float:
        """Return the work of growing trees that fill the flash."""
        levels = problem.data.X.size * spec.n_bytes / _BYTES_A_LEVEL
        return self.price[1] * levels

    def tune(self, specs: Sequence[TreesSpec], problem: Problem, pace: Pace) -> Rounds:
        if not problem.folds:
            raise RowsError("trees: too few rows of a class to choose the number of trees")
        for spec in specs:
            if spec.trial is not None:
                continue
            rows = problem.once(_rows, spec.n_bytes, spec.n_steps)
            may_try = partial(pace.may_try, self.name)
            how = problem.folds, problem.cancelled, may_try, problem.is_quick
            for best in search.rounds(rows, *how):
                yield [RaceTrial(replace(spec, trial=best), best.log_loss, best.accuracy)]

    def judge(self, spec: TreesSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        assert spec.trial is not None
        rows = problem.once(_rows, spec.n_bytes, spec.n_steps)
        return candidate_of(spec, search.decisions_of(rows, spec.trial, fold), problem, fold)

    def fit(self, spec: TreesSpec, problem: Problem, pace: Pace) -> TrainingResult:
        """Grow trees on all rows; with many rows, options are chosen again."""
        assert spec.trial is not None
        rows, trial = problem.once(_rows, spec.n_bytes, spec.n_steps), spec.trial
        folds = problem.folds
        is_searched = not problem.is_quick and problem.options.model != "tree"
        if is_searched and problem.sees_a_part:
            whole = [Fold(_others(fold.outside, rows.data), fold.outside) for fold in folds]
            trial = search.search_again(rows, whole, trial, partial(pace.may_try, self.name))
        model = search.tree_model(rows, trial)
        # The loss is that on held-out rows.
        return TrainingResult(model, trial.recipe, History([{"loss": trial.log_loss}]))


KINDS = (TreesKind(),)


def single_tree(
    spec: Spec, problem: Problem, pace: Pace, model: IntegerModel, seconds: float
) -> str:
    """Say how good one tree an output is, if it is much smaller than a model and not behind it.

    Both train once a fold, which takes about as many times the `seconds` of the model: time that
    must be left.
    """
    trees, is_open = model.find(Trees), problem.options.model == "auto"
    if not (isinstance(spec, TreesSpec) and spec.trial and trees and problem.folds and is_open):
        return ""
    if not pace.leaves(len(problem.folds) * seconds):
        return ""
    kind, trial = TreesKind(), search.TreeTrial(_ONE_TREE, problem.data.targets().shape[1])
    single = search.tree_model(problem.once(_rows, spec.n_bytes, spec.n_steps), trial).find(Trees)
    assert single is not None
    sizes = tree_bytes(single), tree_bytes(trees)
    if sizes[0] > _MUCH_SMALLER * sizes[1]:
        return ""
    both = [
        replace(
            join_folds([kind.judge(rival, problem, fold, 1.0) for fold in problem.folds]), cost=cost
        )
        for cost, rival in enumerate((replace(spec, trial=trial), spec))
    ]
    choice = problem.choose([replace(both[0], name="one tree an output"), both[1]], problem.folds)
    if choice.chosen:
        return ""
    tables = f"tables of {sizes[0]} in place of {sizes[1]} bytes"
    return f"model=tree makes {tables}: {choice.in_words}"


def _rows(problem: Problem, n_bytes: int, n_steps: float) -> search.TreeData:
    return search.TreeData.of(problem.data, Room(n_bytes, n_steps), problem.n_threads)


def _few_trees(problem: Problem) -> IntegerModel:
    rows = search.TreeData.of(problem.few().data, Room(_LEAST_BYTES), 1)
    return search.tree_model(
        rows, search.TreeTrial(TreeOptions(), _QUICK_TREES * rows.aim.target.shape[1])
    )


def _others(outside: NDArray[np.int64], data: TrainSet) -> NDArray[np.int64]:
    """Return all rows except these and those of their groups."""
    if data.groups is not None:
        groups = np.asarray(data.groups)
        return np.flatnonzero(~np.isin(groups, groups[outside]))
    return np.setdiff1d(np.arange(len(data.codes)), outside)
