"""Bounds and memory of convolutions, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import ENDS, INT32, blocks_of, need

TAKES, GIVES = ("levels",), "maps"


def bounds(c, k, levels):
    """Yield name, lowest, highest and limits of convolutions; set the top of `k`."""
    need(c("STAGES") != 2, "convolutions of signals")
    top = levels["top"]
    need(0 < top < 256 and c.most_count == 255, "levels or values of another type")
    need(k["tap_bits"] in (4, 8) and 0 < k["bias_bytes"] <= 4, "taps or biases of other bits")
    need(0 < k["layers"] <= 8 and c.kind[k["codes"]] == "uint8", "layers of another kind")
    width = (9 * k["tap_bits"] + 7) // 8
    code = c.table[k["codes"]].reshape(k["channels"], k["layers"], width + k["bias_bytes"])
    places = np.arange(0, 8, k["tap_bits"])
    half, bias = 1 << k["tap_bits"] - 1, -(code[:, :, width] >> 7)
    taps = (code[:, :, :width, None] >> places & 2 * half - 1).reshape(*code.shape[:2], -1)
    taps = (taps[:, :, :9] ^ half) - half
    for byte in range(k["bias_bytes"]):
        bias = 256 * bias + code[:, :, width + byte]
    need((abs(bias) <= 1 << 24).all(), "a bias is too large")
    for layer in range(k["layers"]):
        low, high = (bias[:, layer] + top * f(taps[:, layer], 0).sum(axis=1) for f in ENDS)
        top = np.clip(high >> (k["shifts"] >> 4 * layer & 15), 0, 255)
        yield f"response of layer {layer}", low, high, INT32
        yield f"map of layer {layer}", 0, top, (0, 255)
    k["top"] = max(1, np.max(top))


def memory(c, k):
    rows, columns, maps, widest = k["rows"], k["columns"], 0, 0
    for layer in range(k["layers"]):
        rows, columns, pool = rows - 2, columns - 2, k["pools"] >> layer & 1
        maps = maps or (rows // 2 + 1 if pool else rows)
        widest = max(widest, 4 * blocks_of(columns, 4))
        rows, columns = rows >> pool, columns >> pool
    need(min(rows, columns) > 0, "an image that is too small")
    stride = max(widest, k["columns"] + k["columns"] % 2)
    need(k["stride"] == stride, "rows of another length")
    return {
        "first": stride // 2 * (k["rows"] + maps) + 4,
        "scratch": 8 * blocks_of(k["channels"] * rows * columns, 32),
    }
