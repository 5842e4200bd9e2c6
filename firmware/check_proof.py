"""Check the proof of a model against its exported C: python check_proof.py FILE NAME.c.

FILE is from ``tinykernel inspect MODEL --proof FILE``. Every bound is computed again from the C,
must be the one in FILE and inside its limits; every witness (an input, + highest, - lowest value)
must give the value in FILE. Needs only numpy, and shares no code with what made the proof.
"""

import hashlib
import json
import pathlib
import re
import sys

import numpy as np

BIT = np.arange(32)


def need(holds, what):
    if not holds:
        sys.exit(f"refused: {what}")


def number(text):
    text = re.sub(r"\(u?int32_t\)|[\s()u]", "", text)
    return sum(int(part, 0) for part in re.findall(r"-?\w+", text))


def signed(values, bits):
    return (values ^ 1 << bits - 1) - (1 << bits - 1)


def butterfly(x, k):
    a, b = np.moveaxis(x.reshape(*x.shape[:-1], -1, 2, 1 << k), -2, 0)
    return np.stack([a + b, a - b], axis=-2).reshape(x.shape)


def join(low, high, k):
    """Interval arithmetic of a butterfly; halves of integers, exact in float64."""
    r = (high - low).reshape(*low.shape[:-1], -1, 2, 1 << k)
    radius = np.broadcast_to(r.sum(axis=-2, keepdims=True), r.shape).reshape(low.shape)
    centre = butterfly(low + high, k)
    return (centre - radius) / 2, (centre + radius) / 2


class Source:
    """Macros (text) and tables (integers) of a C file, and what they mean."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        head = text[max(text.find("#define TK_FORMAT "), 0) :].split("TK_TABLE")[0]
        self.text = {
            n: v.strip() for n, v in re.findall(r"^#define (TK_\w+)\S* +(.*)$", head, re.M)
        }
        tables = re.findall(r"TK_FLASH (\w+) (tk_\w+)\[(\d+)\] = \{(.*?)\};", text, re.S)
        bodies = {name: re.sub(r"\s", "", body) for _, name, _, body in tables}
        need(all(bodies[t[1]].count(",") + 1 == int(t[2]) for t in tables), "length of a table")
        self.seen = self.text | {
            n: hashlib.sha256(b.encode()).hexdigest() for n, b in bodies.items()
        }
        self.table = {
            name: np.array([number(x) for x in bodies[name].split(",")])
            for kind, name, *_ in tables
            if kind != "float"
        }

    def __call__(self, name, default="0"):
        return number(self.text.get("TK_" + name, default))

    def fields(self, name, places, bits):
        return (self.table[name][:, None] >> np.array(places) & (1 << bits) - 1).ravel()

    def per_block(self, name):
        found, n = self.text[name], self("BLOCKS")
        if "[" in found:
            return self.table[re.search(r"tk_\w+", found)[0]]
        values = [int(v) for v in re.findall(r"(\d+)u\b", found)]
        return np.array([values[-1]] * (n - 1) + [values[-2] if len(values) > 1 else values[0]])

    def schedule(self, name):
        return [self(name) >> k & 1 for k in range(self("LOG2_DIMENSION"))]

    def sign(self):
        odd_high, n = [(15, 31)[j % 2] - j // 2 for j in range(32)], self("FEATURES")
        sign = (
            1 - 2 * self.fields("tk_signs", odd_high, 1)[:n] if self("SIGNS") else np.ones(n, int)
        )
        return (
            sign * (1 - self.fields("tk_constants", odd_high, 1)[:n]) if self("CONSTANTS") else sign
        )

    def gather(self):
        d = 1 << self("LOG2_DIMENSION")
        if self("PERMUTATION") == 2:
            return self.table["tk_permutation"]
        index = [0]
        for _ in range(d - 1):
            index.append((index[-1] * self("ORBIT_MULTIPLIER") + self("ORBIT_INCREMENT")) % d)
        return np.array(index) if self("PERMUTATION") else np.arange(d)

    def diagonal(self):
        bits = self("DIAGONAL_BITS")
        places = {
            1: [(31, 15)[j % 2] - j // 2 for j in range(32)],
            8: [0, 8, 16, 24],
            4: [(28, 12)[j % 2] - 4 * (j // 2) for j in range(8)],
        }[bits]
        g = self.fields("tk_diagonal", places, bits)
        return (1 - 2 * g if bits == 1 else signed(g, bits)).reshape(self("BLOCKS"), -1)

    def linear(self):
        bits = self("LINEAR_BITS")
        w = self.fields("tk_linear", 32 - bits * (1 + np.arange(32 // bits)), bits)
        w = (1 - 2 * w if bits == 1 else signed(w, bits)).reshape(self("OUTPUTS"), -1)
        return w[:, : self("FEATURES")]

    def counts(self):
        """Return how many components of each output can agree with their weights, at most."""
        words, at, found, waiting = self.per_block("TK_WORDS"), 0, 0, 0
        if self("PLANES") == 1:
            return np.full(self("OUTPUTS"), 32 * words.sum())
        for b, count in enumerate(words):
            waiting += count
            if self("BITS_WORDS") == 0 or waiting > self("BITS_FULL") or b + 1 == len(words):
                end = at + self("OUTPUTS") * waiting * 2
                masks = self.table["tk_weights"][at:end].reshape(self("OUTPUTS"), -1, 2)[:, :, 1:]
                found, at, waiting = found + (masks >> BIT & 1).sum(axis=(1, 2)), end, 0
        return found


def norms(varying, gather, g):
    """L1 norms of the rows before and after each stage of H G P H; of many inputs their bounds."""
    m, d = g.shape
    total, n_stages = np.zeros((d.bit_length(), m, d)), d.bit_length() - 1
    if varying.size * m * d * n_stages > 1 << 31:  # Cauchy-Schwarz: the rows of H are orthogonal
        for k in range(n_stages + 1):
            energy = (g**2).reshape(m, -1, 1 << k).sum(axis=2) * d * varying.size
            total[k] = np.repeat(np.floor(np.sqrt(energy)) + 1, 1 << k, axis=1)
        return total
    # Where all inputs are constant there are no columns.
    for columns in np.array_split(varying, max(varying.size * d >> 20, 1)) if varying.size else ():
        parity = gather & columns[:, None]
        for shift in (8, 4, 2, 1):
            parity = parity ^ parity >> shift
        for b in range(m):
            w = ((1 - 2 * (parity & 1)) * g[b]).astype(np.int32)
            for k in range(n_stages + 1):
                total[k, b] += np.abs(w).sum(axis=0)
                w = butterfly(w, k) if k < n_stages else w
    return total


def machine(c, q):
    """Yield name, lowest, highest, slack of every value, and the values that inputs q lead to."""
    sign, gather, g, n = c.sign(), c.gather(), c.diagonal(), c("FEATURES")
    d, shift = g.shape[1], {8: 7, 4: 3, 1: 0}[c("DIAGONAL_BITS")]
    top = (1 << c("INPUT_BITS") - 1) - 1
    least = -top - (c("INPUT_BITS") == 8)
    values = np.zeros((2 + len(q), d))
    values[:, :n] = sign * np.maximum(
        np.vstack([np.full((1, n), least), np.full((1, n), top), q]), least
    )
    (low, high), u = np.sort(values[:2], axis=0), values[2:]
    varying, centre, width = np.flatnonzero(high > low), low + high, (high - low).max()
    slack = np.zeros((2, d))
    yield "input of the first transform", low, high, slack, u
    for k, halve in enumerate(c.schedule("HALVE_FIRST")):
        (low, high), slack = join(low, high, k), np.array(join(*slack, k)) / (1 + halve)
        slack[0] -= halve / 2  # a halved odd sum loses half a unit
        low, high, u = (np.floor(x / (1 + halve)) for x in (low, high, butterfly(u, k)))
        centre = butterfly(centre, k)
        yield f"first transform, stage {k}{' (halved)' * halve}", low, high, 0 * slack, u
    if shift:
        most = np.full(1, np.abs(g).max() * max(-low.min(), high.max()))
        yield "product before its shift", -most, most, None, None
    ends = np.sort(g * np.stack([low, high])[:, None, gather], axis=0) / 2**shift
    (low, high), v = np.floor(ends), np.floor(g * u[:, None, gather] / 2**shift)
    lost = 1 - np.gcd(g, 1 << shift) / 2**shift
    slack = np.sort(g * slack[:, None, gather], axis=0) / 2**shift - np.stack([lost, 0 * lost])
    centre, norm = g * centre[gather], norms(varying, gather, g) * width
    unit = 2.0 ** (1 + shift + sum(c.schedule("HALVE_FIRST")))
    yield "product", low, high, 0 * slack, v
    for k, halve in enumerate(c.schedule("HALVE_SECOND")):
        (low, high), slack = join(low, high, k), np.array(join(*slack, k)) / (1 + halve)
        slack[0] -= halve / 2
        low, high, v = (np.floor(x / (1 + halve)) for x in (low, high, butterfly(v, k)))
        centre, unit = butterfly(centre, k), unit * (1 + halve)
        low = np.maximum(low, np.ceil((centre - norm[k + 1]) / unit + slack[0]))
        high = np.minimum(high, np.floor((centre + norm[k + 1]) / unit + slack[1]))
        yield f"second transform, stage {k}{' (halved)' * halve}", low, high, slack, v
    yield "scale times row", 255 * low, 255 * high, None, None


def local(c):
    """Yield name, lowest, highest and limits of the local stage."""
    bits, top, table = c("LOCAL_LANES", "2"), c("LOCAL_TOP"), c.table["tk_kernels"]
    if c("LOCAL") == 2:
        bits, code, threshold = 16, table & 15, signed(table >> 16, 16)
        low = np.where(code > 8, 0, -6) * top
        high = np.where(code == 9, 9, np.where(code == 10, 1, 6)) * top
        dilation, span, strip = (
            c.table["tk_dilations"].reshape(c("LOCAL_DILATIONS"), -1)[:, 0],
            8,
            1,
        )
    else:
        bits, table = 32 // bits, table.reshape(c("LOCAL_KERNELS"), -1)
        own = ["TK_LOCAL_CHANNEL" not in c.text, "TK_LOCAL_DILATION" not in c.text]
        dilation = table[:, int(own[0])] if own[1] else np.array([c("LOCAL_DILATION")])
        table, span, strip = table[:, sum(own) :], c("LOCAL_TAP_ROWS") - 1, c("LOCAL_STRIP")
        bias = table[:, 0] + (256 * table[:, 1] if bits == 16 else 0)
        threshold = (1 << bits - 1) - 1 - bias
        trits = table[:, bits // 8 :, None] * 243 // 256 // 3 ** np.arange(4, -1, -1) % 3
        low, high = (-top * (trits == 2).sum(axis=(1, 2)), top * (trits == 1).sum(axis=(1, 2)))
    rows = c("LOCAL_ROWS") + 2 * c("LOCAL_PADDING") - span * dilation.min()
    yield "level", 0, top, (0, (1 << bits) - 1)
    yield "response", low, high, (-(1 << 31), (1 << 31) - 1)
    limits = (-(1 << bits - 1), (1 << bits - 1) - 1)
    yield "response less threshold", low - threshold - 1, high - threshold - 1, limits
    most = 65535 if c("LOCAL_WIDE_COUNTS") else 255
    yield "count", 0, -(-rows // c("LOCAL_CELLS")) * strip, (0, most)


def outputs(c):
    """Yield name, lowest and highest of sums, dot products and scores."""
    half, low = 1 << c("INPUT_BITS") - 1, c.table["tk_biases"]
    high = low
    if c("ONE_CLASS"):
        level = signed(c.fields("tk_prototypes", 28 - 4 * np.arange(8), 4), 4)
        mean = 16 * level.reshape(c("PROTOTYPES"), -1)[:, : c("FEATURES")] + 8
        far = (np.maximum(127 - mean, mean + 128) ** 2).sum(axis=1).max()
        end = max(abs(low[0]), abs(low[0] + far))
        yield "distance", 0, far
        yield "score", -end, end
        return
    if c("BLOCKS"):
        n, gain = c.counts(), c.table["tk_gains"]
        low, high = low + np.minimum(gain * n, 0), high + np.maximum(gain * n, 0)
        yield "sum", -n, n
    if c("LINEAR_BITS"):
        w = c.linear()
        up, down = np.maximum(w, 0).sum(axis=1), np.minimum(w, 0).sum(axis=1)
        dots = np.stack([(half - 1) * down - half * up, (half - 1) * up - half * down])
        ends = np.sort(c.table["tk_linear_gains"] * dots, axis=0)
        low, high = low + ends[0], high + ends[1]
        yield "dot product", *dots
        yield "dot product times multiplier", *ends
    if c("OUTPUTS") == 1:
        low, high = np.minimum(low, -high), np.maximum(high, -low)
    yield "score", low, high


def contents(path):
    try:
        return pathlib.Path(path).read_text()
    except (OSError, ValueError) as error:
        sys.exit(f"refused: {path}: {getattr(error, 'strerror', None) or 'no text'}")


def proof_of(path):
    try:
        proof = json.loads(contents(path))
    except (ValueError, RecursionError):
        sys.exit(f"refused: {path} is no JSON")
    head = isinstance(proof, dict) and (proof.get("format"), proof.get("version"))
    need(head == ("tinykernel-proof", 1), f"{path} is no proof of version 1")
    return proof


def main(proof_file, c_file):
    proof, path = proof_of(proof_file), pathlib.Path(c_file)
    text = contents(path)
    need("#define TK_FORMAT " in text, f"{path} is no exported C of a model")
    c, wide = Source(text), (-(2**31) + 1, 2**31 - 1)
    need(f"from model {proof['fingerprint'][:8]};" in text, "the C is of another model")
    for name in proof["source"] | c.seen:
        need(proof["source"].get(name) == c.seen.get(name), f"{name} is not that of the proof")
    half = 1 << c("INPUT_BITS") - 1
    found = [*local(c)] if c("LOCAL") else []
    found.append(("quantized input", -half, half - 1, (-half, half - 1)))
    said = proof["witnesses"]
    q = np.array([[(-half, half - 1)[sign == "+"] for sign in w["inputs"]] for w in said])
    steps = c("FEATURES") * c("BLOCKS") * c("LOG2_DIMENSION") << c("LOG2_DIMENSION")
    for stage, low, high, slack, values in machine(c, q) if c("BLOCKS") else ():
        found.append((stage, low, high, wide if values is None else (-32767, 32767)))
        for i, w in enumerate(said):
            if w["stage"] == stage:
                end, row, gap = (low, high)[w["end"] == "high"], w["row"], slack[1] - slack[0]
                missed = abs(end.flat[row] - values[i].flat[row])
                need(values[i].flat[row] == w["value"], f"{stage}: a witness gives another value")
                best = end.flat[row] == (low.min(), high.max())[w["end"] == "high"]
                most = gap.flat[row] + (gap.flat[row] > 0)
                need(
                    best and (missed <= most or steps > 1 << 31),
                    f"{stage}: a witness does not reach the bound",
                )
    found += [(*bound, wide) for bound in outputs(c)]
    need([b["stage"] for b in proof["bounds"]] == [f[0] for f in found], "stages are missing")
    for b, (stage, low, high, limits) in zip(proof["bounds"], found, strict=True):
        ends = int(np.min(low)), int(np.max(high))
        need((b["low"], b["high"]) == ends, f"{stage} is within {ends}, not {b['low'], b['high']}")
        need(limits[0] <= ends[0] and ends[1] <= limits[1], f"{stage} leaves {limits}")
    print(f"proved: {len(found)} stages of {path} within their limits, {len(said)} witnesses")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python check_proof.py FILE NAME.c")
    main(*sys.argv[1:])
