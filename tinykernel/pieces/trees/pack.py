"""Storage of trees: nodes, leaves and thresholds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.packing import Code, Packed
from tinykernel.pieces.tables import (
    Definition,
    Parts,
    Table,
    flag,
    integer_literal,
    smallest_c_type,
)
from tinykernel.pieces.trees.spec import Trees


def pack_trees(trees: Trees, zero: int | None = None) -> Parts:
    """Store the trees; see ``tk_trees.h``. Raw inputs are `zero` above quantized ones."""
    counts = np.bincount(trees.output, minlength=trees.multiplier.size)
    return [
        Definition("TK_TREES", f"{trees.size.size}u"),
        *_pack_leaves(trees),
        *_pack_nodes(trees, zero),
        Table("tk_tree_counts", "uint16_t", counts, "weights", "Trees of each output."),
        Table("tk_tree_gains", "int32_t", trees.multiplier, "weights", "Score per unit of leaves."),
    ]


def _pack_nodes(trees: Trees, zero: int | None) -> Parts:
    """Store the nodes, with the numbers of thresholds that they share or with one each."""
    inputs: NDArray[Any]
    threshold: NDArray[Any]
    nodes: NDArray[Any]
    inputs, threshold, parts = trees.feature.astype(np.uint16), trees.threshold, list[Any]()
    nodes, text = np.stack([trees.test, trees.left], axis=1).ravel(), "Thresholds"
    said = "Nodes of all trees: number of a threshold, and of the nodes to skip above it."
    above = ""
    if zero is not None:
        threshold = threshold.astype(np.int32) + zero
        parts.append(flag("TK_TREES_WHOLE", True, "thresholds of raw inputs"))
        parts.append(Definition("TK_TREE_ZERO", integer_literal(zero), "above quantized inputs"))
    if trees.missing is not None and trees.missing.any():
        inputs = inputs | trees.missing.astype(np.uint16) << 15
        above = ", plus 2^15 where a missing value is above"
        parts.append(flag("TK_MISSING", True))
    if trees.owns_thresholds:
        inputs, threshold = inputs[trees.test], threshold[trees.test]
        nodes, text = 2 * (trees.left.astype(np.int64) + 1) + trees.ends_above, "Nodes"
        said = "Nodes of all trees: 2 for each node to go on above, 1 if a leaf is there."
        parts.append(flag("TK_OWN_THRESHOLDS", True, "of each node"))
    sizes = np.stack([trees.size, trees.shift], axis=1).ravel()
    is_wide = max(int(nodes.max()), int(sizes.max())) > 255
    parts += [Definition("TK_WIDE_NODES", "1", "numbers of 16 bits")] if is_wide else []
    kind = "uint16_t" if is_wide else "uint8_t"
    limit = f"{threshold.dtype}_t"
    if trees.owns_thresholds and (np.abs(threshold) < 1 << 16).all():
        limit = smallest_c_type(threshold)
    if not trees.owns_thresholds and np.all(np.abs(threshold.astype(np.int64)) < 128):
        limit = "int8_t"
    return [
        *parts,
        Table("tk_trees", kind, sizes, "weights", "Trees: number of nodes, shift of the leaves."),
        Table("tk_nodes", kind, nodes, "weights", said),
        Table(
            "tk_tree_inputs",
            smallest_c_type(inputs),
            inputs,
            "weights",
            f"{text}: the input of each{above}.",
        ),
        Table("tk_tree_thresholds", limit, threshold, "weights", f"{text}: true above."),
    ]


def _pack_leaves(trees: Trees) -> Parts:
    """Store the leaves, and the vectors or votes whose numbers they are."""
    leaves, bits, parts = trees.leaves.astype(np.int64), trees.bits, list[Any]()
    sign = "" if trees.vectors is None else "u"
    if trees.vectors is not None:
        votes, dense = _votes(trees.vectors), smallest_c_type(trees.vectors)
        table = Table("tk_vectors", dense, trees.vectors.ravel(), "weights", "")
        if votes is not None and _vote_bytes(votes, leaves.size) < (
            table.n_bytes + leaves.size * bits / 8
        ):
            entries, starts = votes
            leaves, bits = starts[leaves], _bits_of(starts)
            parts.append(flag("TK_VOTES", True, "leaves name the outputs that they add to"))
            text = (
                "Votes of leaves: 256 times what each adds, its output, and 128 if it is the last."
            )
            parts.append(Table("tk_votes", "int32_t", entries, "weights", text))
        else:
            text, per_row = "What a leaf adds to each output.", trees.vectors.shape[1]
            parts.append(Definition("TK_VECTORS", f"{len(trees.vectors)}u", "different leaves"))
            flat = trees.vectors.ravel()
            parts.append(Table("tk_vectors", dense, flat, "weights", text, per_row))
    leaf_type, packing = f"{sign}int{max(bits, 8)}_t", ""
    if bits == 4:
        codes = np.zeros(-(-leaves.size // 2) * 2, dtype=np.uint8)
        codes[: leaves.size] = leaves & 15
        leaves, leaf_type = codes[::2] | codes[1::2] << 4, "uint8_t"
        packing = ", 4 bits each, the first one of a byte in its low half"
    return [
        Definition("TK_LEAF_BITS", str(bits), "width of a leaf"),
        *parts,
        Table("tk_leaves", leaf_type, leaves, "weights", f"Leaves of all trees{packing}."),
    ]


def _bits_of(starts: NDArray[np.int64]) -> int:
    """Return the bits of the number of a first entry."""
    return 4 if starts[-1] < 16 else 8 if starts[-1] < 256 else 16


def _vote_bytes(votes: tuple[NDArray[np.int64], NDArray[np.int64]], n_leaves: int) -> float:
    """Return the flash of votes and of the leaves that name them."""
    entries, starts = votes
    return 4 * entries.size + n_leaves * _bits_of(starts) / 8


def _votes(vectors: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return vectors as lists of entries and where each begins; None if an entry is too large."""
    if vectors.shape[1] > 128 or np.abs(vectors.astype(np.int64)).max() >= 1 << 23:
        return None
    is_vote = vectors != 0
    is_vote[:, 0] |= ~is_vote.any(axis=1)
    row, output = np.nonzero(is_vote)
    ends = np.cumsum(is_vote.sum(axis=1))
    entries = vectors[row, output].astype(np.int64) * 256 + output
    entries[ends - 1] += 128
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    return None if starts[-1] >= 1 << 16 else (entries, starts)


def tree_bytes(trees: Trees) -> int:
    """Return the flash of the tables of trees that grow with their number."""
    fixed = ("tk_tree_counts", "tk_tree_gains")
    tables = (part for part in pack_trees(trees) if isinstance(part, Table))
    return sum(table.n_bytes for table in tables if table.name not in fixed)


CODE = Code(
    {"tk_trees.h": "scores"},
    lambda part, place: Packed(pack_trees(part, place.layout)),
    lambda part, grid, _: {"scores": part.work(grid)},
)
