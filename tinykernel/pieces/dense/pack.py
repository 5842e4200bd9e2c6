"""Storage of a hidden layer."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Work
from tinykernel.pieces.tables import WORD, weight_bits

_UNITS = 4  # that share a block of words


def pack(stage: Dense, place: Place) -> Packed:
    """Store the units; the formats are those of ``tk_dense.h``."""
    bits, packed = weight_bits(stage.weights), _blocks(stage.weights)
    comment = f"Hidden layer: weights of each unit, {bits} bits each, see tk_dense.h."
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


def _blocks(weights: NDArray[np.int8]) -> NDArray[np.uint32]:
    """Return the words of codes, of four units by turns, then those of the units that remain."""
    bits, n_units = weight_bits(weights), len(weights)
    per_half = WORD // 2 // bits
    offset = 1 << bits - 1
    codes = weights > 0 if bits == 1 else weights.astype(np.int64) + offset
    codes = np.pad(codes.astype(np.int64), ((0, 0), (0, -weights.shape[1] % (2 * per_half))))
    fours = codes.reshape(n_units, -1, per_half // 2, 2, 2)
    halves = fours.transpose(0, 1, 3, 2, 4).reshape(n_units, -1, 2, per_half)
    words = (halves << bits * np.arange(per_half)).sum(axis=3) @ [1 << 16, 1]
    whole = n_units & -_UNITS
    blocks = words[:whole].reshape(-1, _UNITS, words.shape[1]).transpose(0, 2, 1)
    return np.concatenate([blocks.ravel(), words[whole:].ravel()]).astype(np.uint32)


def _work(stage: Dense, grid: Grid, facts: Facts) -> Work:
    bits = weight_bits(stage.weights)
    padded = grid.size + -grid.size % (WORD // bits)
    counts = {
        f"convolutions, products of {bits} bits": float(stage.n_units * padded),
        "convolutions, units": float(stage.n_units),
        "convolutions, summed values": float(grid.size),
    }
    return {"local": counts}


def _properties(stage: Dense, value: Mapping[str, str]) -> dict[str, float]:
    """List what changes the code: layers of the same width of weights share a function."""
    counts: dict[str, float] = {f"dense of {weight_bits(stage.weights)} bits": 1}
    return counts | ({"dense with units alone": 1} if stage.n_units % _UNITS else {})


CODE = Code(
    {"tk_dense.h": "local"},
    pack,
    _work,
    properties=_properties,
    prices={"convolutions, summed values": 8.0},
)
