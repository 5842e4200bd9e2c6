"""Lossless layout of the linear part: weights of 1, 2, 4 or 8 bits, packed into words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.definitions import WORD, Definition, Parts, Table
from tinykernel.codegen.pack import Code, Facts, Work
from tinykernel.model.grid import Grid
from tinykernel.model.readouts.linear import Linear


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


def _work(part: Linear, grid: Grid, facts: Facts) -> Work:
    pieces = f"weights of {weight_bits(part.weights)} bits"
    return {"scores": {pieces: float(grid.size * facts.n_outputs)}}


CODE = Code({"tk_linear.h": "scores"}, _work)
