"""Bounds and memory of the lines of a camera, for check_proof.py: see proof_pieces.py."""

from proof_tools import blocks_of, need

TAKES, GIVES = ("samples",), "image"


def bounds(c, k, before):
    """Yield name, lowest, highest and limits of sums of the lines of a camera."""
    need(c.raw is not None and (c.raw.min, c.raw.max) == (0, 255), "frames of another type")
    need(k["format"] < 5 and k["channels"] in (1, 3), "another format")
    need(0 not in (k["wide"], k["high"], k["rows"], k["columns"]), "an image without pixels")
    need(k["left"] + k["wide"] <= k["width"] and k["top"] + k["high"] <= k["height"], "no part")
    area = k["high"] * k["wide"]
    need(area <= 1 << 22 and max(k["rows"], k["columns"]) <= 1024, "a part that is too large")
    for name, most in (
        ("sum of a line", 255 * k["wide"]),
        ("sum of an area", 255 * area),
        ("sum before its division", 511 * area),
    ):
        yield name, 0, most, (0, (1 << 32) - 1)


def memory(c, k):
    row = k["columns"] * k["channels"]
    return {"state": 3 + 2 * row + blocks_of(k["rows"] * row, 4)}
