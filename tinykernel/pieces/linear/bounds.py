"""Bounds of a linear part, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import need

MACRO = "LINEAR_BITS"
JOINS = True


def outputs(c, n):
    """Return the ends of the dot products times their gains, and the bounds of both."""
    bits, half = c("LINEAR_BITS"), 1 << c("INPUT_BITS") - 1
    need(half <= 1 << 15, "a linear part of raw values")
    w = c.fields("tk_linear", 32 - bits * (1 + np.arange(32 // bits)), bits).reshape(n, -1)
    up, down = (f(w[:, : c("FEATURES")], 0).sum(axis=1) for f in (np.maximum, np.minimum))
    dots = np.stack([(half - 1) * down - half * up, (half - 1) * up - half * down])
    ends = np.sort(c.table["tk_linear_gains"].reshape(n) * dots, axis=0)
    return ends, [("dot product", *dots), ("dot product times multiplier", *ends)]
