"""The integer model of learned components."""

from __future__ import annotations

import numpy as np

from tinykernel.model.integer import IntegerModel
from tinykernel.model.quantization.conversion import Stored
from tinykernel.model.quantization.outputs import Sums, kernel_model
from tinykernel.model.quantization.phases import quantize_windows
from tinykernel.training.components.learner import Learner
from tinykernel.training.inputs import SharedTransform
from tinykernel.training.trainset import TrainSet


def stored_model(
    learner: Learner, transform: SharedTransform, data: TrainSet, *, small_code: bool
) -> IntegerModel:
    """Return the integer model of a quantized learner."""
    forward, n_outputs = learner.forward(), learner.n_outputs
    windows, shape = forward.windows, (learner.n_blocks, learner.dimension)
    weights = forward.weights[:, :n_outputs].T.astype(np.int8).reshape(-1, *shape)
    blocks = np.flatnonzero(np.any(weights != 0, axis=(0, 2)))
    if not blocks.size:
        blocks = np.zeros(1, dtype=np.int64)
    start, width, rate = (
        part.astype(np.float64).reshape(shape)[blocks]
        for part in (windows.start, windows.width, windows.rate)
    )
    rounded = quantize_windows(start, width, rate)
    halve = tuple(factor < 1 for factor in windows.factors.tolist())
    levels, kind = windows.diagonal[blocks].astype(np.int8), learner.layout.diagonal_kind
    stored = Stored(
        transform.live_sign, transform.permutation, levels, kind, (transform.halve, halve), rounded
    )
    components, ternary, constant = stored.components(weights[:, blocks], small_code)
    scale = np.full(n_outputs, float(forward.scale))
    offset = forward.offset[:n_outputs].astype(np.float64) + scale * constant
    sums, linear = Sums(scale, offset), learner.stored_linear()
    if linear is not None:
        levels, worth, moved = linear
        # The trainer's unit of an input is 2**(bits - 1) levels, from 0.
        worth *= 2.0 ** (transform.scaler.bits - 1)
        moved += worth * (levels.astype(np.float64) * transform.inputs.centre).sum(axis=1)
        sums = Sums(scale, offset + moved, levels, worth * transform.inputs.step)
    return kernel_model(transform.scaler, components, ternary, sums, data.meaning)
