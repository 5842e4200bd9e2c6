"""Execution of an `IntegerModel` in compiled Python: steps 2 to 5 of its specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tinykernel.hadamard import fwht_row_halving, run_on_rows, useful_threads
from tinykernel.model.diagonals import SHIFTS

if TYPE_CHECKING:
    from tinykernel.model.integer import IntegerModel

__all__ = ["features", "totals"]


@njit(cache=True, nogil=True)
def _mix(q, sign, gather, shifts, u, mixed):  # type: ignore[no-untyped-def]
    """Step 2: ``mixed = P H B q``; `u` is scratch."""
    n = q.shape[0]
    for i in range(n):
        u[i] = np.int16(sign[i] * max(np.int32(q[i]), np.int32(-32767)))
    u[n:] = 0
    fwht_row_halving(u, shifts)
    for j in range(gather.shape[0]):
        mixed[j] = u[gather[j]]


@njit(cache=True, nogil=True)
def _project(mixed, diagonal, shift, shifts, v):  # type: ignore[no-untyped-def]
    """Step 3 for one block: ``v = H G mixed``."""
    for j in range(v.shape[0]):
        v[j] = np.int16((np.int32(diagonal[j]) * np.int32(mixed[j])) >> shift)
    fwht_row_halving(v, shifts)


@njit(cache=True, nogil=True)
def _compare(v, rows, scale, start, width, phase_shift, z):  # type: ignore[no-untyped-def]
    """Step 4 for one block: `z` becomes 1 where the feature is on, else 0."""
    for r in range(rows.shape[0]):
        product = np.int32(scale[r]) * np.int32(v[rows[r]])
        phase = (np.uint32(product) << phase_shift) + (np.uint32(start[r]) << np.uint32(24))
        z[r] = np.uint32(phase) < np.uint32(np.uint32(width[r]) << np.uint32(24))


@njit(cache=True, nogil=True)
def _weigh(z, weights, totals):  # type: ignore[no-untyped-def]
    """Step 5 without multiplier and offset: sums of ``weights * (2 z - 1)``."""
    for o in range(weights.shape[0]):
        total = np.int32(0)
        for r in range(z.shape[0]):
            total += np.int32(weights[o, r]) * (np.int32(2) * np.int32(z[r]) - np.int32(1))
        totals[o] = total


@njit(cache=True, nogil=True)
def _run_rows(  # type: ignore[no-untyped-def]
    begin, end, inputs, sign, gather, first, diagonal, product_shift, second, rows, block_ends,
    scale, start, width, phase_shift, weights, bits, sums,
):  # fmt: skip
    d = diagonal.shape[1]
    p = scale.shape[0]
    u = np.empty(d, dtype=np.int16)
    v = np.empty(d, dtype=np.int16)
    mixed = np.empty(d, dtype=np.int16)
    z = np.empty(p, dtype=np.int8)
    for i in range(begin, end):
        _mix(inputs[i], sign, gather, first, u, mixed)
        for block in range(diagonal.shape[0]):
            _project(mixed, diagonal[block], product_shift, second, v)
            a, b = block_ends[block], block_ends[block + 1]
            _compare(v, rows[a:b], scale[a:b], start[a:b], width[a:b], phase_shift, z[a:b])
        if bits.shape[0]:
            for r in range(p):
                bits[i, r] = z[r] != 0
        if sums.shape[0]:
            _weigh(z, weights, sums[i])


def _run(
    model: IntegerModel, inputs: NDArray[Any], bits: NDArray[np.bool_], sums: NDArray[np.int32]
) -> None:
    """Fill `bits` and `sums`; an array of no rows stands for one that is not wanted."""
    blocks, rows = np.nonzero(model.row_kept)
    block_ends = np.searchsorted(blocks, np.arange(model.n_blocks + 1))
    d = model.dimension
    butterflies = (1 + model.n_blocks) * (d // 2) * model.log2_dimension
    work = butterflies + model.n_components * (2 + model.n_outputs)
    run_on_rows(
        _run_rows,
        inputs.shape[0],
        useful_threads(work * inputs.shape[0]),
        np.ascontiguousarray(inputs),
        model.sign,
        model.permutation.indices(d).astype(np.int64),
        np.array(model.halve_first, dtype=np.int16),
        model.diagonal,
        np.int32(SHIFTS[model.diagonal_kind]),
        np.array(model.halve_second, dtype=np.int16),
        rows.astype(np.int64),
        block_ends.astype(np.int64),
        model.scale,
        model.start,
        model.width,
        np.uint32(model.phase_shift),
        model.weights,
        bits,
        sums,
    )


def features(model: IntegerModel, inputs: NDArray[Any]) -> NDArray[np.bool_]:
    """Compute the components z; True stands for +1.

    Parameters
    ----------
    model : IntegerModel
    inputs : ndarray of int8 or int16, shape (n_rows, n_features)
        Quantised inputs.

    Returns
    -------
    ndarray of bool, shape (n_rows, n_components)
    """
    bits = np.empty((inputs.shape[0], model.n_components), dtype=np.bool_)
    _run(model, inputs, bits, np.empty((0, 0), dtype=np.int32))
    return bits


def totals(model: IntegerModel, inputs: NDArray[Any]) -> NDArray[np.int32]:
    """Compute ``multiplier * sum + offset`` of every output.

    Parameters
    ----------
    model : IntegerModel
    inputs : ndarray of int8 or int16, shape (n_rows, n_features)
        Quantised inputs.

    Returns
    -------
    ndarray of int32, shape (n_rows, n_outputs)
    """
    sums = np.empty((inputs.shape[0], model.n_outputs), dtype=np.int32)
    _run(model, inputs, np.empty((0, 0), dtype=np.bool_), sums)
    return sums * model.multiplier + model.offset
