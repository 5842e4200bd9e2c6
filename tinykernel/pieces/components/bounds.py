"""Bounds and memory of components, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import INT32, need

MACRO = "BLOCKS"


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


def schedule(c, name):
    return [c(name) >> k & 1 for k in range(c("LOG2_DIMENSION"))]


def sign(c):
    places, n = [(15, 31)[j % 2] - j // 2 for j in range(32)], c("FEATURES")
    sign = c.fields("tk_signs", places, 1)[:n] if c("SIGNS") else np.ones(n, int)
    return sign * (c.fields("tk_constants", places, 1)[:n] > 0 if c("CONSTANTS") else 1)


def gather(c):
    d, index = 1 << c("LOG2_DIMENSION"), [0]
    while len(index) < d:
        index.append((index[-1] * c("ORBIT_MULTIPLIER") + c("ORBIT_INCREMENT")) % d)
    permutation = np.array(index) if c("PERMUTATION") else np.arange(d)
    need(np.array_equal(np.sort(permutation), np.arange(d)), "the permutation is none")
    return permutation


def diagonal(c):
    bits, d = c("DIAGONAL_BITS"), 1 << c("LOG2_DIMENSION")
    pairs = [(32 - bits, 16 - bits)[j % 2] - bits * (j // 2) for j in range(32 // bits)]
    factors = c.fields("tk_diagonal", [0, 8, 16, 24] if bits == 8 else pairs, bits)
    return factors.reshape(c("BLOCKS"), d)


def machine(c, q):
    """Yield name, lowest, highest, rounding errors of every value, and the values for inputs q."""
    signs, places, g, n = sign(c), gather(c), diagonal(c), c("FEATURES")
    d, shift = g.shape[1], {8: 7, 4: 3, 1: 0}[c("DIAGONAL_BITS")]
    top = (1 << c("INPUT_BITS") - 1) - 1
    least = -top - (c("INPUT_BITS") == 8)
    values = np.zeros((2 + len(q), d))
    values[:, :n] = signs * np.maximum(np.vstack([[[least] * n, [top] * n], q]), least)
    (low, high), u, slack = np.sort(values[:2], axis=0), values[2:], np.zeros((2, d))
    varying, centre, width = np.flatnonzero(high > low), low + high, (high - low).max()
    yield "input of the first transform", low, high, slack, u
    for k, halve in enumerate(schedule(c, "HALVE_FIRST")):
        low, high, slack, u = step(k, halve, low, high, slack, u)
        centre = butterfly(centre, centre, k)
        yield f"first transform, stage {k}{' (halved)' * halve}", low, high, 0 * slack, u
    if shift:
        most = np.full(1, np.abs(g).max() * max(-low.min(), high.max()))
        yield "product before its shift", -most, most, None, None
    low, high = np.floor(np.sort(g * np.stack([low, high])[:, None, places], axis=0) / 2**shift)
    v, lost = np.floor(g * u[:, None, places] / 2**shift), 1 - np.gcd(g, 1 << shift) / 2**shift
    slack = np.sort(g * slack[:, None, places], axis=0) / 2**shift - np.stack([lost, 0 * lost])
    centre, norm = g * centre[places], norms(varying, places, g) * width
    unit = 2.0 ** (1 + shift + sum(schedule(c, "HALVE_FIRST")))
    yield "product", low, high, 0 * slack, v
    for k, halve in enumerate(schedule(c, "HALVE_SECOND")):
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


def weight_words(c, n_words):
    """Return the words of weights of an output; five words counted together share eight."""
    if c("PLANES") < 8:
        return c("PLANES") * n_words.sum()
    total = waiting = 0
    for block, count in enumerate(n_words.tolist(), 1):
        waiting += count
        if waiting > c("BITS_FULL") or block == n_words.size:
            total, waiting = total + 2 * (waiting - waiting // 5), 0
    return total


def scratch(c):
    """Return the words of a transform and of bits that wait; refuse too few of these."""
    size, n_blocks = c("BITS_WORDS"), c("BLOCKS")
    n_words = np.array([c.of_block("WORDS", block) for block in range(n_blocks)])
    stored = c.table["tk_weights"].size
    need(weight_words(c, n_words) * c("OUTPUTS") == stored, "weights of other words")
    need(32 * n_words.max() <= 1 << c("LOG2_DIMENSION"), "a block of too many words")
    most = min(c("BITS_FULL") + n_words.max(), n_words.sum())
    need(not size or most <= size, "bits of too many blocks wait")
    return (1 << c("LOG2_DIMENSION")) + size
