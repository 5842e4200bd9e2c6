"""Bounds and memory of levels, for check_proof.py: see proof_pieces.py."""

from proof_tools import blocks_of, need

TAKES, GIVES = ("samples", "rows", "image"), "levels"


def bounds(c, k, before):
    """Yield nothing: the next stage bounds the levels."""
    need(before or c.sensor == "tk_sample_t", "levels of another type")
    yield from ()


def memory(c, k):
    return {"state": 1 + blocks_of(k["channels"], 2) if c("STAGES") == 2 else 0}
