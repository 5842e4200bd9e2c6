"""Compiled steps of the joint trainer: a mini-batch, the decisions of many rows, and the update."""

from __future__ import annotations

import numpy as np
from numba import njit

from tinykernel.training.kernels import (
    LANES,
    backward_group,
    centre_group,
    forward_group,
    forward_group_stored,
    gather_group,
    store_group,
)

__all__ = ["adam", "decide_rows", "learn_slot", "ternarise"]

_ONE = np.float32(1.0)


@njit(cache=True, fastmath=True, nogil=True, error_model="numpy")
def _loss_group(sums, scale, offset, target, weight, rows, n_real, loss_kind, dsums, d_offset):  # type: ignore[no-untyped-def]
    """Turn sums W z into the loss and its gradient; returns loss, hits and d loss / d scale.

    loss_kind 0: cross-entropy over the outputs, or logistic for one output; 1: squared hinge.
    """
    loss = 0.0
    hits = 0.0
    d_scale = 0.0
    for k in range(LANES):
        row = rows[k]
        w = weight[row]
        top = np.float32(-3.0e38)
        best = 0
        for o in range(n_real):
            f = scale * sums[o, k] + offset[o]
            dsums[o, k] = f
            if f > top:
                top = f
                best = o
        if n_real == 1:
            hits += w * ((top > 0) == (target[row, 0] > 0.5))
        else:
            hits += w * (target[row, best] >= 0.5)
        if loss_kind == 1:
            for o in range(n_real):
                wanted = 2.0 * target[row, o] - 1.0
                slack = max(0.0, 1.0 - wanted * dsums[o, k])
                loss += w * slack * slack
                dsums[o, k] = -2.0 * w * wanted * slack
        elif n_real == 1:
            f = dsums[0, k]
            t = target[row, 0]
            loss += w * (max(f, np.float32(0.0)) - f * t + np.log1p(np.exp(-abs(f))))
            dsums[0, k] = w * (_ONE / (_ONE + np.exp(-f)) - t)
        else:
            total = 0.0
            mass = 0.0
            for o in range(n_real):
                total += np.exp(dsums[o, k] - top)
                mass += target[row, o]
            log_total = np.log(total) + top
            for o in range(n_real):
                f = dsums[o, k]
                t = target[row, o]
                loss += w * t * (log_total - f)
                dsums[o, k] = w * (mass * np.exp(f - log_total) - t)
        for o in range(n_real):
            d_scale += dsums[o, k] * sums[o, k]
            d_offset[o] += dsums[o, k]
            dsums[o, k] *= scale
        for o in range(n_real, dsums.shape[0]):
            dsums[o, k] = 0.0
    return loss, hits, d_scale


@njit(cache=True, nogil=True, error_model="numpy")
def learn_slot(  # type: ignore[no-untyped-def]
    slot, n_slots, mixed, target, weight, n_real, loss_kind, rows, starts, seeds, pool, noise,
    diagonal, rate, centre, level, weights, scale, offset, threshold, inverse, slope,
    product, factors, start, width, mean, unit,
    d_diagonal, d_rate, d_centre, d_level, d_weights, d_offset, totals,
):  # fmt: skip
    """Accumulate the gradients of every n_slots-th group of the batch, beginning with `slot`.

    With factors (none before the inputs of the forward pass are integers) `diagonal` holds levels
    and `rate` turns a unit of the integer projections; see `forward_group_stored`.
    """
    m, d = diagonal.shape
    n_outputs = weights.shape[1]
    u = np.empty(d * LANES, dtype=np.float32)
    y = np.empty((m, d * LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    dsums = np.empty((n_outputs, LANES), dtype=np.float32)
    d_diagonal[:] = 0.0
    d_rate[:] = 0.0
    d_centre[:] = 0.0
    d_level[:] = 0.0
    d_weights[:] = 0.0
    d_offset[:] = 0.0
    totals[:] = 0.0
    for group in range(slot, rows.shape[0] // LANES, n_slots):
        part = slice(group * LANES, (group + 1) * LANES)
        gather_group(mixed, rows[part], pool, starts[part], noise, u)
        if factors.shape[0] > 0:
            store_group(u, mean, unit)
            forward_group_stored(
                u, diagonal, product, factors, rate, start, width, weights, seeds[part], threshold,
                inverse, y, sums,
            )  # fmt: skip
            centre_group(u, mean, unit)
        else:
            forward_group(
                u, diagonal, rate, centre, level, weights, seeds[part], threshold, inverse, y, sums,
                np.float32(0.0),
            )  # fmt: skip
        loss, hits, d_scale = _loss_group(
            sums, scale, offset, target, weight, rows[part], n_real, loss_kind, dsums, d_offset
        )
        totals[0] += loss
        totals[1] += hits
        totals[2] += d_scale
        backward_group(
            u, diagonal, rate, centre, level, weights, seeds[part], threshold, inverse, slope,
            y, dsums, d_diagonal, d_rate, d_centre, d_level, d_weights,
        )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def decide_rows(  # type: ignore[no-untyped-def]
    mixed, first, last, diagonal, rate, centre, level, weights, scale, offset, product, factors,
    start, width, mean, unit, decisions
):  # fmt: skip
    """Fill decisions[first:last], shape (rows, outputs), without noise or dropout."""
    m, d = diagonal.shape
    n_outputs = weights.shape[1]
    u = np.empty(d * LANES, dtype=np.float32)
    y = np.empty((m, d * LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    seeds = np.zeros(LANES, dtype=np.uint32)
    rows = np.empty(LANES, dtype=np.int64)
    pool = np.zeros(1, dtype=np.float32)
    none = np.zeros(LANES, dtype=np.int64)
    for begin in range(first, last, LANES):
        for k in range(LANES):
            rows[k] = min(begin + k, last - 1)
        gather_group(mixed, rows, pool, none, np.float32(0.0), u)
        if factors.shape[0] > 0:
            store_group(u, mean, unit)
            forward_group_stored(
                u, diagonal, product, factors, rate, start, width, weights, seeds, np.uint32(0),
                np.float32(1.0), y, sums,
            )  # fmt: skip
        else:
            forward_group(
                u, diagonal, rate, centre, level, weights, seeds, np.uint32(0), np.float32(1.0),
                y, sums, np.float32(0.0),
            )  # fmt: skip
        for k in range(min(LANES, last - begin)):
            for o in range(decisions.shape[1]):
                decisions[begin + k, o] = scale * sums[o, k] + offset[o]


@njit(cache=True, fastmath=True, nogil=True, error_model="numpy")
def adam(value, gradients, first, second, rate, decay, correction1, correction2, factor):  # type: ignore[no-untyped-def]
    """Adam (Kingma & Ba 2015) on one flat parameter; gradients has one row a slot, summed in order.

    beta1 = 0.9, beta2 = 0.999; decay is decoupled weight decay, relative to the rate.
    """
    b1 = np.float32(0.9)
    b2 = np.float32(0.999)
    for i in range(value.shape[0]):
        g = gradients[0, i]
        for slot in range(1, gradients.shape[0]):
            g += gradients[slot, i]
        g *= factor
        first[i] = b1 * first[i] + (_ONE - b1) * g
        second[i] = b2 * second[i] + (_ONE - b2) * g * g
        step = first[i] * correction1 / (np.sqrt(second[i] * correction2) + np.float32(1e-8))
        value[i] -= rate * (step + decay * value[i])


@njit(cache=True, fastmath=True, nogil=True, error_model="numpy")
def ternarise(shadow, cut, n_live, out):  # type: ignore[no-untyped-def]
    """Write sign(shadow) where |shadow| > cut * mean |shadow| of its output, else 0, to out.

    shadow, out: (rows, outputs) float32; the mean is that of n_live rows, the others being 0.
    """
    p, n_outputs = shadow.shape
    mean = np.zeros(n_outputs, dtype=np.float32)
    for j in range(p):
        for o in range(n_outputs):
            mean[o] += abs(shadow[j, o])
    for o in range(n_outputs):
        mean[o] *= cut / n_live
    for j in range(p):
        for o in range(n_outputs):
            w = shadow[j, o]
            out[j, o] = 0.0 if abs(w) <= mean[o] else (_ONE if w > 0 else -_ONE)
