"""Storage of the scale, of the linear part, of trees and of prototypes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.packing import Code, Facts, Work
from tinykernel.pieces.prototypes.spec import Prototypes
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.tables import (
    WORD,
    Definition,
    Parts,
    Table,
    flag,
    float_literal,
    integer_literal,
    pair_words,
    smallest_c_type,
)
from tinykernel.pieces.trees.spec import Trees


def _scaler_array(
    used: NDArray[np.bool_], array: NDArray[Any], macro: str, table: str, comment: str, cast: str
) -> Parts:
    """Store one array of the scaler as a literal or as a table; `cast` is the type of its use."""
    values = np.broadcast_to(array, used.shape)
    # What stands for a constant feature is never looked at, so it need not stand in the way.
    first = values[used][0] if np.any(used) else values[0]
    values = np.where(used, values, first)
    if np.all(values == first):
        literal = (
            float_literal(float(first))
            if cast == "float"
            else f"(({cast}){integer_literal(int(first), cast)})"
        )
        return [Definition(f"{macro}(i)", literal, comment)]
    c_type = "float" if cast == "float" else smallest_c_type(values)
    use = f"{table}[i]" if c_type == cast else f"(({cast}){table}[i])"
    return [
        Definition(f"{macro}(i)", use, comment),
        Table(table, c_type, values, "scaler", f"{comment}, for each input."),
    ]


def pack_scaler(scaler: Scale, used: NDArray[np.bool_], prefix: str = "") -> Parts:
    """Store offsets, multipliers, spans and shifts of the inputs; `used` marks which matter."""
    macro, table = f"TK_{prefix.upper()}", f"tk_{prefix}"
    parts: Parts = [flag(f"{macro}RAW_FLOAT", scaler.is_float)]
    if scaler.bits == 32:  # raw values in their order: the arrays serve people
        return parts
    offset, multiplier = ("float", "float") if scaler.is_float else ("int32_t", "uint32_t")
    slope = "levels per raw unit" if scaler.is_float else "levels per raw unit, times 2^16"

    def store(name: str, array: NDArray[Any], comment: str, cast: str) -> Parts:
        return _scaler_array(
            used, array, f"{macro}{name.upper()}", f"{table}{name}s", comment, cast
        )

    parts += store("offset", scaler.offset, "raw value of the lowest level", offset)
    parts += store("multiplier", scaler.multiplier, slope, multiplier)
    if scaler.span is not None:
        wide = scaler.raw_dtype == "int32" or np.any(np.abs(scaler.offset.astype(np.int64)) > 2**30)
        parts.append(flag(f"{macro}RAW_WIDE", wide, "differences of raw values need 33 bits"))
        parts += store("span", scaler.span, "raw range above the offset", "uint32_t")
        dropped = "bits dropped from wide ranges"
        parts += store("pre_shift", scaler.pre_shift, dropped, "uint32_t")
    return parts


def pack_scale(stage: Scale, constant: NDArray[np.bool_], components: Components | None) -> Parts:
    """Store the scaler, and which inputs are ignored or change their sign before a transform."""
    negative = np.zeros_like(constant) if components is None else components.sign < 0
    ends = "odd inputs high, even ones low."
    parts = pack_scaler(stage, ~constant)
    parts += [flag("TK_SIGNS", np.any(negative)), flag("TK_CONSTANTS", np.any(constant))]
    for name, bits, comment in (
        ("tk_signs", negative, f"Inputs that change their sign (B): a bit each, {ends}"),
        ("tk_constants", constant, f"Inputs that never varied and are ignored: {ends}"),
    ):
        if np.any(bits):
            packed = pair_words(bits, even_high=False)
            parts.append(Table(name, "uint32_t", packed, "scaler", comment))
    return parts


def _work_of_scale(stage: Scale, grid: Grid, facts: Facts) -> Work:
    kind = "float" if stage.is_float else "integer"
    each = ", a scaler each" if "tk_multipliers" in facts.tables else ""
    kind = f"{kind} in order" if stage.bits == 32 else kind
    beside = "inputs" if facts.macros["TK_BLOCKS"] == "0" else "inputs of components"
    return {"scale": {f"{beside}, {kind}{each}": float(grid.size), "scaler": 1.0}}


def weight_bits(linear: NDArray[np.int8]) -> int:
    """Return the width that holds all weights: 1 for signs, else 2, 4 or 8."""
    largest = int(np.abs(linear.astype(np.int16)).max())
    if largest == 1 and np.all(linear):
        return 1
    return 2 if largest <= 1 else 4 if largest <= 7 else 8


def pack_weights(weights: NDArray[np.int8]) -> NDArray[np.uint32]:
    """Return words of weights, row by row, each of which begins with a word."""
    n_rows, n = weights.shape
    bits = weight_bits(weights)
    codes = np.where(weights < 0, 1, 0) if bits == 1 else weights.astype(np.int64)
    per_word = WORD // bits
    padded = np.zeros((n_rows, -(-n // per_word) * per_word), dtype=np.int64)
    padded[:, :n] = codes & ((1 << bits) - 1)
    shifts = WORD - bits * (1 + np.arange(per_word))
    packed: NDArray[np.uint32] = (padded.reshape(-1, per_word) << shifts).sum(axis=1)
    return packed.astype(np.uint32)


def pack_linear(part: Linear) -> Parts:
    """Store the weights and the score of a product; see ``tk_linear.h``."""
    bits, packed = weight_bits(part.weights), pack_weights(part.weights)
    comment = f"Linear part: weights of each output, {bits} bits each, the first one at the top."
    gains = "Score per unit of the linear part."
    return [
        Definition("TK_LINEAR_BITS", str(bits), "width of a weight of the linear part"),
        Table("tk_linear", "uint32_t", packed, "weights", comment),
        Table("tk_linear_gains", "int32_t", part.multiplier, "weights", gains),
    ]


def _work_of_linear(part: Linear, grid: Grid, facts: Facts) -> Work:
    pieces = f"weights of {weight_bits(part.weights)} bits"
    return {"scores": {pieces: float(grid.size * facts.n_outputs)}}


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


def pack_prototypes(prototypes: NDArray[np.int8], part: str) -> Parts:
    """Store levels of 4 bits, eight a word; a prototype begins with a word."""
    number, n = prototypes.shape
    padded = np.zeros((number, -(-n // 8) * 8), dtype=np.int64)
    padded[:, :n] = prototypes.astype(np.int64) & 15
    packed = (padded.reshape(-1, 8) << (28 - 4 * np.arange(8))).sum(axis=1).astype(np.uint32)
    comment = "Known rows: 4 bits per input, the first one at the top."
    return [
        Definition("TK_PROTOTYPES", f"{number}u"),
        Table("tk_prototypes", "uint32_t", packed, part, comment),
    ]


def _work_of_prototypes(part: Prototypes, grid: Grid, facts: Facts) -> Work:
    size = float(part.levels.size)
    work = {"scores": {"prototypes": float(len(part.levels)), "levels of prototypes": size}}
    if grid.constant:
        # Each distance leaves constant inputs out by a function of the scaler.
        work["scale"] = {"levels of prototypes, constant inputs": size}
    return work


CODES = {
    "scale": Code({"tk_input.h": "scale"}, _work_of_scale),
    "linear": Code({"tk_linear.h": "scores"}, _work_of_linear, joins=True),
    "trees": Code({"tk_trees.h": "scores"}, lambda part, grid, _: {"scores": part.work(grid)}),
    "prototypes": Code({"tk_prototypes.h": "scores"}, _work_of_prototypes),
}
