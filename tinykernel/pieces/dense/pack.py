"""Storage of a hidden layer."""

from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Work
from tinykernel.pieces.tables import pack_weights, weight_bits


def pack(stage: Dense, place: Place) -> Packed:
    """Store the units; the formats are those of ``tk_dense.h``."""
    bits, packed = weight_bits(stage.weights), pack_weights(stage.weights)
    comment = f"Hidden layer: weights of each unit, {bits} bits each, the first one at the top."
    tables = {
        "weights": ("uint32_t", packed, "weights", comment),
        "biases": ("int32_t", stage.biases, "weights", "Biases of the units."),
    }
    return Packed(
        place.structure(
            "dense", stage, tables, values=place.grid.size, units=stage.n_units, bits=bits
        ),
        more_words=-(-stage.n_units // 4),
    )


def _work(stage: Dense, grid: Grid, facts: Facts) -> Work:
    work, products = stage.work(grid), f"products of {weight_bits(stage.weights)} bits"
    counts = {f"convolutions, {products}": work["multiply"], "convolutions, units": work["unit"]}
    return {"local": counts}


CODE = Code({"tk_dense.h": "local"}, pack, _work)
