"""Bounds and memory of a hidden layer, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import ENDS, INT32, blocks_of, need

TAKES, GIVES = ("maps", "levels", "units"), "units"
READS_WORDS = True


def bounds(c, k, before):
    """Yield name, lowest, highest and limits of a hidden layer."""
    top = before["top"]
    need(k["bits"] in (1, 2, 4, 8) and 0 <= k["shift"] < 31, "weights or sums of other bits")
    places = 32 - k["bits"] * (1 + np.arange(32 // k["bits"]))
    w = c.fields(k["weights"], places, k["bits"]).reshape(k["units"], -1)[:, : k["values"]]
    low, high = (c.table[k["biases"]] + top * f(w, 0).sum(axis=1) for f in ENDS)
    yield "sum of a unit", low, high, INT32
    units = np.clip(high >> k["shift"], 0, 255)
    yield "unit", 0, units, (0, 255)
    k["top"] = max(1, np.max(units))


def memory(c, k):
    return {"scratch": blocks_of(k["units"], 4)}
