"""Compiled kernels of the trainer for images: responses, counts, and their gradients.

As in `component_passes`, images travel in groups of `LANES`, side by side in memory: the pixel
outside, the image inside. A plane has `lead` zeros before the first row and the same number after
each row, so that one gap serves the end of a row and the beginning of the next, and a tap is one
offset for all positions. Positions in a gap fall into a cell of their own, which nobody reads.

The derivative of a count with respect to a response is that of `component_passes`, ``k / (1 + (k
s)^2 / 2)^2``, with s the distance to the threshold over the spread of the responses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.compiled import njit
from tinykernel.hadamard import LANES
from tinykernel.training import eights
from tinykernel.training.eights import inlined, lane_sum
from tinykernel.training.readouts.linear_passes import learn_group

_CHUNK = 2048
_WIDE = 4096
_ONE = np.float32(1.0)


@njit(nogil=True, error_model="numpy")
def warp(image, move, out):  # type: ignore[no-untyped-def]
    """Sample one plane (h, w) at an affine map of its pixels: bilinear, 0 outside."""
    height, width = image.shape
    for y in range(height):
        for x in range(width):
            v = move[0] * y + move[1] * x + move[2]
            u = move[3] * y + move[4] * x + move[5]
            top = int(np.floor(v))
            left = int(np.floor(u))
            total = np.float32(0.5)
            for i in range(2):
                row = top + i
                if 0 <= row < height:
                    across = np.float32(abs(1 - i - (v - top)))
                    for j in range(2):
                        column = left + j
                        if 0 <= column < width:
                            share = np.float32(abs(1 - j - (u - left)))
                            total += across * share * image[row, column]
            out[y, x] = np.uint8(total)


@njit(nogil=True, error_model="numpy")
def _fill(images, moves, rows, first, geometry, scratch, x):  # type: ignore[no-untyped-def]
    """Write the levels of one group into planes; `moves` (n, 6) belong to `rows`, or are none.

    geometry: shift, average, rows, columns, padding, lead, pitch, plane.
    """
    shift, average, n_rows, n_columns, padding, lead, pitch, plane = geometry
    halves = 2 if average == 2 else 0
    x[:] = 0
    for k in range(LANES):
        row = rows[first + k]
        for c in range(images.shape[1]):
            image = images[row, c]
            if moves.shape[0] > 0:
                warp(image, moves[first + k], scratch)
                image = scratch
            start = c * plane + lead
            for i in range(n_rows):
                place = start + (i + padding) * pitch
                for j in range(n_columns):
                    total = 0
                    for a in range(average):
                        for b in range(average):
                            total += image[average * i + a, average * j + b] >> shift
                    x[(place + j) * LANES + k] = total >> halves


@njit(nogil=True, error_model="numpy")
def respond(x, offsets, signs, n, out):  # type: ignore[no-untyped-def]
    """Add up the taps of each kernel: offsets, signs (kernels, a multiple of 4), out (kernels, n).

    n is positions times `LANES`.
    """
    for k in range(offsets.shape[0]):
        response = out[k]
        for b in range(0, n, _CHUNK):
            e = min(n, b + _CHUNK)
            r = response[b:e]
            for t in range(0, offsets.shape[1], 4):
                o0 = offsets[k, t] * LANES + b
                o1 = offsets[k, t + 1] * LANES + b
                o2 = offsets[k, t + 2] * LANES + b
                o3 = offsets[k, t + 3] * LANES + b
                x0 = x[o0 : o0 + e - b]
                x1 = x[o1 : o1 + e - b]
                x2 = x[o2 : o2 + e - b]
                x3 = x[o3 : o3 + e - b]
                s0 = np.int16(signs[k, t])
                s1 = np.int16(signs[k, t + 1])
                s2 = np.int16(signs[k, t + 2])
                s3 = np.int16(signs[k, t + 3])
                if t == 0:
                    for i in range(e - b):
                        r[i] = (
                            np.int16(s0 * x0[i])
                            + np.int16(s1 * x1[i])
                            + np.int16(s2 * x2[i])
                            + np.int16(s3 * x3[i])
                        )
                else:
                    for i in range(e - b):
                        r[i] += (
                            np.int16(s0 * x0[i])
                            + np.int16(s1 * x1[i])
                            + np.int16(s2 * x2[i])
                            + np.int16(s3 * x3[i])
                        )


@njit(nogil=True, error_model="numpy")
def _count(responses, cell, thresholds, counts):  # type: ignore[no-untyped-def]
    """Count the positions above the threshold in each cell: counts (kernels, cells + 1, LANES)."""
    for k in range(responses.shape[0]):
        counts[k] = 0
        t = thresholds[k]
        for p in range(cell.shape[0]):
            a = responses[k, p * LANES : (p + 1) * LANES]
            c = counts[k, cell[p]]
            for lane in range(LANES):
                c[lane] += np.int16(a[lane] > t)


@njit(nogil=True, error_model="numpy")
def count_images(  # type: ignore[no-untyped-def]
    begin, end, images, geometry, offsets, signs, thresholds, cell, n_cells, out
):
    """Fill out[begin:end], shape (n, kernels * cells), with the counts of images."""
    n_kernels, n = offsets.shape[0], cell.shape[0] * LANES
    plane = geometry[7]
    moves = np.empty((0, 6), dtype=np.float32)
    scratch = np.empty(images.shape[2:], dtype=np.uint8)
    x = np.empty(images.shape[1] * plane * LANES, dtype=np.int16)
    responses = np.empty((n_kernels, n), dtype=np.int16)
    counts = np.empty((n_kernels, n_cells + 1, LANES), dtype=np.int16)
    rows = np.empty(LANES, dtype=np.int64)
    for first in range(begin, end, LANES):
        for k in range(LANES):
            rows[k] = min(first + k, end - 1)
        _fill(images, moves, rows, 0, geometry, scratch, x)
        respond(x, offsets, signs, n, responses)
        _count(responses, cell, thresholds, counts)
        for k in range(min(LANES, end - first)):
            for i in range(n_kernels):
                for j in range(n_cells):
                    out[first + k, i * n_cells + j] = counts[i, j, k]


@inlined
def _bells(responses, cell, above, inverse, slope, d_counts, out):  # type: ignore[no-untyped-def]
    """Write d loss / d response of one kernel; returns their sum."""
    half = slope * slope * np.float32(0.5)
    factor = slope * inverse
    sums = np.zeros(LANES, dtype=np.float32)
    for p in range(cell.shape[0]):
        a = responses[p * LANES : (p + 1) * LANES]
        d = d_counts[cell[p]]
        g = out[p * LANES : (p + 1) * LANES]
        for lane in range(LANES):
            u = (np.float32(a[lane]) - above) * inverse
            bell = _ONE + half * u * u
            g[lane] = d[lane] * factor / (bell * bell)
            sums[lane] += g[lane]
    return lane_sum(sums)


@inlined
def _backward(x, kernels, responses, d_counts, g, d_taps, d_threshold):  # type: ignore[no-untyped-def]
    """Add the gradients of taps and thresholds; four kernels and three taps at a time.

    x holds the planes in float32, base where the channel of each kernel begins, places the offset
    of every tap, g (4, positions * LANES) is scratch. Kernels are in the order of their channels.
    """
    base, places, cell = kernels.base, kernels.places, kernels.cell
    n_kernels, n_taps, n = responses.shape[0], places.shape[0], cell.shape[0] * LANES
    k0 = 0
    while k0 < n_kernels:
        kn = 0
        while kn < 4 and k0 + kn < n_kernels and base[k0 + kn] == base[k0]:
            k = k0 + kn
            above = np.float32(kernels.thresholds[k]) + np.float32(0.5)
            bell = kernels.inverse[k], kernels.slope
            d_threshold[k] -= _bells(responses[k], cell, above, *bell, d_counts[k], g[kn])
            kn += 1
        for k in range(kn, 4):
            g[k] = 0
        for j in range(0, n_taps, 3):
            last = min(j + 2, n_taps - 1)
            middle = min(j + 1, n_taps - 1)
            p0 = (base[k0] + places[j]) * LANES
            p1 = (base[k0] + places[middle]) * LANES
            p2 = (base[k0] + places[last]) * LANES
            for b in range(0, n, _WIDE):
                e = min(n, b + _WIDE)
                tile = _tile(
                    x[p0 + b : p0 + e],
                    x[p1 + b : p1 + e],
                    x[p2 + b : p2 + e],
                    g[0, b:e],
                    g[1, b:e],
                    g[2, b:e],
                    g[3, b:e],
                )
                for i in range(kn):
                    d_taps[k0 + i, j] += tile[3 * i]
                    if j + 1 < n_taps:
                        d_taps[k0 + i, j + 1] += tile[3 * i + 1]
                    if j + 2 < n_taps:
                        d_taps[k0 + i, j + 2] += tile[3 * i + 2]
        k0 += kn


@inlined
def _tile(x0, x1, x2, g0, g1, g2, g3):  # type: ignore[no-untyped-def]
    """Return the twelve dot products of three planes and four gradients."""
    a00 = a01 = a02 = a10 = a11 = a12 = eights.zeros()
    a20 = a21 = a22 = a30 = a31 = a32 = eights.zeros()
    for i in range(0, x0.shape[0], eights.WIDTH):
        u0 = eights.load(x0, i)
        u1 = eights.load(x1, i)
        u2 = eights.load(x2, i)
        v = eights.load(g0, i)
        a00 = eights.add(a00, eights.multiply(v, u0))
        a01 = eights.add(a01, eights.multiply(v, u1))
        a02 = eights.add(a02, eights.multiply(v, u2))
        v = eights.load(g1, i)
        a10 = eights.add(a10, eights.multiply(v, u0))
        a11 = eights.add(a11, eights.multiply(v, u1))
        a12 = eights.add(a12, eights.multiply(v, u2))
        v = eights.load(g2, i)
        a20 = eights.add(a20, eights.multiply(v, u0))
        a21 = eights.add(a21, eights.multiply(v, u1))
        a22 = eights.add(a22, eights.multiply(v, u2))
        v = eights.load(g3, i)
        a30 = eights.add(a30, eights.multiply(v, u0))
        a31 = eights.add(a31, eights.multiply(v, u1))
        a32 = eights.add(a32, eights.multiply(v, u2))
    return (
        eights.total(a00),
        eights.total(a01),
        eights.total(a02),
        eights.total(a10),
        eights.total(a11),
        eights.total(a12),
        eights.total(a20),
        eights.total(a21),
        eights.total(a22),
        eights.total(a30),
        eights.total(a31),
        eights.total(a32),
    )


class KernelBatch(NamedTuple):
    """Kernels as a mini-batch has them, for `respond` and `_backward`."""

    geometry: NDArray[np.int64]  # see `_fill`.
    offsets: NDArray[np.int64]  # (n_kernels, a multiple of 4)
    signs: NDArray[np.int16]  # (n_kernels, a multiple of 4)
    base: NDArray[np.int64]  # (n_kernels,)
    places: NDArray[np.int64]  # (n_taps,)
    thresholds: NDArray[np.int16]  # (n_kernels,)
    inverse: NDArray[np.float32]  # (n_kernels,): one over the spread of the responses.
    slope: np.float32
    cell: NDArray[np.int64]  # of each position.
    n_cells: int
    multiplier: int  # of counts, in units of 2**-16.


@inlined
def _scaled(counts, kernels, batch, f):  # type: ignore[no-untyped-def]
    """Scale counts as the firmware does, and write what the linear part takes to f."""
    for k in range(counts.shape[0]):
        for j in range(kernels.n_cells):
            i = k * kernels.n_cells + j
            for lane in range(LANES):
                level = (np.int64(counts[k, j, lane]) * kernels.multiplier) >> 16
                f[i, lane] = (np.float32(level) - batch.mean[i]) * batch.unit


@inlined
def _to_counts(dsums, group, kernels, batch, d_counts):  # type: ignore[no-untyped-def]
    """Write the gradients of counts from those of the sums of the linear part."""
    step = batch.unit * np.float32(kernels.multiplier / 65536)
    for k in range(d_counts.shape[0]):
        for j in range(kernels.n_cells):
            i = k * kernels.n_cells + j
            d = d_counts[k, j]
            d[:] = 0
            for o in range(dsums.shape[0]):
                v = batch.linear[i, o] * step
                for lane in range(LANES):
                    d[lane] += v * dsums[o, lane]
            if batch.keep.shape[0] > 0:
                for lane in range(LANES):
                    bit = (batch.keep[group, i] >> np.uint32(lane)) & np.uint32(1)
                    d[lane] *= batch.inverse * np.float32(bit)


@njit(nogil=True, error_model="numpy")
def learn_images(slot, n_slots, images, moves, kernels, batch, d_taps, d_threshold, gradients):  # type: ignore[no-untyped-def]
    """Accumulate the gradients of every n_slots-th group of the batch, beginning with `slot`.

    images (n, channels, h, w) uint8; `kernels` is a `KernelBatch`, `batch` a `LinearBatch`.
    """
    geometry, cell = kernels.geometry, kernels.cell
    n_kernels, n = kernels.offsets.shape[0], cell.shape[0] * LANES
    n_inputs, n_outputs = batch.linear.shape
    scratch = np.empty(images.shape[2:], dtype=np.uint8)
    x = np.empty(images.shape[1] * geometry[7] * LANES, dtype=np.int16)
    responses = np.empty((n_kernels, n), dtype=np.int16)
    counts = np.empty((n_kernels, kernels.n_cells + 1, LANES), dtype=np.int16)
    d_counts = np.zeros((n_kernels, kernels.n_cells + 1, LANES), dtype=np.float32)
    f = np.empty((n_inputs, LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    dsums = np.empty((n_outputs, LANES), dtype=np.float32)
    g = np.empty((4, n), dtype=np.float32)
    d_taps[:] = 0
    d_threshold[:] = 0
    gradients.linear[:] = 0
    gradients.offset[:] = 0
    gradients.totals[:] = 0
    for group in range(slot, batch.rows.shape[0] // LANES, n_slots):
        _fill(images, moves, batch.rows, group * LANES, geometry, scratch, x)
        respond(x, kernels.offsets, kernels.signs, n, responses)
        _count(responses, cell, kernels.thresholds, counts)
        _scaled(counts, kernels, batch, f)
        learn_group(f, group, batch, gradients, sums, dsums)
        _to_counts(dsums, group, kernels, batch, d_counts)
        _backward(x.astype(np.float32), kernels, responses, d_counts, g, d_taps, d_threshold)
