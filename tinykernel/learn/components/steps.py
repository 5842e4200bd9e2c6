"""Compiled steps of the trainer: gradients of a mini-batch, decisions of many rows, and updates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import inlined, njit
from tinykernel.base.hadamard import LANES
from tinykernel.learn.components.passes import (
    OUTPUT_MULTIPLE,
    backward_group,
    centre_group,
    forward_group,
    forward_group_stored,
    gather_group,
    hash_keep,
    store_group,
)
from tinykernel.learn.linear.passes import gather_inputs, linear_backward, linear_forward
from tinykernel.learn.loss import loss_group

_ONE = np.float32(1.0)


class Batch(NamedTuple):
    """Rows of a mini-batch."""

    mixed: NDArray[np.float32]  # (n, d)
    inputs: NDArray[Any]  # (n, n_features) or (0, 0): quantized inputs, for the linear part.
    target: NDArray[np.float32]  # (n, n_outputs)
    weight: NDArray[np.float32]  # (n,)
    chosen: NDArray[np.int64]  # (k,): the rows in the batch.


class Noise(NamedTuple):
    """Random noise and dropout of a mini-batch."""

    pool: NDArray[np.float32]  # normal numbers.
    starts: NDArray[np.int64]  # (k,): where the numbers of a row begin in the pool.
    size: np.float32  # factor of the numbers.
    seeds: NDArray[np.uint32]  # (k,): of the dropout of a row.
    threshold: np.uint32  # share of dropped inputs, times 2**32.
    inverse: np.float32  # one over the share of the other inputs.


class Outputs(NamedTuple):
    """The read-out: ``scale * (W z + V (q - centre) worth) + offset``."""

    weights: NDArray[np.float32]  # (m * d, outputs): W.
    scale: np.float32
    offset: NDArray[np.float32]  # (outputs,)
    linear: NDArray[np.float32]  # (n_features, outputs) or (0, 0): V.
    centre_q: NDArray[np.float32]  # (n_features,)
    worth_q: np.float32


class Gradients(NamedTuple):
    """Gradients of a slot, of the shapes of the parameters; totals (2,): loss, d scale."""

    diagonal: NDArray[np.float32]
    rate: NDArray[np.float32]
    centre: NDArray[np.float32]
    level: NDArray[np.float32]
    weights: NDArray[np.float32]
    offset: NDArray[np.float32]
    linear: NDArray[np.float32]
    totals: NDArray[np.float64]


@inlined
def forward(u, windows, weights, y, sums):  # type: ignore[no-untyped-def]
    """Fill y and sums from one group: in floats, or with factors in the firmware's integers."""
    w = windows
    if w.factors.shape[0] > 0:
        store_group(u, w.mean, w.unit)
        forward_group_stored(u, w, weights, y, sums)
    else:
        forward_group(u, w, weights, y, sums)


@njit(nogil=True, error_model="numpy")
def learn_slot(slot, n_slots, batch, noise, windows, outputs, slope, losses, n_real, gradients):  # type: ignore[no-untyped-def]
    """Add up the gradients of every n_slots-th group of the batch, from group `slot`.

    With `windows.factors` the forward pass computes in integers (`forward_group_stored`).
    `slope` is k of the surrogate derivative, `n_real` the number of outputs without padding.
    """
    w = windows
    weights, linear = outputs.weights, outputs.linear
    d_linear, d_offset, totals = gradients.linear, gradients.offset, gradients.totals
    m, d = w.diagonal.shape
    n_outputs = weights.shape[1]
    u = np.empty(d * LANES, dtype=np.float32)
    y = np.empty((m, d * LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    dsums = np.empty((n_outputs, LANES), dtype=np.float32)
    q = np.empty((linear.shape[0], LANES), dtype=np.float32)
    dots = np.empty((n_real, LANES), dtype=np.float32)
    for group in range(slot, batch.chosen.shape[0] // LANES, n_slots):
        part = slice(group * LANES, (group + 1) * LANES)
        rows, seeds = batch.chosen[part], noise.seeds[part]
        gather_group(batch.mixed, rows, noise.pool, noise.starts[part], noise.size, u)
        forward(u, w, weights, y, sums)
        if w.factors.shape[0] > 0:
            centre_group(u, w.mean, w.unit)
        if linear.shape[0] > 0:
            gather_inputs(batch.inputs, rows, outputs.centre_q, outputs.worth_q, q)
            if noise.threshold > 0:
                flat = q.reshape(-1)
                for i in range(linear.shape[0]):
                    place = m * d + i
                    hash_keep(flat, i * LANES, seeds, place, noise.threshold, noise.inverse)
            linear_forward(q, linear, dots)
            for o in range(n_real):
                for k in range(LANES):
                    sums[o, k] += dots[o, k]
        known = batch.target, batch.weight, losses, rows, n_real
        loss, d_scale = loss_group(sums, outputs.scale, outputs.offset, *known, dsums, d_offset)
        if linear.shape[0] > 0:
            linear_backward(q, dsums[:n_real], d_linear)
        totals[0] += loss
        totals[1] += d_scale
        backward_group(u, w, weights, slope, y, dsums, gradients)


@njit(nogil=True, error_model="numpy")
def decide_rows(mixed, inputs, first, last, windows, outputs, decisions):  # type: ignore[no-untyped-def]
    """Fill decisions[first:last], shape (rows, outputs), without noise."""
    m, d = windows.diagonal.shape
    weights, linear = outputs.weights, outputs.linear
    u = np.empty(d * LANES, dtype=np.float32)
    y = np.empty((m, d * LANES), dtype=np.float32)
    sums = np.empty((weights.shape[1], LANES), dtype=np.float32)
    rows = np.empty(LANES, dtype=np.int64)
    pool = np.zeros(1, dtype=np.float32)
    none = np.zeros(LANES, dtype=np.int64)
    q = np.empty((linear.shape[0], LANES), dtype=np.float32)
    dots = np.zeros((decisions.shape[1], LANES), dtype=np.float32)
    for begin in range(first, last, LANES):
        for k in range(LANES):
            rows[k] = min(begin + k, last - 1)
        gather_group(mixed, rows, pool, none, np.float32(0.0), u)
        forward(u, windows, weights, y, sums)
        if linear.shape[0] > 0:
            gather_inputs(inputs, rows, outputs.centre_q, outputs.worth_q, q)
            linear_forward(q, linear, dots)
        for k in range(min(LANES, last - begin)):
            for o in range(decisions.shape[1]):
                total = outputs.scale * (sums[o, k] + dots[o, k])
                decisions[begin + k, o] = total + outputs.offset[o]


@njit(nogil=True, error_model="numpy")
def adam(values, gradients, firsts, seconds, ends, rates, correction1, correction2, factor):  # type: ignore[no-untyped-def]
    """Update parameters by Adam (Kingma & Ba 2015), beta 0.9, 0.999; adds up rows of gradients.

    Parameter k is ``values[ends[k] : ends[k + 1]]``, and stays if its rate is 0.
    """
    b1 = np.float32(0.9)
    b2 = np.float32(0.999)
    for k in range(rates.size):
        rate, place = rates[k], slice(ends[k], ends[k + 1])
        if rate <= 0:
            continue
        value, first, second = values[place], firsts[place], seconds[place]
        gradient = gradients[0, place]
        for slot in range(1, gradients.shape[0]):
            gradient += gradients[slot, place]
        for i in range(value.size):
            g = gradient[i] * factor
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
    least = np.zeros(OUTPUT_MULTIPLE, dtype=np.float32)
    for first in range(0, n_outputs, OUTPUT_MULTIPLE):
        least[:] = 0.0
        if cut > 0:
            for j in range(p):
                for o in range(OUTPUT_MULTIPLE):
                    least[o] += abs(shadow[j, first + o])
            least *= cut / n_live
        for j in range(p):
            for o in range(OUTPUT_MULTIPLE):
                w = shadow[j, first + o]
                sign = _ONE if w > 0 else -_ONE
                out[j, first + o] = np.float32(0.0) if abs(w) <= least[o] else sign
