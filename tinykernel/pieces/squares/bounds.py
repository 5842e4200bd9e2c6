"""Bounds of squares, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import need

MACRO = "SQUARES_ROWS"


def outputs(c, n):
    """Return the ends of the sums of squares, and the bounds of dot products and sums."""
    rows, width, shift = c("SQUARES_ROWS"), c("SQUARES_WIDTH"), c("SQUARES_SHIFT")
    n_classes, inputs, half = max(n, 2), c("FEATURES"), 1 << c("INPUT_BITS") - 1
    need(half <= 1 << 15 and 0 < rows <= inputs and width > 0 and shift < 32, "other squares")
    lengths = np.minimum(width, inputs - np.arange(rows))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    weights = c.table["tk_squares_weights"].reshape(n_classes, lengths.sum())
    offsets, drops = (
        c.table[f"tk_squares_{k}"].reshape(n_classes, rows) for k in ("offsets", "drops")
    )
    need(drops.min() >= 0 and drops.max() < 32, "shifts of squares")
    up, down = (np.add.reduceat(f(weights, 0), starts, axis=1) for f in (np.maximum, np.minimum))
    low, high = offsets + (half - 1) * down - half * up, offsets + (half - 1) * up - half * down
    far = np.minimum(np.maximum(np.abs(low >> drops), np.abs(high >> drops)), 46340)
    most = np.minimum((far**2 >> shift).sum(axis=1), 1 << 30)
    ends = (-most[1:], most[:1]) if n == 1 else (-most, 0 * most)
    return ends, [("dot product of a square", low, high), ("sum of squares", 0, most)]
