"""Hidden layers of a network: levels of 8 bits, the stage *dense*, and what reads its units.

A unit that is clipped below 0 can have any scale, if the weights that read it have the inverse. So
the largest value of each unit on the known rows becomes 255, or less where its weights would take
more bits than the others.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError, DataError
from tinykernel.conversion.networks.filters import levels_of_file, quantized, whole_weights
from tinykernel.conversion.networks.maps import maps_of
from tinykernel.conversion.networks.windows import (
    Affine,
    Quantum,
    Shape,
    Signal,
    Step,
    lowered,
    shapes_of,
    with_means,
)
from tinykernel.model.answers import LARGEST_SHIFT, Labels, Values, numbered_values
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.piece import Readout, Stage
from tinykernel.pieces.scale.spec import Scale

_TOP = 255  # of a level and of a unit
_MOST = 2**31 - 1
_SHIFT = 24  # of a layer at most
_SHIFTS = 5  # more of a layer that are compared
_VALUES = 1 << 25  # of the floats of a layer
IDENTITY = Scale("uint8", 8, *np.array([[0], [65536], [_TOP]]))


def levels_of(
    rows: NDArray[Any], grid: Grid, around: bool = False, n_most: int = 1 << 20
) -> tuple[Levels, Signal]:
    """Return levels between the least and the largest value of each channel, and those of rows.

    At most `n_most` rows are in the signal, apart alike. With zeros `around` images, of values from
    0 up level 0 is the value 0; else 0 has one level in all channels.
    """
    by_channel = rows.reshape(-1, grid.channels).astype(np.float64)
    least, width = by_channel.min(axis=0), np.ptp(by_channel, axis=0)
    from_zero = around and least.min() >= 0
    if from_zero:
        least, width = 0 * least, by_channel.max(axis=0)
    elif around:
        least = np.full(grid.channels, least.min())
        width = np.maximum(by_channel.max(), 0) - least
    varies, low, width = width > 0, least, np.where(width > 0, width, 1.0)
    if grid.dtype == "float32":
        slope = ((_TOP if from_zero else _TOP + 1) / width).astype(np.float32)
        if from_zero:  # rounded to the nearest level
            low = low - 0.5 / slope
        scale = Scale(grid.dtype, 8, low.astype(np.float32), slope)
        step, low = 1.0 / slope.astype(np.float64), scale.offset.astype(np.float64)
    else:
        if from_zero:
            low = low - np.where(width > _TOP, np.rint(width / (2 * _TOP)), 0)
            width = width - low
        span = width.astype(np.uint32)
        shift = np.maximum(np.array([int(s).bit_length() for s in span]) - 16, 0).astype(np.uint8)
        factor = ((_TOP + 1 << 16) - 1) // np.maximum(span >> shift, 1)
        factor = np.where(span <= _TOP, _TOP // span << 16, factor)  # whole levels
        scale = Scale(grid.dtype, 8, low.astype(np.int64), factor, span, shift)
        step = 2.0 ** (16.0 + shift) / factor
        low = low - np.where(span <= _TOP, 0.5, 0.0) * step  # these are not rounded down
    stage = Levels(scale, 0, 1, np.eye(grid.channels, dtype=np.int8))
    if len(rows) > n_most:
        rows = rows[np.linspace(0, len(rows) - 1, n_most).astype(int)]
    levels = np.asarray(stage.run(rows, grid), dtype=np.uint8)
    # Of a channel that is constant, the value is part of the offsets and the level has no weight.
    step, low = np.where(varies, step, 0.0), np.where(varies, low + 0.5 * step, least)
    low = np.where(from_zero, 0.0, low)
    step, low = (np.tile(a, grid.rows * grid.columns) for a in (step, low))
    return stage, Signal(rows.astype(np.float64), levels, step, low)


def hidden(
    layer: Affine, following: Affine, before: Signal, bits: int
) -> tuple[Stage, Affine, Signal]:
    """Return the units of a layer as a stage of weights of so many bits, and what follows.

    Among a few shifts, the one is chosen whose rounding changes least of what follows. A unit that
    is 0 on all known rows is left out.
    """
    sums = layer.of(before.x)
    x = np.clip(sums, 0.0, layer.top)
    alive = x.max(axis=0) > 0
    if not np.any(alive):
        raise DataError("convert: no unit of a hidden layer is above 0 on any row of X")
    x, mean = x[:, alive], sums[:, alive].mean(axis=0)
    following = replace(following, weights=following.weights[:, alive])
    by_level = before.of_levels(layer).weights[alive]
    top = x.max(axis=0)
    largest = np.maximum(np.abs(by_level).max(axis=1), 1e-30 * top)
    most = 2 ** (bits - 1) - 1
    least = int(np.clip(np.floor(np.log2(most * (top / largest).min() / _TOP)), 0, _SHIFT))
    worth = np.sum(following.weights**2, axis=0)
    best: tuple[float, Stage, Signal] | None = None
    for shift in range(least, min(least + _SHIFTS, _SHIFT) + 1):
        gain = np.minimum(_TOP / top, most / (largest * 2.0**shift))  # levels of a unit of x
        if best and np.any(gain[top == layer.top] < _TOP / layer.top):
            break  # these units are clipped at level 255
        unit = (gain * 2.0**shift)[:, None]
        stage = units_of(by_level * unit, mean * unit[:, 0], before.levels, shift)
        grid = Grid(1, 1, before.levels.shape[1], "uint8", 0, _TOP)
        units = np.asarray(stage.run(before.levels, grid), dtype=np.uint8)
        error = float((np.mean((units / gain - x) ** 2, axis=0) * worth).sum())
        if best is None or error < best[0]:
            best = error, stage, Signal(x, units, 1.0 / gain, np.zeros(gain.size))
    assert best is not None
    return best[1], following, best[2]


def units_of(
    weights: NDArray[np.float64], mean: NDArray[np.float64], levels: NDArray[np.uint8], shift: int
) -> Dense:
    """Round weights of levels, whose sums are 2^shift times the units and keep their mean."""
    whole = np.rint(weights).astype(np.int8)
    half = 0.5 * 2.0**shift  # rounds to the nearest unit
    bias = np.rint(mean - levels.mean(axis=0) @ whole.T + half)
    return Dense(whole, np.clip(bias, -(2**30), 2**30).astype(np.int32), shift)


def integer_network(
    steps: list[Step], shape: Shape, columns: Any, classes: Any, bits: int
) -> IntegerModel:
    """Return the model of steps, with weights of so many bits."""
    grid = Grid.table(columns.raw_dtype, columns.n_inputs)
    rows, maps = columns.rows.astype(grid.dtype), maps_of(steps, shape, columns.rows, bits)
    if shape[1] > 1:  # a signal is an image of one row
        grid = Grid.raw(columns.raw_dtype, *shape)
    around = maps is not None and maps.around
    first, signal = levels_of(rows, grid, around, _at_most(steps, shape))
    stages: list[Stage] = [first]
    if maps:
        border = first.run(np.zeros((1, grid.size), grid.dtype), grid)[0, 0] if around else 0
        stage, signal = maps.stage(signal, int(border))
        stages.append(stage)
        steps, shape = maps.rest, maps.gives
    layer, *others = lowered(steps, shape)
    for following in others:
        stage, layer, signal = hidden(layer, following, signal, bits)
        stages.append(stage)
    return _read_out(layer, signal, [*stages, IDENTITY], classes, bits, grid)


def quantized_network(
    steps: list[Step], shape: Shape, columns: Any, classes: Any, quantum: Quantum | None
) -> IntegerModel:
    """Return the model of a quantized file: its levels, and its weights as they are."""
    # Floats, as the file takes them: whole numbers fall on no levels of its scale.
    grid = Grid.table("float32", columns.n_inputs)
    if shape[1] > 1:
        grid = Grid.raw("float32", *shape)
    rows = columns.rows.astype(grid.dtype)
    places = np.linspace(0, len(rows) - 1, min(len(rows), _at_most(steps, shape)))
    rows = rows[places.astype(int)]
    quantum = quantum or Quantum.between(float(rows.min()), float(rows.max()))
    *before, last = with_means(steps)
    tail = [replace(last, quantum=None)]
    is_sum = bool(before) and before[-1].given is None and before[-1].joins(last.window)
    if is_sum and not before[-1].branches:
        tail.insert(0, before.pop())
    first, low, worth = levels_of_file(quantum, grid)
    signal = Signal.of_file(np.asarray(first.run(rows, grid), dtype=np.uint8), low, worth)
    stages: list[Stage] = [first]
    if before:
        stage, signal = quantized(before, shape, signal, quantum.zero)
        stages.append(stage)
    (layer,) = lowered(tail, shapes_of(before, shape)[-1])
    unit = None
    if len(tail) == 1 and last.scales is not None:
        unit = float(signal.step[0]) * whole_weights(last)[1]
    return _read_out(layer, signal, [*stages, IDENTITY], classes, 8, grid, unit)


def _at_most(steps: list[Step], shape: Shape) -> int:
    """Return how many rows to look at, so that the largest image of all takes 256 MB."""
    return max(1, _VALUES // max(map(prod, shapes_of(steps, shape))))


def _read_out(
    layer: Affine,
    signal: Signal,
    stages: list[Stage],
    classes: Any,
    bits: int,
    grid: Grid,
    worth: NDArray[np.float64] | None = None,
) -> IntegerModel:
    """Return the model of the last layer, a linear part of the units less 128.

    A whole weight is `worth` that; of None as little as the largest weight allows.
    """
    by_level = signal.of_levels(layer)
    unit = (
        worth if worth is not None else np.abs(by_level.weights).max(axis=1) / (2 ** (bits - 1) - 1)
    )
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
