"""Layers of images, signals and tables in floats as the stage *filters*."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.networks.separable import rounded_sums
from tinykernel.conversion.networks.windows import (
    LARGEST_GAIN,
    Quantum,
    Shape,
    Signal,
    Step,
    shapes_of,
    with_means,
)
from tinykernel.pieces.filters.spec import LARGEST_SUM, UNIT, Filters, Form
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.layers import MIXED, SINGLE
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.scale.spec import Scale

_TOP = 255
_LIMIT = (1 << UNIT) - 1
_MOST_GAIN = (1 << 15) - 1
#: The least gain: sums of 30 bits become 255.
_LEAST = 2.0**-21
#: Outside, functions are constant or lines to less than a level.
_REACH = {"Tanh": (-4.0, 4.0), "Sigmoid": (-8.0, 8.0), "Elu": (-6.0, np.inf)}
_REACH |= {"HardSwish": (-3.0, np.inf)}


def needs_filters(step: Step, shape: Shape) -> bool:
    """Whether a step of values of a shape is more than sums of all values."""
    return step.window.size != shape[:2] or step.pools or bool(step.curve) or step.branches


def filtered(steps: list[Step], shape: Shape) -> tuple[list[Step], list[Step]]:
    """Return the first steps that the stage takes, with means in them, and the others."""
    used, shapes = 0, shapes_of(steps, shape)
    for number, step in enumerate(steps[:-1]):
        if needs_filters(step, shapes[number]) or step.patch:
            used = number + 1
    return with_means(steps[:used]), steps[used:]


@dataclass
class _Layers:
    """The layers of the stage so far, and the values behind each on the known rows."""

    shape: Shape
    border: int
    signals: list[Signal]
    borders: list[int]
    forms: list[Form] = field(default_factory=list)
    curves: list[NDArray[np.uint8]] = field(default_factory=list)
    weights: list[NDArray[np.int8]] = field(default_factory=list)
    gains: list[NDArray[np.int16]] = field(default_factory=list)
    units: list[NDArray[np.int64]] = field(default_factory=list)  # bias, multiplier, shift

    @property
    def stage(self) -> Filters:
        """The stage."""
        biases, multipliers, shifts = np.concatenate(self.units, axis=1)
        gains = np.concatenate(self.gains) if self.gains else None
        curves = np.stack(self.curves) if self.curves else None
        weights = np.concatenate([each.ravel() for each in self.weights])
        parts = weights, biases, multipliers, shifts
        return Filters(*self.shape, self.border, np.array(self.forms), *parts, gains, curves)

    def form(self, step: Step, groups: int) -> Form:
        """Return the form of the next layer, of a step."""
        reads = len(self.forms) if step.reads is None else step.reads
        adds = 0 if step.adds is None else step.adds + 1
        above, before, below, behind = step.window.around
        sides = *step.window.size, *step.window.steps, above, before, below, behind
        return Form(reads, adds, len(step.window.bias), groups, *sides, 1, 1, 0, 0, 0, 0, _TOP)

    def read(self, step: Step) -> tuple[Signal, int]:
        """Return what a step sums, and the value around it."""
        number = -1 if step.reads is None else step.reads
        return self.signals[number], self.borders[number]

    def added(self, step: Step, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add the gains of what a step adds, in units of its sums; return what they lack."""
        if step.adds is None:
            return np.zeros(1)
        signal = self.signals[step.adds]
        gains = np.rint(signal.step / unit).clip(0, _MOST_GAIN)
        self.gains.append(gains.astype(np.int16))
        return np.asarray((signal.x / unit - gains * signal.levels).mean(axis=(0, 1, 2)))

    def levels(self) -> NDArray[np.uint8]:
        """Return what the last layer gives."""
        maps = [signal.levels for signal in self.signals]
        return self.stage.layer(len(self.forms) - 1, maps)


def filters(
    steps: list[Step], shape: Shape, bits: int, signal: Signal, border: int
) -> tuple[Stage, Signal]:
    """Return the stage of steps, and the values that it gives."""
    layers = _Layers(shape, border, [signal.images(shape)], [border])
    for step in steps:
        _add(layers, step, 2 ** (bits - 1) - 1)
    return layers.stage, layers.signals[-1].flat()


def _add(layers: _Layers, step: Step, most: int) -> None:
    """Add a layer: rounded weights, then multipliers by which the largest values are 255."""
    before, border = layers.read(step)
    sums = step.sums([signal.x for signal in layers.signals])
    x, n = step.bent(sums), sums.shape[-1]
    zero, level = _scaled(sums if step.curve else x, step.curve)
    kind = SINGLE if step.window.depthwise is not None and n > 1 else MIXED
    own = sums if step.adds is None else step.window.of(before.x)
    weights, unit, bias = rounded_sums(
        kind, step.window, own + zero * level, before, border, level, most
    )
    parts, gain = _units(bias + layers.added(step, unit), unit / level)
    level = unit / gain
    layers.weights.append(weights)
    layers.units.append(parts)
    form = layers.form(step, n if kind == SINGLE else 1)._replace(border=zero)
    if step.curve:
        curve, zero, level = _curve(step, zero, level)
        layers.curves.append(curve)
        form = form._replace(curve=len(layers.curves), border=zero)
    layers.forms.append(form)
    if step.pools:
        form = form._replace(tall=step.pool[0], broad=step.pool[1])
        if step.averages:
            zero, level = _means(layers, step.pooled(x), form, zero, level)
            form = form._replace(averages=1, border=zero)
        layers.forms[-1] = form
    after = Signal(step.pooled(x), layers.levels(), level, -zero * level)
    layers.signals.append(after)
    layers.borders.append(zero)


def levels_of_file(quantum: Quantum, grid: Grid) -> tuple[Levels, float, float]:
    """Return the levels of a file, the value of level 0, and what a level is worth."""
    worth, low, ones = quantum.scale, -quantum.zero * quantum.scale, np.ones(grid.channels)
    offset = (low - 0.5 * worth) * ones
    scale = Scale(grid.dtype, 8, offset.astype(np.float32), (ones / worth).astype(np.float32))
    return Levels(scale, 0, 1, np.eye(grid.channels, dtype=np.int8)), low, worth


def quantized(steps: list[Step], shape: Shape, signal: Signal, zero: int) -> tuple[Filters, Signal]:
    """Return the stage of steps of a quantized file with its weights, and the values behind it."""
    layers = _Layers(shape, zero, [signal.images(shape)], [zero])
    for step in steps:
        _add_quantized(layers, step)
    return layers.stage, layers.signals[-1].flat()


def _add_quantized(layers: _Layers, step: Step) -> None:
    """Add a layer of weights and levels as they are."""
    before, _ = layers.read(step)
    step = _measured(step, [signal.x for signal in layers.signals])
    quantum, after = step.quantum, step.given
    assert quantum is not None
    assert after is not None
    ratio = None if step.adds is None else layers.signals[step.adds].step[0] / before.step[0]
    whole, scales = whole_weights(step, ratio)
    gain = scales * before.step[0] / quantum.scale
    # Weights that change no level, as of units that never learned, have any scale.
    lost = gain * np.abs(whole).sum(axis=(1, 2, 3)) < 0.25 / _TOP
    whole, gain = np.where(lost[:, None, None, None], 0, whole), np.where(lost, 0.5, gain)
    if gain.max() >= LARGEST_GAIN or gain.min() < _LEAST:
        raise ConvertError(
            f"convert: {step.place} has weights whose scales are far from those of its levels; "
            "quantize again"
        )
    bias = step.window.bias + before.low[0] * step.window.kernel.sum(axis=(1, 2, 3))
    bias = (bias / quantum.scale + quantum.zero) / gain
    layers.units.append(_units(bias + layers.added(step, gain * quantum.scale), gain)[0])
    is_own = step.window.depthwise is not None and len(whole) > 1
    whole = np.einsum("cijc->cij", whole) if is_own else whole
    layers.weights.append(whole.astype(np.int8))
    least = quantum.zero if step.bends else 0
    most = quantum.levels(np.array(step.top)) if step.bends and step.top < np.inf else _TOP
    if step.curve:
        values = quantum.scale * (np.arange(_TOP + 1.0) - quantum.zero)
        quantum = step.of_curve or quantum
        table = quantum.levels(replace(step, quantum=None, of_curve=None).bent(values))
        layers.curves.append(table.astype(np.uint8))
    form = layers.form(step, len(whole) if is_own else 1)
    layers.forms.append(
        form._replace(
            **dict(zip(("tall", "broad"), step.pool, strict=True)),
            averages=int(step.averages),
            curve=len(layers.curves) * bool(step.curve),
            border=after.zero,
            least=least,
            most=int(most),
        )
    )
    if step.averages:
        size = step.pool[0] * step.pool[1]
        gain = np.full(len(whole), quantum.scale / size / after.scale)
        layers.units.append(_units(after.zero / gain - size * quantum.zero, gain)[0])
    low = -after.zero * after.scale
    layers.signals.append(Signal.of_file(layers.levels(), low, after.scale))
    layers.borders.append(after.zero)


def _measured(step: Step, values: list[NDArray[np.float64]]) -> Step:
    """Return a step with levels of the least and largest values where the file has none."""
    sums = step.sums(values)
    if step.quantum is None:
        x = np.clip(sums, 0, step.top) if step.bends else sums
        least, most = _REACH.get(step.curve, (-np.inf, np.inf))
        ends = max(float(x.min()), least), min(float(x.max()), most)
        step = replace(step, quantum=Quantum.between(*ends))
    if step.curve and step.of_curve is None:
        x = step.bent(sums)
        step = replace(step, of_curve=Quantum.between(float(x.min()), float(x.max())))
    if step.averages and step.of_means is None and step.given is not None:
        x = step.pooled(step.bent(sums))
        quantum, size = Quantum.between(float(x.min()), float(x.max())), step.pool[0] * step.pool[1]
        finest = 1.01 * step.given.scale / size
        step = replace(step, of_means=quantum if quantum.scale > finest else step.given)
    return step


def whole_weights(
    step: Step, ratio: float | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of a step of a quantized file, and what a whole one is worth by channel.

    Those that the file has in floats are rounded: one of each channel, such as a gain, and means
    stay what they are. With the ratio of levels that are added, one of its multiples is whole.
    """
    kernel, scales = step.window.kernel, step.scales
    if scales is None:
        largest, most = np.abs(kernel).max(axis=(1, 2, 3)), 127
        if ratio is not None:
            tried = np.arange(64, 128)
            most = int(tried[np.argmin(np.abs(tried * ratio - np.rint(tried * ratio)))])
        scales = np.where(largest > 0, largest, 1.0) / most
        return np.rint(kernel / scales[:, None, None, None]), scales
    exact = kernel / scales[:, None, None, None]
    whole = np.rint(exact)
    if whole.min() < -128 or whole.max() > 127 or np.abs(whole - exact).max() > 1e-3:
        raise ConvertError(
            f"convert: {step.place} has no whole weights of 8 bits; quantize weights as int8, "
            "symmetric, with normalization in them"
        )
    return whole, scales


def _scaled(x: NDArray[np.float64], curve: str = "") -> tuple[int, NDArray[np.float64]]:
    """Return the level of 0, the same of all channels, and what a level is worth of each.

    Of functions that are no lines a level is worth as much in all channels.
    """
    low, high = x.min(axis=(0, 1, 2)), x.max(axis=(0, 1, 2))
    if curve not in ("", "LeakyRelu"):
        least, most = _REACH[curve]
        low = np.full(low.shape, max(low.min(), least))
        high = np.full(low.shape, min(high.max(), most))
    low, high = np.minimum(low, 0), np.maximum(np.maximum(high, 0), 1e-30)
    zeros = np.arange(_TOP, dtype=np.float64)[:, None]
    levels = np.maximum(high / (_TOP - zeros), -low / np.maximum(zeros, 1e-9))
    zero = int(np.argmin(((levels / (high - low)) ** 2).sum(axis=1)))
    return zero, levels[zero]


def _curve(
    step: Step, zero: int, level: NDArray[np.float64]
) -> tuple[NDArray[np.uint8], int, NDArray[np.float64]]:
    """Return the table of a function of levels, the level of 0 behind it, and their worth."""
    units = np.arange(_TOP + 1.0) - zero
    # A line from 0 on to both sides is the same in units of each channel.
    one = 1.0 if step.curve == "LeakyRelu" else float(level[0])
    values = step.bent(units * one)
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    after = int(np.ceil(_TOP * -low / (high - low)))
    worth = max(high / max(_TOP - after, 1e-9), -low / max(after, 1e-9))
    table = np.clip(np.rint(values / worth) + after, 0, _TOP).astype(np.uint8)
    return table, after, level * (worth / one)


def _units(
    bias: NDArray[np.float64], gain: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return biases that round to the nearest, multipliers and shifts; and the gains they make."""
    gain = np.clip(gain, _LEAST, LARGEST_GAIN)
    shifts = np.clip(np.floor(np.log2(_LIMIT / gain)), UNIT, 2 * UNIT)
    multipliers = np.clip(np.rint(gain * 2.0**shifts), 1, _LIMIT)
    gain = multipliers / 2.0**shifts
    biases = np.clip(np.rint(bias + 0.5 / gain), -LARGEST_SUM // 2, LARGEST_SUM // 2)
    return np.stack([biases, multipliers, shifts]).astype(np.int64), gain


def _means(
    layers: _Layers, means: NDArray[np.float64], form: Form, zero: int, level: NDArray[np.float64]
) -> tuple[int, NDArray[np.float64]]:
    """Add the units of means of patches; return the level of 0 and what a level is worth."""
    size, values = form.tall * form.broad, layers.levels().astype(np.float64)
    n, rows, columns, channels = values.shape
    rows, columns = rows // form.tall, columns // form.broad
    cut = values[:, : rows * form.tall, : columns * form.broad]
    sums = cut.reshape(n, rows, form.tall, columns, form.broad, channels).sum(axis=(2, 4))
    after, worth = _scaled(means)
    bias = (means + after * worth).mean(axis=(0, 1, 2)) * size / level - sums.mean(axis=(0, 1, 2))
    parts, gain = _units(bias, level / size / worth)
    layers.units.append(parts)
    return after, level / size / gain
