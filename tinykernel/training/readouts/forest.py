"""Boosted trees in few bytes: grown on the loss, then all leaves are fitted together."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.compiled import njit
from tinykernel.elementary import exp
from tinykernel.model.readouts.trees import Trees
from tinykernel.training.loss import judge
from tinykernel.training.readouts.growth import Bins, Growth, Narrow, Tree, grow

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
    """Targets and weights of the loss in `tinykernel.training.loss`."""

    # Values, or probabilities: of the second class for one output, else of every class.
    target: _Floats  # (n, n_outputs)
    weight: _Floats  # (n,): not negative, with mean 1.
    values: bool  # whether `target` holds values, and the loss is half the squared error.

    def of(self, rows: NDArray[np.int64] | slice) -> Aim:
        """Return the targets of some rows."""
        return Aim(self.target[rows], self.weight[rows], self.values)

    def slopes(self, f: _Floats, o: int) -> tuple[_Floats, _Floats]:
        """Return first and second derivatives of the loss by output o, by row."""
        slope, bend = _slopes(f, self.target, self.weight, o, self.values)
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
    """Trees so far, and their outputs f for the training rows; for several classes also exp(f)."""

    bins: NDArray[np.uint8]
    first: NDArray[np.int64]
    aim: Aim
    options: TreeOptions
    offset: _Floats
    f: _Floats
    used: NDArray[np.bool_]
    odds: _Floats | None = None  # (n_outputs, n)
    narrow: Narrow | None = None
    steps: int = 0
    n_leaves: int = 0
    trees: list[tuple[int, Tree]] = field(default_factory=list)
    reached: list[NDArray[np.uint8]] = field(default_factory=list)
    values: list[_Floats] = field(default_factory=list)

    @staticmethod
    def planted(
        bins: NDArray[np.uint8],
        first: NDArray[np.int64],
        aim: Aim,
        options: TreeOptions,
        base: _Floats | None = None,
    ) -> Forest:
        """Return a forest without trees; `base` are outputs of a linear part beside it."""
        offset = aim.start() if base is None else np.zeros(aim.target.shape[1])
        f = np.tile(offset, (len(bins), 1)) if base is None else base.copy()
        forest = Forest(bins, first, aim, options, offset, f, np.zeros(int(first[-1]), np.bool_))
        if not aim.values and f.shape[1] > 1:
            forest.odds = np.empty(f.shape[::-1])
            for o in range(f.shape[1]):
                _raise(f, o, forest.odds)
        return forest

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
            tree = grow(self.bins, self.first, slope, bend, used, growth)
        else:
            tree = self.narrow.grow(slope, bend, growth)
        if tree is None or self.steps + tree.depth + 1 > room.steps:
            return False
        self.used, self.steps = used, self.steps + tree.depth + 1
        self.n_leaves += tree.n_leaves
        reached = tree.reached(self.bins)
        sums = _leaf_sums(reached, slope, bend, tree.n_leaves)
        values = -options.rate * sums[0] / (sums[1] + options.l2)
        self._move(o, values[reached])
        self.trees.append((o, tree))
        self.reached.append(reached)
        self.values.append(values)
        return True

    def _move(self, o: int, by: _Floats) -> None:
        self.f[:, o] += by
        if self.odds is not None:
            _raise(self.f, o, self.odds)

    def _slopes(self, o: int) -> tuple[_Floats, _Floats]:
        if self.odds is None:
            return self.aim.slopes(self.f, o)
        slope, bend = _slopes_of_odds(self.odds, self.aim.target, self.aim.weight, o)
        return slope, bend

    def fit_leaves(self) -> None:
        """Fit the leaves of every tree again, one tree after the other."""
        for i, (o, _) in enumerate(self.trees):
            self._fit(i, o)

    def _fit(self, i: int, o: int) -> _Floats:
        """Take a Newton step of one tree's leaves; return them."""
        old, (slope, bend) = self.values[i], self._slopes(o)
        sums = _leaf_sums(self.reached[i], slope, bend, len(old))
        l2 = self.options.l2
        step = (sums[0] + l2 * old) / (sums[1] + l2)
        if not self.aim.values:
            # Sure rows have little curvature, by which a step would be far too long.
            step = np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        new: _Floats = old - step
        self._put(i, o, new)
        return new

    def _put(self, i: int, o: int, new: _Floats) -> None:
        self._move(o, (new - self.values[i])[self.reached[i]])
        self.values[i] = new

    def rounded(self) -> tuple[list[NDArray[np.int8]], list[int], _Floats]:
        """Round the leaves of each tree, fitting the others to the rounding error.

        Returns the leaves in int8, their shifts, and the unit of a leaf of shift 0, by output.
        """
        top = 2 ** (self.options.bits - 1) - 1
        shifts = [0] * len(self.trees)
        leaves = [np.zeros(0, np.int8)] * len(self.trees)
        unit = self._units(top)
        for _ in range(_LAST_PASSES):
            for i, (o, _) in enumerate(self.trees):
                wanted = self._fit(i, o)
                bend = _leaf_sums(self.reached[i], *self._slopes(o), len(wanted))[1]
                shifts[i], leaves[i] = _rounded(wanted, bend + self.options.l2, unit[o], top)
                self._put(i, o, leaves[i] * (unit[o] * 2.0 ** shifts[i]))
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


def _rounded(values: _Floats, bend: _Floats, unit: float, top: int) -> tuple[int, NDArray[np.int8]]:
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


def grown(forest: Forest, room: Room, most: int, watch: Watch | None = None) -> Forest:
    """Grow trees until there is no room, there are `most`, or none helps."""
    n_outputs, helpless, o, fitted = len(forest.offset), 0, 0, 0.0
    while len(forest.trees) < most and helpless < n_outputs:
        helpless = 0 if forest.add(o, room) else helpless + 1
        # Fit all leaves again whenever there are a quarter more trees.
        if forest.options.together and o == n_outputs - 1 and len(forest.trees) >= fitted:
            forest.fit_leaves()
            fitted = _FIT_AGAIN * len(forest.trees)
        o = (o + 1) % n_outputs
        if watch is not None and o == 0 and not watch.goes_on(forest):
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
    # Leaves of the trees that `sums` (n, n_outputs) adds up.
    leaves: list[_Floats] = field(default_factory=list)
    sums: _Floats | None = None

    def goes_on(self, forest: Forest) -> bool:
        """Record loss and accuracy of the trees so far; False if the loss no longer falls."""
        decisions = self.decide(forest)
        losses = (0.0,) * decisions.shape[1] if self.values else ()
        loss, right = judge(decisions, self.truth, self.weight, losses)
        self.losses.append((len(forest.trees), loss, right))
        path = [each[1] for each in self.losses]
        return len(path) - int(np.argmin(path)) <= _PATIENCE and not self.cancelled.is_set()

    def decide(self, forest: Forest) -> NDArray[np.float32]:
        """Return the decisions (n, n_outputs) of a forest, which grows between two calls."""
        new = forest.trees[len(self.reached) :]
        self.reached += [tree.reached(self.bins) for _, tree in new]
        n = len(self.leaves)
        if self.sums is None or any(
            a is not b for a, b in zip(self.leaves, forest.values, strict=False)
        ):
            whole = np.tile(forest.offset, (len(self.bins), 1))
            self.sums, n = whole if self.base is None else self.base.copy(), 0
        self.leaves = forest.values.copy()
        for (o, _), values, reached in zip(
            forest.trees[n:], forest.values[n:], self.reached[n:], strict=True
        ):
            self.sums[:, o] += values[reached]
        return self.sums.astype(np.float32)


def packed(forest: Forest, bins: Bins) -> tuple[Trees, _Floats]:
    """Return the trees of a model, and the unit of each output, a power of two."""
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


@njit(nogil=True)
def _slopes(f, target, weight, o, values):  # type: ignore[no-untyped-def]
    slope, bend = np.empty(f.shape[0]), np.empty(f.shape[0])
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
    return slope, bend


@njit(nogil=True)
def _leaf_sums(reached, slope, bend, n):  # type: ignore[no-untyped-def]
    """Return the sums of the derivatives of the rows of each leaf, shape (2, n)."""
    sums = np.zeros((2, n))
    for i in range(reached.size):
        sums[0, reached[i]] += slope[i]
        sums[1, reached[i]] += bend[i]
    return sums


@njit(nogil=True)
def _raise(f, o, odds):  # type: ignore[no-untyped-def]
    for i in range(f.shape[0]):
        odds[o, i] = exp(min(max(f[i, o], -300.0), 300.0))


@njit(nogil=True)
def _slopes_of_odds(odds, target, weight, o):  # type: ignore[no-untyped-def]
    """Return the derivatives for several classes, of exp(f)."""
    n_outputs, n = odds.shape
    slope, bend, total = np.empty(n), np.empty(n), np.zeros(n)
    for c in range(n_outputs):
        for i in range(n):
            total[i] += odds[c, i]
    for i in range(n):
        p = odds[o, i] / total[i]
        slope[i] = weight[i] * (p - target[i, o])
        bend[i] = weight[i] * max(p * (1.0 - p), 1e-6)
    return slope, bend
