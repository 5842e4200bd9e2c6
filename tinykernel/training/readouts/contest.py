"""Trees against components and a linear part, on the same rows left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.training.folds import Fold
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.trees import (
    STAGE,
    Found,
    TreeData,
    TreeOptions,
    searched,
    tree_model,
)
from tinykernel.training.trainset import TrainSet

#: Bytes of the tables of trees where nobody says how many.
_USUAL_BYTES = 8192
_MOST_INPUTS = 1024
_MOST_QUICKLY = 64
# Of so many times the rows of a trial a model may have as many trees as fit.
_MANY_ROWS = 4


@dataclass(frozen=True)
class Contest:
    """What was compared on rows left out, by log loss (of values the mean loss) and accuracy.

    Parameters
    ----------
    trees : (float, float)
    other : (float, float)
    form : str
        Of the other.
    """

    trees: tuple[float, float]
    other: tuple[float, float]
    form: str

    @property
    def in_words(self) -> str:
        """Say what won, and by how much."""
        ahead = self.trees[0] < self.other[0]
        won, lost = (self.trees, self.other) if ahead else (self.other, self.trees)
        names = ("trees", self.form) if ahead else (self.form, "trees")
        return (
            f"{names[0]} won over {names[1]} on rows left out: log loss {won[0]:.4f} against "
            f"{lost[0]:.4f}, {100 * won[1]:.2f} against {100 * lost[1]:.2f} %"
        )


def found_trees(
    data: TrainSet, options: TrainerOptions, folds: Sequence[Fold]
) -> tuple[IntegerModel, Found]:
    """Train trees alone.

    Raises
    ------
    TinykernelError
        If there are too few rows to choose their number by.
    """
    rows, budget = TreeData.of(data, options), options.tree_bytes or _USUAL_BYTES
    if options.effort == "quick":
        found = Found(TreeOptions(), _MOST_QUICKLY, np.inf, 0.0)
    elif folds:
        found = _enough(searched(rows, budget, folds, np.inf), data, folds)
    else:
        raise TinykernelError("trees: too few rows of a class to choose the number of trees by")
    return tree_model(data, rows, found, budget), found


def trees_ahead(
    data: TrainSet,
    options: TrainerOptions,
    folds: Sequence[Fold],
    other: tuple[str, float, float],
) -> tuple[Contest | None, tuple[IntegerModel, Found] | None]:
    """Train trees where they have the lower loss on rows left out.

    Returns what was compared, None where nothing was, and the trees where they are ahead. `other`
    is the form that did best of the rest, its log loss and its accuracy.
    """
    budget, form = options.tree_bytes, other[0]
    may = options.model == "auto" and budget and not any(data.losses)
    if not may or not folds or data.X.shape[1] > _MOST_INPUTS:
        return None, None
    assert budget is not None
    rows = TreeData.of(data, options)
    found = searched(rows, budget, folds, other[1])
    contest = Contest((found.log_loss, found.accuracy), other[1:], form)
    progress.report(STAGE, 0, None, contest.in_words)
    if not found.log_loss < other[1]:
        return contest, None
    found = _enough(found, data, folds)
    return contest, (tree_model(data, rows, found, budget), found)


def _enough(found: Found, data: TrainSet, folds: Sequence[Fold]) -> Found:
    """Take as many trees as fit where there are many more rows than in a trial."""
    if len(data.codes) < _MANY_ROWS * folds[0].inside.size:
        return found
    return found.with_trees(10 * found.n_trees)
