"""Trees: sums of leaves that thresholds of the quantized values choose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import njit
from tinykernel.base.text import count
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Part
from tinykernel.pieces.proof import Range, range_of
from tinykernel.pieces.record import Matrix, checked_array, limits

#: Most thresholds of a model that is trained here: the number of one fits a byte.
MOST_THRESHOLDS = 256
#: Most thresholds of any model.
LARGEST_THRESHOLDS = 1 << 16
_INT32_MIN = -(2**31)
# The types of each array: the first that holds its values is taken.
_TYPES = {
    "threshold": ("int16", "int32"),
    "size": ("uint8", "uint16"),
    "test": ("uint8", "uint16"),
    "left": ("uint8", "uint16"),
    "leaves": ("int8", "int16", "int32"),
}


class Level(NamedTuple):
    """Nodes as deep as each other, of all trees."""

    nodes: NDArray[np.int64]
    above: NDArray[np.int64]  # where the part begins in which the test of a node is true
    ends: NDArray[np.int64]  # where that part ends


@dataclass(frozen=True, eq=False)
class Trees(Part):
    """The part *trees*: of each tree one leaf, chosen by thresholds of the quantized values.

    It reads the values q of the stage `Scale`. All trees share one list of thresholds k: the test
    k is true where ``q[feature_k] > threshold_k``. The nodes of all trees stand in one list and
    their leaves in another, each tree after the one before it. The nodes of a tree of ``size``
    nodes stand in preorder: a node, the ``left`` nodes of the part below it where its test is
    false, then those of the part where it is true. A part of m nodes has m + 1 leaves, in the same
    order. So a leaf is found without any further table, in at most ``size`` steps::

        node, leaf, m = first node and leaf of the tree, size of the tree
        while m > 0:
            skipped = left[node] + 1
            if q[feature[test[node]]] > threshold[test[node]]:
                node, leaf, m = node + skipped, leaf + skipped, m - skipped
            else:
                node, m = node + 1, left[node]

    To the output o it adds, in int32, proved not to overflow::

        multiplier_o * sum over the trees t with output_t = o of (leaves[leaf_t] << shift_t)

    With `vectors` a leaf is the number of a row of these instead, and a tree adds that row to all
    outputs::

        multiplier_o * sum over the trees t of vectors[leaves[leaf_t], o]

    A threshold marked in `missing` is also exceeded by the value of a missing number, -2**31 (see
    `Scale`). Without `missing`, inputs are never missing.

    Boosted trees are those of Friedman, Annals of Statistics 29, 2001, and forests, whose leaves
    are vectors, those of Breiman, Machine Learning 45, 2001. A threshold takes as much flash as a
    node and a half, so trees share them.

    One tree of two nodes: q_0 > 3, and below it where that is true q_1 > -5.

    >>> trees = Trees([0, 1], [3, -5], [2], [0], [1], [0, 1], [0, 0], [-7, 1, 4], [10])
    >>> trees.totals(np.array([[3, 0], [4, -5], [4, 0]], dtype=np.int8)).tolist()
    [[-140], [20], [80]]
    """

    KIND = "trees"
    READS = "scale"
    NAMES = True

    # 1 to 65536 thresholds
    feature: NDArray[np.uint16] = field(metadata=limits(None, None, "thresholds"))
    threshold: NDArray[Any] = field(metadata={"dtype": "int16|int32"})
    size: NDArray[Any] = field(metadata={"dtype": "uint8|uint16"})  # nodes of each tree
    # the output of each tree, not decreasing; 0 with `vectors`
    output: NDArray[np.uint8] = field(metadata=limits(None, None, "trees"))
    shift: NDArray[np.uint8] = field(metadata=limits(0, 15, "trees"))  # 0 with `vectors`
    test: NDArray[Any] = field(metadata={"dtype": "uint8|uint16"})
    left: NDArray[Any] = field(metadata={"dtype": "uint8|uint16"})
    # (n_nodes + n_trees,); the firmware stores -8..7, and numbers up to 15, in 4 bits
    leaves: NDArray[Any] = field(metadata={"dtype": "int8|int16|int32"})
    multiplier: NDArray[np.int32]  # (n_outputs,)
    vectors: Matrix[np.int32] | None = None  # (n_vectors, n_outputs)
    missing: NDArray[np.uint8] | None = field(default=None, metadata=limits(0, 1, "thresholds"))

    def check(self) -> None:
        self._choose_types()
        n, trees, nodes = self.feature.size, self.size.size, self.test.size
        if n > LARGEST_THRESHOLDS:
            raise self.refuse(f"{n} thresholds; {LARGEST_THRESHOLDS} are the most")
        self.require_shape("threshold", (n,))
        self.require_shape("output", (trees,))
        self.require_shape("left", (nodes,))
        self.require_shape("leaves", (nodes + trees,))
        if self.vectors is not None and (
            np.any(self.leaves < 0)
            or np.any(self.leaves >= len(self.vectors))
            or np.any(self.shift)
            or np.any(self.output)
        ):
            raise self.refuse("trees name a vector that is not there, or shift one")
        marked = False if self.missing is None else self.missing.astype(bool)
        if np.any(marked & (self.feature >= 1 << 15)):
            raise self.refuse("missing values are for the first 32768 inputs")
        if int(self.size.sum()) != nodes or np.any(self.test >= n):
            raise self.refuse("trees hold another number of nodes, or name a threshold too many")
        if np.any(np.diff(self.output.astype(np.int64)) < 0):
            raise self.refuse("trees are not sorted by output")
        if any(np.any(level.above > level.ends) for level in self.levels()):
            raise self.refuse("a node of a tree skips more nodes than there are below it")

    def _choose_types(self) -> None:
        """Turn each array into the first of its types that holds its values."""
        for name, kinds in _TYPES.items():
            values = np.asarray(getattr(self, name))
            ends = (int(values.min()), int(values.max())) if values.size else (0, 0)
            fitting = (
                k for k in kinds if np.iinfo(k).min <= ends[0] and ends[1] <= np.iinfo(k).max
            )
            array = checked_array(name, values, next(fitting, kinds[-1]), (None,))
            object.__setattr__(self, name, array)

    def check_grid(self, grid: Grid, n_outputs: int) -> None:
        self.require_shape("multiplier", (n_outputs,))
        if self.vectors is not None:
            self.require_shape("vectors", (len(self.vectors), n_outputs))
        if self.missing is not None and grid.dtype != "int32":
            raise self.refuse("trees of inputs that are never missing say where missing ones go")
        if np.any(self.feature >= grid.size) or np.any(self.output >= n_outputs):
            raise self.refuse("trees name an input or an output that is not there")
        if grid.constant and np.isin(self.feature, sorted(grid.constant)).any():
            raise self.refuse("trees have a threshold of a constant feature")

    def in_words(self, view: str, inputs: str) -> str:
        return f"{count(self.size.size, 'tree')} of {self.leaves.size} leaves, {inputs}"

    @property
    def bits(self) -> int:
        """Bits of a leaf in flash: 4, 8, 16 or 32."""
        if self.vectors is not None:
            return 4 if len(self.vectors) <= 16 else 8 if len(self.vectors) <= 256 else 16
        is_narrow = np.all((self.leaves >= -8) & (self.leaves <= 7))
        return 4 if is_narrow else 8 * self.leaves.dtype.itemsize

    @property
    def owns_thresholds(self) -> bool:
        """Whether a threshold in each node takes less flash than the number of one of all."""
        nodes, trees, n = self.test.size, 2 * self.size.size, self.feature.size
        place = 1 if self.missing is None and self.feature.max() < 256 else 2
        is_small = self.threshold.min() >= -128 and self.threshold.max() <= 127
        each = place + (1 if is_small else self.threshold.dtype.itemsize)
        ends, left = int(self.size.max()), int(self.left.max(initial=0))
        own = 2 if max(ends, 2 * left + 3) > 255 else 1
        shared = 2 if max(ends, left, n - 1) > 255 else 1
        return nodes * (each + own) + trees * own < (2 * nodes + trees) * shared + n * each

    def levels(self) -> Iterator[Level]:
        """Yield the nodes of all trees, from the roots down."""
        last = np.cumsum(self.size, dtype=np.int64)
        nodes, ends = (last - self.size)[self.size > 0], last[self.size > 0]
        while nodes.size:
            above = nodes + 1 + self.left[nodes]
            yield Level(nodes, above, ends)
            has_below, has_above = above > nodes + 1, above < ends
            nodes = np.concatenate([nodes[has_below] + 1, above[has_above]])
            ends = np.concatenate([above[has_below], ends[has_above]])

    @property
    def ends_above(self) -> NDArray[np.bool_]:
        """Which nodes have a leaf where their test is true."""
        found = np.zeros(self.left.size, np.bool_)
        for level in self.levels():
            found[level.nodes] = level.above == level.ends
        return found

    @property
    def steps(self) -> float:
        """Return the most steps to leaves, of all trees."""
        starts = np.cumsum(self.size, dtype=np.int64) - self.size
        trees = (np.searchsorted(starts, level.nodes, "right") for level in self.levels())
        return float(sum(np.unique(deep).size for deep in trees))

    def totals(self, values: NDArray[Any]) -> NDArray[np.int32]:
        sums = np.zeros((len(values), self.multiplier.size), dtype=np.int32)
        names = ("feature", "threshold", "size", "output", "shift", "test", "left", "leaves")
        arrays = [getattr(self, name) for name in names]
        arrays += [np.zeros((0, 0)) if self.vectors is None else self.vectors]
        arrays += [np.zeros(self.feature.size) if self.missing is None else self.missing]
        # Copies of one type, as it is compiled for each combination of types.
        copies = [np.array(array, np.int32) for array in arrays]
        wide = np.promote_types(values.dtype, np.int16)
        _sum_leaves(np.ascontiguousarray(values, wide), *copies, sums)
        return np.asarray(sums * self.multiplier, dtype=np.int32)

    def extremes(self, partial: bool = False) -> NDArray[np.int64]:
        """Return the least and the largest sum of leaves of each output, shape (2, n_outputs)."""
        # Partial sums are those of any trees of the output, 0 of none: the values within the loop.
        ends = np.cumsum(self.size.astype(np.int64) + 1)
        leaves, shift = self.leaves.astype(np.int64), self.shift.astype(np.int64)
        starts = ends - self.size.astype(np.int64) - 1
        sums = np.zeros((2, self.multiplier.size), dtype=np.int64)
        for row, extreme in enumerate((np.minimum, np.maximum)):
            if self.vectors is not None:
                rows = extreme.reduceat(self.vectors[leaves].astype(np.int64), starts)
                sums[row] = (extreme(rows, 0) if partial else rows).sum(axis=0)
                continue
            each = extreme.reduceat(leaves, starts) << shift
            np.add.at(sums[row], self.output, extreme(each, 0) if partial else each)
        return sums

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        sums, (low, high) = self.extremes(partial=True), self.reach(grid)
        return (
            range_of("sum of leaves", sums[0], sums[1]),
            range_of("sum of leaves times multiplier", low, high),
        )

    def reach(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        products = self.extremes() * self.multiplier.astype(np.int64)
        return products.min(axis=0), products.max(axis=0)

    def work(self, grid: Grid) -> dict[str, float]:
        """Return the most steps to leaves, of all trees, and how many trees and sums there are."""
        n, steps = self.size.size, self.steps
        if self.vectors is None:
            return {"tree step": steps, "tree": n, "sum of trees": self.multiplier.size}
        entries = float(self.vectors.shape[1] * n)
        return {"vector": float(n), "entry of a vector": entries, "tree step": steps}


@njit(nogil=True)
def _sum_leaves(  # type: ignore[no-untyped-def]
    values, feature, threshold, size, output, shift, test, left, leaves, vectors, missing, sums
):
    """Add up the leaves of rows, or the vectors that they name, tree by tree."""
    first = 0
    for tree in range(size.size):
        for row in range(values.shape[0]):
            node, leaf, m = np.int64(first), np.int64(first + tree), np.int64(size[tree])
            while m > 0:
                k = test[node]
                below, value = np.int64(left[node]), values[row, feature[k]]
                if value > threshold[k] or (missing[k] != 0 and value == _INT32_MIN):
                    node += below + 1
                    leaf += below + 1
                    m -= below + 1
                else:
                    node += 1
                    m = below
            if vectors.size == 0:
                sums[row, output[tree]] += np.int32(leaves[leaf]) << np.int32(shift[tree])
            else:
                for column in range(vectors.shape[1]):
                    sums[row, column] += vectors[leaves[leaf], column]
        first += int(size[tree])
