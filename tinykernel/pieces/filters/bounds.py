"""Bounds and memory of filters, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import ENDS, blocks_of, need

TAKES, GIVES = ("levels",), "maps"
SUM = (-(2**30) + 1, 2**30 - 1)
NAMES = (
    "from",
    "down",
    "across",
    "pitch",
    "high",
    "runs",
    "run",
    "hop",
    "group",
    "own",
    "channels",
    "rows",
    "columns",
    "tall",
    "broad",
    "averages",
    "curve",
    "least",
    "most",
    "adds",
    "added",
    "to",
    "pitch_to",
    "frame",
    "fill",
    "border",
)


def layers_of(c, k):
    """Return the numbers of each layer by name."""
    need(c.declared("tk_filters.h", "TK_FORM_ITEMS") == len(NAMES), "layers of another format")
    items = c.table[k["forms"]].reshape(k["layers"], len(NAMES)).tolist()
    return [dict(zip(NAMES, row, strict=True)) for row in items]


def bounds(c, k, levels):
    """Yield name, lowest, highest and limits of the layers; set the top of `k`."""
    need(0 < levels["top"] < 256 and k["border"] < 256, "levels of another type")
    kinds = {"forms": "uint16", "weights": "int8", "biases": "int32", "units": "uint32"}
    kinds |= {name: kind for name, kind in (("gains", "int16"), ("curves", "uint8")) if k[name]}
    need(all(c.kind[k[name]] == kind for name, kind in kinds.items()), "tables of another type")
    weights, biases, units = (c.table[k[name]] for name in ("weights", "biases", "units"))
    gains = c.table[k["gains"]] if k["gains"] else None
    curves = c.table[k["curves"]].reshape(-1, 256) if k["curves"] else ()
    tops = [levels["top"]]
    for number, (f, (reads, adds)) in enumerate(zip(layers_of(c, k), maps_of(c, k), strict=True)):
        n, size = f["channels"], f["high"] * f["runs"] * f["run"]
        need(size > 0 and 0 < n <= len(biases), "layers without channels")
        w, weights = weights[: n * size].reshape(n, size), weights[n * size :]
        unit, bias = units[: n << f["averages"]], biases[: n << f["averages"]]
        units, biases = units[len(unit) :], biases[len(bias) :]
        need(f["averages"] < 2 and len(unit) == len(bias) == n << f["averages"], "no units")
        multiplier, shift = unit & 0x7FFF, 15 + (unit >> 16)
        need(shift.max() <= 30 and (unit == multiplier | shift - 15 << 16).all(), "other units")
        top = max(tops[reads[0]], reads[1])
        low, high = (bias[:n] + top * end(w.astype(np.int64), 0).sum(axis=1) for end in ENDS)
        if adds is not None:
            need(gains is not None and len(gains) >= n, "nothing weighs what is added")
            more = [tops[adds] * end(gains[:n], 0) for end in ENDS]
            low, high, gains = low + more[0], high + more[1], gains[n:]
        yield f"sum of layer {number}", low, high, SUM
        need(f["least"] <= f["most"] < 256 and f["curve"] <= len(curves), "another curve")
        top = int(np.clip(high * multiplier[:n] >> shift[:n], f["least"], f["most"]).max())
        top = int(curves[f["curve"] - 1][: top + 1].max()) if f["curve"] else top
        if f["averages"]:
            sums = bias[n:] + f["tall"] * f["broad"] * top
            yield f"sum of patches of layer {number}", bias[n:], sums, SUM
            top = int(np.clip(sums * multiplier[n:] >> shift[n:], 0, 255).max())
        yield f"map of layer {number}", 0, top, (0, 255)
        tops.append(top)
    need(not len(weights) and not len(biases), "weights of no layer")
    k["top"] = max(1, tops[-1])


def maps_of(c, k):
    """Return which values each layer reads, with what is around them, and which it adds.

    Refuse layers that read or write where no values are, or over values that are read later.
    """
    rows, layers = k["rows"], layers_of(c, k)
    need(rows > 0 and k["values"] % rows == 0, "rows of another length")
    begin = 0 if k["fill"] else k["first"]
    size = k["fill"] or k["values"]
    need(k["first"] + (rows - 1) * k["pitch"] + k["values"] // rows <= begin + size, "no room")
    # By number of values: first byte, size, border, bytes of a row.
    maps = [(begin, size, k["border"] if k["fill"] else 0, k["pitch"])]
    places = []
    for number, f in enumerate(layers):
        is_last = number == len(layers) - 1
        high, wide = f["rows"] * f["tall"] - 1, f["columns"] * f["broad"] - 1
        ends = high * f["down"] + wide * f["across"] + (f["high"] - 1) * f["pitch"]
        ends += (f["runs"] - 1) * f["hop"] + f["run"]
        need(f["group"] > 0 and f["channels"] % f["group"] == 0, "groups of other channels")
        ends += (f["channels"] // f["group"] - 1) * f["own"]
        reads = _of(maps, f["from"], ends, f["pitch"])
        adds = None
        if f["added"]:
            ends = high * f["added"] + (wide + 1) * f["channels"]
            adds = _of(maps, f["adds"], ends, f["added"])
        row = f["columns"] * f["channels"]
        need(min(f["rows"], row, f["tall"], f["broad"]) > 0 and f["pitch_to"] >= row, "no values")
        size = f["fill"] or f["rows"] * row
        last = f["to"] + (f["rows"] - 1) * f["pitch_to"] + row
        need(f["frame"] <= f["to"] and last <= f["frame"] + size, "values outside of their memory")
        need(not is_last or (f["frame"] == f["fill"] == f["to"] == 0), "another output")
        if not is_last:
            for of in {reads, adds} - {None}:
                apart = maps[of][0] + maps[of][1] <= f["frame"] or f["frame"] + size <= maps[of][0]
                need(apart, "a layer writes what it reads")
        places.append(((reads, maps[reads][2]), adds))
        maps.append((f["frame"], size, f["border"] if f["fill"] else 0, f["pitch_to"]))
    return places


def _of(maps, begin, size, pitch):
    """Return the newest values in this memory, of rows of this length; older ones are lost."""
    for number in range(len(maps) - 1, -1, -1):
        first, room = maps[number][:2]
        if first < begin + size and begin < first + room:
            inside = first <= begin and begin + size <= first + room
            need(inside and pitch == maps[number][3], "values that are lost")
            return number
    need(False, "a layer reads where no values are")


def memory(c, k):
    """Return the words of all values, and of the last ones."""
    *layers, last = layers_of(c, k)
    ends = [k["fill"] or k["first"] + k["values"]]
    ends += [f["frame"] + (f["fill"] or f["rows"] * f["columns"] * f["channels"]) for f in layers]
    results = last["rows"] * last["columns"] * last["channels"]
    return {"first": blocks_of(max(ends), 4), "scratch": blocks_of(results, 4)}
