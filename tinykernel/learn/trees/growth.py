"""Grow one tree: the leaf of the largest gain is split until there are as many leaves as wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import njit, part
from tinykernel.pieces.trees.spec import MOST_THRESHOLDS

_Integers = NDArray[np.int64]
_Floats = NDArray[np.float64]
# Gradients are summed as integers, so that their order does not matter.
_LARGEST_SUM = 2.0**30


@dataclass(frozen=True, eq=False)
class Bins:
    """Levels of inputs in bins, whose borders are the thresholds that trees may have."""

    # Of each input, increasing. Bin b holds the levels above b of the borders.
    borders: tuple[NDArray[np.int16], ...]
    first: _Integers  # (n_inputs + 1,): where the bins of each input begin among all bins.

    @staticmethod
    def of(Q: NDArray[Any], most: int) -> Bins:
        """Choose at most `most` bins an input, with about as many rows each."""
        borders = tuple(_borders(column, most) for column in Q.T)
        sizes = [len(each) + 1 for each in borders]
        return Bins(borders, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def sort(self, Q: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the bin of every level, shape (n, n_inputs)."""
        bins = np.empty(Q.shape, np.uint8)
        for i, borders in enumerate(self.borders):
            bins[:, i] = np.searchsorted(borders, Q[:, i], side="left")
        return bins


def _borders(levels: NDArray[Any], most: int) -> NDArray[np.int16]:
    """Return borders midway between levels; between all levels if they are few."""
    values, count = np.unique(levels.astype(np.int64), return_counts=True)
    middle = (values[1:] + values[:-1]) >> 1
    if len(values) > most:
        # A bin ends where another share of the rows is full.
        share = np.cumsum(count)[:-1] * most // len(levels)
        middle = middle[np.flatnonzero(np.diff(share, prepend=0) > 0)]
    return middle.astype(np.int16)


@dataclass(frozen=True, eq=False)
class Tree:
    """A grown tree. Node k asks ``bin[input] > cut``; its children are `child` and `child` + 1."""

    input: NDArray[np.int32]  # (n,): -1 of leaves.
    cut: NDArray[np.int32]  # (n,)
    child: NDArray[np.int32]  # (n,)
    leaf: NDArray[np.int32]  # (n,): number of a leaf in preorder; 0 of nodes.
    depth: int  # number of nodes on the longest path to a leaf.
    grown_on: NDArray[np.uint8]  # (n_rows,): leaf of each row that it was grown on.

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.input) // 2 + 1

    def find_leaves(self, bins: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the leaf of each row."""
        out = np.empty(len(bins), np.uint8)
        _reach(bins, self.input, self.cut, self.child, self.leaf, out)
        return out

    def preorder(self) -> tuple[_Integers, _Integers]:
        """Return its nodes in preorder, and the number of nodes in the false part of each."""
        order, pending = list[int](), [0]
        while pending:
            k = pending.pop()
            if self.input[k] >= 0:
                order.append(k)
                pending += [int(self.child[k]) + 1, int(self.child[k])]
        nodes, below = np.array(order, np.int64), np.zeros(len(self.input), np.int64)
        for k in np.flatnonzero(self.input >= 0)[::-1]:  # children follow their node
            below[k] = 1 + below[self.child[k]] + below[self.child[k] + 1]
        return nodes, below[self.child[nodes]]


@dataclass(frozen=True, eq=False)
class Narrow:
    """Rows in the bins between the thresholds of a model, which can have no more of them.

    Trees are the same as on all bins, in a fraction of the time: bin b of an input says that the
    level is above b of its thresholds, and inputs without a threshold are left out.
    """

    bins: NDArray[np.uint8]  # (n, k)
    first: _Integers  # (k + 1,): as in `Bins`, of these inputs.
    inputs: _Integers  # (k,): which they are.
    cuts: _Integers  # (first[-1],): of each bin in all bins; -1 of the last of an input.

    @staticmethod
    def of(bins: NDArray[np.uint8], first: _Integers, used: NDArray[np.bool_]) -> Narrow | None:
        """Return the rows of `bins` between the used thresholds; None if more may be taken."""
        if np.count_nonzero(used) < MOST_THRESHOLDS:
            return None
        taken = [np.flatnonzero(each) for each in np.split(used, first[1:-1])]
        inputs = np.flatnonzero([each.size for each in taken])
        columns = [np.searchsorted(taken[f], bins[:, f]).astype(np.uint8) for f in inputs]
        cuts = np.concatenate([np.append(taken[f], -1) for f in inputs])
        edges = np.concatenate([[0], np.flatnonzero(cuts < 0) + 1]).astype(np.int64)
        return Narrow(np.stack(columns, axis=1), edges, inputs, cuts)

    def grow(
        self, slope: _Floats, bend: _Floats, growth: Growth, scratch: _Integers | None = None
    ) -> Tree | None:
        """Grow one tree, see `grow`; its inputs and cuts are those of all bins."""
        tree = grow(self.bins, self.first, slope, bend, self.cuts >= 0, growth, scratch)
        if tree is None:
            return None
        nodes = np.flatnonzero(tree.input >= 0)
        feature, cut = tree.input.copy(), tree.cut.copy()
        cut[nodes] = self.cuts[self.first[tree.input[nodes]] + tree.cut[nodes]]
        feature[nodes] = self.inputs[tree.input[nodes]]
        return replace(tree, input=feature, cut=cut)


@dataclass(frozen=True)
class Growth:
    """Options of growing a tree."""

    leaves: int  # most leaves, 2 to 256.
    l2: float  # added to the curvature of every leaf, in rows of weight 1.
    least: float  # least curvature of a leaf.
    known: float  # factor of the gain of a new threshold, as it takes more bytes.


def grow(
    bins: NDArray[np.uint8],
    first: _Integers,
    slope: _Floats,
    bend: _Floats,
    used: NDArray[np.bool_],
    growth: Growth,
    scratch: _Integers | None = None,
) -> Tree | None:
    """Grow one tree to the gradient of a loss (Friedman 2001; Chen & Guestrin 2016, formula 7).

    The gain of a split is ``G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2) - G^2 / (H + l2)``, with G the
    sum of `slope` and H that of `bend` over the rows: first and second derivatives of the loss,
    times row weights. `used` (n_bins,) marks thresholds of the model, also those of this tree.
    `scratch` is memory that trees may share. Returns None if no split gains anything.
    """
    total, bent = float(np.abs(slope).sum()), float(bend.sum())
    if total <= 0 or bent <= 0:
        return None
    per = (_LARGEST_SUM / total, _LARGEST_SUM / bent)
    nodes = np.full((4, 2 * growth.leaves), -1, np.int32)
    reached = np.empty(len(bins), np.uint8)
    settings = (growth.l2, growth.least, growth.known, 1 / per[0], 1 / per[1])
    if scratch is None or scratch.size < growth.leaves * used.size:
        scratch = np.empty(growth.leaves * used.size, np.int64)
    sums = scratch[: growth.leaves * used.size].reshape(growth.leaves, -1)
    start, most = first.astype(np.uint32), MOST_THRESHOLDS
    n, depth = _grow(bins, slope, bend, per, start, used, most, settings, sums, nodes, reached)
    feature, cut, child, number = nodes[:, :n].copy()
    return None if n < 3 else Tree(feature, cut, child, number, int(depth), reached)


@njit(nogil=True)
def _reach(bins, feature, cut, child, leaf, out):  # type: ignore[no-untyped-def]
    for row in range(bins.shape[0]):
        k = 0
        while feature[k] >= 0:
            k = child[k] + (1 if bins[row, feature[k]] > cut[k] else 0)
        out[row] = leaf[k]


@part()
def _add_up(bins, rows, both, first, sums):  # type: ignore[no-untyped-def]
    """Add up the derivatives of rows in all bins; places are unsigned, which are not checked."""
    sums[:] = 0
    for i in range(rows.size):
        row = rows[i]
        value = both[row]
        for f in range(bins.shape[1]):
            sums[first[f] + bins[row, f]] += value


@part()
def _best_split(sums, first, used, is_full, settings):  # type: ignore[no-untyped-def]
    """Return gain, input and cut of the best split of the rows whose sums are given."""
    l2, least, known, unit, bend_unit = settings
    parts, gains, whole = np.empty_like(sums), np.empty(sums.size), np.int64(0)
    for f in range(first.size - 1):
        whole = np.int64(0)
        for b in range(first[f], first[f + 1]):
            whole += sums[b]
            parts[b] = whole
    total = (whole >> 32) * unit
    bent = (whole & 0xFFFFFFFF) * bend_unit
    base = total * total / (bent + l2)
    rest = 0.0 if is_full else known  # a factor of the gain of new thresholds
    # A loop of vector operations: all sums fit 32 bits. Above the last bin of an input is nothing.
    for b in range(sums.size):
        below = np.int32(parts[b] & 0xFFFFFFFF) * bend_unit
        above = bent - below
        slope = np.int32(parts[b] >> 32) * unit
        other = total - slope
        gain = slope * slope / (below + l2) + other * other / (above + l2) - base
        gain *= 1.0 if used[b] else rest
        gains[b] = gain if below >= least and above >= least else 0.0
    best, place = 1e-12 * (base + 1e-12), -1
    for b in range(sums.size):
        if gains[b] > best:
            best, place = gains[b], b
    feature = -1
    while place >= 0 and first[feature + 1] <= place:
        feature += 1
    return best, feature, place - (first[feature] if place >= 0 else 0)


@njit(nogil=True, error_model="numpy")
def _grow(bins, slope, bend, per, first, used, most_used, settings, sums, nodes, reached):  # type: ignore[no-untyped-def]
    """Fill nodes (input, cut, child and number) and the leaves of the rows.

    Returns the number of nodes and leaves, and the depth.
    """
    n_bins, leaves = used.size, sums.shape[0]
    both = np.empty(bins.shape[0], np.int64)
    rows = np.empty(bins.shape[0], np.uint32)
    for i in range(rows.size):
        rows[i] = i
        both[i] = (np.int64(np.rint(slope[i] * per[0])) << 32) + np.int64(np.rint(bend[i] * per[1]))
    upper = np.empty_like(rows)
    begin = np.zeros(2 * leaves, np.int64)
    end = np.zeros(2 * leaves, np.int64)
    place = np.zeros(2 * leaves, np.int64)
    depth = np.zeros(2 * leaves, np.int64)
    gain = np.zeros(2 * leaves)
    split = np.full((2, 2 * leaves), -1)
    n_used = 0
    for b in range(n_bins):
        n_used += used[b]
    end[0] = rows.size
    _add_up(bins, rows, both, first, sums[0])
    best = _best_split(sums[0], first, used, n_used >= most_used, settings)
    gain[0], split[0, 0], split[1, 0] = best
    n, n_leaves, deepest = 1, 1, 0
    while n_leaves < leaves:
        k, most = -1, 0.0
        for j in range(n):
            if nodes[0, j] < 0 and split[0, j] >= 0 and gain[j] > most:
                k, most = j, gain[j]
        if k < 0:
            break
        f, c = split[0, k], split[1, k]
        if not used[first[f] + c]:
            if n_used >= most_used:
                best = _best_split(sums[place[k]], first, used, n_used >= most_used, settings)
                gain[k], split[0, k], split[1, k] = best
                continue
            used[first[f] + c] = True
            n_used += 1
        nodes[0, k], nodes[1, k], nodes[2, k] = f, c, n
        middle, m = begin[k], 0
        for i in range(begin[k], end[k]):
            row = rows[i]
            rows[middle] = upper[m] = row
            is_below = int(bins[row, f] <= c)
            middle += is_below
            m += 1 - is_below
        for i in range(m):
            rows[middle + i] = upper[i]
        begin[n], end[n], begin[n + 1], end[n + 1] = begin[k], middle, middle, end[k]
        depth[n] = depth[n + 1] = depth[k] + 1
        deepest = max(deepest, depth[n])
        n += 2
        n_leaves += 1
        if n_leaves == leaves:
            break  # nothing is split further
        # Only the rows of the smaller child are added up; the other child has the rest.
        small = n - 2 if middle - begin[k] <= end[k] - middle else n - 1
        large = 2 * n - 3 - small
        place[large], place[small] = place[k], n_leaves - 1
        few, many = sums[n_leaves - 1], sums[place[k]]
        _add_up(bins, rows[begin[small] : end[small]], both, first, few)
        for b in range(n_bins):
            many[b] -= few[b]
        for j in range(n - 2, n):
            best = _best_split(sums[place[j]], first, used, n_used >= most_used, settings)
            gain[j], split[0, j], split[1, j] = best
    _number(nodes, rows, begin, end, reached)
    return n, deepest


@part()
def _number(nodes, rows, begin, end, reached):  # type: ignore[no-untyped-def]
    """Give the leaves their numbers in preorder, and the rows the number of their leaf."""
    pending, n_pending, number = np.zeros(nodes.shape[1], np.int64), 1, 0
    while n_pending:
        n_pending -= 1
        k = pending[n_pending]
        nodes[3, k] = 0
        if nodes[0, k] >= 0:
            pending[n_pending], pending[n_pending + 1] = nodes[2, k] + 1, nodes[2, k]
            n_pending += 2
            continue
        nodes[3, k] = number
        for i in range(begin[k], end[k]):
            reached[rows[i]] = number
        number += 1
