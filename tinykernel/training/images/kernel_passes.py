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
from tinykernel.training.eights import add_product, inlined, lane_sum
from tinykernel.training.readouts.linear_passes import clear, learn_group

_CHUNK = 2048
_WIDE = 4096
_ONE = np.float32(1.0)


class KernelBatch(NamedTuple):
    """Kernels as a mini-batch has them, in the order of their channels."""

    geometry: NDArray[np.int64]  # see `fill`.
    # Of the taps that are not 0, filled up with others: where they lie, and their signs.
    offsets: NDArray[np.int64]  # (n_kernels, a multiple of 4)
    signs: NDArray[np.int16]  # (n_kernels, a multiple of 4)
    base: NDArray[np.int64]  # (n_kernels,): where the channel of each kernel begins.
    places: NDArray[np.int64]  # (n_taps,): the offset of every tap.
    thresholds: NDArray[np.int16]  # (n_kernels,)
    inverse: NDArray[np.float32]  # (n_kernels,): one over the spread of the responses.
    slope: np.float32
    cell: NDArray[np.int64]  # of each position.
    n_cells: int
    multiplier: int  # of counts, in units of 2**-16.


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
def fill(images, moves, rows, first, geometry, scratch, x):  # type: ignore[no-untyped-def]
    """Write the levels of one group into planes; `moves` (n, 6) belong to `rows`, or are none.

    geometry: bits to shift out, average, rows, columns, padding, lead, pitch, plane.
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
def _respond(x, kernels, out):  # type: ignore[no-untyped-def]
    """Add up the taps of each kernel: out (kernels, positions * LANES)."""
    offsets, signs, n = kernels.offsets, kernels.signs, out.shape[1]
    out[:] = 0
    for k in range(offsets.shape[0]):
        for b in range(0, n, _CHUNK):
            e = min(n, b + _CHUNK)
            r = out[k, b:e]
            for t in range(0, offsets.shape[1], 4):
                o0, o1, o2, o3 = offsets[k, t : t + 4] * LANES + b
                s0, s1, s2, s3 = signs[k, t : t + 4]
                x0 = x[o0 : o0 + e - b]
                x1 = x[o1 : o1 + e - b]
                x2 = x[o2 : o2 + e - b]
                x3 = x[o3 : o3 + e - b]
                for i in range(e - b):
                    first = np.int16(s0 * x0[i]) + np.int16(s1 * x1[i])
                    r[i] += first + np.int16(s2 * x2[i]) + np.int16(s3 * x3[i])


@njit(nogil=True, error_model="numpy")
def _count(responses, kernels, counts):  # type: ignore[no-untyped-def]
    """Count the positions above the threshold in each cell: counts (kernels, cells + 1, LANES)."""
    for k in range(responses.shape[0]):
        counts[k] = 0
        t = kernels.thresholds[k]
        for p in range(kernels.cell.shape[0]):
            a = responses[k, p * LANES : (p + 1) * LANES]
            c = counts[k, kernels.cell[p]]
            for lane in range(LANES):
                c[lane] += np.int16(a[lane] > t)


@njit(nogil=True, error_model="numpy")
def count_images(begin, end, images, kernels, out):  # type: ignore[no-untyped-def]
    """Fill out[begin:end], shape (n, kernels * cells), with the counts of images."""
    n_kernels, n = kernels.offsets.shape[0], kernels.cell.shape[0] * LANES
    moves = np.empty((0, 6), dtype=np.float32)
    scratch = np.empty(images.shape[2:], dtype=np.uint8)
    x = np.empty(images.shape[1] * kernels.geometry[7] * LANES, dtype=np.int16)
    responses = np.empty((n_kernels, n), dtype=np.int16)
    counts = np.empty((n_kernels, kernels.n_cells + 1, LANES), dtype=np.int16)
    rows = np.empty(LANES, dtype=np.int64)
    for first in range(begin, end, LANES):
        for k in range(LANES):
            rows[k] = min(first + k, end - 1)
        fill(images, moves, rows, 0, kernels.geometry, scratch, x)
        _respond(x, kernels, responses)
        _count(responses, kernels, counts)
        for k in range(min(LANES, end - first)):
            for i in range(n_kernels):
                for j in range(kernels.n_cells):
                    out[first + k, i * kernels.n_cells + j] = counts[i, j, k]


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

    x holds the planes in float32, g (4, positions * LANES) is scratch.
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
                planes = x[p0 + b : p0 + e], x[p1 + b : p1 + e], x[p2 + b : p2 + e]
                tile = _tile(planes, (g[0, b:e], g[1, b:e], g[2, b:e], g[3, b:e]))
                for i in range(kn):
                    for tap in range(j, last + 1):
                        d_taps[k0 + i, tap] += tile[i][tap - j]
        k0 += kn


@inlined
def _tile(planes, gradients):  # type: ignore[no-untyped-def]
    """Return the dot products of four gradients, each with three planes."""
    (x0, x1, x2), (g0, g1, g2, g3) = planes, gradients
    a00 = a01 = a02 = a10 = a11 = a12 = eights.zeros()
    a20 = a21 = a22 = a30 = a31 = a32 = eights.zeros()
    for i in range(0, x0.shape[0], eights.WIDTH):
        u0 = eights.load(x0, i)
        u1 = eights.load(x1, i)
        u2 = eights.load(x2, i)
        v = eights.load(g0, i)
        a00, a01, a02 = add_product(a00, v, u0), add_product(a01, v, u1), add_product(a02, v, u2)
        v = eights.load(g1, i)
        a10, a11, a12 = add_product(a10, v, u0), add_product(a11, v, u1), add_product(a12, v, u2)
        v = eights.load(g2, i)
        a20, a21, a22 = add_product(a20, v, u0), add_product(a21, v, u1), add_product(a22, v, u2)
        v = eights.load(g3, i)
        a30, a31, a32 = add_product(a30, v, u0), add_product(a31, v, u1), add_product(a32, v, u2)
    return (
        (eights.total(a00), eights.total(a01), eights.total(a02)),
        (eights.total(a10), eights.total(a11), eights.total(a12)),
        (eights.total(a20), eights.total(a21), eights.total(a22)),
        (eights.total(a30), eights.total(a31), eights.total(a32)),
    )


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
def _to_counts(dsums, kernels, batch, d_counts):  # type: ignore[no-untyped-def]
    """Write the gradients of counts from those of the sums of the linear part."""
    step = batch.unit * np.float32(kernels.multiplier / 65536)
    for k in range(d_counts.shape[0]):
        for j in range(kernels.n_cells):
            d = d_counts[k, j]
            d[:] = 0
            for o in range(dsums.shape[0]):
                v = batch.linear[k * kernels.n_cells + j, o] * step
                for lane in range(LANES):
                    d[lane] += v * dsums[o, lane]


@njit(nogil=True, error_model="numpy")
def learn_images(slot, n_slots, images, moves, kernels, batch, d_taps, d_threshold, gradients):  # type: ignore[no-untyped-def]
    """Accumulate the gradients of every n_slots-th group of the batch, beginning with `slot`.

    images (n, channels, h, w) uint8; `kernels` is a `KernelBatch`, `batch` a `LinearBatch`.
    """
    n_kernels, n = kernels.offsets.shape[0], kernels.cell.shape[0] * LANES
    n_inputs, n_outputs = batch.linear.shape
    scratch = np.empty(images.shape[2:], dtype=np.uint8)
    x = np.empty(images.shape[1] * kernels.geometry[7] * LANES, dtype=np.int16)
    responses = np.empty((n_kernels, n), dtype=np.int16)
    counts = np.empty((n_kernels, kernels.n_cells + 1, LANES), dtype=np.int16)
    d_counts = np.zeros((n_kernels, kernels.n_cells + 1, LANES), dtype=np.float32)
    f = np.empty((n_inputs, LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    dsums = np.empty((n_outputs, LANES), dtype=np.float32)
    g = np.empty((4, n), dtype=np.float32)
    d_taps[:] = 0
    d_threshold[:] = 0
    clear(gradients)
    for group in range(slot, batch.rows.shape[0] // LANES, n_slots):
        fill(images, moves, batch.rows, group * LANES, kernels.geometry, scratch, x)
        _respond(x, kernels, responses)
        _count(responses, kernels, counts)
        _scaled(counts, kernels, batch, f)
        learn_group(f, group, batch, gradients, sums, dsums)
        _to_counts(dsums, kernels, batch, d_counts)
        _backward(x.astype(np.float32), kernels, responses, d_counts, g, d_taps, d_threshold)
