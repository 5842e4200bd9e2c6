"""The compiled arithmetic of the stage *spectrum*: frames of samples to levels of bands."""

from __future__ import annotations

import numpy as np

from tinykernel.compiled import njit


@njit(nogil=True)
def fourier(z, cosines):  # type: ignore[no-untyped-def]
    """Transform z (2, M) int64 in place, its columns in bit-reversed order; see `Spectrum`."""
    re, im = z[0], z[1]
    m = re.shape[0]
    half = 1
    while half < m:
        quarter = half // 2
        step = m // half  # of the table, which has 2 m entries a turn
        plain = half <= 2
        for k in range(half):
            turned = quarter > 0 and k >= quarter
            place = (k - quarter if turned else k) * step
            c = np.int64(cosines[place])
            s = np.int64(cosines[m // 2 - place])
            for a in range(k, m, 2 * half):
                b = a + half
                x, y = re[b], im[b]
                if place == 0:
                    tr, ti = (x, y) if plain else (x >> 1, y >> 1)
                    if turned:
                        tr, ti = ti, -tr
                elif turned:
                    tr = (y * c >> 16) - (x * s >> 16)
                    ti = -(y * s >> 16) - (x * c >> 16)
                else:
                    tr = (x * c >> 16) + (y * s >> 16)
                    ti = (y * c >> 16) - (x * s >> 16)
                x, y = (re[a], im[a]) if plain else (re[a] >> 1, im[a] >> 1)
                re[a], im[a] = x + tr, y + ti
                re[b], im[b] = x - tr, y - ti
        half *= 2


@njit(nogil=True)
def split(z, cosines, y):  # type: ignore[no-untyped-def]
    """Fill y (2, M + 1) with the transform of 2 M real samples, from that of their pairs."""
    re, im = z[0], z[1]
    m = re.shape[0]
    y[0, 0], y[1, 0] = (re[0] >> 1) + (im[0] >> 1), 0
    y[0, m], y[1, m] = (re[0] >> 1) - (im[0] >> 1), 0
    y[0, m // 2], y[1, m // 2] = re[m // 2] >> 1, -(im[m // 2] >> 1)
    for k in range(1, m // 2):
        n = m - k
        c, s = np.int64(cosines[k]), np.int64(cosines[m // 2 - k])
        er, ei = (re[k] + re[n]) >> 2, (im[k] - im[n]) >> 2
        dr, di = (im[k] + im[n]) >> 1, (re[n] - re[k]) >> 1
        tr = (dr * c >> 16) + (di * s >> 16)
        ti = (di * c >> 16) - (dr * s >> 16)
        y[0, k], y[1, k] = er + tr, ei + ti
        y[0, n], y[1, n] = er - tr, ti - ei


@njit(nogil=True)
def log2_of(value, digits):  # type: ignore[no-untyped-def]
    """Return floor(2**digits log2(value)) of 1 to 2**32 - 1, digit by digit."""
    top = 0
    while value >> top > 1:
        top += 1
    mantissa, level = value << (31 - top) >> 16, top  # 2**15 to 2**16 - 1
    for _ in range(digits):
        square = mantissa * mantissa
        bit = square >> 31
        mantissa = square >> (15 + bit)
        level = 2 * level + bit
    return level


@njit(nogil=True)
def level_of(power, exponent, log_bits, floor):  # type: ignore[no-untyped-def]
    """Return the level of ``power * 4**exponent``, 0 to 255."""
    if power == 0:
        return 0
    return min(max(log2_of(power, log_bits) + (2 * exponent << log_bits) - floor, 0), 255)


@njit(nogil=True)
def band_levels(y, edges, amplitude_bits, log_bits, floor, out):  # type: ignore[no-untyped-def]
    """Fill out (n_bands,) with the levels of the windowed spectrum of y (2, M + 1)."""
    first, end = edges[0], edges[-1]
    v = np.empty((2, end - first), dtype=np.int64)
    top = np.int64(0)
    for part in range(2):
        for k in range(first, end):
            value = 2 * y[part, k] - y[part, k - 1] - y[part, k + 1]
            v[part, k - first] = value
            top |= value ^ (value >> 63)
    exponent = 0
    while top >> exponent >> amplitude_bits:
        exponent += 1
    for band in range(edges.shape[0] - 1):
        power = np.int64(0)
        for k in range(edges[band] - first, edges[band + 1] - first):
            power += (v[0, k] >> exponent) ** 2 + (v[1, k] >> exponent) ** 2
        out[band] = level_of(power, exponent, log_bits, floor)


@njit(nogil=True)
def spectra(  # type: ignore[no-untyped-def]
    begin, end, samples, hop, shift, order, cosines, edges, numbers, out
):
    """Fill out[begin:end] (n, frames, channels * bands) from samples (n, rows, channels)."""
    # `order` has the bit-reversed numbers of the pairs; `numbers` amplitude_bits, log_bits, floor.
    m = order.shape[0]
    z, y = np.empty((2, m), dtype=np.int64), np.empty((2, m + 1), dtype=np.int64)
    bands = edges.shape[0] - 1
    for n in range(begin, end):
        for frame in range(out.shape[1]):
            for channel in range(samples.shape[2]):
                x = samples[n, frame * hop : frame * hop + 2 * m, channel]
                for i in range(m):
                    even, odd = np.int64(x[2 * i]), np.int64(x[2 * i + 1])
                    if shift >= 0:
                        z[0, order[i]], z[1, order[i]] = even << shift, odd << shift
                    else:
                        z[0, order[i]], z[1, order[i]] = even >> -shift, odd >> -shift
                fourier(z, cosines)
                split(z, cosines, y)
                made = out[n, frame, channel * bands : (channel + 1) * bands]
                band_levels(y, edges, numbers[0], numbers[1], numbers[2], made)
