"""Boosted trees that are worth their bytes: grown on the loss, then all leaves fitted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.compiled import njit
from tinykernel.elementary import exp
from tinykernel.errors import TinykernelError
from tinykernel.model.answers.labels import Labels
from tinykernel.model.answers.values import Values
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.quantization.inputs import quantize_scaler
from tinykernel.model.readouts.readout import Readout
from tinykernel.model.readouts.trees import Trees
from tinykernel.model.stages.scale import Scale
from tinykernel.model.values import to_fixed_point
from tinykernel.training.folds import Fold
from tinykernel.training.inputs import choose_scaling
from tinykernel.training.loss import judge
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.growth import Bins, Growth, Tree, grow
from tinykernel.training.trainset import TrainSet

_Floats = NDArray[np.float64]
# Of a tree (nodes, output and shift), a node, a threshold (input, level), in flash.
_TREE_BYTES, _NODE_BYTES, _THRESHOLD_BYTES = 2, 2, 3
_MOST_BINS = 128
_SUMS_BYTES = 1 << 26
_FIRST_STEPS = 20
#: Passes over all leaves after the last tree, and with values that are rounded.
_LAST_PASSES = 3
_FIT_AGAIN = 1.25
_PATIENCE, _MOST_TREES = 12, 4000
#: What is tried: sizes of trees, then these changes one after the other.
STAGE = "choosing trees"
_LEAVES, _LEAST_LEAF_BYTES = (16, 4, 8, 32, 64, 256), 3
_CHANGES: tuple[dict[str, Any], ...] = (
    {"l2": 4.0},
    {"rate": 0.1},
    {"rate": 0.6},
    {"l2": 16.0},
    {"bits": 8},
    {"together": False},
)
_FAR_BEHIND = 1.5


@dataclass(frozen=True)
class TreeOptions:
    """What a search chooses.

    Parameters
    ----------
    leaves : int
        Most leaves of a tree, 2 to 256.
    rate : float
        Part of the best step that a new tree makes.
    l2 : float
        Holds leaves back, in rows of weight 1.
    bits : {4, 8}
        Of a leaf.
    together : bool
        Whether the leaves of all trees are fitted again after each new tree.
    """

    leaves: int = 16
    rate: float = 0.3
    l2: float = 1.0
    bits: int = 4
    together: bool = True


@dataclass(frozen=True)
class TreeRecipe(TreeOptions):
    """How a model of trees is trained: the options, and the most trees.

    Parameters
    ----------
    leaves, rate, l2, bits, together
        As of `TreeOptions`.
    n_trees : int
    """

    n_trees: int = 0


@dataclass(frozen=True, eq=False)
class Aim:
    """What the outputs are to be: the loss of `tinykernel.training.loss`, by row weight.

    Parameters
    ----------
    target : ndarray of float64, shape (n, n_outputs)
        Of values these; of one output the probability of the second class, else of every class.
    weight : ndarray of float64, shape (n,)
        Not negative, with mean 1.
    values : bool
        Whether `target` holds values, and the loss is half the squared error.
    """

    target: _Floats
    weight: _Floats
    values: bool

    def slopes(self, f: _Floats, o: int) -> tuple[_Floats, _Floats]:
        """Return first and second derivatives of the loss by output o, by row."""
        slope, bend = np.empty(len(f)), np.empty(len(f))
        _slopes(f, self.target, self.weight, o, self.values, slope, bend)
        return slope, bend

    def start(self) -> _Floats:
        """Return the best constant outputs."""
        f = np.zeros((1, self.target.shape[1]))
        mean = np.einsum("i,ij->j", self.weight, self.target) / self.weight.sum()
        if self.values:
            return np.asarray(mean)
        whole = Aim(mean[np.newaxis], np.ones(1), values=False)
        for _ in range(_FIRST_STEPS):
            for o in range(f.shape[1]):
                slope, bend = whole.slopes(f, o)
                f[0, o] -= np.clip(slope[0] / (bend[0] + 1e-9), -1, 1)
        return np.asarray(f[0])


@dataclass(eq=False)
class Forest:
    """Trees so far, and what they make of the training rows."""

    bins: NDArray[np.uint8]
    first: NDArray[np.int64]
    aim: Aim
    options: TreeOptions
    offset: _Floats
    f: _Floats
    used: NDArray[np.bool_]
    trees: list[tuple[int, Tree]] = field(default_factory=list)
    reached: list[NDArray[np.uint8]] = field(default_factory=list)
    values: list[_Floats] = field(default_factory=list)

    @staticmethod
    def planted(
        bins: NDArray[np.uint8],
        first: NDArray[np.int64],
        aim: Aim,
        options: TreeOptions,
    ) -> Forest:
        """Return a forest without trees."""
        offset = aim.start()
        f = np.tile(offset, (len(bins), 1))
        return Forest(bins, first, aim, options, offset, f, np.zeros(int(first[-1]), np.bool_))

    @property
    def n_bytes(self) -> int:
        """Bytes of its tables in flash, about."""
        nodes = sum(tree.n_leaves - 1 for _, tree in self.trees)
        leaves = (nodes + len(self.trees)) * self.options.bits
        return (
            _TREE_BYTES * len(self.trees)
            + _NODE_BYTES * nodes
            + (leaves + 7) // 8
            + _THRESHOLD_BYTES * int(self.used.sum())
        )

    def add(self, o: int, room: int) -> bool:
        """Grow a tree for output o that takes at most `room` bytes; False where none helps."""
        options = self.options
        leaf = _NODE_BYTES + options.bits / 8
        leaves = min(options.leaves, int((room - _TREE_BYTES) / (leaf + 1)))
        if leaves < 2:
            return False
        growth = Growth(leaves, options.l2, 0.5 * options.l2, leaf / (leaf + _THRESHOLD_BYTES))
        slope, bend = self.aim.slopes(self.f, o)
        tree = grow(self.bins, self.first, slope, bend, self.used, growth)
        if tree is None:
            return False
        reached = tree.reached(self.bins)
        sums = _leaf_sums(reached, slope, bend, tree.n_leaves)
        values = -options.rate * sums[0] / (sums[1] + options.l2)
        self.f[:, o] += values[reached]
        self.trees.append((o, tree))
        self.reached.append(reached)
        self.values.append(values)
        return True

    def fit_leaves(self) -> None:
        """Fit the leaves of every tree again, with those of all others as they are."""
        for i, (o, _) in enumerate(self.trees):
            self._fit(i, o, self.values[i])

    def _fit(self, i: int, o: int, old: _Floats) -> _Floats:
        """Take a Newton step of one tree's leaves; returns them."""
        slope, bend = self.aim.slopes(self.f, o)
        sums = _leaf_sums(self.reached[i], slope, bend, len(old))
        l2 = self.options.l2
        new: _Floats = old - (sums[0] + l2 * old) / (sums[1] + l2)
        self._put(i, o, new)
        return new

    def _put(self, i: int, o: int, new: _Floats) -> None:
        self.f[:, o] += (new - self.values[i])[self.reached[i]]
        self.values[i] = new

    def rounded(self) -> tuple[list[NDArray[np.int8]], list[int], _Floats]:
        """Round the leaves, fitting the others to what rounding changes.

        Returns
        -------
        leaves : list of ndarray of int8
        shifts : list of int
        unit : ndarray of float64, shape (n_outputs,)
            What 1 of a leaf, shifted by 0, stands for.
        """
        top = 2 ** (self.options.bits - 1) - 1
        shifts = [0] * len(self.trees)
        leaves = [np.zeros(0, np.int8)] * len(self.trees)
        unit = self._units(top)
        for _ in range(_LAST_PASSES):
            for i, (o, _) in enumerate(self.trees):
                wanted = self._fit(i, o, self.values[i])
                bend = _leaf_sums(self.reached[i], *self.aim.slopes(self.f, o), len(wanted))[1]
                shifts[i], leaves[i] = _rounded(wanted, bend + self.options.l2, unit[o], top)
                self._put(i, o, leaves[i] * (unit[o] * 2.0 ** shifts[i]))
        return leaves, shifts, unit

    def _units(self, top: int) -> _Floats:
        """Return a power of two an output, by which the finest tree has a shift of 0."""
        unit = np.ones(len(self.offset))
        for o in range(len(unit)):
            largest = [
                float(np.abs(v).max())
                for v, (at, _) in zip(self.values, self.trees, strict=True)
                if at == o
            ]
            small = min((value for value in largest if value > 0), default=1.0)
            unit[o] = 2.0 ** np.floor(
                np.log2(max(small, 2.0**-10 * max(largest, default=1.0)) / top)
            )
        return unit


def _rounded(values: _Floats, bend: _Floats, unit: float, top: int) -> tuple[int, NDArray[np.int8]]:
    """Return the shift, and leaves rounded by it, that change the loss least."""
    best = (np.inf, 0, np.zeros(0, np.int8))
    for shift in range(12):
        step = unit * 2.0**shift
        found = np.clip(np.rint(values / step), -top - 1, top)
        lost = float(np.sum(bend * np.square(values - found * step)))
        if lost < best[0]:
            best = (lost, shift, found.astype(np.int8))
    return best[1], best[2]


def _leaf_sums(reached: NDArray[np.uint8], slope: _Floats, bend: _Floats, n: int) -> _Floats:
    """Return the sums of the derivatives of the rows of each leaf, shape (2, n)."""
    sums = np.zeros((2, n))
    _sum_leaves(reached, slope, bend, sums)
    return sums


def most_bins(n_inputs: int, leaves: int) -> int:
    """Return how many bins an input may have, for the memory that growing a tree takes."""
    return int(np.clip(_SUMS_BYTES // (8 * leaves * n_inputs), 8, _MOST_BINS))


def grown(forest: Forest, budget: int, most: int, watch: Watch | None = None) -> Forest:
    """Grow trees until the budget is used up, `most` are there, or none helps."""
    n_outputs, helpless, o, fitted = len(forest.offset), 0, 0, 0.0
    while len(forest.trees) < most and helpless < n_outputs:
        helpless = 0 if forest.add(o, budget - forest.n_bytes) else helpless + 1
        # All leaves again whenever there are a quarter more trees: as many fits as trees, about.
        if forest.options.together and o == n_outputs - 1 and len(forest.trees) >= fitted:
            forest.fit_leaves()
            fitted = _FIT_AGAIN * len(forest.trees)
        o = (o + 1) % n_outputs
        if watch is not None and o == 0 and not watch.goes_on(forest):
            break
    return forest


@dataclass(eq=False)
class Watch:
    """Rows left out, by which the number of trees is chosen."""

    bins: NDArray[np.uint8]
    truth: NDArray[Any]
    weight: NDArray[np.float32]
    values: bool
    losses: list[tuple[int, float, float]] = field(default_factory=list)
    outputs: _Floats | None = None
    _seen: int = 0

    def goes_on(self, forest: Forest) -> bool:
        """Note loss and accuracy with the trees so far; False where they have not fallen long."""
        self._note(forest)
        loss = [each[1] for each in self.losses]
        return len(loss) - int(np.argmin(loss)) <= _PATIENCE

    def _note(self, forest: Forest) -> None:
        f = np.tile(forest.offset, (len(self.bins), 1))
        for (o, tree), values in zip(forest.trees, forest.values, strict=True):
            f[:, o] += values[tree.reached(self.bins)]
        losses = (0.0,) * f.shape[1] if self.values else ()
        loss, right = judge(f.astype(np.float32), self.truth, self.weight, losses)
        self.losses.append((len(forest.trees), loss, right))


def packed(forest: Forest, bins: Bins) -> tuple[Trees, _Floats]:
    """Round a forest to the part of a model; also what 1 of a multiplier of 1 stands for.

    Units are powers of two, so that multipliers of the smallest one are whole.
    """
    leaves, shifts, unit = forest.rounded()
    order = sorted(range(len(forest.trees)), key=lambda i: forest.trees[i][0])
    at = np.flatnonzero(forest.used)
    number = np.full(forest.used.size, -1)
    number[at] = np.arange(at.size)
    inputs = np.searchsorted(bins.first, at, side="right") - 1
    borders = [int(bins.borders[f][b - bins.first[f]]) for f, b in zip(inputs, at, strict=True)]
    test, left = [], []
    for i in order:
        tree = forest.trees[i][1]
        nodes, below = tree.preorder()
        test.append(number[bins.first[tree.input[nodes]] + tree.cut[nodes]])
        left.append(below)
    trees = Trees(
        inputs.astype(np.uint16),
        np.array(borders, np.int16),
        np.array([forest.trees[i][1].n_leaves - 1 for i in order], np.uint8),
        np.array([forest.trees[i][0] for i in order], np.uint8),
        np.array([shifts[i] for i in order], np.uint8),
        np.concatenate(test).astype(np.uint8),
        np.concatenate(left).astype(np.uint8),
        np.concatenate([leaves[i] for i in order]),
        np.ones(len(unit), np.int32),
    )
    return trees, unit


# --- the search ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found.

    Parameters
    ----------
    options : TreeOptions
    n_trees : int
        The number that did best.
    log_loss, accuracy : float
        On the rows left out; see `tinykernel.training.loss.judge`.
    """

    options: TreeOptions
    n_trees: int
    log_loss: float
    accuracy: float

    def with_trees(self, n_trees: int) -> Found:
        """Return the same with another number of trees."""
        return replace(self, n_trees=n_trees)

    @property
    def recipe(self) -> TreeRecipe:
        """How the model is trained."""
        return TreeRecipe(**vars(self.options), n_trees=self.n_trees)


@dataclass(frozen=True, eq=False)
class TreeData:
    """Rows for trees.

    Parameters
    ----------
    scaler : Scale
    Q : ndarray of int8 or int16, shape (n, n_inputs)
        Levels of the training rows.
    aim : Aim
    truth : ndarray
        Codes of the labels, or the targets of values.
    """

    scaler: Scale
    Q: NDArray[Any]
    aim: Aim
    truth: NDArray[Any]

    @staticmethod
    def of(data: TrainSet, options: TrainerOptions) -> TreeData:
        """Quantize rows: in 16 bits, or in 8 where raw values or the options have no more.

        Whole numbers that 16 bits hold have one scale for all, which loses nothing.
        """
        narrow = data.raw_dtype in ("uint8", "int8") or options.input_bits == 8
        scope = str(options.scaler_scope)
        if scope == "auto":
            low, high = (float(end) for end in (data.X.min(), data.X.max()))
            exact = data.X.dtype.kind in "iu" and high - low < 2 ** (8 if narrow else 16)
            scope = "global" if exact else "feature"
        bits, scaling = choose_scaling(data.X, data.raw_dtype, 8 if narrow else 16, scope)
        scaler = quantize_scaler(scaling, data.raw_dtype, bits).scaler
        weight = data.sample_weight / data.sample_weight.mean()
        targets = data.targets(options.teacher_share).astype(np.float64)
        aim = Aim(targets, weight, data.quantity is not None)
        return TreeData(scaler, scaler.quantize(data.X), aim, data.truth)


def tried(data: TreeData, options: TreeOptions, budget: int, folds: Sequence[Fold]) -> Found:
    """Grow forests on the rows inside each fold, and measure them on those outside."""
    bins = Bins.of(data.Q, most_bins(data.Q.shape[1], options.leaves))
    paths = []
    for fold in folds:
        aim = data.aim
        own = Aim(aim.target[fold.inside], aim.weight[fold.inside], aim.values)
        watch = Watch(
            bins.sort(data.Q[fold.outside]),
            data.truth[fold.outside],
            aim.weight[fold.outside].astype(np.float32),
            aim.values,
        )
        forest = Forest.planted(bins.sort(data.Q[fold.inside]), bins.first, own, options)
        grown(forest, budget, _MOST_TREES, watch)
        paths.append(watch.losses)
    steps = sorted({n for path in paths for n, _, _ in path})
    if not steps:
        return Found(options, 0, np.inf, 0.0)
    means = [np.mean([_at(path, n) for path in paths], axis=0) for n in steps]
    best = int(np.argmin([loss for loss, _ in means]))
    return Found(options, steps[best], float(means[best][0]), float(means[best][1]))


def _at(path: list[tuple[int, float, float]], n: int) -> tuple[float, float]:
    """Return loss and accuracy with n trees; a fold that ended before has its last ones."""
    return next((each[1:] for each in reversed(path) if each[0] <= n), path[0][1:])


def searched(data: TreeData, budget: int, folds: Sequence[Fold], limit: float) -> Found:
    """Return the options that do best on rows left out: sizes of trees first, then the rest.

    The search ends early where trees are far behind `limit`, the log loss of another model.
    """
    tries = 0

    def attempt(options: TreeOptions) -> Found:
        nonlocal tries
        tries += 1
        found = tried(data, options, budget, folds)
        progress.report(
            STAGE,
            tries,
            None,
            f"trees of {options.leaves} leaves, rate {options.rate:g}, l2 {options.l2:g}, "
            f"{options.bits} bits: log loss {found.log_loss:.4f}, {100 * found.accuracy:.2f} %",
        )
        return found

    best = attempt(TreeOptions(leaves=_LEAVES[0]))
    if best.log_loss > _FAR_BEHIND * limit:
        return best
    for leaves in (*(_LEAVES[1:]),):
        if leaves * _LEAST_LEAF_BYTES <= budget:
            best = min(best, attempt(replace(best.options, leaves=leaves)), key=_loss)
    for change in _CHANGES:
        best = min(best, attempt(replace(best.options, **change)), key=_loss)
    return best


def _loss(found: Found) -> float:
    return found.log_loss


# --- the model -----------------------------------------------------------------------------------


def tree_model(data: TrainSet, rows: TreeData, found: Found, budget: int) -> IntegerModel:
    """Grow the trees that a search found on all rows, and make the model of them."""
    options = found.options
    bins = Bins.of(rows.Q, most_bins(rows.Q.shape[1], options.leaves))
    forest = Forest.planted(bins.sort(rows.Q), bins.first, rows.aim, options)
    grown(forest, budget, found.n_trees)
    if not forest.trees:
        raise TinykernelError("trees: no threshold of any input tells anything of the rows")
    trees, unit = packed(forest, bins)
    answers: Labels | Values
    if data.quantity is None:
        worth = float(unit.min())
        multiplier, offset = np.rint(unit / worth), np.rint(forest.offset / worth)
        answers = Labels(tuple(data.classes))
    else:
        bound = np.abs(trees.extremes()).max(axis=0)
        fixed = to_fixed_point(data.quantity.units, unit, 0 * unit, forest.offset, bound, 0 * bound)
        multiplier, offset, answers = fixed.multiplier, fixed.offset, fixed.values
        worth = fixed.values.unit
    trees = replace(trees, multiplier=multiplier.astype(np.int32))
    return IntegerModel(
        input=Grid.table(data.raw_dtype, data.X.shape[1]),
        stages=(rows.scaler,),
        readout=Readout((trees,), offset.astype(np.int32)),
        answers=answers,
        decision_scale=worth,
    )


# --- derivatives ---------------------------------------------------------------------------------


@njit(nogil=True)
def _slopes(f, target, weight, o, values, slope, bend):  # type: ignore[no-untyped-def]
    for i in range(f.shape[0]):
        w = weight[i]
        if values:
            slope[i] = w * (f[i, o] - target[i, o])
            bend[i] = w
            continue
        if f.shape[1] == 1:
            p = 1.0 / (1.0 + exp(-f[i, 0]))
        else:
            top = f[i, 0]
            for c in range(1, f.shape[1]):
                top = max(top, f[i, c])
            total = 0.0
            for c in range(f.shape[1]):
                total += exp(f[i, c] - top)
            p = exp(f[i, o] - top) / total
        slope[i] = w * (p - target[i, o])
        bend[i] = w * max(p * (1.0 - p), 1e-6)


@njit(nogil=True)
def _sum_leaves(reached, slope, bend, sums):  # type: ignore[no-untyped-def]
    for i in range(reached.size):
        sums[0, reached[i]] += slope[i]
        sums[1, reached[i]] += bend[i]
