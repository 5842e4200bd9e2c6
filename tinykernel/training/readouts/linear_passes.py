"""Compiled kernels of the linear part: inputs side by side, dot products, and their gradients."""

from __future__ import annotations

import numpy as np

from tinykernel.hadamard import LANES
from tinykernel.training.eights import inlined, lane_dot


@inlined
def gather_inputs(inputs, rows, n, mean, unit, f):  # type: ignore[no-untyped-def]
    """Copy n rows side by side, less `mean` and times `unit`: f (inputs, LANES)."""
    for lane in range(n):
        row = inputs[rows[lane]]
        for i in range(f.shape[0]):
            f[i, lane] = (np.float32(row[i]) - mean[i]) * unit


@inlined
def linear_forward(f, linear, sums):  # type: ignore[no-untyped-def]
    """Compute sums (outputs, LANES) of f (inputs, LANES) and linear (inputs, outputs)."""
    sums[:] = 0
    for i in range(f.shape[0]):
        for o in range(sums.shape[0]):
            v = linear[i, o]
            for lane in range(LANES):
                sums[o, lane] += v * f[i, lane]


@inlined
def linear_backward(f, dsums, d_linear):  # type: ignore[no-untyped-def]
    """Add the gradient of the linear part."""
    for i in range(f.shape[0]):
        for o in range(dsums.shape[0]):
            d_linear[i, o] += lane_dot(f[i], dsums[o])


@inlined
def leave_out(f, keep, inverse):  # type: ignore[no-untyped-def]
    """Set the inputs that are left out to their mean, and give the others more weight."""
    for i in range(f.shape[0]):
        for lane in range(LANES):
            f[i, lane] *= inverse * np.float32((keep[i] >> np.uint32(lane)) & np.uint32(1))
