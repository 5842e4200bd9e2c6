"""Storage of trees: bytes of nodes, one list of thresholds, leaves of 4 or 8 bits."""

from __future__ import annotations

import numpy as np

from tinykernel.codegen.definitions import Definition, Parts, Table, smallest_type
from tinykernel.codegen.pack import Code
from tinykernel.model.readouts.trees import Trees


def pack_trees(trees: Trees) -> Parts:
    """Store the trees; see ``tk_trees.h``."""
    counts = np.bincount(trees.output, minlength=trees.multiplier.size)
    small = np.all(np.abs(trees.threshold.astype(np.int64)) < 128)
    sizes = np.stack([trees.size, trees.shift], axis=1).ravel()
    nodes = np.stack([trees.test, trees.left], axis=1).ravel()
    leaves, leaf_type, packing = trees.leaves, "int8_t", ""
    if trees.bits == 4:
        codes = np.zeros(-(-leaves.size // 2) * 2, dtype=np.uint8)
        codes[: leaves.size] = leaves & 15
        leaves, leaf_type = codes[::2] | codes[1::2] << 4, "uint8_t"
        packing = ", 4 bits each, the first one of a byte in its low half"
    nodes_said = "Nodes of all trees: number of a threshold, and of the nodes to skip above it."
    threshold_type = "int8_t" if small else "int16_t"
    feature_type = smallest_type(trees.feature)
    rows = (
        ("tree_counts", "uint16_t", counts, "Trees of each output."),
        ("tree_gains", "int32_t", trees.multiplier, "Score per unit of the leaves."),
        ("trees", "uint8_t", sizes, "Trees: number of nodes, and shift of the leaves."),
        ("nodes", "uint8_t", nodes, nodes_said),
        ("leaves", leaf_type, leaves, f"Leaves of all trees{packing}."),
        ("tree_inputs", feature_type, trees.feature, "Thresholds: the input of each."),
        ("tree_thresholds", threshold_type, trees.threshold, "Thresholds: true above."),
    )
    return [
        Definition("TK_TREES", f"{trees.size.size}u"),
        Definition("TK_LEAF_BITS", str(trees.bits), "width of a leaf"),
        *(
            Table(f"tk_{name}", c_type, values, "weights", comment)
            for name, c_type, values, comment in rows
        ),
    ]


def tree_bytes(trees: Trees) -> int:
    """Return the flash of the tables of trees that grow with their number."""
    fixed = ("tk_tree_counts", "tk_tree_gains")
    tables = (part for part in pack_trees(trees) if isinstance(part, Table))
    return sum(table.n_bytes for table in tables if table.name not in fixed)


CODE = Code({"tk_trees.h": "scores"}, lambda part, grid, _: {"scores": part.work(grid)})
