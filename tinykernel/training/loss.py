"""What the trainer minimises: the cross-entropy of the softmax of the outputs, by row weight.

With two classes there is one output f, and the probability of the second class is
``1 / (1 + exp(-f))``. Everything that depends on the choice of the loss stands here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.training.kernels import LANES, inlined

__all__ = ["judge", "loss_group", "prior", "targets_of"]

_ONE = np.float32(1.0)
_TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)

_Floats = NDArray[np.float32]


@inlined
def loss_group(sums, scale, offset, target, weight, rows, n_real, dsums, d_offset):  # type: ignore[no-untyped-def]
    """Turn sums W z into the loss and its gradient; returns loss and d loss / d scale."""
    loss = 0.0
    d_scale = 0.0
    for k in range(LANES):
        row = rows[k]
        w = weight[row]
        top = np.float32(-3.0e38)
        for o in range(n_real):
            f = scale * sums[o, k] + offset[o]
            dsums[o, k] = f
            top = max(top, f)
        if n_real == 1:
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
    return loss, d_scale


def targets_of(
    codes: NDArray[np.int64], n_classes: int, teacher: _Floats | None, share: float
) -> _Floats:
    """Return what the outputs should be: the labels, or a mix with a teacher's; (n, outputs)."""
    hot = np.zeros((codes.size, n_classes), dtype=np.float32)
    hot[np.arange(codes.size), codes] = 1.0
    if teacher is not None:
        hot += np.float32(share) * (teacher - hot)
    return np.ascontiguousarray(hot[:, 1:] if n_classes == 2 else hot)


def prior(targets: _Floats, weight: _Floats) -> _Floats:
    """Return the offsets that give every row the class shares of the training rows."""
    n_outputs = targets.shape[1]
    # No matrix product: its rounding may depend on the number of threads.
    total = np.einsum("i,ij->j", weight, targets, dtype=np.float64)
    share = np.clip(total / weight.sum(dtype=np.float64), 1e-4, 1 - 1e-4)
    log_odds = np.log(share) - np.log(1 - share) if n_outputs == 1 else np.log(share)
    return np.asarray(log_odds - (log_odds.mean() if n_outputs > 1 else 0), np.float32)


def judge(decisions: _Floats, codes: NDArray[np.int64], weight: _Floats) -> tuple[float, float]:
    """Return the loss, at the best temperature, and the accuracy; both by weight."""
    values = decisions.astype(np.float64)
    if values.shape[1] == 1:
        values = np.concatenate([-values / 2, values / 2], axis=1)
    values -= values.max(axis=1, keepdims=True)
    rows = np.arange(codes.size)
    losses = []
    for temperature in _TEMPERATURES:
        scaled = values * temperature
        lost = np.log(np.exp(scaled).sum(axis=1)) - scaled[rows, codes]
        losses.append(np.average(lost, weights=weight))
    hit = values.argmax(axis=1) == codes
    return float(min(losses)), float(np.average(hit, weights=weight))
