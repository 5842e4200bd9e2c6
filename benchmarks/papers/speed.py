"""Time for one row, split into embedding and prediction (Lei & Lan 2021, Figure 1 (b))."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

from benchmarks.papers.systems import make_map

__all__ = ["SYSTEMS", "times"]

SYSTEMS = ("RFE", "Fastfood", "ours-b")
_INPUTS = {"usps": 256, "mnist": 784}
_ROWS = 256
_CLASSES = 10


@njit
def count_ones(word: Any) -> Any:
    """Count the bits of a 64-bit word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit
def predict_words(rows: Any, signs: Any, masks: Any, out: Any) -> None:
    """Compute w.z of every output by XNOR, AND and POPCOUNT (Lei & Lan 2021 (15))."""
    for i in range(rows.shape[0]):
        for o in range(signs.shape[0]):
            total = np.int64(0)
            for k in range(rows.shape[1]):
                agree = ~(rows[i, k] ^ signs[o, k]) & masks[o, k]
                total += 2 * np.int64(count_ones(agree)) - np.int64(count_ones(masks[o, k]))
            out[i, o] = total


def best_time(call: Callable[[], object], seconds: float = 0.4) -> float:
    """Return the shortest time of one call among those that fit in the given time."""
    call()
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return float(best)


def pack(signs: np.ndarray) -> np.ndarray:
    """Pack +-1 into 64-bit words."""
    return np.packbits(signs > 0, axis=1, bitorder="little").view(np.uint64)


def times(data: str, p: int) -> list[list[float]]:
    """Measure microseconds a row, embedding and prediction, for each of `SYSTEMS`."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (_ROWS, _INPUTS[data])).astype(np.float32)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    result = []
    with threadpool_limits(1):
        for name in SYSTEMS:
            map_ = make_map(name, p, 8.0, 0).fit(X[:1])
            if name == "ours-b":
                rows = pack(map_.transform(X))
                planes = [pack(rng.choice([-1, 1], (_CLASSES, p))) for _ in range(2)]
                out = np.empty((_ROWS, _CLASSES), dtype=np.int64)
                embed = best_time(lambda m=map_: pack(m.transform(X)))
                predict = best_time(lambda r=rows, w=planes, o=out: predict_words(r, *w, o))
            else:
                W = rng.standard_normal((p, _CLASSES)).astype(np.float32)
                Z = map_.transform(X)
                embed = best_time(lambda m=map_: m.transform(X))
                predict = best_time(lambda z=Z, w=W: z @ w)
            result.append([1e6 * embed / _ROWS, 1e6 * predict / _ROWS])
    numba.set_num_threads(before)
    return result
