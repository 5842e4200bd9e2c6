"""Bounds of every value of an exported model, computed from its tables: see check_proof.py."""

import sys

import numpy as np

INT32 = (-(2**31) + 1, 2**31 - 1)
ENDS = (np.minimum, np.maximum)


def need(holds, what):
    if not holds:
        shown = "".join(x if " " <= x <= "~" else " " for x in str(what))
        sys.exit(f"refused: {' '.join(shown.split())[:400]}")


def butterfly(x, y, k):
    """Return a + b and a - b for the pairs (a, b) of x; b of the differences is taken from y."""
    pairs = (z.reshape(*z.shape[:-1], -1, 2, 1 << k) for z in (x, y))
    (a, b), (_, c) = (np.moveaxis(z, -2, 0) for z in pairs)
    return np.stack([a + b, a - c], axis=-2).reshape(x.shape)


def step(k, halve, low, high, slack, values):
    """Return intervals, their rounding errors and values after a stage of butterflies."""
    unit = 1 + halve
    ends = butterfly(low, high, k), butterfly(high, low, k), butterfly(values, values, k)
    slack = np.stack([butterfly(*slack, k) - halve, butterfly(*slack[::-1], k)]) / unit
    return *(np.floor(end / unit) for end in ends[:2]), slack, np.floor(ends[2] / unit)


def norms(varying, gather, g):
    """L1 norms of the rows before and after each stage of H G P H."""
    stages = int(g.shape[1]).bit_length()
    need(varying.size * g.size * stages <= 1 << 31, "too large to be proved here")
    total = np.zeros((stages, *g.shape))
    for column in varying:
        parity = gather & column
        for shift in (8, 4, 2, 1):
            parity = parity ^ parity >> shift
        w = ((1 - 2 * (parity & 1)) * g).astype(np.int32)
        for k in range(stages):
            total[k] += np.abs(w)
            w = butterfly(w, w, k) if k + 1 < stages else w
    return total


def machine(c, q):
    """Yield name, lowest, highest, rounding errors of every value, and the values for inputs q."""
    sign, gather, g, n = c.sign(), c.gather(), c.diagonal(), c("FEATURES")
    d, shift = g.shape[1], {8: 7, 4: 3, 1: 0}[c("DIAGONAL_BITS")]
    top = (1 << c("INPUT_BITS") - 1) - 1
    least = -top - (c("INPUT_BITS") == 8)
    values = np.zeros((2 + len(q), d))
    values[:, :n] = sign * np.maximum(np.vstack([[[least] * n, [top] * n], q]), least)
    (low, high), u, slack = np.sort(values[:2], axis=0), values[2:], np.zeros((2, d))
    varying, centre, width = np.flatnonzero(high > low), low + high, (high - low).max()
    yield "input of the first transform", low, high, slack, u
    for k, halve in enumerate(c.schedule("HALVE_FIRST")):
        low, high, slack, u = step(k, halve, low, high, slack, u)
        centre = butterfly(centre, centre, k)
        yield f"first transform, stage {k}{' (halved)' * halve}", low, high, 0 * slack, u
    if shift:
        most = np.full(1, np.abs(g).max() * max(-low.min(), high.max()))
        yield "product before its shift", -most, most, None, None
    low, high = np.floor(np.sort(g * np.stack([low, high])[:, None, gather], axis=0) / 2**shift)
    v, lost = np.floor(g * u[:, None, gather] / 2**shift), 1 - np.gcd(g, 1 << shift) / 2**shift
    slack = np.sort(g * slack[:, None, gather], axis=0) / 2**shift - np.stack([lost, 0 * lost])
    centre, norm = g * centre[gather], norms(varying, gather, g) * width
    unit = 2.0 ** (1 + shift + sum(c.schedule("HALVE_FIRST")))
    yield "product", low, high, 0 * slack, v
    for k, halve in enumerate(c.schedule("HALVE_SECOND")):
        low, high, slack, v = step(k, halve, low, high, slack, v)
        centre, unit = butterfly(centre, centre, k), unit * (1 + halve)
        low = np.maximum(low, np.ceil((centre - norm[k + 1]) / unit + slack[0]))
        high = np.minimum(high, np.floor((centre + norm[k + 1]) / unit + slack[1]))
        yield f"second transform, stage {k}{' (halved)' * halve}", low, high, slack, v
    yield "scale times row", 255 * low, 255 * high, None, None


def witnessed(c, said):
    """Yield the stages of the machine; a witness must reach each end of each bound."""
    half, n, said = 1 << c("INPUT_BITS") - 1, c("FEATURES"), [*said]
    need(len(said) < 99 and all(len(w["inputs"]) == n for w in said), "witnesses of other inputs")
    signs = [[half - 1 if x == "+" else -half for x in w["inputs"]] for w in said]
    for stage, low, high, slack, values in machine(c, np.array(signs).reshape(-1, n)):
        for end, bound, best in (("low", low, low.min()), ("high", high, high.max())):
            if values is not None:
                value = values[len(signs) - len(said)].ravel() if said else []
                w = said.pop(0) if said else {}
                need((w.get("stage"), w.get("end")) == (stage, end), f"{stage}: no witness")
                need(type(w["row"]) is int, f"{stage}: a witness of no row")
                missed, most = abs(bound.flat[w["row"]] - value[w["row"]]), slack[1] - slack[0]
                reached = bound.flat[w["row"]] == best and missed <= np.ceil(most.flat[w["row"]])
                need(reached, f"{stage}: a witness does not reach the bound")
        yield stage, low, high, INT32 if values is None else (-32767, 32767)
    need(not said, "a witness of no stage")


def stages(c):
    """Yield name, lowest, highest and limits of the values of all stages before the machine."""
    port, before = "samples", None
    for kind, k in c.chain:
        _, check_stage, takes, gives = STAGES[kind]
        need(port in takes, f"{kind} stands behind {port}")
        yield from check_stage(c, k, before)
        port, before = gives, k
    need(port in ("counts", "maps", "units"), "stages are missing")


def spectrum(c, s, before):
    """Yield name, lowest, highest and limits of a spectrum."""
    need(c.sensor == "uint8_t", "levels of another type")
    n, edges, cosines = s["length"], c.table[s["edges"]], c.table[s["cosines"]]
    need(n in (64, 128, 256, 512) and 0 < s["hop"] <= n, "frames of another length")
    need(len(edges) == s["bands"] + 1 and edges[0] >= 2 and edges[-1] <= n // 2, "other bands")
    need((np.diff(edges) > 0).all() and 1 <= s["log_bits"] <= 3, "bands or levels do not rise")
    need(0 < s["amplitude_bits"] < 16 and s["floor"] < 512, "amplitudes or a floor of other bits")
    exact = 32768 * np.cos(2 * np.pi * np.arange(n // 4 + 1) / n)
    need((abs(cosines - exact) < 0.5001).all(), "the table is no cosine")
    bits = max(-c.raw.min - 1, c.raw.max).bit_length()
    need(s["left"] - s["right"] == 26 - bits and 0 in (s["left"], s["right"]), "other shifts")
    root, widest, most = 2**0.5, int(np.diff(edges).max()), 1 << s["amplitude_bits"]
    pair = root * 2.0**26
    last = 4 * pair
    for _ in range(n.bit_length() - 4):
        last = last * (1 + 2.0**-16) + 4 * root
    a_bin = last * (1 + 2.0**-16) + 4 * root
    for name, end in (
        ("pair of samples", pair),
        ("transform", last),
        ("sum of two bins", 2 * last),
        ("bin", a_bin),
        ("windowed bin", 4 * a_bin),
    ):
        yield name, -int(end) - 1, int(end) + 1, INT32
    yield "amplitude", -most, most - 1, (-32768, 32767)
    yield "power of a band", 0, widest * 2 * most**2, (0, (1 << 32) - 1)
    yield "logarithm", 0, (32 + 2 * (31 - s["amplitude_bits"]) << s["log_bits"]) - 1, (0, 1023)


def offset(c, s, before):
    """Yield name, lowest, highest and limits of samples less their mean."""
    need(c.sensor == "int32_t", "levels of another type")
    need(c.raw.bits <= 16, "samples of another type")
    need(1 < s["rows"] < 1 << 16 and s["rows"] >> s["shift"] == 1, "means of other samples")
    low, high = int(c.raw.min), int(c.raw.max)
    yield "sum of samples", low << s["shift"], high << s["shift"], (-(2**31), 2**31 - 1)
    yield "sample less the mean", low - high, high - low, (-(2**31), 2**31 - 1)


def plane(c, k, before):
    """Yield name, lowest, highest and limits of the rows of a window; set the top of `k`."""
    bands = before["bands"] * before["channels"]
    need(c.sensor == "uint8_t" and k["bands"] == bands > 1, "rows of another type")
    need(k["rows"] > 1 and k["hop"] > 0, "windows without rows")
    k["top"] = 255
    yield "value of the plane", 0, 255, (0, 255)


def frame(c, k, before):
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


def levels(c, k, before):
    """Yield nothing: the next stage bounds the levels."""
    need(before or c.sensor == "tk_sample_t", "levels of another type")
    yield from ()


def kernels(c, k, levels):
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


def convolutions(c, k, levels):
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


def forms_of(c, k):
    """Return mixed, zeros, rows and columns of patches, and mean of the blocks of convolutions."""
    if k["forms"] == 0:
        return [(int(block == 0), 1, 1, 1, 0) for block in range(k["blocks"])]
    need(c.kind[k["forms"]] == "uint32", "tables of another type")
    words = c.table[k["forms"]].tolist()
    forms = [(w >> 8 & 1, w >> 9 & 1, w >> 4 & 15, w & 15, w >> 12) for w in words]
    need(len(forms) == k["blocks"] and forms[0][0], "forms of other blocks")
    for _, _, high, wide, mean in forms:
        need(high * wide > 0, "patches without values")
        factor = -(-(1 << 20) // (high * wide))
        need(mean in (0, factor) and (not mean or max(high, wide) <= 8), "factor of a mean")
    return forms


def separable(c, k, levels):
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


def dense(c, k, before):
    """Yield name, lowest, highest and limits of a hidden layer."""
    top = before["top"]
    need(k["bits"] in (1, 2, 4, 8) and 0 <= k["shift"] < 31, "weights or sums of other bits")
    places = 32 - k["bits"] * (1 + np.arange(32 // k["bits"]))
    w = c.fields(k["weights"], places, k["bits"]).reshape(k["units"], -1)[:, : k["values"]]
    low, high = (c.table[k["biases"]] + top * f(w, 0).sum(axis=1) for f in ENDS)
    yield "sum of a unit", low, high, INT32
    units = np.clip(high >> k["shift"], 0, 255)
    yield "unit", 0, units, (0, 255)
    k["top"] = max(1, np.max(units))


def beside(c, k, before):
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


#: By the structure of a stage: header, bounds, possible inputs, output.
STAGES = {
    "tk_spectrum": ("tk_spectrum", spectrum, ("samples",), "rows"),
    "tk_offset": ("tk_offset", offset, ("samples",), "rows"),
    "tk_frame": ("tk_frame", frame, ("samples",), "image"),
    "tk_plane": ("tk_plane", plane, ("rows",), "levels"),
    "tk_levels": ("tk_levels", levels, ("samples", "rows", "image"), "levels"),
    "tk_signal": ("tk_kernels_signal", kernels, ("levels",), "counts"),
    "tk_convolutions": ("tk_convolutions", convolutions, ("levels",), "maps"),
    "tk_separable": ("tk_separable", separable, ("levels",), "units"),
    "tk_dense": ("tk_dense", dense, ("maps", "levels", "units"), "units"),
    "tk_beside": ("tk_beside", beside, ("counts",), "counts"),
}


def leaves(c):
    """Return the extremes of the partial and whole sums of each output; refuse damaged trees."""
    size, shift = c.table["tk_trees"].reshape(c("TREES"), 2).T
    test, left = c.table["tk_nodes"].reshape(size.sum(), 2).T
    inputs, four = c.table["tk_tree_inputs"], c("LEAF_BITS") == 4
    inputs = inputs & 0x7FFF if c("MISSING") else inputs
    need(len(inputs) == len(c.table["tk_tree_thresholds"]) > max(test, default=0), "a test is none")
    need(max(inputs) < c("FEATURES") and max(shift) < 16, "an input or a shift is none")
    leaf = c.fields("tk_leaves", [0, 4], 4) if four else c.table["tk_leaves"]
    need(len(leaf) >= size.sum() + len(size), "leaves are missing")
    leaf = leaf[: size.sum() + len(size)]
    ends = []  # where the parts around a node end
    for node, below in enumerate(left):
        while ends and ends[-1] <= node:
            ends.pop()
        if not ends:
            ends.append(node + size[np.searchsorted(np.cumsum(size), node, side="right")])
        need(node + 1 + below <= ends[-1], "a node skips too many others")
        ends.append(node + 1 + below)
    counts = c.table["tk_tree_counts"].reshape(c("OUTPUTS"))
    need(counts.sum() == len(size), "trees of no output")
    partial, sums = np.zeros((2, 2, len(counts)), dtype=np.int64)
    first = np.cumsum(size + 1) - size - 1
    for row, best in enumerate((np.minimum, np.maximum)):
        if c("VECTORS"):
            number = leaf & 15 if four else leaf
            vectors = c.table["tk_vectors"].reshape(c("VECTORS"), len(counts))
            need(max(number) < len(vectors) and not any(shift), "a vector is none")
            each = best.reduceat(vectors[number], first)
            sums[row], partial[row] = each.sum(axis=0), best(each, 0).sum(axis=0)
            continue
        each = best.reduceat(leaf, first) << shift
        output = np.repeat(np.arange(len(counts)), counts)
        np.add.at(sums[row], output, each)
        np.add.at(partial[row], output, best(each, 0))
    return partial, sums


def ternary(c, n):
    """Return the ends of the sums of components times their gains, and the bounds of a sum."""
    places = 32 * c.table["tk_weights"].size // (n * c("PLANES"))
    gain = c.table["tk_gains"].reshape(n) * places
    return np.sort([gain, 0 * gain], axis=0), [("sum", -places, places)]


def linear(c, n):
    """Return the ends of the dot products times their gains, and the bounds of both."""
    bits, half = c("LINEAR_BITS"), 1 << c("INPUT_BITS") - 1
    need(half <= 1 << 15, "a linear part of raw values")
    w = c.fields("tk_linear", 32 - bits * (1 + np.arange(32 // bits)), bits).reshape(n, -1)
    up, down = (f(w[:, : c("FEATURES")], 0).sum(axis=1) for f in (np.maximum, np.minimum))
    dots = np.stack([(half - 1) * down - half * up, (half - 1) * up - half * down])
    ends = np.sort(c.table["tk_linear_gains"].reshape(n) * dots, axis=0)
    return ends, [("dot product", *dots), ("dot product times multiplier", *ends)]


def trees(c, n):
    """Return the ends of the sums of leaves times their gains, and the bounds of both."""
    partial, sums = leaves(c)
    ends = np.sort(c.table["tk_tree_gains"].reshape(n) * sums, axis=0)
    return ends, [("sum of leaves", *partial), ("sum of leaves times multiplier", *ends)]


def outputs(c):
    """Yield name, lowest and highest of distances, of the parts of the scores, and of scores."""
    n = c("OUTPUTS")
    low = high = c.table["tk_biases"].reshape(n)
    if c("ONE_CLASS"):
        level = c.fields("tk_prototypes", 28 - 4 * np.arange(8), 4)
        mean = 16 * level.reshape(c("PROTOTYPES"), -1)[:, : c("FEATURES")] + 8
        far = (np.maximum(127 - mean, mean + 128) ** 2).sum(axis=1).max()
        low = high = np.maximum(abs(low), abs(low + far))
        yield "distance", 0, far
    for name, part in (("BLOCKS", ternary), ("LINEAR_BITS", linear), ("TREES", trees)):
        if c(name):
            ends, bounds = part(c, n)
            low, high = low + ends[0], high + ends[1]
            yield from bounds
    if n == 1:
        low, high = np.minimum(low, -high), np.maximum(high, -low)
    yield "score", low, high
