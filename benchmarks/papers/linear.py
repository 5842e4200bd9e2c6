"""An exact linear SVM for many rows of features: squared hinge, one versus rest, by L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

__all__ = ["LinearOutputs", "fit_linear"]

# Small enough for a block to stay in the cache between the two products that it takes part in.
_ROWS_AT_ONCE = 512
# Signs in int8 are widened once where that fits, not in every step.
_WIDEN_BYTES = 1 << 30


@dataclass(frozen=True)
class LinearOutputs:
    """Outputs ``Z weights + offset``; one for two classes."""

    weights: np.ndarray
    offset: np.ndarray

    def codes(self, Z: np.ndarray) -> np.ndarray:
        """Return the position of the class of every row."""
        parts = []
        for i in range(0, Z.shape[0], _ROWS_AT_ONCE):
            values = Z[i : i + _ROWS_AT_ONCE].astype(np.float32) @ self.weights + self.offset
            one = values.shape[1] == 1
            parts.append(values[:, 0] > 0 if one else values.argmax(axis=1))
        return np.concatenate(parts).astype(np.int64)


def fit_linear(
    Z: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    regularization: float,
    start: LinearOutputs | None = None,
    max_iter: int = 100,
) -> LinearOutputs:
    """Minimise ``1/n sum max(0, 1 - y f)^2 + lambda ||w||^2`` for every output, f = w.z + b.

    This is (6) of Lei & Lan 2021 without the constraint on w: squared hinge and l2. `Z` may be
    int8.
    """
    n, p = Z.shape
    if 4 * n * p <= _WIDEN_BYTES:
        Z = Z.astype(np.float32, copy=False)
    one = n_classes == 2
    c = 1 if one else n_classes
    Y = (
        2.0 * codes[:, None] - 1 if one else np.where(codes[:, None] == np.arange(c), 1, -1)
    ).astype(np.float32)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W, b = flat[:-c].reshape(p, c), flat[-c:]
        gradient = np.zeros((p, c))
        slope, loss = np.zeros(c), 0.0
        single = W.astype(np.float32)
        for i in range(0, n, _ROWS_AT_ONCE):
            part = Z[i : i + _ROWS_AT_ONCE].astype(np.float32, copy=False)
            target = Y[i : i + _ROWS_AT_ONCE]
            short = np.maximum(1 - target * (part @ single + b.astype(np.float32)), 0)
            loss += float(np.sum(short * short, dtype=np.float64))
            short *= -2 * target
            gradient += part.T @ short
            slope += short.sum(axis=0, dtype=np.float64)
        value = loss / n + regularization * float(np.sum(W * W))
        gradient = gradient / n + 2 * regularization * W
        return value, np.concatenate([gradient.ravel(), slope / n])

    flat = np.zeros((p + 1) * c)
    if start is not None:
        flat = np.concatenate([start.weights.ravel(), start.offset]).astype(np.float64)
    options = {"maxiter": max_iter, "maxcor": 10, "ftol": 1e-6}
    best = minimize(objective, flat, jac=True, method="L-BFGS-B", options=options).x
    return LinearOutputs(best[:-c].reshape(p, c).astype(np.float32), best[-c:].astype(np.float32))
