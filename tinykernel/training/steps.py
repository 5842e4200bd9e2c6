"""Compiled steps of the trainer: a mini-batch, the decisions of many rows, and the update."""

from __future__ import annotations

import numpy as np

from tinykernel.compiled import njit
from tinykernel.training.kernels import (
    LANES,
    backward_group,
    centre_group,
    forward_group,
    forward_group_stored,
    gather_group,
    hash_keep,
    store_group,
)
from tinykernel.training.linear.kernels import gather_inputs, linear_backward, linear_forward
from tinykernel.training.loss import loss_group

_ONE = np.float32(1.0)


@njit(nogil=True, error_model="numpy")
def learn_slot(  # type: ignore[no-untyped-def]
    slot,
    n_slots,
    mixed,
    target,
    weight,
    losses,
    n_real,
    rows,
    starts,
    seeds,
    pool,
    noise,
    diagonal,
    rate,
    centre,
    level,
    weights,
    scale,
    offset,
    threshold,
    inverse,
    slope,
    product,
    factors,
    start,
    width,
    mean,
    unit,
    inputs,
    linear,
    centre_q,
    worth_q,
    threshold_q,
    inverse_q,
    d_diagonal,
    d_rate,
    d_centre,
    d_level,
    d_weights,
    d_offset,
    d_linear,
    totals,
):
    """Accumulate the gradients of every n_slots-th group of the batch, beginning with `slot`.

    With factors (none before the inputs of the forward pass are integers) `diagonal` holds levels
    and `rate` turns a unit of the integer projections; see `forward_group_stored`. linear
    (n_features, outputs) or (0, 0) adds ``linear * (inputs - centre_q) * worth_q`` to the sums.
    """
    m, d = diagonal.shape
    n_outputs = weights.shape[1]
    u = np.empty(d * LANES, dtype=np.float32)
    y = np.empty((m, d * LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    dsums = np.empty((n_outputs, LANES), dtype=np.float32)
    q = np.empty((linear.shape[0], LANES), dtype=np.float32)
    dots = np.empty((n_real, LANES), dtype=np.float32)
    d_linear[:] = 0.0
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
                u,
                diagonal,
                product,
                factors,
                rate,
                start,
                width,
                weights,
                seeds[part],
                threshold,
                inverse,
                y,
                sums,
            )
            centre_group(u, mean, unit)
        else:
            forward_group(
                u,
                diagonal,
                rate,
                centre,
                level,
                weights,
                seeds[part],
                threshold,
                inverse,
                y,
                sums,
            )
        if linear.shape[0] > 0:
            gather_inputs(inputs, rows[part], LANES, centre_q, worth_q, q)
            if threshold_q > 0:
                # Other numbers than those of the components.
                flat = q.reshape(-1)
                for i in range(linear.shape[0]):
                    hash_keep(flat, i * LANES, seeds[part], m * d + i, threshold_q, inverse_q)
            linear_forward(q, linear, dots)
            sums[:n_real] += dots
        loss, d_scale = loss_group(
            sums, scale, offset, target, weight, losses, rows[part], n_real, dsums, d_offset
        )
        if linear.shape[0] > 0:
            linear_backward(q, dsums[:n_real], d_linear)
        totals[0] += loss
        totals[1] += d_scale
        backward_group(
            u,
            diagonal,
            rate,
            centre,
            level,
            weights,
            seeds[part],
            threshold,
            inverse,
            slope,
            y,
            dsums,
            d_diagonal,
            d_rate,
            d_centre,
            d_level,
            d_weights,
        )


@njit(nogil=True, error_model="numpy")
def decide_rows(  # type: ignore[no-untyped-def]
    mixed,
    first,
    last,
    diagonal,
    rate,
    centre,
    level,
    weights,
    scale,
    offset,
    product,
    factors,
    start,
    width,
    mean,
    unit,
    inputs,
    linear,
    centre_q,
    worth_q,
    decisions,
):
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
    q = np.empty((linear.shape[0], LANES), dtype=np.float32)
    dots = np.zeros((decisions.shape[1], LANES), dtype=np.float32)
    for begin in range(first, last, LANES):
        for k in range(LANES):
            rows[k] = min(begin + k, last - 1)
        gather_group(mixed, rows, pool, none, np.float32(0.0), u)
        if factors.shape[0] > 0:
            store_group(u, mean, unit)
            forward_group_stored(
                u,
                diagonal,
                product,
                factors,
                rate,
                start,
                width,
                weights,
                seeds,
                np.uint32(0),
                np.float32(1.0),
                y,
                sums,
            )
        else:
            forward_group(
                u,
                diagonal,
                rate,
                centre,
                level,
                weights,
                seeds,
                np.uint32(0),
                np.float32(1.0),
                y,
                sums,
            )
        if linear.shape[0] > 0:
            gather_inputs(inputs, rows, LANES, centre_q, worth_q, q)
            linear_forward(q, linear, dots)
        for k in range(min(LANES, last - begin)):
            for o in range(decisions.shape[1]):
                decisions[begin + k, o] = scale * (sums[o, k] + dots[o, k]) + offset[o]


@njit(nogil=True, error_model="numpy")
def adam(value, gradients, first, second, rate, correction1, correction2, factor):  # type: ignore[no-untyped-def]
    """Adam (Kingma & Ba 2015) on one flat parameter; gradients has one row a slot, summed in order.

    beta1 = 0.9, beta2 = 0.999.
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
        root = np.sqrt(second[i] * correction2) + np.float32(1e-8)
        value[i] -= rate * (first[i] * correction1 / root)


@njit(nogil=True, error_model="numpy")
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
