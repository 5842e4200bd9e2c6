"""Bounds and memory of samples less their mean, for check_proof.py: see proof_pieces.py."""

from proof_tools import need, samples

TAKES, GIVES = ("samples",), "rows"


def bounds(c, s, before):
    """Yield name, lowest, highest and limits of samples less their mean."""
    need(c.sensor == "int32_t", "levels of another type")
    need(c.raw.bits <= 16, "samples of another type")
    need(1 < s["rows"] < 1 << 16 and s["rows"] >> s["shift"] == 1, "means of other samples")
    low, high = int(c.raw.min), int(c.raw.max)
    yield "sum of samples", low << s["shift"], high << s["shift"], (-(2**31), 2**31 - 1)
    yield "sample less the mean", low - high, high - low, (-(2**31), 2**31 - 1)


def memory(c, k):
    stored = samples(c, k["rows"] * k["channels"]) if c.streams else 0
    return {"state": 2 + 2 * k["channels"] + stored, "stream": stored}
