"""Compiled kernels of the trainer for separable convolutions, on maps (n, rows, columns, channels).

Maps are float32 that hold integers. `steps` are the strides of rows and of columns, and the rows of
zeros above. Sums over images are returned per image, so that neither
threads nor processors change the order of additions. Matrix products are of integers below 2**24
(or 2**53 in float64), so they do not depend on the order of additions.
"""

from __future__ import annotations

import numpy as np

from tinykernel.base.compiled import njit
from tinykernel.learn.convolutions.chain_passes import warp
from tinykernel.learn.sums import WIDTH, add_product, load, store, zeros

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
def _frame(maps, steps, columns):  # type: ignore[no-untyped-def]
    """Return room for a map with zeros around it, and where nine taps begin in it.

    Of a stride of 2 even columns come first in a row, so that the columns that one tap sees are
    side by side. Behind it are a few numbers that may be loaded. The third result is how far apart
    the taps of two rows of sums are.
    """
    height, _, n_channels = maps.shape[1:]
    across, wide = steps[1], columns + 2
    taps = np.empty(9, dtype=np.int64)
    for k in range(9):
        taps[k] = ((k // 3 * across + k % 3 % across) * wide + k % 3 // across) * n_channels
    row = across * wide * n_channels
    return np.zeros((height + 2) * row + WIDTH, dtype=np.float32), taps, steps[0] * row


@njit(nogil=True, error_model="numpy")
def _move(map_, steps, columns, frame, is_back):  # type: ignore[no-untyped-def]
    """Copy a map (rows, columns, channels) into its frame, or back from it."""
    height, width, n_channels = map_.shape
    _, across, above = steps
    wide = columns + 2
    for v in range(height):
        for u in range(width):
            column = (u + 1) % across * wide + (u + 1) // across
            first = ((v + above) * across * wide + column) * n_channels
            # Loops: assigning an array to a slice takes three seconds to compile.
            for c in range(n_channels):
                if is_back:
                    map_[v, u, c] = frame[first + c]
                else:
                    frame[first + c] = map_[v, u, c]


@njit(nogil=True, error_model="numpy")
def patches(begin, end, maps, steps, out):  # type: ignore[no-untyped-def]
    """Write the inputs of 3 x 3 kernels of all channels: out (n, rows, columns, 9 * channels)."""
    down, across, above = steps
    rows, columns, n = out.shape[1], out.shape[2], out.shape[3] // 3
    every = down, np.int64(1), above  # no literal, for which all is compiled again
    frame, taps, pitch = _frame(maps, every, maps.shape[2])
    for b in range(begin, end):
        _move(maps[b], every, maps.shape[2], frame, False)
        for y in range(rows):
            for x in range(columns):
                for k in range(3):
                    first = y * pitch + taps[3 * k] + x * across * maps.shape[3]
                    part, seen = out[b, y, x, k * n : (k + 1) * n], frame[first : first + n]
                    for i in range(n):
                        part[i] = seen[i]


@njit(nogil=True, error_model="numpy")
def single_sums(begin, end, maps, weights, steps, out):  # type: ignore[no-untyped-def]
    """Slide kernels (9, channels) over maps, each over its own channel."""
    rows, columns, n_channels = out.shape[1:]
    n = columns * n_channels
    frame, taps, pitch = _frame(maps, steps, columns)
    w = _side_by_side(weights, columns)
    for b in range(begin, end):
        _move(maps[b], steps, columns, frame, False)
        for y in range(rows):
            total, x = out[b, y].reshape(-1), frame[y * pitch :]
            total[:] = _ZERO
            for k in range(0, 9, 3):
                w0, w1, w2 = w[k], w[k + 1], w[k + 2]
                x0, x1, x2 = x[taps[k] :], x[taps[k + 1] :], x[taps[k + 2] :]
                for i in range(n):
                    total[i] += w0[i] * x0[i] + w1[i] * x1[i] + w2[i] * x2[i]


@njit(nogil=True, error_model="numpy")
def _side_by_side(weights, columns):  # type: ignore[no-untyped-def]
    """Repeat kernels (9, channels) for each column of a row."""
    n_channels = weights.shape[1]
    out = np.empty((9, columns * n_channels), dtype=np.float32)
    for k in range(9):
        for i in range(out.shape[1]):
            out[k, i] = weights[k, i % n_channels]
    return out


@njit(nogil=True, error_model="numpy")
def single_back(  # type: ignore[no-untyped-def]
    begin, end, maps, weights, steps, d_sums, d_maps, d_weights
):
    """Write the gradients of maps, and of weights by image: d_weights (n, 9, channels).

    A gradient adds up what positions give, row by row, as a loop over positions would.
    """
    rows, columns, n_channels = d_sums.shape[1:]
    n, across = columns * n_channels, steps[1]
    frame, taps, pitch = _frame(maps, steps, columns)
    back = np.zeros(frame.size, dtype=np.float32)
    w = _side_by_side(weights, columns + 2)
    # Gradients of sums, with zeros before and behind each row.
    wide = n + 4 * n_channels
    d = np.zeros(rows * wide + WIDTH, dtype=np.float32)
    for b in range(begin, end):
        _move(maps[b], steps, columns, frame, False)
        back[:] = _ZERO
        for y in range(rows):
            near = y * wide + 2 * n_channels
            d_row = d_sums[b, y].reshape(-1)
            for i in range(n):
                d[near + i] = d_row[i]
            for k in range(0, 9, 3):
                w0, w1, w2 = w[k], w[k + 1], w[k + 2]
                left = back[y * pitch + taps[k] :]
                d0, d1, d2 = d[near:], d[near - n_channels :], d[near - 2 * n_channels :]
                if across == 1:
                    for i in range(n + 2 * n_channels):
                        left[i] = left[i] + w2[i] * d2[i] + w1[i] * d1[i] + w0[i] * d0[i]
                    continue
                middle, right = back[y * pitch + taps[k + 1] :], back[y * pitch + taps[k + 2] :]
                for i in range(n):
                    middle[i] += w1[i] * d0[i]
                for i in range(n):
                    right[i] += w2[i] * d0[i]
                for i in range(n):
                    left[i] += w0[i] * d0[i]
        _move(d_maps[b], steps, columns, back, True)
        _tap_gradients(frame, taps, pitch, d, rows, n, d_weights[b])


@njit(nogil=True, error_model="numpy")
def _tap_gradients(frame, taps, pitch, d, rows, n, out):  # type: ignore[no-untyped-def]
    """Write the gradients of the weights of one image: eight channels at a time."""
    n_channels = out.shape[1]
    wide = n + 4 * n_channels
    part = np.empty(3 * WIDTH, dtype=np.float32)
    for c in range(0, n_channels, WIDTH):
        for k in range(0, 9, 3):
            t0, t1, t2 = taps[k] + c, taps[k + 1] + c, taps[k + 2] + c
            s0 = s1 = s2 = zeros()
            for y in range(rows):
                x, near = y * pitch, y * wide + 2 * n_channels + c
                for i in range(0, n, n_channels):
                    v = load(d, near + i)
                    s0 = add_product(s0, load(frame, x + t0 + i), v)
                    s1 = add_product(s1, load(frame, x + t1 + i), v)
                    s2 = add_product(s2, load(frame, x + t2 + i), v)
            store(part, 0, s0)
            store(part, WIDTH, s1)
            store(part, 2 * WIDTH, s2)
            for i in range(min(WIDTH, n_channels - c)):
                for j in range(3):
                    out[k + j, c + i] = part[j * WIDTH + i]


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
        first, second, value = out[b, 0], out[b, 1], values[b].reshape(-1)
        out[b], d = 0, gradients[b].reshape(-1)
        for i in range(d.size):
            d[i] = d[i] if (value[i] > _ZERO) & (value[i] < _TOP) else _ZERO
        for p in range(sums.shape[1]):
            d, total = gradients[b, p], sums[b, p]
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
