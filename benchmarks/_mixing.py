"""Guided changes of B and P, a trial of `ablation`: by the gradient, kept if the loss falls.

``u = P H B x`` is linear in B and in P, so the gradient of the loss with respect to u says how much
each change promises, to first order. With D = sum over rows of dL/du_j u_k, an exchange of places j
and k promises ``D_jj + D_kk - D_jk - D_kj``; a flip of sign i promises twice the sum over rows of
B_i x_i (H P' dL/du)_i. Those that promise most for their size are tried, many at once, then one by
one, by the exact loss of rows that stay the same. What is kept never raises it.

Or B is learned as weights are, straight through: its signs are those of float shadows, which Adam
moves by the gradient with respect to B.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.hadamard import fwht, fwht_halving
from tinykernel.learn.components.learner import Learner
from tinykernel.learn.inputs import SharedTransform

__all__ = ["Guided", "Places"]

_MOST_ROWS, _AT_ONCE, _SLOPE = 1024, 16, 2.0
# Straight-through steps an epoch, their rows and size; shadows begin at -1 / 2 and 1 / 2.
_STEPS, _STEP_ROWS, _STEP = 16, 256, 0.05
_Array = NDArray[Any]


@dataclass(frozen=True)
class Places:
    """A permutation that is no orbit, of which no model is stored."""

    order: _Array

    def indices(self, dimension: int) -> _Array:
        """Return the source of each output."""
        return self.order.copy()


@dataclass(eq=False)
class Guided:
    """Signs and places of a learner whose other parameters stay as they are."""

    learner: Learner
    transform: SharedTransform
    q: _Array  # (n, n_features): the quantized inputs of its rows.
    kept: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.learner.recipe.seed)
        self.fixed_rows = self.rows = self.rng.permutation(len(self.q))[:_MOST_ROWS]
        self.shadow = self.transform.live_sign / 2
        self.moments = np.zeros((2, self.shadow.size))
        self.updates = 0

    def improve(self, how: str) -> None:
        """Try "flips" or "exchanges", or move signs "straight through"."""
        self.rows = self.fixed_rows
        if "flips" in how:
            self._flip()
        if "exchanges" in how:
            self._exchange()
        if "straight" in how:
            for _ in range(_STEPS):
                self._step()

    def _loss(self, mixed: _Array, gradients: bool = False) -> tuple[float, _Array]:
        """Return the mean loss of the rows, and its derivatives by their mixed values."""
        learner, target = self.learner, self.learner.targets[self.rows].astype(float)
        windows, outputs = learner.forward()
        m, d = windows.diagonal.shape
        weights = outputs.weights[:, : learner.n_outputs].astype(float)
        y = fwht(windows.diagonal * mixed[:, np.newaxis].astype(float)).reshape(len(mixed), -1)
        phase = 2 * np.pi * (y * windows.rate + windows.centre)
        s = np.cos(phase) + windows.level
        scale = float(outputs.scale)
        f = scale * np.where(s > 0, 1, -1) @ weights + outputs.offset[: learner.n_outputs]
        if f.shape[1] == 1:  # two classes
            f, target = np.hstack([np.zeros_like(f), f]), np.hstack([1 - target, target])
        shares = np.exp(f - f.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        loss = -float((target * np.log(np.maximum(shares, 1e-30))).sum(axis=1).mean())
        if not gradients:
            return loss, mixed
        d_f = (shares - target)[:, -learner.n_outputs :] / len(mixed)
        d_s = scale * d_f @ weights.T * _SLOPE / (1 + (_SLOPE * s) ** 2 / 2) ** 2
        d_y = -2 * np.pi * np.sin(phase) * windows.rate * d_s
        back = fwht(d_y.reshape(-1, m, d)) * windows.diagonal
        return loss, back.sum(axis=1)

    def _by_signs(self) -> tuple[float, _Array, _Array, float]:
        """Return the loss, its derivatives by B, the quantized inputs, and what a unit is worth."""
        q, transform = self.q[self.rows].astype(np.float64), self.transform
        if self.learner.layout.start_bits:
            q -= self.q.mean(axis=0)
        d, gather = transform.dimension, transform.permutation.indices(transform.dimension)
        unit = 2.0 ** (1 - transform.scaler.bits) / np.sqrt(d)
        loss, slopes = self._loss(self.learner.mixed[self.rows], gradients=True)
        back = np.zeros(slopes.shape)
        back[:, gather] = slopes
        return loss, unit * (q * fwht(back)[:, : q.shape[1]]).sum(axis=0), q, unit

    def _step(self) -> None:
        """Move the shadows of B by Adam, and take their signs."""
        self.rows = self.rng.integers(0, len(self.q), _STEP_ROWS)
        gradient, live = self._by_signs()[1], self.transform.live_sign != 0
        self.updates += 1
        first, second = (1 - 0.9**self.updates, 1 - 0.999**self.updates)
        self.moments[0] += 0.1 * (gradient - self.moments[0])
        self.moments[1] += 0.001 * (np.square(gradient) - self.moments[1])
        root = np.sqrt(self.moments[1] / second) + 1e-12
        self.shadow = np.clip(self.shadow - _STEP * self.moments[0] / first / root, -1, 1)
        flipped = live & (self.shadow * self.transform.sign < 0)
        self.kept += int(flipped.sum())
        if flipped.any():
            sign = np.where(flipped, -self.transform.sign, self.transform.sign)
            self._take(replace(self.transform, sign=sign.astype(np.int8)))

    def _flip(self) -> None:
        """Flip signs of B."""
        loss, slopes, q, unit = self._by_signs()
        transform, mixed = self.transform, self.learner.mixed[self.rows]
        d, gather = transform.dimension, transform.permutation.indices(transform.dimension)
        sign = transform.live_sign
        gain, size = 2 * sign * slopes, np.square(q).sum(axis=0)
        order = np.argsort(-gain / np.maximum(size, 1e-6 * size.max()), kind="stable")[:_AT_ONCE]

        def changed(columns: _Array) -> _Array:
            moved = np.zeros((len(q), d))
            moved[:, columns] = -2 * unit * sign[columns] * q[:, columns]
            return np.asarray(mixed + fwht(moved)[:, gather])

        columns = self._best(loss, order[gain[order] > 0], changed)
        flipped = transform.sign.copy()
        flipped[columns] *= -1
        self._take(replace(transform, sign=flipped))

    def _exchange(self) -> None:
        """Exchange places of P."""
        mixed = self.learner.mixed[self.rows].astype(np.float64)
        loss, slopes = self._loss(mixed, gradients=True)
        promised, products = slopes.T @ mixed, mixed.T @ mixed
        gain, apart = (
            np.diag(each)[:, np.newaxis] + np.diag(each) - each - each.T
            for each in (promised, products)
        )
        gain = gain / np.maximum(apart, 1e-6 * products.max())
        partner = gain.argmax(axis=1)
        best = gain.max(axis=1)
        pairs: list[tuple[int, int]] = []
        for j in np.argsort(-best, kind="stable").tolist():
            pair = j, int(partner[j])
            if best[j] > 0 and not set(pair) & {place for each in pairs for place in each}:
                pairs.append(pair)

        def order(chosen: _Array) -> _Array:
            places = np.arange(mixed.shape[1])
            places[chosen] = chosen[:, ::-1]
            return places

        candidates = np.array(pairs[:_AT_ONCE], np.int64).reshape(-1, 2)
        chosen = self._best(loss, candidates, lambda some: mixed[:, order(some)])
        places = self.transform.permutation.indices(self.transform.dimension)[order(chosen)]
        self._take(replace(self.transform, permutation=Places(places)))  # type: ignore[arg-type]

    def _best(self, loss: float, candidates: _Array, changed: Callable[[_Array], _Array]) -> _Array:
        """Return candidates that together lower the loss of the rows."""
        n = len(candidates)
        while n > 1:
            if self._loss(changed(candidates[:n]))[0] < loss:
                self.kept += n
                return candidates[:n]
            n //= 2
        chosen = candidates[:0]
        for each in range(len(candidates)):
            more = np.concatenate([chosen, candidates[each : each + 1]])
            lower = self._loss(changed(more))[0]
            if lower < loss:
                chosen, loss, self.kept = more, lower, self.kept + 1
        return chosen

    def _take(self, transform: SharedTransform) -> None:
        """Let the learner go on with these signs and places."""
        self.transform, learner = transform, self.learner
        integers = np.zeros(learner.mixed.shape, np.int16)
        q = np.maximum(self.q.astype(np.int16), -32767)
        integers[:, : self.q.shape[1]] = q * transform.live_sign
        gather = transform.permutation.indices(transform.dimension)
        mixed = fwht_halving(integers, transform.halve)[:, gather] * np.float32(transform.unit)
        if learner.layout.start_bits:
            learner.mean[:] = mixed.mean(axis=0)
        np.subtract(mixed, learner.mean, out=learner.mixed)
