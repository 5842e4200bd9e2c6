"""Bounds and memory of separable convolutions, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import ENDS, INT32, blocks_of, need

TAKES, GIVES = ("levels",), "units"


def forms_of(c, k):
    """Return mixed, zeros, rows and columns of patches, and mean of the blocks of convolutions."""
    if k["forms"] == 0:
        return [(int(block == 0), 1, 1, 1, 0) for block in range(k["blocks"])]
    need(c.kind[k["forms"]] == "uint32", "tables of another type")
    codes = c.table[k["forms"]].tolist()
    forms = [(w >> 8 & 1, w >> 9 & 1, w >> 4 & 15, w & 15, w >> 12) for w in codes]
    need(len(forms) == k["blocks"] and forms[0][0], "forms of other blocks")
    for _, _, high, wide, mean in forms:
        need(high * wide > 0, "patches without values")
        factor = -(-(1 << 20) // (high * wide))
        need(mean in (0, factor) and (not mean or max(high, wide) <= 8), "factor of a mean")
    return forms


def bounds(c, k, levels):
    """Yield name, lowest, highest and limits of convolutions; set the top of `k`."""
    need(0 < levels["top"] < 256 and k["border"] < 256, "levels of another type")
    kinds = {"shape": "uint8", "first": "uint32", "single": "uint8", "points": "uint32"}
    kinds = {name: kind for name, kind in kinds.items() if k[name] != 0}
    need(all(c.kind[k[name]] == kind for name, kind in kinds.items()), "tables of another type")
    shape, forms = c.table[k["shape"]].reshape(k["blocks"], 2), forms_of(c, k)
    counts, units = [k["given"], *(1 + shape[:, 0]).tolist()], c.table[k["units"]]
    strides = np.stack([shape[:, 1] >> 4, shape[:, 1] & 15], axis=1).tolist()
    need({step for steps in strides for step in steps} <= {1, 2}, "strides")
    first = c.fields(k["first"], np.array([0, 16, 8, 24]), 8).reshape(-1)
    need((k["single"] == 0) == (k["points"] == 0) == all(form[0] for form in forms), "no tables")
    if k["points"] != 0:
        single = c.table[k["single"]][:, None] >> np.array([0, 4]) & 15
        single = ((single ^ 8) - 8).reshape(-1)
        point = c.fields(k["points"], np.arange(0, 32, 4), 4).reshape(-1)
    layers, rows, columns, streams = [], k["rows"], k["columns"], k["window"] > 0
    need(not streams or (k["forms"] == 0 and not k["flat"] and not k["border"]), "a stream")
    for block, (mixed, zeros, high, wide, _) in enumerate(forms):
        before, after = counts[block : block + 2]
        if mixed:
            width = -(-9 * before // 4) * 4
            w = first[: after * width].reshape(after, width)[:, : 9 * before]
            layers.append(w.reshape(after, 9, before))
            first = first[after * width :]
        else:
            width = -(-before // 8) * 8
            layers.append(single[: 10 * before].reshape(before, 10)[:, :9, None])
            layers.append(point[: after * width].reshape(after, 1, width)[..., :before])
            single, point = single[10 * before :], point[after * width :]
        down, across = strides[block]
        rows = ((rows + 2 * zeros * (not streams) - 3) // down + 1) // high
        columns = ((columns + 2 * zeros - 3) // across + 1) // wide
        need(min(rows, columns) > 0, "an image that is too small")
    need(k["window"] in (0, rows), "a window of other rows")
    need(not streams or (c("STAGES") == 2 and columns <= 257), "sums of a row are too large")
    need(k["factor"] == 65536 // (rows * columns), "the factor of means")
    need(k["flat"] in (0, rows) and rows * columns <= 65536, "another output")
    top = np.full(k["given"], max(levels["top"], k["border"]))
    for layer, w in enumerate(layers):
        unit, units = units[: len(w)], units[len(w) :]
        need(len(unit) == len(w), "units are missing")
        bias, multiplier, shift = (unit >> 12 ^ 1 << 19) - (1 << 19), unit >> 5 & 127, unit & 31
        # Each channel of a single layer has its own limit.
        reach = top[:, None, None] if w.shape[1:] == (9, 1) else top
        ends = [bias + (f(w, 0) * reach).reshape(len(w), -1).sum(axis=1) for f in ENDS]
        low, most = (end * multiplier for end in ends)
        top = np.clip(most >> shift, 0, 255)
        yield f"product of layer {layer}", low, most, INT32
        yield f"map of layer {layer}", 0, top, (0, 255)
    k["top"] = max(1, np.max(top))


def memory(c, k):
    shape = c.table[k["shape"]].reshape(k["blocks"], 2).tolist()
    rows, columns, channels, size, halves, row = k["rows"], k["columns"], k["given"], 0, 0, 0
    for (less_one, strides), (mixed, zeros, high, wide, _) in zip(
        shape, forms_of(c, k), strict=True
    ):
        size += 3 * columns * channels
        rows = ((rows + 2 * zeros - 3) // (strides >> 4) + 1) // high
        columns = (columns + 2 * zeros - 3) // (strides & 15) + 1
        single = blocks_of(columns, 4) * 64 * blocks_of(channels, 8)
        halves = max(halves, 8 * blocks_of(9 * channels, 4) if mixed else single)
        channels = less_one + 1
        if (high, wide) != (1, 1):
            row = max(row, 4 * blocks_of(columns * channels, 4))
        columns //= wide
    need(k["halves"] == halves + row and k["wide"] == row, "a row of another length")
    codes = c.declared("tk_separable_rows.h", "TK_BLOCK_WORDS") * (k["blocks"] + 1)
    codes += blocks_of(size + columns * channels * (not k["flat"]), 4)
    sums = 2 + channels + blocks_of(k["window"] * channels, 2)
    sums += k["blocks"] * (k["forms"] != 0)
    results = rows * columns * channels if k["flat"] else channels
    first, scratch = sums + (halves + row) // 4 + codes, blocks_of(results, 4)
    if k["window"]:
        return {"state": first, "scratch": scratch}
    # For a signal all of it follows the state of a window.
    if c("STAGES") == 2:
        return {"scratch": first + scratch}
    return {"first": first, "scratch": scratch}
