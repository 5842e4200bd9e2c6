"""Bounds of ternary weights, for check_proof.py: see proof_pieces.py."""

import numpy as np

MACRO = "BLOCKS"


def outputs(c, n):
    """Return the ends of the sums of components times their gains, and the bounds of a sum."""
    places = 32 * sum(c.of_block("WORDS", block) for block in range(c("BLOCKS")))
    gain = c.table["tk_gains"].reshape(n) * places
    return np.sort([gain, 0 * gain], axis=0), [("sum", -places, places)]
