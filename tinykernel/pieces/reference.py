"""Components and dot products in compiled Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import inlined, njit
from tinykernel.base.hadamard import LANES, fwht_rows, run_on_rows, useful_threads


@inlined
def _mix(q, sign, gather, shifts, u, mixed):  # type: ignore[no-untyped-def]
    """Step 1 for some rows: ``mixed = P H B q``; `u` is scratch."""
    n = q.shape[1]
    u[:, n:] = 0
    for k in range(q.shape[0]):
        for i in range(n):
            u[k, i] = np.int16(sign[i] * max(np.int32(q[k, i]), np.int32(-32767)))
    # No literal, for which all of it is compiled again.
    fwht_rows(np.int64(0), q.shape[0], u, shifts)
    for k in range(q.shape[0]):
        for j in range(gather.shape[0]):
            mixed[k, j] = u[k, gather[j]]


@inlined
def _project(mixed, diagonal, shift, shifts, v):  # type: ignore[no-untyped-def]
    """Step 2 for one block: ``v = H G mixed``."""
    for k in range(v.shape[0]):
        for j in range(v.shape[1]):
            v[k, j] = np.int16((np.int32(diagonal[j]) * np.int32(mixed[k, j])) >> shift)
    fwht_rows(np.int64(0), v.shape[0], v, shifts)


@inlined
def _compare(v, rows, scale, start, width, phase_shift, z):  # type: ignore[no-untyped-def]
    """Step 3 for one block: `z` becomes True where the component is on."""
    for r in range(rows.shape[0]):
        product = np.int32(scale[r]) * np.int32(v[rows[r]])
        phase = (np.uint32(product) << phase_shift) + (np.uint32(start[r]) << np.uint32(24))
        z[r] = np.uint32(phase) < np.uint32(np.uint32(width[r]) << np.uint32(24))


@njit(nogil=True)
def run_components(begin, end, inputs, mixing, blocks, windows, bits):  # type: ignore[no-untyped-def]
    """Fill bits[begin:end] with the components of quantized inputs: True where z is +1."""
    # mixing: sign, gather of P, first schedule; blocks: G, its shift, second schedule; windows:
    # rows that are components, where those of each block end, scale, start, width, phase shift.
    sign, gather, first = mixing
    diagonal, product_shift, second = blocks
    rows, block_ends, scale, start, width, phase_shift = windows
    d = diagonal.shape[1]
    u = np.empty((LANES, d), dtype=np.int16)
    v = np.empty((LANES, d), dtype=np.int16)
    mixed = np.empty((LANES, d), dtype=np.int16)
    for group in range(begin, end, LANES):
        n = min(LANES, end - group)
        _mix(inputs[group : group + n], sign, gather, first, u[:n], mixed[:n])
        for block in range(diagonal.shape[0]):
            _project(mixed[:n], diagonal[block], product_shift, second, v[:n])
            a, b = block_ends[block], block_ends[block + 1]
            for k in range(n):
                z = bits[group + k, a:b]
                _compare(v[k], rows[a:b], scale[a:b], start[a:b], width[a:b], phase_shift, z)


@njit(nogil=True)
def _dot_rows(begin, end, inputs, linear, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        for o in range(linear.shape[0]):
            total = np.int32(0)
            for j in range(inputs.shape[1]):
                total += np.int32(linear[o, j]) * np.int32(inputs[i, j])
            out[i, o] = total


def dots(inputs: NDArray[Any], linear: NDArray[np.int8]) -> NDArray[np.int32]:
    """Compute the dot products of rows with weights, int32, shape (n_rows, n_outputs)."""
    out = np.empty((inputs.shape[0], linear.shape[0]), dtype=np.int32)
    threads = useful_threads(inputs.size * linear.shape[0])
    run_on_rows(_dot_rows, inputs.shape[0], threads, np.ascontiguousarray(inputs), linear, out)
    return out
