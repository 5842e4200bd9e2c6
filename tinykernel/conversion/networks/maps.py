"""Which layers of images become the stages *separable* and *convolutions*."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.conversion.networks.filters import filtered, filters, needs_filters
from tinykernel.conversion.networks.separable import Block, separable, three
from tinykernel.conversion.networks.windows import Shape, Signal, Step, Window, shapes_of
from tinykernel.pieces.convolutions.spec import Convolutions
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.layers import MIXED, POINT, SINGLE
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.separable.spec import MOST_AVERAGED, MOST_CHANNELS, MOST_POOLED

_MOST_BLOCKS = 16


@dataclass(frozen=True)
class Maps:
    """The first steps of a network as a stage, and the others."""

    stage: Callable[[Signal, int], tuple[Stage, Signal]]  # of the input, and the level of 0 in it
    rest: list[Step]
    gives: Shape
    around: bool  # whether zeros are around the input


def maps_of(steps: list[Step], shape: Shape, rows: NDArray[np.generic], bits: int) -> Maps | None:
    """Return the first steps as a stage; None if there is none.

    Of *separable* and *convolutions* that which does more of them, and *convolutions* if both do as
    much; *filters* if something is left that needs it.
    """
    is_chain = min(shape[:2]) > 1 and not any(step.branches for step in steps)
    maps = _of_images(steps, shape, rows, bits) if is_chain else None
    rest, end = (maps.rest, maps.gives) if maps else (steps, shape)
    is_column = shape[0] > shape[1] == 1  # whose values are a table with levels of their own
    if is_column or not any(map(needs_filters, rest[:-1], shapes_of(rest, end))):
        return maps
    used, rest = filtered(steps, shape)
    gives = shapes_of(used, shape)[-1]
    around = any(step.window.around[i] for step in used[:1] for i in range(4))
    return Maps(partial(filters, used, shape, bits), rest, gives, around)


def _of_images(
    steps: list[Step], shape: Shape, rows: NDArray[np.generic], bits: int
) -> Maps | None:
    """Return the first steps as *separable* or *convolutions*; None if neither takes one."""
    is_positive, used = bool(np.min(rows) >= 0), list[Step]()
    maps = _separable_of(steps, shape, is_positive)
    if shape[2] == 1:
        used = chained(steps, is_positive)
    if used and (maps is None or len(steps) - len(used) <= len(maps.rest)):
        gives = shapes_of(used, shape)[-1]
        stage = partial(chains, used, shape, bits)
        return Maps(stage, steps[len(used) :], gives, any(used[0].window.around))
    return maps


def _separable_of(steps: list[Step], whole: Shape, is_positive: bool) -> Maps | None:
    """Return steps, up to a mean over all positions or as many as fit, as the stage *separable*."""
    blocks: list[Block] = []
    shape, is_flat, rest = whole, True, steps
    while rest:
        step, window = rest[0], rest[0].window
        if step.curve:
            break
        depthwise = window.depthwise
        if blocks and depthwise is not None and _is_mean(step, depthwise, shape):
            sums = Window.line(depthwise.sum(axis=(1, 2)), window.bias)
            rest, shape, is_flat = [replace(step, window=sums), *rest[1:]], (1, 1, shape[2]), False
            break
        if not (blocks and _averaged(blocks[-1], step)):
            kind = MIXED if not blocks or depthwise is None else SINGLE
            kind = POINT if blocks and window.is_pointwise else kind
            is_sum = window.size == shape[:2] and not any(window.around)  # of an image
            # Level 0 is 0 only of values from 0 up, and of the input the border can be.
            is_open = not blocks or is_positive or not any(window.around)
            fits = kind == POINT or three(window, shape) is not None
            if len(rest) == 1 or is_sum or not is_open or not fits or not _is_small(step, blocks):
                break
            if blocks and (kind == POINT) != (blocks[-1][-1][0] == SINGLE):
                _copy(blocks, POINT if kind != POINT else SINGLE, is_positive)
            is_positive = step.bends or (is_positive and _is_rising(window))
            # Patches are those of the last layer of a block.
            pool, before = step.pool, (1, 1) if kind == SINGLE else step.pool
            _add(blocks, kind, replace(step, bends=is_positive, pool=before))
            if pool != before:
                _copy(blocks, POINT, is_positive, pool)
        rest, shape = rest[1:], step.gives(shape)
    if not blocks:
        return None
    if blocks[-1][-1][0] == SINGLE:
        _copy(blocks, POINT, is_positive)
    stage = partial(separable, blocks, whole, is_flat)
    return Maps(stage, rest, shape, any(blocks[0][0][1].window.around))


def _add(blocks: list[Block], kind: str, step: Step) -> None:
    """Add a layer: a point layer ends a block, others begin one."""
    if kind == POINT:
        blocks[-1].append((kind, step))
    else:
        blocks.append([(kind, step)])


def _copy(
    blocks: list[Block], kind: str, is_positive: bool, pool: tuple[int, int] = (1, 1)
) -> None:
    """Add a layer that changes nothing but the patches of a block."""
    ones = np.ones(len(blocks[-1][-1][1].window.bias))
    _add(blocks, kind, Step("", Window.line(ones, 0 * ones), is_positive, pool=pool))


def _averaged(block: Block, step: Step) -> bool:
    """Whether a step is means of patches, which the layer before it then makes."""
    kind, last = block[-1]
    size = step.patch
    if size is None or max(size) > MOST_AVERAGED or kind != MIXED or not last.can_average(step):
        return False
    block[-1] = kind, replace(last, pool=size, averages=True)
    return True


def _is_small(step: Step, blocks: list[Block]) -> bool:
    return (
        len(blocks) < _MOST_BLOCKS - 1
        and max(step.window.kernel.shape[::3]) <= MOST_CHANNELS
        and max(step.pool) <= MOST_POOLED
    )


def _is_mean(step: Step, depthwise: NDArray[np.float64], shape: Shape) -> bool:
    is_whole = step.window.size == shape[:2] and not (any(step.window.around) or step.pools)
    return is_whole and bool(np.all(depthwise == depthwise[:, :1, :1]))


def _is_rising(window: Window) -> bool:
    """Whether it makes values from 0 up of such ones, as means do."""
    return bool(np.min(window.kernel) >= 0 and np.min(window.bias) >= 0)


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
        sums, x, n = step.window.of(signal.x), step.of([signal.x]), len(step.window.bias)
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
