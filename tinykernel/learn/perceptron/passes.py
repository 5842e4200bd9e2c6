"""Compiled kernels of hidden layers: what stands between their products of matrices."""

import math

import numpy as np

from tinykernel.base.compiled import njit

TOP = 255.0  # of a unit
_GRADIENT_BITS = 26


@njit(nogil=True, error_model="numpy")
def normalise(shadow):  # type: ignore[no-untyped-def]
    """Give the weights (inputs, units) of each unit the mean square 1."""
    n_inputs, n_units = shadow.shape
    squares, size = np.zeros(n_units), np.empty(n_units, dtype=np.float32)
    for i in range(n_inputs):
        for o in range(n_units):
            squares[o] += np.float32(shadow[i, o] * shadow[i, o])
    for o in range(n_units):
        size[o] = np.sqrt(max(squares[o] / n_inputs, 1e-12))
    for i in range(n_inputs):
        for o in range(n_units):
            shadow[i, o] /= size[o]


@njit(nogil=True, error_model="numpy")
def round_weights(shadow, step, most):  # type: ignore[no-untyped-def]
    """Return weights in whole steps, from -most to most."""
    levels = np.empty(shadow.shape)
    for i in range(shadow.shape[0]):
        for o in range(shadow.shape[1]):
            levels[i, o] = min(max(np.rint(shadow[i, o] / step), -most), most)
    return levels


@njit(nogil=True, error_model="numpy")
def to_units(sums, starts, worth):  # type: ignore[no-untyped-def]
    """Turn sums (k, units) into units about their mean; returns which are not clipped."""
    n, n_units = sums.shape
    mean, is_open = np.zeros(n_units), np.empty(sums.shape, dtype=np.bool_)
    for k in range(n):
        for o in range(n_units):
            mean[o] += sums[k, o]
    for o in range(n_units):
        mean[o] /= n
    for k in range(n):
        for o in range(n_units):
            exact = (sums[k, o] - mean[o]) * worth + starts[o]
            is_open[k, o] = (exact > 0.0) & (exact < TOP)
            sums[k, o] = min(max(np.rint(exact), 0.0), TOP)
    return is_open


@njit(nogil=True, error_model="numpy")
def whole_slopes(d, is_open):  # type: ignore[no-untyped-def]
    """Turn slopes (k, units) of open units into whole multiples of a power of two.

    Their mean over the batch is taken off, as of units. Returns their sums, and the power.
    """
    n, n_units = d.shape
    peaks, total = np.full(n_units, 1e-30), np.zeros(n_units)
    for k in range(n):
        for o in range(n_units):
            d[k, o] = d[k, o] if is_open[k, o] else 0.0
            peaks[o] = max(peaks[o], abs(d[k, o]))
    _, exponent = math.frexp(peaks.max())
    unit = math.ldexp(1.0, exponent - _GRADIENT_BITS)
    for k in range(n):
        for o in range(n_units):
            d[k, o] = np.rint(d[k, o] / unit)
            total[o] += d[k, o]
    for k in range(n):
        for o in range(n_units):
            d[k, o] = np.rint(d[k, o] - total[o] / n)
    return total, unit
