"""Which layers of images become the stages *separable* and *convolutions*."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from tinykernel.conversion.networks.chains import chained, chains
from tinykernel.conversion.networks.separable import Block, separable, three
from tinykernel.conversion.networks.signal import Signal
from tinykernel.conversion.networks.windows import Shape, Step, Window
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

    Of both stages that which does more of them, and *convolutions* if both do as much.
    """
    if min(shape[:2]) < 2:  # the stages take images
        return None
    is_positive, used = bool(np.min(rows) >= 0), list[Step]()
    maps = _separable_of(steps, shape, is_positive)
    if shape[2] == 1:
        used = chained(steps, is_positive)
    if used and (maps is None or len(steps) - len(used) <= len(maps.rest)):
        gives = shape
        for step in used:
            gives = step.gives(gives)
        stage = partial(chains, used, shape, bits)
        return Maps(stage, steps[len(used) :], gives, any(used[0].window.around))
    return maps


def _separable_of(steps: list[Step], whole: Shape, is_positive: bool) -> Maps | None:
    """Return steps, up to a mean over all positions or as many as fit, as the stage *separable*."""
    blocks: list[Block] = []
    shape, is_flat, rest = whole, True, steps
    while rest:
        step, window = rest[0], rest[0].window
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
    (kind, last), window = block[-1], step.window
    depthwise, size = window.depthwise, window.size
    if depthwise is None or window.steps != size or max(size) > MOST_AVERAGED or size == (1, 1):
        return False
    is_mean = np.allclose(depthwise, 1 / prod(size), rtol=1e-9) and not np.any(window.bias)
    is_free = not (step.pools or last.pools or any(window.around)) and kind == MIXED
    if not is_mean or not is_free or (step.bends and not last.bends):
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
