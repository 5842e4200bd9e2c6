"""Storage of trees: bytes of nodes, one list of thresholds, leaves of 4 or 8 bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.definitions import Definition, Parts, Table, smallest_type
from tinykernel.codegen.pack.front import Code, Facts, Work
from tinykernel.model.grid import Grid
from tinykernel.model.readouts.trees import Trees


def pack_trees(trees: Trees) -> Parts:
    """Store the trees; see ``tk_trees.h``."""
    counts = np.bincount(trees.output, minlength=trees.multiplier.size)
    small = np.all(np.abs(trees.threshold.astype(np.int64)) < 128)
    return [
        Definition("TK_TREES", f"{trees.size.size}u"),
        Definition("TK_LEAF_BITS", str(trees.bits), "width of a leaf"),
        _table("tk_tree_counts", "uint16_t", counts, "Trees of each output."),
        _table("tk_tree_gains", "int32_t", trees.multiplier, "Score per unit of the leaves."),
        _table(
            "tk_trees",
            "uint8_t",
            np.stack([trees.size, trees.shift], axis=1).ravel(),
            "Trees: number of nodes, and shift of the leaves.",
        ),
        _table(
            "tk_nodes",
            "uint8_t",
            np.stack([trees.test, trees.left], axis=1).ravel(),
            "Nodes of all trees: number of a threshold, and of the nodes to skip above it.",
        ),
        _leaves(trees),
        _table(
            "tk_tree_inputs",
            smallest_type(trees.feature),
            trees.feature,
            "Thresholds: the input of each.",
        ),
        _table(
            "tk_tree_thresholds",
            "int8_t" if small else "int16_t",
            trees.threshold,
            "Thresholds: true above.",
        ),
    ]


def tree_bytes(trees: Trees) -> int:
    """Return the flash of the tables of trees that grow with their number."""
    fixed = ("tk_tree_counts", "tk_tree_gains")
    tables = (part for part in pack_trees(trees) if isinstance(part, Table))
    return sum(table.n_bytes for table in tables if table.name not in fixed)


def _table(name: str, c_type: str, values: NDArray[np.generic], comment: str) -> Table:
    return Table(name, c_type, values, "weights", comment)


def _leaves(trees: Trees) -> Table:
    if trees.bits == 8:
        return _table("tk_leaves", "int8_t", trees.leaves, "Leaves of all trees.")
    codes = np.zeros(-(-trees.leaves.size // 2) * 2, dtype=np.uint8)
    codes[: trees.leaves.size] = trees.leaves & 15
    comment = "Leaves of all trees, 4 bits each, the first one of a byte in its low half."
    return _table("tk_leaves", "uint8_t", codes[::2] | codes[1::2] << 4, comment)


def _work(part: Trees, given: Grid, facts: Facts) -> Work:
    return {"scores": part.work(given)}


CODE = Code({"tk_trees.h": "scores"}, _work)
