"""Speed of the Walsh-Hadamard transforms against a matrix product and a plain compiled loop.

Run with ``python benchmarks/hadamard.py``; prints a Markdown table. One thread throughout, all
methods in the same run on the same rows (about 1 MB), best of several repeats. A butterfly is one
pair of additions, d log2(d) / 2 of them a row; GB/s counts every row read once and written once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numba import njit
from scipy.linalg import hadamard
from threadpoolctl import threadpool_limits

from tinykernel.hadamard import fwht, fwht_halving

BYTES = 1 << 20
LARGEST_MATRIX = 4096


@njit
def plain_loop(rows: np.ndarray) -> None:
    """Do the textbook transform: one stage after the other, one butterfly at a time."""
    for row in rows:
        stride = 1
        while stride < row.shape[0]:
            for start in range(0, row.shape[0], 2 * stride):
                for i in range(start, start + stride):
                    a = row[i]
                    b = row[i + stride]
                    row[i] = a + b
                    row[i + stride] = a - b
            stride *= 2


def best_time(call: Callable[[], object], seconds: float = 0.2) -> float:
    """Return the shortest time of one call among those that fit in the given time."""
    call()
    best = np.inf
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return float(best)


def main() -> None:
    """Measure and print the table."""
    print("| d | dtype | method | ns per butterfly | GB/s | fwht is faster by |")
    print("|---:|---|---|---:|---:|---:|")
    for d in (64, 256, 1024, 4096, 16384, 65536):
        for dtype in (np.float32, np.int16):
            # Zeros stay zeros, so that no method is timed on infinities.
            rows = np.zeros((BYTES // d // np.dtype(dtype).itemsize, d), dtype=dtype)
            times = {"fwht": best_time(lambda rows=rows: fwht(rows, n_threads=1))}
            if dtype is np.int16:
                halve = [k % 2 == 1 for k in range(d.bit_length() - 1)]
                times["fwht_halving"] = best_time(
                    lambda rows=rows, halve=halve: fwht_halving(rows, halve, n_threads=1)
                )
            times["plain numba loop"] = best_time(lambda rows=rows: plain_loop(rows))
            if d <= LARGEST_MATRIX and dtype is np.float32:
                matrix = hadamard(d, dtype=dtype)
                times["numpy matmul"] = best_time(lambda a=rows, b=matrix: a @ b)
            butterflies = rows.size * (d.bit_length() - 1) / 2
            for method, seconds in times.items():
                print(
                    f"| {d} | {np.dtype(dtype).name} | {method} | {1e9 * seconds / butterflies:.3f}"
                    f" | {2e-9 * rows.nbytes / seconds:.1f} | {seconds / times['fwht']:.1f} |"
                )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
