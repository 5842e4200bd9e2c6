"""Layers of images in floats as the stage *separable*."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.conversion.networks.windows import Shape, Signal, Step, Window, rounded
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.layers import MIXED, POINT, SINGLE, Layer
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.separable.spec import Separable

#: Kinds of layers, and the steps that they are.
Block: TypeAlias = list[tuple[str, Step]]
_TOP = 255
_POSITIONS = 1 << 14  # that weights are rounded for
_UNITS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)  # of a weight, over that which clips none
_COARSE = (1.4, 2.0, 2.8, 4.0, 5.6, 8.0)  # where an offset would be too large
_PEAKS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # values before a mean, over the largest level
_LARGEST_BIAS = (1 << 19) - 1


def three(window: Window, shape: Shape) -> Window | None:
    """Return a window as one of 3 x 3 with or without zeros around; None if it is none."""
    if window.steps not in ((1, 1), (2, 2)):
        return None
    if window.size == (3, 3) and not any(window.around):
        return window
    (rows, columns), above, before = window.size, 1 - window.around[0], 1 - window.around[1]
    if min(above, before) < 0 or max(above + rows, before + columns) > 3:
        return None
    more = (0, 0), (above, 3 - above - rows), (before, 3 - before - columns), (0, 0)
    padded = Window(np.pad(window.kernel, more), window.bias, window.steps, (1, 1, 1, 1))
    return padded if padded.gives(shape) == window.gives(shape) else None


def separable(
    blocks: list[Block], shape: Shape, is_flat: bool, signal: Signal, border: int
) -> tuple[Stage, Signal]:
    """Return the stage of steps by block, and the means or the image that it gives."""
    first, signal = signal.levels, signal.images(shape)
    layers, forms, last = list[Layer](), list[list[int]](), blocks[-1][-1][1]
    for number, block in enumerate(blocks):
        around = 1
        for kind, step in block:
            size = signal.x.shape[1], signal.x.shape[2], signal.x.shape[3]
            peaks = _PEAKS if step is last and not is_flat else _PEAKS[:1]
            if kind != POINT:
                step = replace(step, window=three(step.window, size) or step.window)
                around = step.window.around[0]
            edge = 0 if number else border
            layer, signal = _layer(kind, step, signal, edge, peaks)
            layers.append(layer)
        forms.append([int(kind == MIXED), around, *step.pool, int(step.averages)])
    usual = [[int(block == 0), 1, 1, 1, 0] for block in range(len(blocks))]
    weights, *parts = (
        np.concatenate([getattr(layer, name).ravel() for layer in layers])
        for name in ("weights", "biases", "multipliers", "shifts")
    )
    stage = Separable(
        np.array([len(layer.biases) for layer in layers if layer.kind != SINGLE], np.uint16),
        np.array([layer.steps[1] for layer in layers if layer.kind != POINT], np.uint8),
        shape[2],
        weights,
        parts[0],
        parts[1],
        parts[2],
        forms=None if forms == usual else np.array(forms, np.uint8),
        flat=is_flat,
        border=border,
    )
    if is_flat:
        return stage, signal.flat()
    means = np.asarray(stage.run(first, Grid(*shape, "uint8", 0, _TOP)), dtype=np.uint8)
    return stage, Signal(signal.x.mean(axis=(1, 2)), means, signal.step, signal.low)


def _layer(
    kind: str, step: Step, before: Signal, border: int, peaks: tuple[float, ...]
) -> tuple[Layer, Signal]:
    """Return a layer of the stage, and the images that it gives.

    Of each channel, a sum a of rounded weights is worth `unit` a, and ``a * multiplier >> shift``
    is a level. The largest value becomes 255. Of the last layer, whose means follow, larger ones
    can clip at few positions, where the means are closer then.
    """
    sums, n = step.window.of(before.x), len(step.window.bias)
    low = np.zeros(n) if step.bends else sums.min(axis=(0, 1, 2))
    x = step.after(sums)
    top, goal = np.maximum((x - low).max(axis=(0, 1, 2)), 1e-30), (x - low).mean(axis=(1, 2))
    most = 127 if kind == MIXED else 7
    weights, unit, bias = rounded_sums(
        kind, step.window, sums - low, before, border, top / _TOP, most
    )
    error, parts = np.full(n, np.inf), np.zeros((3, n), np.int32)
    form = {MIXED: (n, 3, 3, -1), SINGLE: (n, 3, 3), POINT: (n, -1)}[kind]
    around = step.window.around[0], step.window.around[0]
    # Whatever the levels before, no product leaves int32.
    reach = _TOP * np.abs(weights.reshape(n, -1).astype(np.int64)).sum(axis=1) + _LARGEST_BIAS
    largest = np.minimum(127, (2**31 - 1) // reach)

    def layer_of(parts: NDArray[np.int32]) -> Layer:
        multipliers, shifts = parts[1:].astype(np.uint8)
        whole, pool = weights.reshape(form), (step.pool, step.averages, border)
        units = parts[0], multipliers, shifts
        return Layer(kind, step.window.steps, around, whole, *units, *pool)

    for peak in peaks:
        gain = np.minimum(peak * _TOP / top * unit, 127.0)  # levels of a sum
        shifts = np.clip(np.floor(np.log2(largest / gain) + 1e-9), 0, 24)
        multipliers = np.clip(np.floor(gain * 2.0**shifts + 1e-6), 1, largest)
        half = 2.0**shifts / 2 / multipliers  # rounds to the nearest level
        biases = np.clip(np.rint(bias + half), -_LARGEST_BIAS, _LARGEST_BIAS)
        tried = np.stack([biases, multipliers, shifts]).astype(np.int32)
        means = layer_of(tried).run(before.levels).mean(axis=(1, 2))
        off = np.mean((means * unit * 2.0**shifts / multipliers - goal) ** 2, axis=0)
        error, parts = np.minimum(off, error), np.where(off < error, tried, parts)
    levels = layer_of(parts).run(before.levels)
    return layer_of(parts), Signal(x, levels, unit * 2.0 ** parts[2] / parts[1], low)


def rounded_sums(
    kind: str,
    window: Window,
    sums: NDArray[np.float64],
    before: Signal,
    border: int,
    level: NDArray[np.float64],
    most: int,
) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]:
    """Return whole weights by channel, what one is worth, and offsets in these units."""
    patches = window.patches(before.levels, border)
    size = int(np.prod(patches.shape[:3]))
    places = np.linspace(0, size - 1, min(size, _POSITIONS)).astype(int)
    chosen = np.unravel_index(places, patches.shape[:3])
    read, sums = patches[chosen].astype(np.float64), sums[chosen]
    kernel, n = window.kernel * before.step, len(window.bias)
    if kind != SINGLE:
        flat = kernel.reshape(n, -1), sums, read.reshape(len(read), -1)
        return _rounded(*flat, level, most)
    parts = (
        _rounded(
            kernel[c : c + 1, ..., c].reshape(1, -1),
            sums[:, [c]],
            read[..., c].reshape(len(read), -1),
            level[[c]],
            most,
        )
        for c in range(n)
    )
    weights, unit, bias = map(np.concatenate, zip(*parts, strict=True))
    return weights, unit, bias


def _rounded(
    weights: NDArray[np.float64],
    sums: NDArray[np.float64],
    read: NDArray[np.float64],
    level: NDArray[np.float64],
    most: int,
) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]:
    """Return whole weights of what is read, their units, and the offsets, of the least error.

    A unit is a multiplier of 64 to 127 and a shift below a level of the sums, where it can be.
    """
    mean = read.mean(axis=0)
    gram = (read - mean).T @ (read - mean) / len(read)
    # The layers before have changed what is read: other weights make closer sums of it.
    off = sums - sums.mean(axis=0) - (read - mean) @ weights.T
    ridge = gram + (0.01 * np.trace(gram) / len(gram) + 1e-9) * np.eye(len(gram))
    weights = weights + np.linalg.solve(ridge, (read - mean).T @ off / len(read)).T
    # Of a channel without weights, the offset is all there is.
    largest, offset = np.abs(weights).max(axis=1), np.abs(sums).max(axis=0)
    largest = np.where(largest > 0, largest, np.maximum(offset, 1e-30) / 1000)

    def of_units(shares: tuple[float, ...]) -> tuple[NDArray[np.float64], ...]:
        units = np.outer(shares, largest / most)
        shifts = np.floor(np.log2(127 * level / units))
        units = np.maximum(np.floor(units / level * 2.0**shifts), 1) * level / 2.0**shifts
        wholes = np.stack([rounded(weights / unit[:, None], gram, most) for unit in units])
        biases = sums.mean(axis=0) / units - wholes @ mean
        off = weights - wholes * units[..., None]
        error = ((off @ gram) * off).sum(axis=2) + 1e30 * (np.abs(biases) > _LARGEST_BIAS)
        best = np.argmin(error, axis=0), np.arange(len(weights))
        return wholes[best], units[best], biases[best]

    parts = of_units(_UNITS)
    if np.any(np.abs(parts[2]) > _LARGEST_BIAS):
        parts = of_units(_UNITS + _COARSE)
    return parts[0].astype(np.int8), parts[1], parts[2]
