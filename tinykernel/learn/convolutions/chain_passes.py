"""Compiled kernels of the trainer for convolutions: forward in the firmware's integers, and back.

Images are processed in groups of `LANES`, interleaved in memory: the images of a pixel are
adjacent. A plane of levels has `lead` zeros before the first row and as many after each row, so
that rows share their padding. Maps are float32 that hold integers, so ``floor`` of a sum is the
shift of the firmware.

A row of `shapes` has rows, columns, pooling, first place of the map, and first place of the
responses of a layer; the places count positions of the maps of one channel. `numbers` are taps,
biases, weights of the hidden layer (values, units) with the shift in them, and its biases.

Straight through: the gradient passes where a value is above 0 and below 255, and of pooled values
to the first of the largest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import inlined, njit
from tinykernel.base.hadamard import LANES
from tinykernel.learn import sums as eights
from tinykernel.learn.linear.passes import learn_group, linear_forward
from tinykernel.learn.sums import add_product, lane_dot, lane_sum

_ZERO, _TOP = np.float32(0), np.float32(255)


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
def _correlate(map_, rows, columns, taps, bias, out):  # type: ignore[no-untyped-def]
    """Slide nine taps over a map (rows, columns): out (rows - 2, columns - 2) of the sums."""
    n, pitch = (columns - 2) * LANES, columns * LANES
    t0, t1, t2, t3, t4, t5, t6, t7, t8 = taps
    for y in range(rows - 2):
        first = y * pitch
        a0 = map_[first : first + n]
        a1 = map_[first + LANES : first + LANES + n]
        a2 = map_[first + 2 * LANES : first + 2 * LANES + n]
        first += pitch
        b0 = map_[first : first + n]
        b1 = map_[first + LANES : first + LANES + n]
        b2 = map_[first + 2 * LANES : first + 2 * LANES + n]
        first += pitch
        c0 = map_[first : first + n]
        c1 = map_[first + LANES : first + LANES + n]
        c2 = map_[first + 2 * LANES : first + 2 * LANES + n]
        o = out[y * n : y * n + n]
        for k in range(n):
            upper = bias + t0 * a0[k] + t1 * a1[k] + t2 * a2[k] + t3 * b0[k] + t4 * b1[k]
            o[k] = upper + t5 * b2[k] + t6 * c0[k] + t7 * c1[k] + t8 * c2[k]


@inlined
def _clip(x):  # type: ignore[no-untyped-def]
    """Round down, and keep to 0..255."""
    for k in range(x.shape[0]):
        x[k] = min(max(np.floor(x[k]), _ZERO), _TOP)


@njit(nogil=True, error_model="numpy")
def _tap_gradient(map_, rows, columns, g, d):  # type: ignore[no-untyped-def]
    """Add the gradients of nine taps and the bias to d (10,), g being that of the sums."""
    n, pitch = (columns - 2) * LANES, columns * LANES
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = eights.zeros()
    for y in range(rows - 2):
        a = map_[y * pitch : (y + 1) * pitch]
        b = map_[(y + 1) * pitch : (y + 2) * pitch]
        c = map_[(y + 2) * pitch : (y + 3) * pitch]
        e = g[y * n : y * n + n]
        for k in range(0, n, eights.WIDTH):
            v = eights.load(e, k)
            s0 = add_product(s0, v, eights.load(a, k))
            s1 = add_product(s1, v, eights.load(a, k + LANES))
            s2 = add_product(s2, v, eights.load(a, k + 2 * LANES))
            s3 = add_product(s3, v, eights.load(b, k))
            s4 = add_product(s4, v, eights.load(b, k + LANES))
            s5 = add_product(s5, v, eights.load(b, k + 2 * LANES))
            s6 = add_product(s6, v, eights.load(c, k))
            s7 = add_product(s7, v, eights.load(c, k + LANES))
            s8 = add_product(s8, v, eights.load(c, k + 2 * LANES))
            s9 = eights.add(s9, v)
    sums = (s0, s1, s2, s3, s4, s5, s6, s7, s8, s9)
    for i in range(10):
        d[i] += eights.total(sums[i])


@inlined
def _largest(a, first, pitch, k):  # type: ignore[no-untyped-def]
    """Return the largest of two by two values of one image."""
    above = max(a[first + k], a[first + LANES + k])
    return max(above, max(a[first + pitch + k], a[first + pitch + LANES + k]))


@inlined
def _pool(a, rows, columns, pool, out):  # type: ignore[no-untyped-def]
    """Write a map (rows // pool, columns // pool)."""
    if pool == 1:
        for k in range(out.size):
            out[k] = a[k]
        return
    place, pitch = 0, columns * LANES
    for y in range(rows // 2):
        for x in range(columns // 2):
            first = (2 * y * columns + 2 * x) * LANES
            o = out[place : place + LANES]
            for k in range(LANES):
                o[k] = _largest(a, first, pitch, k)
            place += LANES


@inlined
def _unpool(a, rows, columns, pool, pooled, g):  # type: ignore[no-untyped-def]
    """Write the gradient g of the responses, of which `a` is clipped, from that of their map."""
    if pool == 1:
        for k in range(a.shape[0]):
            g[k] = pooled[k] if (a[k] > _ZERO) & (a[k] < _TOP) else _ZERO
        return
    g[:] = 0
    place, pitch = 0, columns * LANES
    for y in range(rows // 2):
        for x in range(columns // 2):
            i = (2 * y * columns + 2 * x) * LANES
            d = pooled[place : place + LANES]
            g0, g1 = g[i : i + LANES], g[i + LANES : i + 2 * LANES]
            j = i + pitch
            g2, g3 = g[j : j + LANES], g[j + LANES : j + 2 * LANES]
            for k in range(LANES):
                most = _largest(a, i, pitch, k)
                v = d[k] if (most > _ZERO) & (most < _TOP) else _ZERO
                at0 = a[i + k] == most
                at1 = (a[i + LANES + k] == most) & (not at0)
                at2 = (a[j + k] == most) & (not at0) & (not at1)
                g0[k] = v if at0 else _ZERO
                g1[k] = v if at1 else _ZERO
                g2[k] = v if at2 else _ZERO
                g3[k] = v if not (at0 | at1 | at2) else _ZERO
            place += LANES


@inlined
def _cut(maps, first, rows, columns):  # type: ignore[no-untyped-def]
    """Return one map of a channel."""
    return maps[first * LANES : (first + rows * columns) * LANES]


@njit(nogil=True, error_model="numpy")
def _convolve(x, shapes, taps, biases, maps, f):  # type: ignore[no-untyped-def]
    """Run all channels: taps (layers, channels, 9), f (channels * positions, LANES)."""
    n_layers, n_channels = biases.shape
    each = f.shape[0] // n_channels
    for c in range(n_channels):
        for layer in range(n_layers):
            rows, columns, pool, first, after = shapes[layer]
            map_ = x if layer == 0 else _cut(maps[c], first, rows, columns)
            response = _cut(maps[c], after, rows - 2, columns - 2)
            _correlate(map_, rows, columns, taps[layer, c], biases[layer, c], response)
            _clip(response)
            if layer + 1 < n_layers:
                below = shapes[layer + 1]
                out = _cut(maps[c], below[3], below[0], below[1])
            else:
                out = f[c * each : (c + 1) * each].reshape(-1)
            _pool(response, rows - 2, columns - 2, pool, out)


@njit(nogil=True, error_model="numpy")
def _back(x, shapes, taps, maps, df, scratch, d):  # type: ignore[no-untyped-def]
    """Add the gradients of taps and biases to d (layers, channels, 10), df being that of f.

    scratch (3, positions * LANES) holds the gradients of a map, of responses, and these padded.
    """
    n_layers, n_channels = taps.shape[:2]
    each = df.shape[0] // n_channels
    turned = np.empty(9, dtype=np.float32)
    for c in range(n_channels):
        for layer in range(n_layers - 1, -1, -1):
            rows, columns, pool, first, after = shapes[layer]
            height, width = rows - 2, columns - 2
            response = _cut(maps[c], after, height, width)
            d_map = scratch[0]
            if layer + 1 == n_layers:
                d_map = df[c * each : (c + 1) * each].reshape(-1)
            g = _cut(scratch[1], 0, height, width)
            _unpool(response, height, width, pool, d_map, g)
            map_ = x if layer == 0 else _cut(maps[c], first, rows, columns)
            _tap_gradient(map_, rows, columns, g, d[layer, c])
            if layer == 0:
                continue
            wide = width + 4
            padded = _cut(scratch[2], 0, height + 4, wide)
            padded[:] = 0
            for y in range(height):
                place = ((y + 2) * wide + 2) * LANES
                for k in range(width * LANES):
                    padded[place + k] = g[y * width * LANES + k]
            for i in range(9):
                turned[i] = taps[layer, c, 8 - i]
            out = _cut(scratch[0], 0, rows, columns)
            _correlate(padded, height + 4, wide, turned, _ZERO, out)


@inlined
def _hide(f, hidden, biases, h):  # type: ignore[no-untyped-def]
    """Compute the hidden values h (units, LANES) of f; hidden (inputs, units)."""
    linear_forward(f, hidden, h)
    for o in range(h.shape[0]):
        for k in range(LANES):
            h[o, k] = min(max(np.floor(h[o, k] + biases[o]), _ZERO), _TOP)


@inlined
def _passed_back(weights, dsums, factor, df):  # type: ignore[no-untyped-def]
    """Write the gradient of inputs (inputs, LANES) from that of sums; weights (inputs, sums)."""
    df[:] = 0
    for i in range(df.shape[0]):
        for o in range(dsums.shape[0]):
            v = weights[i, o] * factor
            if v != 0:
                for k in range(LANES):
                    df[i, k] += v * dsums[o, k]


@inlined
def _positions(shapes):  # type: ignore[no-untyped-def]
    """Return how many there are in the maps of a channel, and in the largest with zeros around."""
    last, largest = shapes[shapes.shape[0] - 1], 0
    for layer in range(shapes.shape[0]):
        largest = max(largest, (shapes[layer, 0] + 2) * (shapes[layer, 1] + 2))
    return last[4] + (last[0] - 2) * (last[1] - 2), largest


@njit(nogil=True, error_model="numpy")
def hidden_values(begin, end, images, geometry, shapes, numbers, out):  # type: ignore[no-untyped-def]
    """Fill out[begin:end], shape (n, units), with hidden values, or with maps if there are none."""
    taps, biases, hidden, hidden_biases = numbers
    x = np.empty(geometry[7] * LANES, dtype=np.float32)
    maps = np.empty((biases.shape[1], _positions(shapes)[0] * LANES), dtype=np.float32)
    f = np.empty((hidden.shape[0], LANES), dtype=np.float32)
    h = np.empty((hidden.shape[1], LANES), dtype=np.float32)
    rows = np.empty(LANES, dtype=np.int64)
    moves = np.empty((0, 6), dtype=np.float32)
    scratch = np.empty(images.shape[2:], dtype=np.uint8)
    for first in range(begin, end, LANES):
        for k in range(LANES):
            rows[k] = min(first + k, end - 1)
        fill(images, moves, rows, np.int64(0), geometry, scratch, x)
        _convolve(x, shapes, taps, biases, maps, f)
        values = f
        if hidden.shape[1] > 0:
            _hide(f, hidden, hidden_biases, h)
            values = h
        for k in range(min(LANES, end - first)):
            for i in range(values.shape[0]):
                out[first + k, i] = values[i, k]


class ConvolutionGradients(NamedTuple):
    """Where a slot adds up gradients; those of taps have that of the bias behind them."""

    taps: NDArray[np.float32]
    hidden: NDArray[np.float32]
    hidden_bias: NDArray[np.float32]


@njit(nogil=True, error_model="numpy")
def learn_convolutions(  # type: ignore[no-untyped-def]
    slot, n_slots, images, moves, geometry, shapes, numbers, centre, batch, layers, gradients
):
    """Accumulate the gradients of every n_slots-th group of the batch, beginning with `slot`.

    The gradient of hidden weights is that of values less `centre`, which the biases make up for.
    `batch` is a `LinearBatch`.
    """
    taps, biases, hidden, hidden_biases = numbers
    n_values, n_units = hidden.shape
    n_outputs, (positions, largest) = batch.linear.shape[1], _positions(shapes)
    x = np.empty(geometry[7] * LANES, dtype=np.float32)
    maps = np.empty((biases.shape[1], positions * LANES), dtype=np.float32)
    scratch = np.empty((3, largest * LANES), dtype=np.float32)
    moved = np.empty(images.shape[2:], dtype=np.uint8)
    f = np.empty((n_values, LANES), dtype=np.float32)
    df = np.empty((n_values, LANES), dtype=np.float32)
    h = np.empty((n_units, LANES), dtype=np.float32)
    u = np.empty((n_units, LANES), dtype=np.float32)
    du = np.empty((n_units, LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    dsums = np.empty((n_outputs, LANES), dtype=np.float32)
    for group in range(slot, batch.rows.shape[0] // LANES, n_slots):
        fill(images, moves, batch.rows, group * LANES, geometry, moved, x)
        _convolve(x, shapes, taps, biases, maps, f)
        _hide(f, hidden, hidden_biases, h)
        for i in range(n_units):
            for k in range(LANES):
                u[i, k] = (h[i, k] - batch.mean[i]) * batch.unit
        learn_group(u, group, batch, gradients, sums, dsums)
        _passed_back(batch.linear, dsums, batch.unit, du)
        for i in range(n_units):
            for k in range(LANES):
                du[i, k] = du[i, k] if (h[i, k] > _ZERO) & (h[i, k] < _TOP) else _ZERO
            layers.hidden_bias[i] += lane_sum(du[i])
        for i in range(n_values):
            for k in range(LANES):
                f[i, k] -= centre[i]
            for o in range(n_units):
                layers.hidden[i, o] += lane_dot(f[i], du[o])
        _passed_back(hidden, du, np.float32(1), df)
        _back(x, shapes, taps, maps, df, scratch, layers.taps)
