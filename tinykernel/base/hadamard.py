"""The fast Walsh-Hadamard transform: in place, batched, in compiled code, for floats and integers.

The transform multiplies by the matrix ``H_1 = [1]``, ``H_2d = [[H_d, H_d], [H_d, -H_d]]``
(Lei & Lan 2021, below formula (3)) in ``d log2(d)`` additions. It is not normalised:
``H H = d I``.

Groups of `LANES` rows are interleaved in memory, so that every stage, even that of stride 1, is a
vector operation for the compiler. Threads divide only rows, so the result does not depend on their
number.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.compiled import inlined, njit
from tinykernel.base.errors import ShapeError

_ArrayT = TypeVar("_ArrayT", bound=NDArray[Any])

LANES = 32
_LARGEST = 65536
# Handing work to another thread takes about 0.1 ms, the time of this number of butterflies.
_BUTTERFLIES_PER_THREAD = 1 << 20


def padded_dimension(n_features: int) -> int:
    """Return the padded length of 1 to 65536 inputs: a power of two, at least a 32-bit word."""
    if not 1 <= n_features <= _LARGEST:
        raise ShapeError(
            f"{n_features} input features: from 1 to {_LARGEST} are supported; "
            "remove or merge features"
        )
    return max(32, 1 << (int(n_features) - 1).bit_length())


@inlined
def fwht_lanes(x, d):  # type: ignore[no-untyped-def]
    """Transform vectors side by side in place: x (d * n_vectors,), element 0 of all first."""
    lanes = x.shape[0] // d
    h = 1
    while 4 * h <= d:
        n = h * lanes
        for first in range(0, d * lanes, 4 * n):
            x0 = x[first : first + n]
            x1 = x[first + n : first + 2 * n]
            x2 = x[first + 2 * n : first + 3 * n]
            x3 = x[first + 3 * n : first + 4 * n]
            for k in range(n):
                a = x0[k] + x1[k]
                b = x0[k] - x1[k]
                c = x2[k] + x3[k]
                e = x2[k] - x3[k]
                x0[k] = a + c
                x1[k] = b + e
                x2[k] = a - c
                x3[k] = b - e
        h *= 4
    if h < d:
        n = h * lanes
        x0 = x[:n]
        x1 = x[n : 2 * n]
        for k in range(n):
            a = x0[k]
            b = x1[k]
            x0[k] = a + b
            x1[k] = a - b


@inlined
def _halving_lanes(x, d, shifts):  # type: ignore[no-untyped-def]
    """Transform like `fwht_lanes`, in int16 with halving; shifts[k] is 1 where stage k halves."""
    lanes = x.shape[0] // d
    h = 1
    stage = 0
    while 4 * h <= d:
        n = h * lanes
        near = np.int32(shifts[stage])
        far = np.int32(shifts[stage + 1])
        for first in range(0, d * lanes, 4 * n):
            x0 = x[first : first + n]
            x1 = x[first + n : first + 2 * n]
            x2 = x[first + 2 * n : first + 3 * n]
            x3 = x[first + 3 * n : first + 4 * n]
            for k in range(n):
                a = np.int16((np.int32(x0[k]) + np.int32(x1[k])) >> near)
                b = np.int16((np.int32(x0[k]) - np.int32(x1[k])) >> near)
                c = np.int16((np.int32(x2[k]) + np.int32(x3[k])) >> near)
                e = np.int16((np.int32(x2[k]) - np.int32(x3[k])) >> near)
                x0[k] = np.int16((np.int32(a) + np.int32(c)) >> far)
                x1[k] = np.int16((np.int32(b) + np.int32(e)) >> far)
                x2[k] = np.int16((np.int32(a) - np.int32(c)) >> far)
                x3[k] = np.int16((np.int32(b) - np.int32(e)) >> far)
        h *= 4
        stage += 2
    if h < d:
        n = h * lanes
        shift = np.int32(shifts[stage])
        x0 = x[:n]
        x1 = x[n : 2 * n]
        for k in range(n):
            left = np.int32(x0[k])
            right = np.int32(x1[k])
            x0[k] = np.int16((left + right) >> shift)
            x1[k] = np.int16((left - right) >> shift)


# Columns copied at a time, so that the lines of the cache that are written to stay in it.
_TILE = 32


@inlined
def _lay_side_by_side(rows, x):  # type: ignore[no-untyped-def]
    n, d = rows.shape
    for first in range(0, d, _TILE):
        for k in range(n):
            row = rows[k]
            for j in range(first, min(first + _TILE, d)):
                x[j * n + k] = row[j]


@inlined
def _lay_back(x, rows):  # type: ignore[no-untyped-def]
    n, d = rows.shape
    for first in range(0, d, _TILE):
        for k in range(n):
            row = rows[k]
            for j in range(first, min(first + _TILE, d)):
                row[j] = x[j * n + k]


@njit(nogil=True)
def fwht_rows(begin, end, rows, shifts):  # type: ignore[no-untyped-def]
    """Transform ``rows[begin:end]`` as `fwht_halving`; C-contiguous (n, d), unchecked."""
    d = rows.shape[1]
    x = np.empty(d * LANES, np.int16)
    for first in range(begin, end, LANES):
        group = rows[first : min(first + LANES, end)]
        part = x[: d * group.shape[0]]
        _lay_side_by_side(group, part)
        _halving_lanes(part, d, shifts)
        _lay_back(part, group)


def run_on_rows(
    kernel: Callable[..., None], n_rows: int, n_threads: int, *arguments: object
) -> None:
    """Call ``kernel(begin, end, *arguments)`` in threads, on ranges that together cover all rows.

    Plain threads with a compiled function that releases the interpreter lock: they nest, survive
    a fork, and compile in a fraction of the time of numba's parallel loops. Rows are independent.
    """
    n_threads = max(1, min(n_threads, n_rows))
    if n_threads == 1:
        kernel(0, n_rows, *arguments)
        return
    bounds = [n_rows * i // n_threads for i in range(n_threads + 1)]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda begin, end: kernel(begin, end, *arguments), bounds, bounds[1:]))


def useful_threads(n_butterflies: int) -> int:
    """Return how many threads pay off for a number of butterflies of 0.1 ns each."""
    available = int(numba.config.NUMBA_NUM_THREADS)
    return max(1, min(available, n_butterflies // _BUTTERFLIES_PER_THREAD))


def fwht(x: _ArrayT) -> _ArrayT:
    """Multiply few rows (..., d) of floats by the Walsh-Hadamard matrix, in place; return x."""
    columns, h = np.array(np.moveaxis(x, -1, 0), order="C"), 1
    while x.size and h < len(columns):
        pairs = columns.reshape(-1, 2, h, x.size // len(columns))
        low, high = pairs[:, 0], pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = low + high, low - high
        h *= 2
    x[...] = np.moveaxis(columns, 0, -1)
    return x


def fwht_halving(x: NDArray[np.int16], halve: ArrayLike) -> NDArray[np.int16]:
    """Transform every row (..., d) in place in 16-bit integers, halving after chosen stages.

    Stage k = 0, 1, ..., log2(d) - 1 combines elements ``2**k`` apart: ``(a, b)`` becomes
    ``(a + b, a - b)``, modulo 2^16, or, where ``halve[k]``, ``((a + b) >> 1, (a - b) >> 1)`` with
    the exact sum (17 bits) rounded down.

    >>> fwht_halving(np.array([3, 0, 1, 0], dtype=np.int16), [False, True])
    array([2, 2, 1, 1], dtype=int16)
    """
    shifts = np.ascontiguousarray(np.asarray(halve, dtype=bool), dtype=np.int16)
    if x.size and x.shape[-1] > 1:
        rows = np.require(x, requirements=("C", "A")).reshape(-1, x.shape[-1])
        threads = useful_threads(x.size * x.shape[-1].bit_length() // 2)
        run_on_rows(fwht_rows, rows.shape[0], threads, rows, shifts)
        if not x.flags.carray:
            x[...] = rows.reshape(x.shape)
    return x
