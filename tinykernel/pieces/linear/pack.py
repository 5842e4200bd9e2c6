"""Storage of a linear part."""

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Work
from tinykernel.pieces.tables import Definition, Table, pack_weights, weight_bits


def pack(part: Linear, place: Place) -> Packed:
    """Store the weights and the score of a product; see ``tk_linear.h``."""
    bits, packed = weight_bits(part.weights), pack_weights(part.weights)
    comment = f"Linear part: weights of each output, {bits} bits each, the first one at the top."
    gains = "Score per unit of the linear part."
    return Packed(
        [
            Definition("TK_LINEAR_BITS", str(bits), "width of a weight of the linear part"),
            Table("tk_linear", "uint32_t", packed, "weights", comment),
            Table("tk_linear_gains", "int32_t", part.multiplier, "weights", gains),
        ]
    )


def _work(part: Linear, grid: Grid, facts: Facts) -> Work:
    pieces = f"weights of {weight_bits(part.weights)} bits"
    counts = {pieces: float(grid.size * facts.n_outputs)}
    if "TK_TREES" not in facts.macros:  # these have a price of sums of their own
        counts["outputs"] = float(facts.n_outputs)
    return {"scores": counts}


CODE = Code({"tk_linear.h": "scores"}, pack, _work)
