"""Trees against components and a linear part, on the same rows left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.training.folds import Fold
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.forest import Room, TreeOptions
from tinykernel.training.readouts.trees import (
    STAGE,
    Found,
    TreeData,
    searched,
    searched_again,
    tree_model,
)
from tinykernel.training.trainset import TrainSet

#: Bytes of the tables of trees where nobody says how many.
_USUAL_BYTES = 8192
#: Trees of more inputs are not compared.
MOST_INPUTS = 1024
# Trees of each output.
_MOST_QUICKLY = 64
# With so many times the rows of a trial the options are chosen again.
_MANY_ROWS = 2


@dataclass(frozen=True)
class Contest:
    """What was compared on rows left out, by log loss (of values the mean loss) and accuracy."""

    trees: tuple[float, float]
    other: tuple[float, float]
    form: str  # of the other.
    name: str = "trees"  # of the trees.
    # Of values those left out, 0 of classes. Trees are the best of many that were tried, so on few
    # rows a small lead is chance: their loss must be less by a share of 0.5 / sqrt(rows). Of
    # diabetes, trees with R2 0.508 against 0.506 had 0.44 on new rows, and the other 0.52.
    rows: int = 0
    of_values: bool = False

    @property
    def trees_win(self) -> bool:
        """Whether trees are ahead by enough."""
        share = 1 - 0.5 / np.sqrt(self.rows) if self.rows else 1.0
        return bool(self.trees[0] < share * self.other[0])

    @property
    def in_words(self) -> str:
        """Say what won, and by how much."""
        won, lost = (self.trees, self.other) if self.trees_win else (self.other, self.trees)
        names = (self.name, self.form) if self.trees_win else (self.form, self.name)
        said = f"{names[0]} won over {names[1]} on rows left out: "
        if not self.of_values:
            said += f"log loss {won[0]:.4f} against {lost[0]:.4f}, "
            return said + f"{100 * won[1]:.2f} against {100 * lost[1]:.2f} %"
        little = ", which is too little a lead for trees" if lost[0] < won[0] else ""
        return f"{said}R2 {won[1]:.4f} against {lost[1]:.4f}{little}"


def found_trees(
    data: TrainSet, options: TrainerOptions, folds: Sequence[Fold]
) -> tuple[IntegerModel, Found]:
    """Train trees alone; TinykernelError where rows are too few to choose their number by."""
    rows, room = TreeData.of(data, options), _room(options)
    if options.effort == "quick":
        most = _MOST_QUICKLY * rows.aim.target.shape[1]
        found = Found(TreeOptions(), most, np.inf, 0.0)
    elif folds:
        found = _for_all(searched(rows, room, folds, np.inf), rows, room, data, folds)
    else:
        raise TinykernelError("trees: too few rows of a class to choose the number of trees by")
    return tree_model(data, rows, found, room), found


def trees_compete(data: TrainSet, options: TrainerOptions, folds: Sequence[Fold]) -> bool:
    """Whether trees are compared with the rest."""
    may = options.model == "auto" and options.tree_bytes and options.effort != "quick"
    few_inputs = data.X.shape[1] <= MOST_INPUTS
    return bool(may and folds and few_inputs and not any(data.losses))


def trees_ahead(
    data: TrainSet, options: TrainerOptions, folds: Sequence[Fold], other: tuple[str, float, float]
) -> tuple[Contest | None, tuple[IntegerModel, Found] | None]:
    """Train trees, where they compete, and have the lower loss on rows left out.

    Returns what was compared, None where nothing was, and the trees where they are ahead. `other`
    is the form that did best of the rest, its log loss and its accuracy.
    """
    room, form = _room(options), other[0]
    rows = TreeData.of(data, options)
    found = searched(rows, room, folds, other[1])
    name = "trees beside a linear part" if found.options.lines else "trees"
    judged = found.log_loss, found.accuracy
    n_held = 0 if data.quantity is None else sum(fold.outside.size for fold in folds)
    contest = Contest(judged, other[1:], form, name, n_held, data.quantity is not None)
    if not contest.trees_win:
        progress.report(STAGE, 0, None, contest.in_words)
        return contest, None
    found = _for_all(found, rows, room, data, folds)
    try:
        model = tree_model(data, rows, found, room)
    except TinykernelError:  # no tree was the best: nothing can be learned of these rows
        return None, None
    progress.report(STAGE, 0, None, contest.in_words)
    return contest, (model, found)


def _room(options: TrainerOptions) -> Room:
    return Room(options.tree_bytes or _USUAL_BYTES, options.tree_steps or np.inf)


def _for_all(
    found: Found, rows: TreeData, room: Room, data: TrainSet, folds: Sequence[Fold]
) -> Found:
    """Choose again by all rows that are not left out, where a trial had a small part of them."""
    if len(data.codes) < _MANY_ROWS * folds[0].inside.size:
        return found
    whole = [Fold(others(fold.outside, data), fold.outside) for fold in folds]
    return searched_again(rows, room, whole, found)


def others(outside: NDArray[np.int64], data: TrainSet) -> NDArray[np.int64]:
    """Return all rows but these, and but their groups."""
    if data.groups is not None:
        groups = np.asarray(data.groups)
        return np.flatnonzero(~np.isin(groups, groups[outside]))
    return np.setdiff1d(np.arange(len(data.codes)), outside)
