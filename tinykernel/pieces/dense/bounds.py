"""Bounds and memory of a hidden layer, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import ENDS, INT32, blocks_of, need

TAKES, GIVES = ("maps", "levels", "units"), "units"
READS_WORDS = True


def weights_of(words, bits, units):
    """Return the weights of each unit; four units share a block of words."""
    blocks, words = units // 4 * 4, np.reshape(words, (units, -1))
    whole = words[:blocks].reshape(-1, words.shape[1], 4).transpose(0, 2, 1)
    words = np.concatenate([whole.reshape(blocks, words.shape[1]), words[blocks:]])
    value = np.arange(32 // bits)
    # Of four values, two belong to each half, the first two to the upper one.
    places = 16 * (value % 4 < 2) + bits * (value // 4 * 2 + value % 2)
    codes = (words[..., None] >> places & (1 << bits) - 1).reshape(units, -1)
    return 2 * codes - 1 if bits == 1 else codes - (1 << bits - 1)


def bounds(c, k, before):
    """Yield name, lowest, highest and limits of a hidden layer."""
    top = before["top"]
    need(k["bits"] in (1, 2, 4, 8) and 0 <= k["shift"] < 31, "weights or sums of other bits")
    w = weights_of(c.table[k["weights"]], k["bits"], k["units"])[:, : k["values"]]
    low, high = (c.table[k["biases"]] + top * f(w, 0).sum(axis=1) for f in ENDS)
    yield "sum of a unit", low, high, INT32
    units = np.clip(high >> k["shift"], 0, 255)
    yield "unit", 0, units, (0, 255)
    k["top"] = max(1, np.max(units))


def memory(c, k):
    return {"scratch": blocks_of(k["units"], 4)}
