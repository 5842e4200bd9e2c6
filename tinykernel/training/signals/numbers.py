"""Numbers beside a window: what training sees of them, and their stage."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.model.quantization.scale import quantize_scaler
from tinykernel.model.quantization.scaling import InputScaling
from tinykernel.model.stages.beside import MOST_ENTRIES, Beside
from tinykernel.model.stages.scale import Scale
from tinykernel.training.options import TrainerOptions
from tinykernel.training.trainset import TrainSet

# Where the ramps of a number meet, in shares of the training rows.
_RAMPS = (0.001, 0.25, 0.5, 0.75, 0.999)
_MOST_NUMBERS = MOST_ENTRIES // (len(_RAMPS) - 1)


def with_levels(
    data: TrainSet, shape: tuple[int, ...], options: TrainerOptions
) -> tuple[Beside | None, TrainSet]:
    """Return the stage of the numbers, and rows of windows and levels of their numbers."""
    if not options.beside:
        return None, data
    size = shape[0] * shape[1]
    if data.X.shape[1] - size != options.beside:
        raise TinykernelError(
            "beside: give rows of the values of a window and its numbers, with a window_shape"
        )
    if options.beside > _MOST_NUMBERS:
        raise TinykernelError(f"beside: {options.beside} numbers; {_MOST_NUMBERS} are the most")
    stage = _beside(data.X[:, size:], data.raw_dtype)

    def levels(rows: NDArray[Any]) -> NDArray[Any]:
        return np.hstack([rows[:, :size], stage.levels(rows[:, size:]).astype(np.uint8)])

    return stage, data.seen(levels)


def _beside(numbers: NDArray[Any], raw_dtype: str) -> Beside:
    """Return the stage of the numbers of training rows.

    Each number has ramps between quartiles of the training rows, so that the linear part can bend:
    beats with the time since the last one are classified 2.5 points better than by one range.
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


def scaler_between(
    low: NDArray[np.float64], high: NDArray[np.float64], raw_dtype: str, bits: int
) -> Scale:
    """Return the scaler of these ranges; of none it is constant."""
    varies = high > low
    scale = np.where(varies, (2 - 2.0 ** (1 - bits)) / np.where(varies, high - low, 1.0), 0.0)
    lowest, highest = np.full(low.size, -1.0), np.full(low.size, 1 - 2.0 ** (1 - bits))
    scaling = InputScaling((low + high) / 2, scale, lowest, highest)
    return quantize_scaler(scaling, raw_dtype, bits).scaler
