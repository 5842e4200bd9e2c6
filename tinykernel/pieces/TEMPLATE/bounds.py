"""Bounds and memory of a scaled stage, for check_proof.py: see proof_pieces.py."""

from proof_tools import INT32, blocks_of, need

TAKES, GIVES = ("maps", "units"), "units"


def bounds(c, k, before):
    """Yield name, lowest, highest and limits of what it computes; set the top of `k`."""
    need(0 < k["factor"] < 256 and k["shift"] < 16, "a factor or a shift is too large")
    product = int(before["top"]) * k["factor"]
    yield "product with a constant", 0, product, (0, INT32[1])
    value = min(product >> k["shift"], 255)
    yield "scaled value", 0, value, (0, 255)
    k["top"] = max(1, value)


def memory(c, k):
    """Return the words of the scaled values."""
    return {"scratch": blocks_of(k["values"], 4)}
