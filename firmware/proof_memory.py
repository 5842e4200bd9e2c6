"""Words of memory that an exported model needs, computed from its tables: see check_proof.py.

A stage needs scratch that the machine can reuse (`first`), other scratch (`scratch`), and state of
a stream (`state`), part of which whole windows do not need (`stream`).
"""

import numpy as np
from proof_bounds import forms_of, need


def blocks_of(size, per_word):
    """Return the words that `size` values take, with `per_word` of them in a word."""
    return -(-int(size) // per_word)


def counts(c, n):
    """Return the words that n counts take."""
    return blocks_of(n, 4 if c.most_count < 256 else 2)


def samples(c, n):
    """Return the words that n raw values take."""
    return blocks_of(n, 1 if c.raw is None else 32 // c.raw.bits)


def spectrum(c, k):
    ring = k["length"] * min(k["channels"], 2) * k["channels"]
    stored = 4 + samples(c, ring) if c.streams else 0
    frame = k["length"] + 2 + blocks_of(k["bands"] * k["channels"], 4)
    return {"state": frame + stored, "stream": stored}


def offset(c, k):
    stored = samples(c, k["rows"] * k["channels"]) if c.streams else 0
    return {"state": 2 + 2 * k["channels"] + stored, "stream": stored}


def frame(c, k):
    row = k["columns"] * k["channels"]
    return {"state": 3 + 2 * row + blocks_of(k["rows"] * row, 4)}


def levels(c, k):
    return {"state": 1 + blocks_of(k["channels"], 2) if c("STAGES") == 2 else 0}


def signal(c, k):
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


def convolutions(c, k):
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


def separable(c, k):
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
    words = c.declared("tk_separable_rows.h", "TK_BLOCK_WORDS") * (k["blocks"] + 1)
    words += blocks_of(size + columns * channels * (not k["flat"]), 4)
    sums = 2 + channels + blocks_of(k["window"] * channels, 2)
    sums += k["blocks"] * (k["forms"] != 0)
    made = rows * columns * channels if k["flat"] else channels
    first, scratch = sums + (halves + row) // 4 + words, blocks_of(made, 4)
    if k["window"]:
        return {"state": first, "scratch": scratch}
    # For a signal all of it follows the state of a window.
    if c("STAGES") == 2:
        return {"scratch": first + scratch}
    return {"first": first, "scratch": scratch}


def plane(c, k):
    """Words of the rows of a window, or of a count where convolutions go through a stream."""
    streams = any(k.get("window") for kind, k in c.chain if kind == "tk_separable")
    return {"state": 1 if streams else 2 + blocks_of(k["rows"] * k["bands"], 4)}


def dense(c, k):
    return {"scratch": blocks_of(k["units"], 4)}


def beside(c, k):
    return {
        "scratch": counts(c, k["counts"] + k["entries"]),
        "state": blocks_of(k["entries"], 2),
    }


STAGES = {
    "tk_spectrum": spectrum,
    "tk_offset": offset,
    "tk_frame": frame,
    "tk_levels": levels,
    "tk_signal": signal,
    "tk_convolutions": convolutions,
    "tk_separable": separable,
    "tk_plane": plane,
    "tk_dense": dense,
    "tk_beside": beside,
}


def waiting_bits(c):
    """Return the words for bits that wait to be counted; refuse too few words."""
    size, n_blocks = c("BITS_WORDS"), c("BLOCKS")
    n_words = np.array([c.of_block("WORDS", block) for block in range(n_blocks)])
    stored = c.table["tk_weights"].size
    need(n_words.sum() * c("PLANES") * c("OUTPUTS") == stored, "weights of other words")
    need(32 * n_words.max() <= 1 << c("LOG2_DIMENSION"), "a block of too many words")
    most = min(c("BITS_FULL") + n_words.max(), n_words.sum())
    need(not size or most <= size, "bits of too many blocks wait")
    return size


def events(c):
    """Return the words of state for events; refuse thresholds that no sum can reach."""
    if "TK_EVENT_SHIFT" not in c.text:
        return 0
    shift, least = c("EVENT_SHIFT"), c.table["tk_event_thresholds"]
    need(shift < 16 and c("EVENT_PAUSE") < 1 << 16, "sums of events remember or wait too long")
    need(len(least) == c("CLASSES") and least.max() > 0, "thresholds of other classes")
    need(c("EVENT_BACKGROUND") == (least.min() == 0), "another background of events")
    # s - (s >> shift) does not fall as s rises, so this is the largest sum.
    most = (1 << 31) - 1 >> shift
    need(least.max() <= most << shift, "a sum of events cannot reach its threshold")
    return 1 + c("CLASSES")


def memory(c):
    """Return the words of scratch and, for a stream, those of its scratch and its state."""
    needs = [STAGES[kind](c, k) for kind, k in c.chain]
    for need_of, (kind, k) in zip(needs, c.chain[1:], strict=False):
        if kind == "tk_dense":  # it reads words of weights
            need_of["scratch"] = 8 * blocks_of(k["values"], 32)
    kinds = "first", "state", "stream"
    total = {kind: sum(need_of.get(kind, 0) for need_of in needs) for kind in kinds}
    scratch = [need_of.get("scratch", 0) for need_of in needs]
    machine = blocks_of(c("FEATURES") * c("INPUT_BITS"), 32)
    if c("BLOCKS"):
        machine = (1 << c("LOG2_DIMENSION")) + waiting_bits(c)
    first = max(machine, total["first"])
    need(first == c("FIRST_WORDS"), f"TK_FIRST_WORDS is not {first}")
    dots = c("OUTPUTS") if (c("BLOCKS") or c("TREES")) and c("LINEAR_BITS") else 0
    # Counts of signals are ordered and joined in the same memory.
    stages = max(scratch) if c("STAGES") == 2 else sum(scratch)
    stream = first + dots + c("CLASSES") + stages
    sizes = {"scratch": stream + total["state"] - total["stream"]}
    if c.streams:
        sizes["stream_scratch"] = stream
    if c.streams and c("STAGES") > 1:
        sizes["state"] = total["state"] + events(c)
    return sizes
