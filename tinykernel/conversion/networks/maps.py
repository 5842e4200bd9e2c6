"""Layers of images as the stages *separable* and *convolutions*."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.conversion.networks.signal import Signal, rounded
from tinykernel.conversion.networks.windows import Shape, Step, Window
from tinykernel.model.grid import Grid
from tinykernel.model.stage import Stage
from tinykernel.model.stages.convolutions import Convolutions
from tinykernel.model.stages.separable import MIXED, POINT, SINGLE, Layer, Separable, values_of

_TOP = 255
_POSITIONS = 1 << 14  # that weights are rounded for
_UNITS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)  # of a weight, over that which clips none
_PEAKS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # values before a mean, over the largest level
_LARGEST_BIAS = (1 << 19) - 1
# Of the stage *convolutions*.
_MOST_LAYERS = 8
_SHIFTS = 16
_LARGEST_CHAIN_BIAS = 1 << 24


@dataclass(frozen=True)
class Maps:
    """The first steps of a network as a stage, and the others."""

    stage: Callable[[Signal, int], tuple[Stage, Signal]]  # of the input, with so many bits
    rest: list[Step]
    gives: Shape
    from_zero: bool  # whether zeros are around the input


def maps_of(steps: list[Step], shape: Shape, rows: NDArray[np.generic]) -> Maps | None:
    """Return the first steps as a stage; None if there is none."""
    if min(shape[:2]) < 2:  # the stages take images
        return None
    # Zeros around an image are its level 0.
    is_positive, maps = bool(np.min(rows) >= 0), None
    if is_positive:
        maps = _separable_of(steps, shape)
    return _chains_of(steps, shape, is_positive) if maps is None and shape[2] == 1 else maps


def _separable_of(steps: list[Step], whole: Shape) -> Maps | None:
    """Return steps up to a mean over all positions as the stage *separable*."""
    layers: list[tuple[str, Step]] = []
    shape, positive = whole, True
    for number, step in enumerate(steps):
        window, depthwise = step.window, step.window.depthwise
        if layers and depthwise is not None and _is_mean(window, depthwise, shape):
            if layers[-1][0] == SINGLE:
                layers.append((POINT, _same(shape, positive)))
            rest = replace(step, window=Window.line(depthwise.sum(axis=(1, 2)), window.bias))
            stage = partial(_separable, layers, whole)
            return Maps(stage, [rest, *steps[number + 1 :]], (1, 1, shape[2]), True)
        kind = MIXED if not layers else POINT if window.is_pointwise else SINGLE
        if step.pools or (kind != POINT and _three(window, shape) is None):
            return None
        if kind == SINGLE and (depthwise is None or not positive):
            return None  # level 0 is 0 only of values from 0 up, and zeros are around them
        if layers and (kind == SINGLE) == (layers[-1][0] == SINGLE):
            layers.append((POINT if kind == SINGLE else SINGLE, _same(shape, positive)))
        layers.append((kind, replace(step, bends=step.bends or (positive and _is_rising(window)))))
        positive, shape = layers[-1][1].bends, step.gives(shape)
    return None


def _is_mean(window: Window, depthwise: NDArray[np.float64], shape: Shape) -> bool:
    is_whole = window.size == shape[:2] and not any(window.around)
    return is_whole and bool(np.all(depthwise == depthwise[:, :1, :1]))


def _is_rising(window: Window) -> bool:
    """Whether it makes values from 0 up of such ones, as means do."""
    return bool(np.min(window.kernel) >= 0 and np.min(window.bias) >= 0)


def _same(shape: Shape, positive: bool) -> Step:
    return Step("", Window.line(np.ones(shape[2]), np.zeros(shape[2])), positive)


def _three(window: Window, shape: Shape) -> Window | None:
    """Return a window as one of 3 x 3 with zeros around; None if it is none."""
    (rows, columns), above, before = window.size, 1 - window.around[0], 1 - window.around[1]
    is_small = min(above, before) >= 0 and max(above + rows, before + columns) <= 3
    if window.steps not in ((1, 1), (2, 2)) or not is_small:
        return None
    more = (0, 0), (above, 3 - above - rows), (before, 3 - before - columns), (0, 0)
    three = replace(window, kernel=np.pad(window.kernel, more), around=(1, 1, 1, 1))
    return three if three.gives(shape) == window.gives(shape) else None


def _separable(
    steps: list[tuple[str, Step]], shape: Shape, signal: Signal, bits: int
) -> tuple[Stage, Signal]:
    """Return the stage of steps, and the means that it gives."""
    first, signal = signal.levels, _as_images(signal, shape)
    layers: list[Layer] = []
    for number, (kind, step) in enumerate(steps):
        size = signal.x.shape[1], signal.x.shape[2], signal.x.shape[3]
        if kind != POINT:
            step = replace(step, window=_three(step.window, size) or step.window)
        most = 2 ** (min(bits, 8 if kind == MIXED else 4) - 1) - 1
        layer, signal = _layer(kind, step, signal, most, number == len(steps) - 1)
        layers.append(layer)
    stage = Separable(
        np.array([len(layer.biases) for layer in layers if layer.kind != SINGLE], np.uint16),
        np.array([layer.steps[1] for layer in layers if layer.kind != POINT], np.uint8),
        shape[2],
        *(
            np.concatenate([getattr(layer, name).ravel() for layer in layers])
            for name in ("weights", "biases", "multipliers", "shifts")
        ),
    )
    means = np.asarray(stage.run(first, Grid(*shape, "uint8", 0, _TOP)), dtype=np.uint8)
    return stage, Signal(signal.x.mean(axis=(1, 2)), means, signal.step, signal.low)


def _as_images(signal: Signal, shape: Shape) -> Signal:
    x, levels, n = signal.x.reshape(-1, *shape), signal.levels.reshape(-1, *shape), shape[2]
    return Signal(x, levels, signal.step[:n], signal.low[:n])


def _layer(kind: str, step: Step, before: Signal, most: int, is_last: bool) -> tuple[Layer, Signal]:
    """Return a layer of the stage *separable*, and the images that it gives.

    Of each channel, a sum a of rounded weights is worth `unit` a, and ``a * multiplier >> shift``
    is a level. The largest value becomes 255. Of the last layer, whose means follow, larger ones
    can clip at few positions, where the means are closer then.
    """
    sums, n = step.window.of(before.x), len(step.window.bias)
    low = np.zeros(n) if step.bends else sums.min(axis=(0, 1, 2))
    x = np.maximum(sums, 0) if step.bends else sums
    weights, unit, bias = _rounded_sums(kind, step.window, sums - low, before, most)
    top, goal = np.maximum((x - low).max(axis=(0, 1, 2)), 1e-30), (x - low).mean(axis=(1, 2))
    error, parts = np.full(n, np.inf), np.zeros((3, n), np.int32)
    form = {MIXED: (n, 3, 3, -1), SINGLE: (n, 3, 3), POINT: (n, -1)}[kind]

    def layer_of(parts: NDArray[np.int32]) -> Layer:
        small = parts[1:].astype(np.uint8)
        return Layer(kind, step.window.steps, 1, weights.reshape(form), parts[0], *small)

    for peak in _PEAKS if is_last else _PEAKS[:1]:
        gain = np.minimum(peak * _TOP / top * unit, 127.0)  # levels of a sum
        shifts = np.clip(np.floor(np.log2(127 / gain)), 0, 24)
        multipliers = np.maximum(np.floor(gain * 2.0**shifts), 1)
        half = 2.0**shifts / 2 / multipliers  # rounds to the nearest level
        biases = np.clip(np.rint(bias + half), -_LARGEST_BIAS, _LARGEST_BIAS)
        tried = np.stack([biases, multipliers, shifts]).astype(np.int32)
        means = values_of(layer_of(tried), before.levels).mean(axis=(1, 2))
        off = np.mean((means * unit * 2.0**shifts / multipliers - goal) ** 2, axis=0)
        error, parts = np.minimum(off, error), np.where(off < error, tried, parts)
    levels = values_of(layer_of(parts), before.levels)
    return layer_of(parts), Signal(x, levels, unit * 2.0 ** parts[2] / parts[1], low)


def _rounded_sums(
    kind: str, window: Window, sums: NDArray[np.float64], before: Signal, most: int
) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]:
    """Return whole weights by channel, what one is worth, and offsets in these units."""
    patches = window.patches(before.levels)
    size = int(np.prod(patches.shape[:3]))
    places = np.linspace(0, size - 1, min(size, _POSITIONS)).astype(int)
    chosen = np.unravel_index(places, patches.shape[:3])
    read, sums = patches[chosen].astype(np.float64), sums[chosen]
    kernel, n = window.kernel * before.step, len(window.bias)
    if kind != SINGLE:
        return _rounded(kernel.reshape(n, -1), sums, read.reshape(len(read), -1), most)
    parts = (
        _rounded(
            kernel[c : c + 1, ..., c].reshape(1, 9), sums[:, [c]], read[..., c].reshape(-1, 9), most
        )
        for c in range(n)
    )
    weights, unit, bias = map(np.concatenate, zip(*parts, strict=True))
    return weights, unit, bias


def _rounded(
    weights: NDArray[np.float64], sums: NDArray[np.float64], read: NDArray[np.float64], most: int
) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]:
    """Return whole weights of what is read, their units, and the offsets, of the least error."""
    mean = read.mean(axis=0)
    gram = (read - mean).T @ (read - mean) / len(read)
    # The layers before have changed what is read: other weights make closer sums of it.
    off = sums - sums.mean(axis=0) - (read - mean) @ weights.T
    ridge = gram + (0.01 * np.trace(gram) / len(gram) + 1e-9) * np.eye(len(gram))
    weights = weights + np.linalg.solve(ridge, (read - mean).T @ off / len(read)).T
    # Of a channel without weights, the offset is all there is.
    largest, offset = np.abs(weights).max(axis=1), np.abs(sums).max(axis=0)
    largest = np.where(largest > 0, largest, np.maximum(offset, 1e-30) / 1000)
    units = np.outer(_UNITS, largest / most)
    wholes = np.stack([rounded(weights / unit[:, None], gram, most) for unit in units])
    off = weights - wholes * units[..., None]
    best = np.argmin(((off @ gram) * off).sum(axis=2), axis=0), np.arange(len(weights))
    whole, unit = wholes[best], units[best]
    return whole.astype(np.int8), unit, sums.mean(axis=0) / unit - whole @ mean


def _chains_of(steps: list[Step], whole: Shape, is_positive: bool) -> Maps | None:
    """Return steps of 3 x 3 kernels that do not mix channels as the stage *convolutions*."""
    shape, used = whole, list[Step]()
    for step in steps[:_MOST_LAYERS]:
        window = step.window
        around = (int(is_positive and not used and any(window.around)),) * 4
        is_chain = step.bends and window.size == (3, 3) and window.steps == (1, 1)
        if not is_chain or window.around != around or (used and window.depthwise is None):
            break
        used.append(step)
        shape = step.gives(shape)
    stage = partial(_chains, used, whole)
    return Maps(stage, steps[len(used) :], shape, any(used[0].window.around)) if used else None


def _chains(steps: list[Step], shape: Shape, signal: Signal, bits: int) -> tuple[Stage, Signal]:
    """Return the stage of steps, and the images that it gives.

    All channels of a layer have one shift, by which each has weights as large as they can be.
    """
    grid, first, most = Grid(*shape, "uint8", 0, _TOP), signal.levels, 2 ** (bits - 1) - 1
    signal = _as_images(signal, shape)
    layers: list[tuple[Any, ...]] = []
    for step in steps:
        sums, x, n = step.window.of(signal.x), step.of(signal.x), len(step.window.bias)
        top = np.maximum(sums.max(axis=(0, 1, 2)), 1e-30)
        depthwise = (
            step.window.kernel[..., 0] if step.window.depthwise is None else step.window.depthwise
        )
        by_level = depthwise.reshape(n, 9) * signal.step[:, None]
        largest = np.maximum(np.abs(by_level).max(axis=1), 1e-30 * top)
        mean = step.window.patches(signal.levels).mean(axis=(0, 1, 2)).reshape(9, -1).T
        tried = []
        for shift in range(_SHIFTS):
            gain = np.minimum(_TOP / top, most / (largest * 2.0**shift))
            unit = gain * 2.0**shift
            whole = np.rint(by_level * unit[:, None])
            bias = sums.mean(axis=(0, 1, 2)) * unit - (mean * whole).sum(axis=1) + 2.0**shift / 2
            bias = np.clip(np.rint(bias), -_LARGEST_CHAIN_BIAS, _LARGEST_CHAIN_BIAS)
            layer = whole.reshape(n, 3, 3).astype(np.int8), bias.astype(np.int32), shift, step.pools
            weights, biases, shifts, pools = map(np.stack, zip(*layers, layer, strict=True))
            stage = Convolutions(weights, biases, shifts, pools, steps[0].window.around[0])
            levels = np.asarray(stage.run(first, grid), dtype=np.uint8).reshape(x.shape)
            error = float(np.mean(((levels / gain - x) / top) ** 2))
            tried.append((error, shift, layer, stage, Signal(x, levels, 1 / gain, 0 * gain)))
        _, _, layer, stage, signal = min(tried, key=lambda each: each[:2])
        layers.append(layer)
    n, times = len(first), signal.x[0, ..., 0].size
    step_of, low = np.tile(signal.step, times), np.tile(signal.low, times)
    return stage, Signal(signal.x.reshape(n, -1), signal.levels.reshape(n, -1), step_of, low)
