"""Bounds and memory of kernels, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import blocks_of, counts, need

TAKES, GIVES = ("levels",), "counts"
STRUCT, HEADER = "tk_signal", "tk_kernels_signal.h"


def bounds(c, k, levels):
    """Yield name, lowest, highest and limits of kernels and their levels."""
    need(c("STAGES") == 2, "kernels of images")
    top, codes = levels["top"], c.table[k["codes"]]
    kinds = {k[f"{name}s"]: f"uint{8 * k[f'{name}_bytes']}" for name in ("dilation", "group")}
    need(all(c.kind[name] == kind for name, kind in kinds.items()), "tables of another type")
    code, threshold = codes & 15, (codes >> 16 ^ 1 << 15) - (1 << 15)
    low = np.where(code > 8, 0, -6) * top
    high = np.where(code == 9, 9, np.where(code == 10, 1, 6)) * top
    dilation = c.table[k["dilations"]].reshape(k["distances"], -1)[:, 0]
    rows = k["rows"] - 8 * dilation.min()
    yield "level", 0, top, (0, (1 << 16) - 1)
    yield "response", low, high, (-(1 << 31), (1 << 31) - 1)
    yield "response less threshold", low - threshold - 1, high - threshold - 1, (-32768, 32767)
    yield "count", 0, -(-rows // k["cells"]), (0, c.most_count)


def memory(c, k):
    need(k["windows"] == blocks_of(k["rows"], k["hop"]), "other windows at a time")
    dilation = c.table[k["dilations"]].reshape(k["distances"], -1)[:, 0]
    need(k["ring_rows"] == 8 * dilation.max() + 1, "other rows are kept")
    window = counts(c, k["kernels"] * k["cells"])
    ages = c.declared("tk_kernels_signal.h", "TK_AGES_AT")
    running = ages + k["windows"] + blocks_of(k["ring_rows"] * k["channels"], 2)
    places = ages + k["windows"], running, running + counts(c, k["kernels"]), window
    need((k["ring"], k["running"], k["counts"], k["window"]) == places, "places in a stream")
    return {
        "scratch": window if k["order_bytes"] else 0,
        "state": k["counts"] + k["windows"] * window,
    }
