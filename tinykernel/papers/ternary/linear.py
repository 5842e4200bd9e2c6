"""A linear SVM on binary features: where coordinate descent starts (Lei & Lan 2021, (12))."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.compiled import njit


# Inlined, as the kernels of the trainer are: a second copy could add in another order.
@njit(nogil=True, forceinline=True)
def _dot(weights, signs):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for j in range(signs.shape[0]):
        total += weights[j] * np.float32(signs[j])
    return total


@njit(nogil=True)
def linear_svm(signs, targets, costs, orders):  # type: ignore[no-untyped-def]
    """Train a linear SVM with squared hinge loss and l2 penalty by dual coordinate descent.

    Minimises ``||w||^2 / 2 + sum_i costs_i max(0, 1 - y_i w.z_i)^2`` (Hsieh et al., ICML 2008).
    Each row of `orders` says in which order one epoch visits the rows.
    """
    m, p = signs.shape
    weights = np.zeros(p, np.float32)
    dual = np.zeros(m)
    for epoch in range(orders.shape[0]):
        for position in range(m):
            i = orders[epoch, position]
            ridge = 0.5 / costs[i]
            slope = targets[i] * _dot(weights, signs[i]) - 1.0 + ridge * dual[i]
            new = max(0.0, dual[i] - slope / (p + ridge))
            change = np.float32((new - dual[i]) * targets[i])
            dual[i] = new
            if change != 0:
                row = signs[i]
                for j in range(p):
                    weights[j] += change * np.float32(row[j])
    return weights


def ternary_start(weights: NDArray[np.float32], cut: float) -> tuple[NDArray[np.int8], float]:
    """Round float weights to ternary ones; return them and alpha.

    ``w_j = sign(v_j)`` where ``|v_j| > cut * mean |v|``, else 0, and alpha is the mean of the
    magnitudes kept, 0 where there are none. With ``cut = 0`` this is formula (12) of Lei & Lan
    2021, and weights of exactly 0 become +1; 0.7 is the rule of ternary weight networks (Li, Zhang
    & Liu 2016).

    >>> ternary_start(np.array([3.0, -0.5, -1.0], dtype=np.float32), 0.6)
    (array([ 1,  0, -1], dtype=int8), 2.0)
    """
    size = np.abs(weights.astype(np.float64))
    kept = size > cut * size.mean() if cut else np.ones(size.shape, dtype=bool)
    ternary = np.where(weights < 0, -1, 1) * kept
    return ternary.astype(np.int8), float(size[kept].mean()) if kept.any() else 0.0
