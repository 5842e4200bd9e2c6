"""The part trees: leaves that thresholds choose."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from tinykernel.base.errors import ModelError
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.trees.sample import random_trees
from tinykernel.pieces.trees.spec import Trees

pytestmark = pytest.mark.usefixtures("page")


def slow_leaf(trees, tree, row):
    """Follow one tree by recursion over slices of its nodes and leaves; with its most steps."""
    first = int(trees.size[:tree].astype(int).sum())
    nodes = list(range(first, first + int(trees.size[tree])))
    leaves = trees.leaves[first + tree : first + tree + len(nodes) + 1]

    def descend(nodes, leaves):
        if not nodes:
            return int(leaves[0]), 0
        node, below = nodes[0], int(trees.left[nodes[0]])
        k = trees.test[node]
        parts = (
            descend(nodes[1 : 1 + below], leaves[: below + 1]),
            descend(nodes[1 + below :], leaves[below + 1 :]),
        )
        found = parts[int(row[trees.feature[k]] > trees.threshold[k])][0]
        return found, 1 + max(steps for _, steps in parts)

    return descend(nodes, leaves)


@given(st.integers(0, 10**6), st.sampled_from([8, 16]), st.sampled_from([4, 8]))
def test_totals_are_those_of_the_trees_followed_one_by_one(seed, bits, leaf_bits):
    """Every row reaches the leaf that its thresholds choose, and no total leaves its proof."""
    trees = random_trees(seed, 3, 2, bits, leaf_bits)
    top = 2 ** (bits - 1)
    rows = np.random.default_rng(seed).integers(-top, top, (4, 3)).astype(f"int{bits}")
    expected = np.zeros((4, 2), np.int64)
    for tree, (output, shift) in enumerate(zip(trees.output, trees.shift, strict=True)):
        for i, row in enumerate(rows):
            expected[i, output] += slow_leaf(trees, tree, row)[0] << int(shift)
    expected *= trees.multiplier
    assert trees.totals(rows).tolist() == expected.tolist()
    low, high = trees.reach(Grid.table(f"int{bits}", 3))
    assert np.all(low <= expected)
    assert np.all(expected <= high)
    assert trees.bits == leaf_bits
    most = sum(slow_leaf(trees, tree, rows[0])[1] for tree in range(trees.size.size))
    assert trees.work(Grid.table(f"int{bits}", 3))["tree step"] == most


@pytest.mark.parametrize(
    "change",
    [
        {"left": [1, 1]},
        {"test": [0, 9]},
        {"size": [1]},
        {"leaves": [1, 2]},
        {"feature": [0] * 65537, "threshold": [0] * 65537},
    ],
)
def test_what_is_no_tree_is_refused(change):
    """A damaged model could make the firmware read beside its tables."""
    whole = Trees([0, 1], [3, -5], [2], [0], [1], [0, 1], [1, 0], [-7, 1, 4], [10])
    types = {"leaves": np.int8}
    changed = {name: np.array(v, types.get(name, np.uint8)) for name, v in change.items()}
    refused(ModelError, replace, whole, **changed)


def test_sums_of_some_trees_are_proved():
    """Later trees may take back what the first ones add: the sum fits on the way, too."""
    size = np.r_[1, np.zeros(1200, int)]
    shift, leaves = np.r_[0, np.full(1200, 15)], np.r_[0, 0, np.repeat([127, -128], 600)]
    trees = Trees([0], [0], size, 0 * size, shift, [0], [0], leaves.astype(np.int8), [1])
    assert np.abs(trees.extremes()).max() < 2**31
    assert not trees.ranges(Grid.table("int8", 1))[0].fits
    positive = Trees([0], [0], [1], [0], [3], [0], [0], [5, 7], [1])
    assert positive.extremes().ravel().tolist() == [40, 56]
    assert positive.extremes(partial=True).ravel().tolist() == [0, 56]
