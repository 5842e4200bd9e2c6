"""Search for trees on held-out rows (size, rate, shrinkage), and the model of them."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.base import progress
from tinykernel.base.errors import DataError, RangeError
from tinykernel.learn.choice import Fold, side_by_side
from tinykernel.learn.inputs import choose_scaler
from tinykernel.learn.linear import training
from tinykernel.learn.loop import run_epochs
from tinykernel.learn.trainset import TrainSet
from tinykernel.learn.trees.forest import (
    Aim,
    Forest,
    Room,
    TreeOptions,
    Watch,
    grow_forest,
    most_bins,
    pack_trees,
)
from tinykernel.learn.trees.growth import Bins
from tinykernel.model.answers import Labels, Values
from tinykernel.model.fixed import to_fixed_point
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.piece import Part, Readout
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.trees.spec import Trees

STAGE = "choosing trees"
_MOST_TREES = 4000
_LARGEST_DOT = _LARGEST_MULTIPLIER = 2**30
_Changes: TypeAlias = Sequence[dict[str, Any]]
#: The search tries sizes of trees, then these changes one after the other.
_LEAVES, _LEAST_LEAF_BYTES = (16, 4, 8, 32, 64, 256), 3
_CHANGES: _Changes = (
    {"l2": 4.0},
    {"rate": 0.1},
    {"rate": 0.6},
    {"l2": 16.0},
    {"l2": 0.1},
    {"bits": 8},
    {"together": False},
    {"leaves": 8},
    {"rate": 0.2},
    {"l2": 8.0},
)
_QUICK_CHANGES: _Changes = ({"leaves": 8}, {"l2": 4.0}, {"together": False}, {"l2": 16.0})
# Ratio of losses on the first fold at which options are not tried on the others: usually, and of
# trees alone that so many rows judge.
_HOPELESS, _HOPELESS_OF_MANY, _MANY_ROWS = 1.02, 1.007, 1000
#: Then those for trees beside a linear part.
_CHANGES_OF_BOTH: _Changes = ({"l2": 4.0}, {"leaves": 8}, {"leaves": 16}, {"rate": 0.1})
#: Start and changes for many rows.
_OF_MANY_ROWS: dict[str, Any] = {"leaves": 256, "rate": 0.3, "l2": 1.0}
_CHANGES_OF_MANY_ROWS: _Changes = ({"leaves": 128}, {"rate": 0.15}, {"l2": 4.0}, {"rate": 0.6})
_Floats = NDArray[np.float64]
_Integers = NDArray[np.int32]
# Of the linear part beside trees: bits, and epochs for 60,000 rows; fewer rows take more.
_BITS = 8
_EPOCHS, _ROWS, _MOST_EPOCHS = 25, 60_000, 60


@dataclass(frozen=True)
class TreeRecipe(TreeOptions):
    """Options of the training of trees."""

    n_trees: int = 0


@dataclass(frozen=True, eq=False)
class TreeTrial:
    """Options of a trial, and its result."""

    options: TreeOptions
    n_trees: int  # the best number.
    log_loss: float = np.inf  # on held-out rows; see `tinykernel.learn.loss.Truth`.
    accuracy: float = 0.0
    largest: int = 0  # most leaves of a tree.
    first: float = np.inf  # least loss outside the first fold.

    @property
    def recipe(self) -> TreeRecipe:
        """Options of the training."""
        return TreeRecipe(**vars(self.options), n_trees=self.n_trees)


@dataclass(frozen=True, eq=False)
class TreeData:
    """Quantized rows for trees, and limits of these."""

    data: TrainSet
    room: Room
    scaler: Scale
    Q: NDArray[Any]  # (n, n_inputs): levels of the training rows.
    aim: Aim
    scale: NDArray[np.float64]  # (n_outputs,): unit of each output, for values.
    n_threads: int = 1
    # By the most bins of an input; a copy with other threads shares it.
    _binned: dict[int, tuple[Bins, NDArray[np.uint8]]] = field(default_factory=dict)

    @staticmethod
    def of(data: TrainSet, room: Room, n_threads: int) -> "TreeData":
        """Quantize rows to 8 or 16 bits; integers that fit share one scale, without loss."""
        narrow = data.raw_dtype in ("uint8", "int8")
        low, high = (float(end) for end in (data.X.min(), data.X.max()))
        exact = data.X.dtype.kind in "iu" and high - low < 2 ** (8 if narrow else 16)
        scope = "global" if exact else "feature"
        scaler = choose_scaler(data.X, data.raw_dtype, 8 if narrow else 16, scope)
        targets = data.targets().astype(np.float64)
        weight = data.sample_weight / data.sample_weight.mean()
        aim = Aim(targets, weight, data.quantity is not None)
        scale = np.ones(targets.shape[1])
        if data.quantity is not None:  # its scale is 0 for a value that never varies
            scale = np.where(data.quantity.units.scale > 0, data.quantity.units.scale, 1.0)
        return TreeData(data, room, scaler, scaler.quantize(data.X), aim, scale, n_threads)

    def lines(self, rows: NDArray[np.int64] | slice) -> "LinearPart":
        """Train the linear part on some rows."""
        losses = (0.0,) * len(self.scale) if self.aim.values else ()
        aim = self.aim.of(rows)
        return LinearPart.of(self.Q[rows], aim.target, aim.weight, losses, self.scale)

    def plant(
        self, options: TreeOptions, rows: NDArray[np.int64] | slice, lines: "LinearPart | None"
    ) -> tuple[Bins, Forest]:
        """Return a forest without trees on some rows, and the bins of their levels."""
        bins, binned = self.bins_for(options)
        base = None if lines is None else lines.outputs(self.Q[rows])
        return bins, Forest.plant(binned[rows], bins.first, self.aim.of(rows), options, base)

    def watch(
        self, options: TreeOptions, rows: NDArray[np.int64], lines: "LinearPart | None"
    ) -> Watch:
        """Return the judge of a forest by held-out rows."""
        binned, aim = self.bins_for(options)[1], self.aim.of(rows)
        base = None if lines is None else lines.outputs(self.Q[rows])
        weight = aim.weight.astype(np.float32)
        return Watch(binned[rows], self.data.truth[rows], weight, aim.values, base)

    def bins_for(self, options: TreeOptions) -> tuple[Bins, NDArray[np.uint8]]:
        """Return the bins of trees, and that of every level; they are chosen once."""
        most = most_bins(self.Q.shape[1], options.leaves)
        if most not in self._binned:
            bins = Bins.of(self.Q, most)
            self._binned[most] = bins, bins.sort(self.Q)
        return self._binned[most]


def try_options(
    data: TreeData,
    options: TreeOptions,
    folds: Sequence[Fold],
    line: "Callable[[int], LinearPart] | None" = None,
    limit: float = np.inf,
) -> TreeTrial:
    """Grow forests inside each fold and judge them outside; `line` returns the linear part of one.

    Options above `limit` outside the first fold have an infinite loss, and no second fold.
    """
    cancelled = threading.Event()

    def path_of(number: int) -> tuple[list[tuple[int, float, float]], int]:
        fold, beside = folds[number], line(number) if options.lines and line else None
        forest = data.plant(options, fold.inside, beside)[1]
        watch = data.watch(options, fold.outside, beside)
        watch.cancelled = cancelled
        grow_forest(forest, data.room, _MOST_TREES, watch)
        return watch.losses, max((tree.n_leaves for _, tree in forest.trees), default=0)

    # The first alone: of three folds on two threads, none has to wait for it.
    path, size = path_of(0)
    first = _least(path)
    is_sure = folds[0].outside.size > _MANY_ROWS and not options.lines
    if len(folds) > 1 and first > (_HOPELESS_OF_MANY if is_sure else _HOPELESS) * limit:
        return TreeTrial(options, 0, largest=size, first=first)
    others = [partial(path_of, number) for number in range(1, len(folds))]
    results = [(path, size), *side_by_side(others, data.n_threads, cancelled)]
    paths, sizes = zip(*results, strict=True)
    steps = sorted({n for path in paths for n, _, _ in path if n})  # no tree is no model
    if not steps:
        return TreeTrial(options, 0)
    means = [np.mean([_at(path, n) for path in paths], axis=0) for n in steps]
    best = int(np.argmin([loss for loss, _ in means]))
    loss, accuracy = means[best].tolist()
    return TreeTrial(options, steps[best], loss, accuracy, max(sizes), first)


def _least(path: Sequence[tuple[int, float, float]]) -> float:
    return min((loss for _, loss, _ in path), default=np.inf)


def decisions_of(data: TreeData, trial: TreeTrial, fold: Fold) -> NDArray[np.float32]:
    """Grow the forest of a trial inside a fold; return its decisions of the rows outside."""
    lines = data.lines(fold.inside) if trial.options.lines else None
    forest = data.plant(trial.options, fold.inside, lines)[1]
    grow_forest(forest, data.room, trial.n_trees)
    return data.watch(trial.options, fold.outside, lines).decide(forest)


def _at(path: list[tuple[int, float, float]], n: int) -> tuple[float, float]:
    """Return loss and accuracy with n trees, or with the last trees of a shorter path."""
    return next((step[1:] for step in reversed(path) if step[0] <= n), path[0][1:])


@dataclass(eq=False)
class _TreeSearch:
    data: TreeData
    folds: Sequence[Fold]
    cancelled: threading.Event = field(default_factory=threading.Event)
    #: Whether one more trial may be made; the first one always is.
    may_try: Callable[[], bool] = lambda: True
    trials: list[TreeTrial] = field(default_factory=list)
    lines: "dict[int, LinearPart]" = field(default_factory=dict)

    def line(self, number: int) -> "LinearPart":
        """Return the linear part of a fold, which is trained once."""
        if number not in self.lines:
            self.lines[number] = self.data.lines(self.folds[number].inside)
        return self.lines[number]

    def attempt(self, options: TreeOptions) -> TreeTrial:
        if self.cancelled.is_set():
            raise CancelledError
        ahead = min(self.trials, key=lambda trial: trial.log_loss, default=None)
        limit = np.inf if ahead is None else ahead.first
        trial = try_options(self.data, options, self.folds, self.line, limit)
        self.trials.append(trial)
        beside = ", linear part" if options.lines else ""
        judged = f"log loss {trial.log_loss:.4f}, {100 * trial.accuracy:.2f} %"
        progress.report(
            STAGE,
            len(self.trials),
            None,
            f"trees of {options.leaves} leaves{beside}, rate {options.rate:g}, l2 {options.l2:g}, "
            f"{options.bits} bits: {'behind' if trial.log_loss == np.inf else judged}",
        )
        return trial

    def climb(self, best: TreeTrial, changes: _Changes) -> TreeTrial:
        """Try changes one after the other on the best so far."""
        for change in changes:
            options = replace(best.options, **change)
            is_new = not any(_grow_the_same(trial, options) for trial in self.trials)
            if is_new and self.may_try():
                best = min(best, self.attempt(options), key=lambda trial: trial.log_loss)
        return best


def rounds(
    data: TreeData,
    folds: Sequence[Fold],
    cancelled: threading.Event,
    may_try: Callable[[], bool] = lambda: True,
    is_quick: bool = False,
) -> Iterator[TreeTrial]:
    """Yield the best options on held-out rows: first ones, of all sizes of trees, of all.

    With few trials, what helps most often is tried first.
    """
    search = _TreeSearch(data, folds, cancelled, may_try)
    best = search.attempt(TreeOptions(leaves=_LEAVES[0]))
    yield best
    if not may_try():
        return
    sizes = [{"leaves": n} for n in _LEAVES[1:] if n * _LEAST_LEAF_BYTES <= data.room.n_bytes]
    best = search.climb(best, _QUICK_CHANGES if is_quick else sizes)
    yield best
    best = search.climb(best, _CHANGES)
    # Dot products of the linear part must stay far below 32 bits.
    largest = data.Q.shape[1] * 127 * 2 ** (8 * data.Q.itemsize - 1)
    if np.isinf(data.room.steps) and largest < _LARGEST_DOT and may_try():
        both = search.attempt(replace(best.options, lines=True))
        best = search.climb(both, _CHANGES_OF_BOTH) if both.log_loss < best.log_loss else best
    yield best


def search_again(
    data: TreeData,
    folds: Sequence[Fold],
    best: TreeTrial,
    may_try: Callable[[], bool] = lambda: True,
) -> TreeTrial:
    """Return options for many more rows than `best` was chosen with, starting at larger trees."""
    if not may_try():
        return best
    search = _TreeSearch(data, folds, may_try=may_try)
    first = search.attempt(replace(best.options, **_OF_MANY_ROWS))
    return search.climb(first, _CHANGES_OF_MANY_ROWS)


def _grow_the_same(trial: TreeTrial, options: TreeOptions) -> bool:
    """Whether options give the same trees as a trial: a limit of leaves may have no effect."""
    same = replace(trial.options, leaves=options.leaves) == options
    fewest = min(trial.options.leaves, options.leaves)
    return same and (trial.options == options or trial.largest < fewest)


def tree_model(rows: TreeData, trial: TreeTrial) -> IntegerModel:
    """Grow the trees of a trial on all rows, and make the model of them."""
    data, lines = rows.data, rows.lines(slice(None)) if trial.options.lines else None
    bins, forest = rows.plant(trial.options, slice(None), lines)
    grow_forest(forest, rows.room, trial.n_trees)
    if not forest.trees:
        problem = "trees: no threshold of any input separates the rows; give {model}"
        raise DataError(problem, model="linear")
    trees, unit = pack_trees(forest, bins)
    grid = Grid.table(data.raw_dtype, data.X.shape[1])
    worth = dots = np.zeros(len(unit))
    if lines is not None:
        weighed = Linear(lines.weights, np.ones(len(unit), np.int32))
        dots = np.abs(weighed.reach(rows.scaler.gives(grid))).max(axis=0).astype(np.float64)
        worth = lines.worth
    start = forest.offset if lines is None else lines.offset
    multipliers, offset, answers, scale = _in_integers(data, (trees, unit), (worth, dots), start)
    parts: tuple[Part, ...] = (replace(trees, multiplier=multipliers[0]),)
    if lines is not None:
        parts = (Linear(lines.weights, multipliers[1]), *parts)
    return IntegerModel(
        input=grid,
        stages=(rows.scaler,),
        readout=Readout(parts, offset),
        answers=answers,
        decision_scale=scale,
    )


def _in_integers(
    data: TrainSet,
    grown: tuple[Trees, NDArray[np.float64]],
    lines: tuple[NDArray[np.float64], NDArray[np.float64]],
    offset: NDArray[np.float64],
) -> tuple[tuple[_Integers, _Integers], _Integers, Labels | Values, float]:
    """Choose multipliers from the units of the trees and of the linear part.

    Returns both, the offsets, what the outputs mean, and the scale of decisions.
    """
    (trees, unit), (worth, dots) = grown, lines
    if data.quantity is not None:
        bound = np.abs(trees.extremes()).max(axis=0)
        fixed = to_fixed_point(data.quantity.units, unit, worth, offset, bound, dots)
        multipliers, values = (fixed.multiplier, fixed.linear_multiplier), fixed.values
        return multipliers, fixed.offset, values, values.unit
    # All are powers of two, so that multipliers of the smallest are integers.
    smallest = float(min(unit.min(), worth[worth > 0].min(initial=np.inf)))
    exact = [np.rint(x / smallest) for x in (unit, worth, offset)]
    if max(np.abs(x).max() for x in exact) >= _LARGEST_MULTIPLIER:
        raise RangeError("trees: the leaves differ by too much for 32 bits")
    first, second, third = (x.astype(np.int32) for x in exact)
    return (first, second), third, Labels(tuple(data.classes)), smallest


@dataclass(frozen=True, eq=False)
class LinearPart:
    """A linear part in integers: output o is ``offset_o + worth_o * (weights_o . q)``."""

    weights: NDArray[np.int8]  # (n_outputs, n_inputs)
    worth: _Floats  # (n_outputs,): powers of two in units of the scores.
    offset: _Floats  # (n_outputs,)

    @staticmethod
    def of(
        Q: NDArray[Any], target: _Floats, weight: _Floats, losses: tuple[float, ...], scale: _Floats
    ) -> "LinearPart":
        """Train a linear part on levels Q; `scale` is the unit of each output in the scores."""
        epochs = min(_MOST_EPOCHS, round(_EPOCHS * max(1.0, np.sqrt(_ROWS / len(Q)))))
        recipe = training.LinearRecipe(
            _BITS,
            epochs,
            batch_rows=64 if len(Q) < 4000 else 128,
            dropout=training.linear_dropout(Q.shape[1]),
            losses=losses,
        )
        rows = training.TrainingRows(Q, target.astype(np.float32), weight.astype(np.float32))
        learner = training.LinearLearner(rows, recipe)
        run_epochs(learner, epochs, stage=None)
        levels, fine, _ = learner.stored()
        worth = 2.0 ** np.ceil(np.log2(fine * scale)) / scale
        weights = np.rint(levels * (fine / worth)[:, np.newaxis])
        shift = worth * np.einsum("oi,i->o", weights, learner.mean.astype(np.float64))
        return LinearPart(weights.astype(np.int8), worth, learner.offset.astype(np.float64) - shift)

    def outputs(self, Q: NDArray[Any]) -> _Floats:
        """Return its outputs for levels, shape (n, n_outputs)."""
        dots = Q.astype(np.int64) @ self.weights.T.astype(np.int64)
        return np.asarray(self.offset + self.worth * dots)
