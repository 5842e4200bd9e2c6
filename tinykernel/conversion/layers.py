"""Hidden layers of a network: levels of 8 bits, the stage *dense*, and what reads its units.

A unit that is clipped below 0 can have any scale, if the weights that read it have the inverse. So
the largest value of each unit on the known rows becomes 255, or less where its weights would take
more bits than the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import ConvertError, DataError
from tinykernel.model import Grid, IntegerModel
from tinykernel.model.answers.labels import Labels
from tinykernel.model.answers.values import LARGEST_SHIFT, Values, numbered_values
from tinykernel.model.readouts import Linear, Readout
from tinykernel.model.stage import Stage
from tinykernel.model.stages import Dense, Levels, Scale

_TOP = 255  # of a level and of a unit
_MOST = 2**31 - 1
_SHIFT = 24  # of a layer at most
_SHIFTS = 5  # more of a layer that are compared
_IDENTITY = Scale("uint8", 8, *np.array([[0], [65536], [_TOP]]))


@dataclass(frozen=True)
class Affine:
    """A layer ``weights @ x + bias`` of floats; weights (n_outputs, n_inputs)."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute rows of outputs."""
        return np.asarray(x @ self.weights.T + self.bias)

    def after(self, first: Affine) -> Affine:
        """Return the layer that both are if nothing is between them."""
        return Affine(self.weights @ first.weights, self.of(first.bias[np.newaxis])[0])


@dataclass(frozen=True)
class Signal:
    """Values between two layers on the known rows, and the integers that stand for them."""

    x: NDArray[np.float64]
    levels: NDArray[np.uint8]  # x is about low + step * level
    step: NDArray[np.float64]
    low: NDArray[np.float64]

    def of_levels(self, layer: Affine) -> Affine:
        """Return a layer of x as one of the levels."""
        return Affine(layer.weights * self.step, layer.of(self.low[np.newaxis])[0])


def levels_of(rows: NDArray[Any], grid: Grid) -> tuple[Levels, Signal]:
    """Return levels between the least and the largest value of each channel, and those of rows."""
    by_channel = rows.reshape(-1, grid.channels).astype(np.float64)
    least, width = by_channel.min(axis=0), np.ptp(by_channel, axis=0)
    varies, low, width = width > 0, least, np.where(width > 0, width, 1.0)
    if grid.dtype == "float32":
        slope = ((_TOP + 1) / width).astype(np.float32)
        scale = Scale(grid.dtype, 8, low.astype(np.float32), slope)
        step, low = 1.0 / slope.astype(np.float64), scale.offset.astype(np.float64)
    else:
        span = width.astype(np.uint32)
        shift = np.maximum(np.array([int(s).bit_length() for s in span]) - 16, 0).astype(np.uint8)
        factor = ((_TOP + 1 << 16) - 1) // np.maximum(span >> shift, 1)
        factor = np.where(span <= _TOP, _TOP // span << 16, factor)  # whole levels
        scale = Scale(grid.dtype, 8, low.astype(np.int64), factor, span, shift)
        step = 2.0 ** (16.0 + shift) / factor
        low = low - np.where(span <= _TOP, 0.5, 0.0) * step  # these are not rounded down
    stage = Levels(scale, 0, 1, np.eye(grid.channels, dtype=np.int8))
    levels = np.asarray(stage.run(rows, grid), dtype=np.uint8)
    # Of a channel that is constant, the value is part of the offsets and the level has no weight.
    step, low = np.where(varies, step, 0.0), np.where(varies, low + 0.5 * step, least)
    step, low = (np.tile(a, grid.rows * grid.columns) for a in (step, low))
    return stage, Signal(rows.astype(np.float64), levels, step, low)


def hidden(
    layer: Affine, following: Affine, before: Signal, bits: int
) -> tuple[Stage, Affine, Signal]:
    """Return the units ``max(layer, 0)`` as a stage of weights of so many bits, and what follows.

    Among a few shifts, the one is chosen whose rounding changes least of what follows. A unit that
    is 0 on all known rows is left out.
    """
    x = np.maximum(layer.of(before.x), 0.0)
    alive = x.max(axis=0) > 0
    if not np.any(alive):
        raise DataError("convert: no unit of a hidden layer is above 0 on any row of X")
    layer, x = Affine(layer.weights[alive], layer.bias[alive]), x[:, alive]
    following = Affine(following.weights[:, alive], following.bias)
    by_level, top = before.of_levels(layer), x.max(axis=0)
    largest = np.maximum(np.abs(by_level.weights).max(axis=1), 1e-30 * top)
    most = 2 ** (bits - 1) - 1
    least = int(np.clip(np.floor(np.log2(most * (top / largest).min() / _TOP)), 0, _SHIFT))
    worth = np.sum(following.weights**2, axis=0)
    best: tuple[float, Stage, Signal] | None = None
    for shift in range(least, min(least + _SHIFTS, _SHIFT) + 1):
        gain = np.minimum(_TOP / top, most / (largest * 2.0**shift))  # levels of a unit of x
        stage = _dense(by_level, gain, before.levels, shift)
        grid = Grid(1, 1, before.levels.shape[1], "uint8", 0, _TOP)
        units = np.asarray(stage.run(before.levels, grid), dtype=np.uint8)
        error = float((np.mean((units / gain - x) ** 2, axis=0) * worth).sum())
        if best is None or error < best[0]:
            best = error, stage, Signal(x, units, 1.0 / gain, np.zeros(gain.size))
    assert best is not None
    return best[1], following, best[2]


def _dense(
    layer: Affine, gain: NDArray[np.float64], levels: NDArray[np.uint8], shift: int
) -> Dense:
    """Round a layer of levels, whose sums are 2^shift times the units; keep their mean."""
    by_level = layer.weights * gain[:, np.newaxis] * 2.0**shift
    weights = np.rint(by_level).astype(np.int8)
    lost = levels.mean(axis=0) @ (by_level - weights).T
    half = 0.5 * 2.0**shift  # rounds to the nearest unit
    bias = np.rint(layer.bias * gain * 2.0**shift + lost + half)
    return Dense(weights, np.clip(bias, -(2**30), 2**30).astype(np.int32), shift)


def integer_network(
    layers: list[Affine], columns: Any, classes: Any, bits: int, grid: Grid
) -> IntegerModel:
    """Return the model of layers with ``max(x, 0)`` between them, with weights of so many bits."""
    first, signal = levels_of(columns.rows.astype(grid.dtype), grid)
    stages: list[Stage] = [first]
    layer = layers[0]
    for following in layers[1:]:
        stage, layer, signal = hidden(layer, following, signal, bits)
        stages.append(stage)
    return _read_out(layer, signal, [*stages, _IDENTITY], classes, bits, grid)


def _read_out(
    layer: Affine, signal: Signal, stages: list[Stage], classes: Any, bits: int, grid: Grid
) -> IntegerModel:
    """Return the model of the last layer, a linear part of the units less 128."""
    by_level = signal.of_levels(layer)
    unit = np.abs(by_level.weights).max(axis=1) / (2 ** (bits - 1) - 1)
    if not np.any(unit > 0):
        raise ConvertError("convert: no input has a weight, so all answers are the same")
    unit = np.maximum(unit, unit.max() * 1e-6)
    weights = np.rint(by_level.weights / unit[:, np.newaxis]).astype(np.int8)
    units = signal.levels.astype(np.float64) - 128
    lost = layer.of(signal.x) - (units @ weights.T.astype(np.float64)) * unit
    offset = lost.mean(axis=0)
    # The finest step by which no sum leaves int32.
    reach = unit * (128.0 * np.abs(weights.astype(np.int64)).sum(axis=1) + 1) + np.abs(offset)
    shift = int(np.clip(np.floor(np.log2(_MOST / 2 / reach.max())), -LARGEST_SHIFT, LARGEST_SHIFT))
    multiplier = np.rint(np.ldexp(unit, shift)).astype(np.int64)
    return IntegerModel(
        input=grid,
        stages=tuple(stages),
        readout=Readout(
            (Linear(weights, multiplier.astype(np.int32)),),
            np.rint(np.ldexp(offset, shift)).astype(np.int32),
        ),
        answers=Values(numbered_values(len(weights)), shift)
        if classes is None
        else Labels(tuple(np.asarray(classes).tolist())),
        decision_scale=2.0**-shift,
    )
