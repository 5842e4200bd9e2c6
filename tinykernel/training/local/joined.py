"""Numbers beside a window, and sums over it: what training sees of them, and their stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.quantization.scale import quantize_scaler
from tinykernel.model.quantization.scaling import InputScaling
from tinykernel.model.stage import Stage
from tinykernel.model.stages.beside import MOST_ENTRIES, Beside
from tinykernel.model.stages.scale import Scale
from tinykernel.model.stages.sums import Summed, Sums
from tinykernel.training.options import TrainerOptions
from tinykernel.training.trainset import TrainSet

#: Stages by which numbers become counts behind those of kernels.
Joined: TypeAlias = Beside | Summed
# Where the ramps of a number meet, in shares of the training rows.
_RAMPS = (0.001, 0.25, 0.5, 0.75, 0.999)
_MOST_NUMBERS = MOST_ENTRIES // (len(_RAMPS) - 1)
# The one range of a sum: what is rare does not stretch it.
_RANGE = (0.05, 0.95)


def joined_numbers(
    data: TrainSet, shape: tuple[int, ...], options: TrainerOptions, sums: bool
) -> tuple[tuple[Joined, ...], TrainSet]:
    """Return the stages of numbers and of sums, and rows of windows and the levels of both."""
    size, found = shape[0] * shape[1], list[Joined]()
    if options.beside:
        if data.X.shape[1] - size != options.beside:
            raise TinykernelError(
                "beside: give rows of the values of a window and its numbers, with a window_shape"
            )
        if options.beside > _MOST_NUMBERS:
            raise TinykernelError(f"beside: {options.beside} numbers; {_MOST_NUMBERS} are the most")
        found.append(_beside(data.X[:, size:], data.raw_dtype))
    grid = Grid.raw(data.raw_dtype, shape[0], 1, shape[1])
    if sums:
        found.append(_summed(Sums(), data.X[:, :size], grid))

    def seen(rows: NDArray[Any]) -> NDArray[Any]:
        windows, numbers = rows[:, :size], rows[:, size:]
        levels = [
            stage.levels(Sums().numbers(windows, grid) if isinstance(stage, Summed) else numbers)
            for stage in found
        ]
        return np.hstack([windows, *(each.astype(np.uint8) for each in levels)])

    return tuple(found), seen_by(data, seen) if found else data


def _beside(numbers: NDArray[Any], raw_dtype: str) -> Beside:
    """Return the stage of the numbers of training rows.

    Each number has ramps between quartiles of the training rows, so that the linear part can bend:
    beats with the time since the last one are told 2.5 points better than by one range.
    """
    ranges, source = list[tuple[float, float]](), list[int]()
    for number, values in enumerate(numbers.astype(np.float64).T):
        edges = np.unique(np.quantile(values, _RAMPS))
        if edges.size < 2:
            edges = np.unique([values.min(), values.max()])
        if edges.size < 2:
            raise TinykernelError(
                f"X: number {number} beside never varies (the first is 0); leave it out"
            )
        ranges += pairwise(edges.tolist())
        source += [number] * (len(ranges) - len(source))
    low, high = np.array(ranges).T
    scaler = scaler_between(low, high, raw_dtype, 8)
    each = {name: np.broadcast_to(array, len(source)) for name, array in scaler.arrays.items()}
    return Beside(Scale(scaler.raw_dtype, 8, **each), np.array(source), 255)


def _summed(sums: Sums, windows: NDArray[Any], grid: Grid) -> Summed:
    """Return the stage of the sums that vary, each over the range of nearly all windows."""
    sums.gives(grid)
    numbers = sums.numbers(windows, grid)[:, :MOST_ENTRIES]
    low, high = np.quantile(numbers, _RANGE, axis=0, method="nearest").astype(np.int64)
    still = high <= low
    low, high = (
        np.where(still, numbers.min(axis=0), low),
        np.where(still, numbers.max(axis=0), high),
    )
    source = np.flatnonzero(high > low)
    if not source.size:
        raise TinykernelError("sums: none of them varies; leave sums=on out")
    factor = np.minimum(16 * 255 // (high - low)[source], 255)
    return Summed(source.astype(np.uint8), low[source], factor, 255)


def seen_by(data: TrainSet, seen: Callable[[NDArray[Any]], NDArray[Any]]) -> TrainSet:
    """Put what is made of rows in their place."""
    validation = data.validation
    if validation is not None:
        validation = (seen(validation[0]), validation[1])
    return replace(data, X=seen(data.X), validation=validation)


def with_own(stages: tuple[Stage, ...], joined: tuple[Joined, ...]) -> tuple[Stage, ...]:
    """Put the stages of numbers in the place of the one that took their levels."""
    found = list[Stage]()
    for stage in stages:
        own = [replace(one, top=stage.top) for one in joined] if isinstance(stage, Beside) else None
        found += [stage] if own is None else own
    return tuple(found)


def scaler_between(
    low: NDArray[np.float64], high: NDArray[np.float64], raw_dtype: str, bits: int
) -> Scale:
    """Return the scaler of these ranges; of none it is constant."""
    varies = high > low
    scale = np.where(varies, (2 - 2.0 ** (1 - bits)) / np.where(varies, high - low, 1.0), 0.0)
    lowest, highest = np.full(low.size, -1.0), np.full(low.size, 1 - 2.0 ** (1 - bits))
    scaling = InputScaling((low + high) / 2, scale, lowest, highest)
    return quantize_scaler(scaling, raw_dtype, bits).scaler
