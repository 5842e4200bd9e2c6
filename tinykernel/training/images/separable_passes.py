"""Compiled kernels of the trainer for separable convolutions, on maps (n, rows, columns, channels).

Maps are float32 that hold integers. `steps` are the strides of rows and of columns, and the rows of
zeros above. Sums over images are returned per image, so that neither
threads nor processors change the order of additions. Matrix products are of integers below 2**24
(or 2**53 in float64), so they do not depend on the order of additions.
"""

from __future__ import annotations

import numpy as np

from tinykernel.compiled import njit
from tinykernel.hadamard import LANES
from tinykernel.training.images.convolution_passes import warp
from tinykernel.training.readouts.linear_passes import learn_group

_ZERO, _TOP = np.float32(0), np.float32(255)


@njit(nogil=True, error_model="numpy")
def gather_images(begin, end, images, rows, moves, out):  # type: ignore[no-untyped-def]
    """Copy images (n, channels, h, w) as maps; `moves` as in `fill`, or none."""
    n_channels, height, width = images.shape[1:]
    moved = np.empty((height, width), dtype=np.uint8)
    for b in range(begin, end):
        for c in range(n_channels):
            image = images[rows[b], c]
            if moves.shape[0] > 0:
                warp(image, moves[b], moved)
                image = moved
            for y in range(height):
                for x in range(width):
                    out[b, y, x, c] = image[y, x]


@njit(nogil=True, error_model="numpy")
def patches(begin, end, maps, steps, out):  # type: ignore[no-untyped-def]
    """Write the inputs of 3 x 3 kernels of all channels: out (n, rows, columns, 9 * channels)."""
    height, width, n_channels = maps.shape[1:]
    down, across, above = steps
    for b in range(begin, end):
        for y in range(out.shape[1]):
            for x in range(out.shape[2]):
                for k in range(9):
                    v, u = y * down + k // 3 - above, x * across + k % 3 - 1
                    part = out[b, y, x, k * n_channels : (k + 1) * n_channels]
                    is_inside = 0 <= v < height and 0 <= u < width
                    for c in range(n_channels):
                        part[c] = maps[b, v, u, c] if is_inside else _ZERO


@njit(nogil=True, error_model="numpy")
def single_sums(begin, end, maps, weights, steps, out):  # type: ignore[no-untyped-def]
    """Slide kernels (9, channels) over maps, each over its own channel."""
    height, width, n_channels = maps.shape[1:]
    down, across, above = steps
    for b in range(begin, end):
        for y in range(out.shape[1]):
            for x in range(out.shape[2]):
                total = out[b, y, x]
                total[:] = 0
                for k in range(9):
                    v, u = y * down + k // 3 - above, x * across + k % 3 - 1
                    if 0 <= v < height and 0 <= u < width:
                        seen, tap = maps[b, v, u], weights[k]
                        for c in range(n_channels):
                            total[c] += tap[c] * seen[c]


@njit(nogil=True, error_model="numpy")
def single_back(  # type: ignore[no-untyped-def]
    begin, end, maps, weights, steps, d_sums, d_maps, d_weights
):
    """Write the gradients of maps, and of weights by image: d_weights (n, 9, channels)."""
    height, width, n_channels = maps.shape[1:]
    down, across, above = steps
    for b in range(begin, end):
        d_maps[b] = 0
        d_weights[b] = 0
        for y in range(d_sums.shape[1]):
            for x in range(d_sums.shape[2]):
                d = d_sums[b, y, x]
                for k in range(9):
                    v, u = y * down + k // 3 - above, x * across + k % 3 - 1
                    if 0 <= v < height and 0 <= u < width:
                        seen, back, tap = maps[b, v, u], d_maps[b, v, u], weights[k]
                        gradient = d_weights[b, k]
                        for c in range(n_channels):
                            back[c] += tap[c] * d[c]
                        for c in range(n_channels):
                            gradient[c] += seen[c] * d[c]


@njit(nogil=True, error_model="numpy")
def squares(values):  # type: ignore[no-untyped-def]
    """Return the sum of squares of each column, from the first row to the last."""
    out = np.zeros(values.shape[1])
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = np.float64(values[i, j])
            out[j] += value * value
    return out


@njit(nogil=True, error_model="numpy")
def moments(begin, end, sums, out):  # type: ignore[no-untyped-def]
    """Add up sums (n, positions, channels) and their squares, by image: out (n, 2, channels)."""
    for b in range(begin, end):
        out[b] = 0
        for p in range(sums.shape[1]):
            for c in range(sums.shape[2]):
                value = np.float64(sums[b, p, c])
                out[b, 0, c] += value
                out[b, 1, c] += value * value


@njit(nogil=True, error_model="numpy")
def activate(begin, end, sums, factor, shift, out):  # type: ignore[no-untyped-def]
    """Write min(max(floor(sums * factor + shift), 0), 255), one factor and shift per channel."""
    for b in range(begin, end):
        for p in range(sums.shape[1]):
            for c in range(sums.shape[2]):
                value = np.floor(sums[b, p, c] * factor[c] + shift[c])
                out[b, p, c] = min(max(value, _ZERO), _TOP)


@njit(nogil=True, error_model="numpy")
def clip_products(begin, end, sums, biases, multipliers, shifts, out):  # type: ignore[no-untyped-def]
    """Write what the firmware makes of sums: integers, see `Separable`."""
    for b in range(begin, end):
        for p in range(sums.shape[1]):
            for c in range(sums.shape[2]):
                product = (np.int64(sums[b, p, c]) + biases[c]) * multipliers[c]
                out[b, p, c] = min(max(product >> shifts[c], 0), 255)


@njit(nogil=True, error_model="numpy")
def cut_gradients(begin, end, values, sums, mean, gradients, out):  # type: ignore[no-untyped-def]
    """Keep gradients where a value is above 0 and below 255; out (n, 2, channels) has their sums.

    The second one is that of the gradients times the sums less their mean. Loops that store and
    loops that add up are apart, so that compilers make vectors of both.
    """
    for b in range(begin, end):
        first, second = out[b, 0], out[b, 1]
        out[b] = 0
        for p in range(sums.shape[1]):
            d, value, total = gradients[b, p], values[b, p], sums[b, p]
            for c in range(d.size):
                d[c] = d[c] if (value[c] > _ZERO) & (value[c] < _TOP) else _ZERO
            for c in range(d.size):
                first[c] += d[c]
            for c in range(d.size):
                second[c] += d[c] * (total[c] - mean[c])


@njit(nogil=True, error_model="numpy")
def normal_gradients(begin, end, sums, mean, factor, first, second, gradients, most):  # type: ignore[no-untyped-def]
    """Turn gradients of normalised values into those of sums, in place; `most` by image."""
    for b in range(begin, end):
        top = np.zeros(mean.size, dtype=np.float32)
        for p in range(sums.shape[1]):
            d, total = gradients[b, p], sums[b, p]
            for c in range(d.size):
                d[c] = (d[c] - first[c] - (total[c] - mean[c]) * second[c]) * factor[c]
            for c in range(d.size):
                top[c] = max(top[c], abs(d[c]))
        most[b] = _ZERO
        for c in range(mean.size):
            most[b] = max(most[b], top[c])


@njit(nogil=True, error_model="numpy")
def learn_features(slot, n_slots, features, batch, gradients, d_features):  # type: ignore[no-untyped-def]
    """Accumulate the gradients of every n_slots-th group of features (rows of the batch, units)."""
    n_units, n_outputs = batch.linear.shape
    u = np.empty((n_units, LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    dsums = np.empty((n_outputs, LANES), dtype=np.float32)
    for group in range(slot, batch.rows.shape[0] // LANES, n_slots):
        first = group * LANES
        for i in range(n_units):
            for k in range(LANES):
                u[i, k] = (features[first + k, i] - batch.mean[i]) * batch.unit
        learn_group(u, group, batch, gradients, sums, dsums)
        for k in range(LANES):
            for i in range(n_units):
                total = _ZERO
                for o in range(n_outputs):
                    total += batch.linear[i, o] * dsums[o, k]
                d_features[first + k, i] = total * batch.unit
