"""Logistic regression in steps that share one factored matrix.

With few inputs squared errors miss a class between two others; the likelihood does not. With Z the
standardised inputs, Y the targets 0 and 1, and P the softmax (of one output the logistic function)
of the outputs of weights W, the Hessian of the mean log-likelihood of an output is at most
``Z' Z / 2``, of one output ``Z' Z / 4`` (Boehning, Ann. Inst. Statist. Math. 1992). So one matrix
serves all steps, with momentum (Nesterov, Soviet Math. Dokl. 1983)::

    W += 2 (Z' Z + penalty)^-1 (Z' (Y - P) - penalty W / 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.compiled import njit
from tinykernel.elementary import exp, logs
from tinykernel.training.matrices import substitute
from tinykernel.training.readouts.closed_form import added, combined, weighted_mean

#: 100 steps classify held-out beats and movements no better.
STEPS = 30

_Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Standard:
    """How inputs are standardised, (n_inputs,) each, and U with ``U' U = Z' Z + penalty``."""

    mean: _Doubles
    unit: _Doubles
    upper: _Doubles
    penalty: float


def likeliest(
    inputs: NDArray[Any], targets: NDArray[Any], share: _Doubles, standard: Standard
) -> tuple[_Doubles, _Doubles, bool]:
    """Return weights of standardised inputs, (n_inputs, n_outputs), and offsets (n_outputs,).

    Inputs (n, n_inputs) are integers, targets (n, n_outputs) -1 and 1, `share` (n,) row weights.
    The last value says whether Ctrl-C ended the steps; in the first step it is raised.
    """
    truth = (targets.astype(np.float64) + 1.0) / 2
    bound = 0.5 if truth.shape[1] > 1 else 0.25
    odds = weighted_mean(truth, share)
    offset = logs(odds if truth.shape[1] > 1 else odds / (1 - odds))
    weights = np.zeros((inputs.shape[1], truth.shape[1]))
    before = weights, offset
    interrupted = False
    try:
        for step in range(STEPS):
            progress.report("weighing", step, STEPS)
            momentum = step / (step + 3)
            there = weights + momentum * (weights - before[0])
            level = offset + momentum * (offset - before[1])
            missed = truth.copy()
            _take_chances(inputs, there / standard.unit[:, None], standard.mean, level, missed)
            total = weighted_mean(missed, share)
            slope = combined(inputs, missed * share[:, None]) / added(share)
            slope = (slope - standard.mean[:, None] * total) / standard.unit[:, None]
            slope -= bound * standard.penalty * there
            before = weights, offset
            weights = there + substitute(standard.upper, slope) / bound
            offset = level + total / bound
    except KeyboardInterrupt:
        if not weights.any():
            raise
        interrupted = True
    progress.report("weighing", STEPS, STEPS)
    return weights, offset, interrupted


@njit(nogil=True)
def _take_chances(inputs, weights, mean, offset, truth):  # type: ignore[no-untyped-def]
    """Subtract the probabilities of classes from truth (n, n_outputs)."""
    n_outputs = weights.shape[1]
    start, sums = offset.copy(), np.empty(n_outputs)
    for j in range(weights.shape[0]):
        for o in range(n_outputs):
            start[o] -= mean[j] * weights[j, o]
    for i in range(inputs.shape[0]):
        sums[:] = start
        for j in range(weights.shape[0]):
            for o in range(n_outputs):
                sums[o] += inputs[i, j] * weights[j, o]
        most = max(sums.max(), 0.0) if n_outputs == 1 else sums.max()
        total = exp(-most) if n_outputs == 1 else 0.0
        for o in range(n_outputs):
            sums[o] = exp(sums[o] - most)
            total += sums[o]
        for o in range(n_outputs):
            truth[i, o] -= sums[o] / total
