"""The convex losses of formula (6) of Lei & Lan 2021, as functions of the margin ``m = y f``.

=============  =============================
hinge          ``max(0, 1 - m)``
squared_hinge  ``max(0, 1 - m)^2``
logistic       ``log(1 + exp(-m))``
squared        ``(1 - m)^2``, which is ``(y - f)^2``
=============  =============================
"""

from __future__ import annotations

import numpy as np

from tinykernel.compiled import njit

#: Names of the losses; compiled code takes the position.
LOSSES = ("hinge", "squared_hinge", "logistic", "squared")


@njit(nogil=True)
def loss_value(loss, margin):  # type: ignore[no-untyped-def]
    """Compute a loss; `loss` is its position in `LOSSES`."""
    if loss == 2:
        # Never the exponential of a large number.
        return np.log1p(np.exp(-abs(margin))) + max(0.0, -margin)
    short = 1.0 - margin
    if loss == 3:
        return short * short
    short = max(0.0, short)
    return short if loss == 0 else short * short


@njit(nogil=True)
def loss_slope(loss, margin):  # type: ignore[no-untyped-def]
    """Compute the derivative of a loss by the margin; the left one where the hinge bends."""
    if loss == 0:
        return -1.0 if margin <= 1.0 else 0.0
    if loss == 1:
        return -2.0 * max(0.0, 1.0 - margin)
    if loss == 2:
        decay = np.exp(-abs(margin))
        return -decay / (1.0 + decay) if margin > 0.0 else -1.0 / (1.0 + decay)
    return -2.0 * (1.0 - margin)
