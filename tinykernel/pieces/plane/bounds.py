"""Bounds and memory of the rows of a window, for check_proof.py: see proof_pieces.py."""

from proof_tools import blocks_of, need

TAKES, GIVES = ("rows",), "levels"


def bounds(c, k, before):
    """Yield name, lowest, highest and limits of the rows of a window; set the top of `k`."""
    bands = before["bands"] * before["channels"]
    need(c.sensor == "uint8_t" and k["bands"] == bands > 1, "rows of another type")
    need(k["rows"] > 1 and k["hop"] > 0, "windows without rows")
    k["top"] = 255
    yield "value of the plane", 0, 255, (0, 255)


def memory(c, k):
    """Words of the rows of a window, or of a count where convolutions go through a stream."""
    streams = any(k.get("window") for kind, k in c.chain if kind == "tk_separable")
    return {"state": 1 if streams else 2 + blocks_of(k["rows"] * k["bands"], 4)}
