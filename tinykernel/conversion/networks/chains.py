"""Layers of images in floats as the stage *convolutions*."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinykernel.conversion.networks.signal import Signal
from tinykernel.conversion.networks.windows import Shape, Step
from tinykernel.pieces.convolutions.spec import Convolutions
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage

_TOP = 255
_MOST_LAYERS = 8
_SHIFTS = 16
_LARGEST_BIAS = 1 << 24


def chained(steps: list[Step], is_positive: bool) -> list[Step]:
    """Return the first steps of 3 x 3 kernels that do not mix channels, as the stage takes them."""
    used = list[Step]()
    for step in steps[:_MOST_LAYERS]:
        window = step.window
        around = (int(is_positive and not used and any(window.around)),) * 4
        is_chain = step.bends and window.size == (3, 3) and window.steps == (1, 1)
        is_chain &= step.pool in ((1, 1), (2, 2)) and step.top == np.inf
        if not is_chain or window.around != around or (used and window.depthwise is None):
            break
        used.append(step)
    return used


def chains(
    steps: list[Step], shape: Shape, bits: int, signal: Signal, border: int
) -> tuple[Stage, Signal]:
    """Return the stage of steps, and the images that it gives.

    All channels of a layer have one shift, by which each has weights as large as they can be.
    """
    grid, first, most = Grid(*shape, "uint8", 0, _TOP), signal.levels, 2 ** (bits - 1) - 1
    signal = signal.images(shape)
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
            bias = np.clip(np.rint(bias), -_LARGEST_BIAS, _LARGEST_BIAS)
            layer = whole.reshape(n, 3, 3).astype(np.int8), bias.astype(np.int32), shift, step.pools
            weights, biases, shifts, pools = map(np.stack, zip(*layers, layer, strict=True))
            stage = Convolutions(weights, biases, shifts, pools, steps[0].window.around[0])
            levels = np.asarray(stage.run(first, grid), dtype=np.uint8).reshape(x.shape)
            error = float(np.mean(((levels / gain - x) / top) ** 2))
            tried.append((error, shift, layer, stage, Signal(x, levels, 1 / gain, 0 * gain)))
        _, _, layer, stage, signal = min(tried, key=lambda each: each[:2])
        layers.append(layer)
    return stage, signal.flat()
