"""Boosted trees in few bytes: grown on the loss, then all leaves are fitted together."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import njit
from tinykernel.base.elementary import exp, exps
from tinykernel.learn.loss import Truth
from tinykernel.learn.trees.growth import Bins, Growth, Narrow, Tree, grow
from tinykernel.pieces.trees.spec import Trees

_Floats = NDArray[np.float64]
# Bytes in flash of a tree (nodes, output and shift), a node, a threshold (input, level).
_TREE_BYTES, _NODE_BYTES, _THRESHOLD_BYTES = 2, 2, 3
_LINEAR_CODE = 260  # bytes of code of a linear part, about
_MOST_BINS = 128
_SUMS_BYTES = 1 << 26
_FIRST_STEPS = 20
#: Passes over all leaves after the last tree, and with values that are rounded.
_LAST_PASSES = 3
_FIT_AGAIN = 1.25
_PATIENCE = 12
# As LogitBoost bounds its responses (Friedman, Hastie, Tibshirani, Annals of Statistics 2000).
_LONGEST_STEP = 4.0
_LARGEST_OUTPUT = 300.0  # of which the exponential is taken.
_NO_ODDS = np.empty((0, 0))


@dataclass(frozen=True)
class TreeOptions:
    """Hyper-parameters of trees."""

    leaves: int = 16  # most leaves of a tree, 2 to 256.
    rate: float = 0.3  # learning rate.
    l2: float = 1.0  # penalty of leaves, in rows of weight 1.
    bits: int = 4  # {4, 8}: of a leaf.
    together: bool = True  # whether all leaves are fitted again as trees are added.
    lines: bool = False  # whether trees are grown to the error of a linear part beside them.


@dataclass(frozen=True)
class Room:
    """Limits of trees."""

    n_bytes: int  # of their tables in flash.
    steps: float = np.inf  # sum of the depths of all trees plus one each.


@dataclass(frozen=True, eq=False)
class Aim:
    """Targets and weights of the loss in `tinykernel.learn.loss`."""

    # Values, or probabilities: of the second class for one output, else of every class.
    target: _Floats  # (n, n_outputs)
    weight: _Floats  # (n,): not negative, with mean 1.
    values: bool  # whether `target` holds values, and the loss is half the squared error.

    def of(self, rows: NDArray[np.int64] | slice) -> Aim:
        """Return the targets of some rows."""
        return Aim(self.target[rows], self.weight[rows], self.values)

    def start(self) -> _Floats:
        """Return the best constant outputs."""
        f = np.zeros(self.target.shape[1])
        mean = np.einsum("i,ij->j", self.weight, self.target) / self.weight.sum()
        if self.values:
            return np.asarray(mean)
        for _ in range(_FIRST_STEPS):
            for o in range(f.size):
                # Of one output, the other class has 0. Sums from the left.
                odds = exps(f - f.max()) if f.size > 1 else exps([0.0, -f[0]])
                p = odds[o] / sum(odds.tolist())
                f[o] -= np.clip((p - mean[o]) / (max(p * (1 - p), 1e-6) + 1e-9), -1, 1)
        return f


@dataclass(eq=False)
class Forest:
    """Trees so far, and their outputs f for the training rows; for several classes also exp(f)."""

    bins: NDArray[np.uint8]
    first: NDArray[np.int64]
    aim: Aim
    options: TreeOptions
    offset: _Floats
    f: _Floats  # (n_outputs, n)
    target: _Floats  # (n_outputs, n)
    used: NDArray[np.bool_]
    odds: _Floats  # (n_outputs, n) or (0, 0)
    scratch: NDArray[np.int64]
    narrow: Narrow | None = None
    steps: int = 0
    n_leaves: int = 0
    n_fits: int = 0  # of all leaves.
    trees: list[tuple[int, Tree]] = field(default_factory=list)
    values: list[_Floats] = field(default_factory=list)

    @staticmethod
    def plant(
        bins: NDArray[np.uint8],
        first: NDArray[np.int64],
        aim: Aim,
        options: TreeOptions,
        base: _Floats | None = None,
    ) -> Forest:
        """Return a forest without trees; `base` are outputs of a linear part beside it."""
        offset = aim.start() if base is None else np.zeros(aim.target.shape[1])
        f = _outputs(offset, len(bins), base)
        clipped = np.clip(f, -_LARGEST_OUTPUT, _LARGEST_OUTPUT)
        odds = _NO_ODDS if aim.values or len(f) == 1 else exps(clipped)
        target, n_bins = np.ascontiguousarray(aim.target.T), int(first[-1])
        scratch = np.empty(options.leaves * n_bins, np.int64)
        used = np.zeros(n_bins, np.bool_)
        return Forest(bins, first, aim, options, offset, f, target, used, odds, scratch)

    @property
    def n_bytes(self) -> int:
        """Bytes of its tables in flash, estimated."""
        nodes = self.n_leaves - len(self.trees)
        leaves = self.n_leaves * self.options.bits
        weights = self.bins.shape[1] * len(self.offset)
        return (
            (weights + _LINEAR_CODE if self.options.lines else 0)
            + _TREE_BYTES * len(self.trees)
            + _NODE_BYTES * nodes
            + (leaves + 7) // 8
            + _THRESHOLD_BYTES * int(self.used.sum())
        )

    def add(self, o: int, room: Room) -> bool:
        """Grow one more tree for output o; False if none helps or there is no room."""
        options = self.options
        leaf = _NODE_BYTES + options.bits / 8
        left = room.n_bytes - self.n_bytes - _TREE_BYTES
        leaves = int(min(options.leaves, left / (leaf + 1), room.steps - self.steps))
        if leaves < 2:
            return False
        growth = Growth(leaves, options.l2, 0.5 * options.l2, leaf / (leaf + _THRESHOLD_BYTES))
        slope, bend = self._slopes(o)
        used = self.used.copy()
        self.narrow = self.narrow or Narrow.of(self.bins, self.first, used)
        if self.narrow is None:
            tree = grow(self.bins, self.first, slope, bend, used, growth, self.scratch)
        else:
            tree = self.narrow.grow(slope, bend, growth, self.scratch)
        if tree is None or self.steps + tree.depth + 1 > room.steps:
            return False
        self.used, self.steps = used, self.steps + tree.depth + 1
        self.n_leaves += tree.n_leaves
        sums = _leaf_sums(tree.grown_on, slope, bend, tree.n_leaves)
        values = -options.rate * sums[0] / (sums[1] + options.l2)
        _move(self.f, self.odds, o, values, tree.grown_on)
        self.trees.append((o, tree))
        self.values.append(values)
        return True

    def _slopes(self, o: int) -> tuple[_Floats, _Floats]:
        """Return first and second derivatives of the loss by output o, by row."""
        aim = self.aim
        slope, bend = _slopes(self.f, self.odds, self.target, aim.weight, o, aim.values)
        return slope, bend

    def fit_leaves(self) -> None:
        """Fit the leaves of every tree again, one tree after the other."""
        self.n_fits += 1
        for i in range(len(self.trees)):
            self._fit(i)

    def _fit(self, i: int) -> _Floats:
        """Take a Newton step of one tree's leaves; return them."""
        (o, tree), aim, old = self.trees[i], self.aim, self.values[i]
        state = self.f, self.odds, self.target, aim.weight, o, aim.values
        # Sure rows have little curvature, by which a step would be far too long.
        longest = np.inf if aim.values else _LONGEST_STEP
        self.values[i] = _newton(*state, old, tree.grown_on, self.options.l2, longest)
        return self.values[i]

    def round_leaves(self) -> tuple[list[NDArray[np.int8]], list[int], _Floats]:
        """Round the leaves of each tree, fitting the others to the rounding error.

        Returns the leaves in int8, their shifts, and the unit of a leaf of shift 0, by output.
        """
        top = 2 ** (self.options.bits - 1) - 1
        shifts = [0] * len(self.trees)
        leaves = [np.zeros(0, np.int8)] * len(self.trees)
        unit = self._units(top)
        for _ in range(_LAST_PASSES):
            for i, (o, _) in enumerate(self.trees):
                wanted, reached = self._fit(i), self.trees[i][1].grown_on
                bend = _leaf_sums(reached, *self._slopes(o), len(wanted))[1]
                shifts[i], leaves[i] = _round(wanted, bend + self.options.l2, unit[o], top)
                self.values[i] = leaves[i] * (unit[o] * 2.0 ** shifts[i])
                _move(self.f, self.odds, o, self.values[i] - wanted, reached)
        return leaves, shifts, unit

    def _units(self, top: int) -> _Floats:
        """Return a power of two an output, by which the finest tree has a shift of 0."""
        unit = np.ones(len(self.offset))
        largest = np.array([np.abs(values).max(initial=0) for values in self.values])
        output = np.array([o for o, _ in self.trees], np.int64)
        for o in range(len(unit)):
            sizes = largest[(output == o) & (largest > 0)]
            small, most = sizes.min(initial=np.inf), sizes.max(initial=0)
            if not sizes.size:
                small = most = 1.0
            unit[o] = 2.0 ** np.floor(np.log2(max(small, 2.0**-10 * most) / top))
        return unit


def _outputs(offset: _Floats, n_rows: int, base: _Floats | None) -> _Floats:
    """Return the outputs (n_outputs, n) of a forest without trees, or of a linear part beside."""
    if base is not None:
        return base.T.copy()
    return np.repeat(offset[:, np.newaxis], n_rows, axis=1)


def _round(values: _Floats, bend: _Floats, unit: float, top: int) -> tuple[int, NDArray[np.int8]]:
    """Return the shift, and the rounded leaves, that change the loss least."""
    best = (np.inf, 0, np.zeros(0, np.int8))
    for shift in range(12):
        step = unit * 2.0**shift
        leaves = np.clip(np.rint(values / step), -top - 1, top)
        lost = float(np.sum(bend * np.square(values - leaves * step)))
        if lost < best[0]:
            best = (lost, shift, leaves.astype(np.int8))
    return best[1], best[2]


def most_bins(n_inputs: int, leaves: int) -> int:
    """Return the most bins of an input, which limits the memory of growing a tree."""
    return int(np.clip(_SUMS_BYTES // (8 * leaves * n_inputs), 8, _MOST_BINS))


def grow_forest(forest: Forest, room: Room, most: int, watch: Watch | None = None) -> Forest:
    """Grow trees until there is no room, there are `most`, or none helps."""
    n_outputs, helpless, o, fitted = len(forest.offset), 0, 0, 0.0
    while len(forest.trees) < most and helpless < n_outputs:
        helpless = 0 if forest.add(o, room) else helpless + 1
        # Fit all leaves again whenever there are a quarter more trees.
        if forest.options.together and o == n_outputs - 1 and len(forest.trees) >= fitted:
            forest.fit_leaves()
            fitted = _FIT_AGAIN * len(forest.trees)
        o = (o + 1) % n_outputs
        if watch is not None and o == 0 and not watch.may_continue(forest):
            break
    return forest


@dataclass(eq=False)
class Watch:
    """Held-out rows that choose the number of trees."""

    bins: NDArray[np.uint8]
    truth: NDArray[Any]
    weight: NDArray[np.float32]
    values: bool
    base: _Floats | None = None
    #: Ends the growth of trees whose loss is no longer needed.
    cancelled: threading.Event = field(default_factory=threading.Event)
    losses: list[tuple[int, float, float]] = field(default_factory=list)
    reached: list[NDArray[np.uint8]] = field(default_factory=list)
    # Sums (n_outputs, n) of the first trees of a forest, whose leaves were fitted so often.
    sums: _Floats = field(default_factory=lambda: np.empty((0, 0)))
    n_summed: int = 0
    n_fits: int = -1

    def may_continue(self, forest: Forest) -> bool:
        """Record loss and accuracy of the trees so far; False if the loss no longer falls."""
        decisions = self.decide(forest)
        losses = (0.0,) * decisions.shape[1] if self.values else ()
        loss, right = Truth(self.truth, self.weight, losses).judge(decisions)
        self.losses.append((len(forest.trees), loss, right))
        path = [each[1] for each in self.losses]
        return len(path) - int(np.argmin(path)) <= _PATIENCE and not self.cancelled.is_set()

    def decide(self, forest: Forest) -> NDArray[np.float32]:
        """Return the decisions (n, n_outputs) of a forest, which grows between two calls."""
        new = forest.trees[len(self.reached) :]
        self.reached += [tree.find_leaves(self.bins) for _, tree in new]
        if forest.n_fits != self.n_fits:
            self.sums, self.n_summed = _outputs(forest.offset, len(self.bins), self.base), 0
            self.n_fits = forest.n_fits
        for i in range(self.n_summed, len(forest.trees)):
            _move(self.sums, _NO_ODDS, forest.trees[i][0], forest.values[i], self.reached[i])
        self.n_summed = len(forest.trees)
        return np.ascontiguousarray(self.sums.T, np.float32)


def pack_trees(forest: Forest, bins: Bins) -> tuple[Trees, _Floats]:
    """Return the trees of a model, and the unit of each output, a power of two."""
    leaves, shifts, unit = forest.round_leaves()
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
    grown = [(*forest.trees[i], shifts[i], leaves[i]) for i in order]
    trees = Trees(
        inputs.astype(np.uint16),
        np.array(borders, np.int16),
        np.array([tree.n_leaves - 1 for _, tree, _, _ in grown], np.uint8),
        np.array([o for o, *_ in grown], np.uint8),
        np.array([shift for _, _, shift, _ in grown], np.uint8),
        np.concatenate(test).astype(np.uint8),
        np.concatenate(left).astype(np.uint8),
        np.concatenate([values for *_, values in grown]),
        np.ones(len(unit), np.int32),
    )
    return trees, unit


@njit(nogil=True, error_model="numpy")
def _slopes(f, odds, target, weight, o, values):  # type: ignore[no-untyped-def]
    """Return the derivatives by output o of every row."""
    n_rows = weight.size
    slope, bend, total = np.empty(n_rows), np.empty(n_rows), np.zeros(n_rows)
    for c in range(odds.shape[0]):
        for i in range(n_rows):
            total[i] += odds[c, i]
    for i in range(n_rows):
        w = weight[i]
        if values:
            slope[i] = w * (f[o, i] - target[o, i])
            bend[i] = w
            continue
        p = odds[o, i] / total[i] if odds.size else 1.0 / (1.0 + exp(-f[o, i]))
        slope[i] = w * (p - target[o, i])
        bend[i] = w * max(p * (1.0 - p), 1e-6)
    return slope, bend


@njit(nogil=True, error_model="numpy")
def _leaf_sums(reached, slope, bend, n):  # type: ignore[no-untyped-def]
    """Return the sums of the derivatives of the rows of each leaf, shape (2, n)."""
    sums = np.zeros((2, n))
    for i in range(reached.size):
        sums[0, reached[i]] += slope[i]
        sums[1, reached[i]] += bend[i]
    return sums


@njit(nogil=True, error_model="numpy")
def _move(f, odds, o, by, reached):  # type: ignore[no-untyped-def]
    """Add what the leaves have to the outputs o of their rows."""
    for i in range(reached.size):
        f[o, i] += by[reached[i]]
    if odds.size:
        for i in range(reached.size):
            odds[o, i] = exp(min(max(f[o, i], -_LARGEST_OUTPUT), _LARGEST_OUTPUT))


@njit(nogil=True, error_model="numpy")
def _newton(f, odds, target, weight, o, values, old, reached, l2, longest):  # type: ignore[no-untyped-def]
    """Take a Newton step of the leaves of one tree; return them."""
    slope, bend = _slopes(f, odds, target, weight, o, values)
    sums = _leaf_sums(reached, slope, bend, old.size)
    step = (sums[0] + l2 * old) / (sums[1] + l2)
    new = old - np.minimum(np.maximum(step, -longest), longest)
    _move(f, odds, o, new - old, reached)
    return new
