"""Storage of trees: nodes, leaves and thresholds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.packing import Code, Packed
from tinykernel.pieces.tables import Definition, Parts, Table, flag, smallest_c_type
from tinykernel.pieces.trees.spec import Trees


def pack_trees(trees: Trees) -> Parts:
    """Store the trees; see ``tk_trees.h``."""
    counts = np.bincount(trees.output, minlength=trees.multiplier.size)
    small = np.all(np.abs(trees.threshold.astype(np.int64)) < 128)
    sizes = np.stack([trees.size, trees.shift], axis=1).ravel()
    nodes = np.stack([trees.test, trees.left], axis=1).ravel()
    is_wide = nodes.dtype.itemsize > 1 or sizes.dtype.itemsize > 1
    node_type = "uint16_t" if is_wide else "uint8_t"
    sign = "" if trees.vectors is None else "u"
    leaves, leaf_type, packing = trees.leaves, f"{sign}int{max(trees.bits, 8)}_t", ""
    if trees.bits == 4:
        codes = np.zeros(-(-leaves.size // 2) * 2, dtype=np.uint8)
        codes[: leaves.size] = leaves & 15
        leaves, leaf_type = codes[::2] | codes[1::2] << 4, "uint8_t"
        packing = ", 4 bits each, the first one of a byte in its low half"
    nodes_said = "Nodes of all trees: number of a threshold, and of the nodes to skip above it."
    threshold_type = "int8_t" if small else f"{trees.threshold.dtype}_t"
    inputs: NDArray[Any] = trees.feature
    input_text = "Thresholds: the input of each."
    marked = np.zeros(1, np.uint16) if trees.missing is None else trees.missing.astype(np.uint16)
    if marked.any():
        inputs = trees.feature | marked << 15
        input_text = "Thresholds: the input of each, plus 2^15 where a missing value is above."
    more: Parts = [flag("TK_MISSING", True)] if marked.any() else []
    more += [Definition("TK_WIDE_NODES", "1", "numbers of 16 bits")] if is_wide else []
    if trees.vectors is not None:
        more.append(Definition("TK_VECTORS", f"{len(trees.vectors)}u", "different leaves"))
        text, kind = "What a leaf adds to each output.", smallest_c_type(trees.vectors)
        per_row = trees.vectors.shape[1]
        more.append(Table("tk_vectors", kind, trees.vectors.ravel(), "weights", text, per_row))
    rows = (
        ("tree_counts", "uint16_t", counts, "Trees of each output."),
        ("tree_gains", "int32_t", trees.multiplier, "Score per unit of the leaves."),
        ("trees", node_type, sizes, "Trees: number of nodes, and shift of the leaves."),
        ("nodes", node_type, nodes, nodes_said),
        ("leaves", leaf_type, leaves, f"Leaves of all trees{packing}."),
        ("tree_inputs", smallest_c_type(inputs), inputs, input_text),
        ("tree_thresholds", threshold_type, trees.threshold, "Thresholds: true above."),
    )
    return [
        Definition("TK_TREES", f"{trees.size.size}u"),
        Definition("TK_LEAF_BITS", str(trees.bits), "width of a leaf"),
        *more,
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


CODE = Code(
    {"tk_trees.h": "scores"},
    lambda part, _: Packed(pack_trees(part)),
    lambda part, grid, _: {"scores": part.work(grid)},
)
