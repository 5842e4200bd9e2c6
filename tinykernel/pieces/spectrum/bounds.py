"""Bounds and memory of a spectrum, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import INT32, blocks_of, need, samples

TAKES, GIVES = ("samples",), "rows"


def bounds(c, s, before):
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


def memory(c, k):
    ring = k["length"] * min(k["channels"], 2) * k["channels"]
    stored = 4 + samples(c, ring) if c.streams else 0
    frame = k["length"] + 2 + blocks_of(k["bands"] * k["channels"], 4)
    return {"state": frame + stored, "stream": stored}
