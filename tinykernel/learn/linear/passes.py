"""Compiled kernels of the linear part: forward pass and gradients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import inlined, njit
from tinykernel.base.hadamard import LANES
from tinykernel.learn.loss import loss_group
from tinykernel.learn.sums import combine_lanes, lane_dot

#: Gradients of a batch are added up in so many parts, whatever the number of threads.
SLOTS = 4


class LinearBatch(NamedTuple):
    """Rows of a mini-batch, and the linear part: ``scale * (V (q - mean) unit) + offset``."""

    rows: NDArray[np.int64]  # (k,): the rows that are in the batch.
    target: NDArray[np.float32]  # (n, n_outputs)
    weight: NDArray[np.float32]  # (n,)
    losses: NDArray[np.float32]  # (n_outputs,) or (0,)
    linear: NDArray[np.float32]  # (n_inputs, n_outputs): V.
    scale: np.float32
    offset: NDArray[np.float32]  # (n_outputs,)
    mean: NDArray[np.float32]  # (n_inputs,)
    unit: np.float32
    keep: NDArray[np.bool_]  # (k / LANES, n_inputs, LANES) or (0, 0, 0): dropout mask.
    inverse: np.float32  # one over the share of inputs not dropped.


class LinearGradients(NamedTuple):
    """Gradients of a slot, or of all of them; totals (2,): loss, d scale."""

    linear: NDArray[np.float32]
    offset: NDArray[np.float32]
    totals: NDArray[np.float64]


@inlined
def gather_inputs(inputs, rows, mean, unit, f):  # type: ignore[no-untyped-def]
    """Copy LANES rows side by side, less `mean` and times `unit`: f (inputs, LANES)."""
    for lane in range(LANES):
        row = inputs[rows[lane]]
        for i in range(f.shape[0]):
            f[i, lane] = (np.float32(row[i]) - mean[i]) * unit


@inlined
def linear_forward(f, linear, sums):  # type: ignore[no-untyped-def]
    """Compute sums (outputs, LANES) of f (inputs, LANES) and linear (inputs, outputs)."""
    for o in range(sums.shape[0]):
        combine_lanes(linear[:, o], f, sums[o])


@inlined
def linear_backward(f, dsums, d_linear):  # type: ignore[no-untyped-def]
    """Add the gradient of the linear part."""
    for i in range(f.shape[0]):
        for o in range(dsums.shape[0]):
            d_linear[i, o] += lane_dot(f[i], dsums[o])


@inlined
def learn_group(f, group, batch, gradients, sums, dsums):  # type: ignore[no-untyped-def]
    """Add the gradients of one group, whose inputs are f (inputs, LANES); fills sums and dsums."""
    if batch.keep.shape[0] > 0:  # dropped inputs are at their mean, the others scaled up
        keep, inverse = batch.keep[group], batch.inverse
        for i in range(f.shape[0]):
            for lane in range(LANES):
                f[i, lane] *= inverse * np.float32(keep[i, lane])
    linear_forward(f, batch.linear, sums)
    rows, n_real = batch.rows[group * LANES : (group + 1) * LANES], batch.target.shape[1]
    known = batch.target, batch.weight, batch.losses, rows, n_real
    loss, d_scale = loss_group(sums, batch.scale, batch.offset, *known, dsums, gradients.offset)
    gradients.totals[0] += loss
    gradients.totals[1] += d_scale
    linear_backward(f, dsums, gradients.linear)


@njit(nogil=True, error_model="numpy")
def learn_rows(begin, end, inputs, places, batch, gradients, d_inputs):  # type: ignore[no-untyped-def]
    """Add up the gradients of every group of the batch whose slot is in this range.

    `places` are the rows of the batch among `inputs`, `gradients` those of all slots. Gradients of
    the inputs go to d_inputs, where that has rows.
    """
    n_inputs, n_outputs = batch.linear.shape
    f = np.empty((n_inputs, LANES), dtype=np.float32)
    sums = np.empty((n_outputs, LANES), dtype=np.float32)
    dsums = np.empty((n_outputs, LANES), dtype=np.float32)
    for slot in range(begin, end):
        linear, offset, totals = gradients
        of_slot = LinearGradients(linear[slot], offset[slot], totals[slot])
        for group in range(slot, places.shape[0] // LANES, SLOTS):
            first = group * LANES
            rows = places[first : first + LANES]
            gather_inputs(inputs, rows, batch.mean, batch.unit, f)
            learn_group(f, group, batch, of_slot, sums, dsums)
            if d_inputs.shape[0] > 0:
                for i in range(n_inputs):
                    combine_lanes(batch.linear[i], dsums, f[i])
                for k in range(LANES):
                    for i in range(n_inputs):
                        d_inputs[first + k, i] = f[i, k] * batch.unit


@njit(nogil=True, error_model="numpy")
def decide_linear(begin, end, inputs, linear, scale, offset, mean, unit, out):  # type: ignore[no-untyped-def]
    """Fill out[begin:end], shape (n, outputs)."""
    for n in range(begin, end):
        for o in range(linear.shape[1]):
            total = np.float32(0)
            for i in range(linear.shape[0]):
                total += linear[i, o] * ((np.float32(inputs[n, i]) - mean[i]) * unit)
            out[n, o] = scale * total + offset[o]
