"""The loss that the trainer minimises, weighted by row, and all code that depends on it.

For classes it is the cross-entropy of the softmax of the outputs. With two classes there is one
output f, and the probability of the second class is ``1 / (1 + exp(-f))``. For values, `losses` has
a number for each output: 0 is half the squared error; a level q between 0 and 1 is the quantile
loss, ``q e`` of an error ``e = target - f`` above 0, else ``(q - 1) e`` (Koenker & Bassett 1978).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import inlined
from tinykernel.base.elementary import exp, exps, log, logs
from tinykernel.base.hadamard import LANES
from tinykernel.pieces.record import chosen_labels

_ONE = np.float32(1.0)
_AT_ONCE = 1 << 17  # numbers, of several temperatures.
TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
#: Also those of trainings of an epoch or two, whose decisions are small.
WIDE_TEMPERATURES = (*TEMPERATURES, 2.0, 2.8, 4.0, 5.6, 8.0, 11.3, 16.0)

_Floats = NDArray[np.float32]


@inlined
def loss_group(  # type: ignore[no-untyped-def]
    sums, scale, offset, target, weight, losses, rows, n_real, dsums, d_offset
):
    """Turn sums W z into the loss and its gradient; returns loss and d loss / d scale."""
    loss = 0.0
    d_scale = 0.0
    powers = np.empty(n_real)
    for k in range(LANES):
        row = rows[k]
        w = weight[row]
        top = np.float32(-3.0e38)
        for o in range(n_real):
            f = scale * sums[o, k] + offset[o]
            dsums[o, k] = f
            top = max(top, f)
        if losses.shape[0] > 0:
            for o in range(n_real):
                q = losses[o]
                e = target[row, o] - dsums[o, k]
                if q == 0:
                    loss += w * np.float32(0.5) * e * e
                    dsums[o, k] = -w * e
                else:
                    slope = q if e > 0 else q - _ONE
                    loss += w * slope * e
                    dsums[o, k] = -w * slope
        elif n_real == 1:
            f = dsums[0, k]
            t = target[row, 0]
            loss += w * (max(f, np.float32(0.0)) - f * t + log(1.0 + exp(-abs(f))))
            dsums[0, k] = w * (1.0 / (1.0 + exp(-f)) - t)
        else:
            total = 0.0
            mass = 0.0
            for o in range(n_real):
                powers[o] = exp(dsums[o, k] - top)
                total += powers[o]
                mass += target[row, o]
            log_total = log(total) + top
            for o in range(n_real):
                f = dsums[o, k]
                t = target[row, o]
                loss += w * t * (log_total - f)
                dsums[o, k] = w * (mass * powers[o] / total - t)
        for o in range(n_real):
            d_scale += dsums[o, k] * sums[o, k]
            d_offset[o] += dsums[o, k]
            dsums[o, k] *= scale
        for o in range(n_real, dsums.shape[0]):
            dsums[o, k] = 0.0
    return loss, d_scale


def targets_of(codes: NDArray[np.int64], n_classes: int) -> _Floats:
    """Return the target of each output, (n, outputs): 1 for the class of a row, else 0."""
    hot = np.zeros((codes.size, n_classes), dtype=np.float32)
    hot[np.arange(codes.size), codes] = 1.0
    return np.ascontiguousarray(hot[:, 1:] if n_classes == 2 else hot)


def codes_of(targets: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the classes (n,) of which `targets_of` made targets (n, n_outputs)."""
    codes = targets[:, 0] if targets.shape[1] == 1 else targets.argmax(axis=1)
    return codes.astype(np.int64)


def prior(targets: _Floats, weight: _Floats, losses: Sequence[float] = ()) -> _Floats:
    """Return the offsets that predict the class shares, or the mean values, for every row."""
    if losses:
        return _constants(targets, weight, losses).astype(np.float32)
    n_outputs = targets.shape[1]
    # No matrix product: its rounding may depend on the number of threads.
    total = np.einsum("i,ij->j", weight, targets, dtype=np.float64)
    share = np.clip(total / weight.sum(dtype=np.float64), 1e-4, 1 - 1e-4)
    log_odds = logs(share) - logs(1 - share) if n_outputs == 1 else logs(share)
    return np.asarray(log_odds - (log_odds.mean() if n_outputs > 1 else 0), np.float32)


def _constants(
    targets: NDArray[Any], weight: _Floats, losses: Sequence[float]
) -> NDArray[np.float64]:
    """Return the best constant of each output: the mean, or a quantile."""
    shares = weight.astype(np.float64) / weight.sum(dtype=np.float64)
    best: NDArray[np.float64] = np.einsum("i,ij->j", shares, targets, dtype=np.float64)
    for o, level in enumerate(losses):
        if level:
            order = np.argsort(targets[:, o], kind="stable")
            at = int(np.searchsorted(np.cumsum(shares[order]), level))
            best[o] = targets[order[min(at, order.size - 1)], o]
    return best


def _value_losses(
    decisions: NDArray[Any], targets: NDArray[Any], losses: Sequence[float]
) -> NDArray[np.float64]:
    """Return the loss of each row of values, summed over the outputs, (n,)."""
    errors = targets.astype(np.float64) - decisions
    levels = np.asarray(losses)
    by_level = np.where(errors > 0, levels, levels - 1) * errors
    by_output = np.where(levels == 0, 0.5 * np.square(errors), by_level)
    return np.asarray(by_output.sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Truth:
    """What the decisions of rows are judged by."""

    values: NDArray[Any]  # (n,) codes of the labels, or (n, n_outputs) targets of values.
    weight: _Floats  # (n,)
    losses: Sequence[float] = ()  # of each output, see above; none of classes.

    def score(self, decisions: _Floats) -> float:
        """Return the accuracy of classes, by weight; of values the skill.

        That is the share of the loss of the best constant that is gone: R2 of squared errors.
        """
        values, weight, losses = self.values, self.weight, self.losses
        if losses:
            constant, missed = (
                float(np.average(_value_losses(said, values, losses), weights=weight))
                for said in (_constants(values, weight, losses), decisions)
            )
            return 1 - missed / max(constant, 1e-30)
        return float(np.average(chosen_labels(decisions) == values, weights=weight))

    def judge(
        self, decisions: _Floats, temperatures: Sequence[float] = TEMPERATURES
    ) -> tuple[float, float]:
        """Return the mean of `row_losses`, by weight, and the `score`."""
        of_rows = self.row_losses(decisions, temperatures)
        return float(np.average(of_rows, weights=self.weight)), self.score(decisions)

    def row_losses(
        self, decisions: _Floats, temperatures: Sequence[float] = TEMPERATURES
    ) -> NDArray[np.float64]:
        """Return the loss of each row, (n,): of classes that at the best temperature of all."""
        codes, weight = self.values, self.weight
        if self.losses:
            return _value_losses(decisions, self.values, self.losses)
        # Of each class, then of each row: sums over classes are those of whole arrays, and fast.
        values, rows = decisions.T.astype(np.float64, order="C"), np.arange(len(codes))
        if len(values) == 1:
            values = np.concatenate([-values / 2, values / 2])
        values -= values.max(axis=0)
        right = values[codes, rows]
        best, least, n = np.full(len(codes), np.inf), np.inf, max(1, _AT_ONCE // values.size)
        for first in range(0, len(temperatures), n):
            factors = np.reshape(temperatures[first : first + n], (-1, 1))
            lost = logs(exps(values * factors[..., np.newaxis]).sum(axis=1)) - right * factors
            means = (lost * weight).sum(axis=1) / weight.sum(dtype=np.float64)
            if means.min() < least:
                best, least = lost[means.argmin()], means.min()
        return best
