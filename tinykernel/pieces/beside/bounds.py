"""Bounds and memory of numbers beside a window, for check_proof.py: see proof_pieces.py."""

from proof_tools import blocks_of, counts, need

TAKES, GIVES = ("counts",), "counts"


def bounds(c, k, before):
    """Yield name, lowest, highest and limits of numbers beside a window, the last of the counts."""
    n, factor = k["entries"], k["factor"]
    need(c("STAGES") == 2 and k["counts"] + n == c("FEATURES"), "other counts")
    need(0 < n <= 256 and 2 <= factor <= 65536, "other numbers")
    need(len(c.table[k["sources"]]) == n, "sources are missing")
    if c.raw is not None:
        spans, shifts, factors = (c.table[k[name]] for name in ("spans", "shifts", "multipliers"))
        need(len(spans) == len(shifts) == len(factors) == len(c.table[k["offsets"]]) == n, "tables")
        need(shifts.min() >= 0 and shifts.max() < 32, "shifts of a number")
        levels = [int(x) * int(y) >> 16 for x, y in zip(spans >> shifts, factors, strict=True)]
        need(max(levels) < 256, "a level of a number is too large")
    yield "level of a number, scaled", 0, 255 * factor, (0, (1 << 32) - 1)
    yield "count of a number", 0, factor - 1, (0, c.most_count)


def memory(c, k):
    return {"scratch": counts(c, k["counts"] + k["entries"]), "state": blocks_of(k["entries"], 2)}
