"""What outputs add up, in whole numbers: multipliers, offsets and the worth of a unit."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.answers import Labels, Values
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.quantization.units import ValueUnits, to_fixed_point
from tinykernel.model.readouts import Linear, Readout, Ternary
from tinykernel.model.stage import Part
from tinykernel.model.stages import Components, Scale

_INT32_MAX = 2**31 - 1
_LARGEST_MULTIPLIER = 4095
_EQUAL_MULTIPLIER = 256


@dataclass(frozen=True, eq=False)
class Sums:
    """Outputs in floats: ``scale * (W z) + offset``, and ``worth * (levels @ q)`` more."""

    scale: NDArray[np.float64]  # (n_outputs,)
    offset: NDArray[np.float64]  # (n_outputs,)
    levels: NDArray[np.int8] | None = None  # (n_outputs, n_features)
    worth: float = 1.0


# Multipliers and offsets of the outputs, the worth of a unit, and multipliers of the linear part.
_Outputs: TypeAlias = tuple[NDArray[Any], NDArray[Any], float, NDArray[Any]]


def kernel_model(
    scaler: Scale,
    components: Components,
    weights: NDArray[np.int8],
    sums: Sums,
    meaning: tuple[object, ...] | ValueUnits,
    packed: bool | None = None,
) -> IntegerModel:
    """Make the model of components, and of the linear part that `sums` may have."""
    # `weights` (n_outputs, p) are W; `meaning` are the classes, or units of values.
    n_sums = np.count_nonzero(weights, axis=1)
    dots = np.zeros(len(weights))
    if sums.levels is not None:
        dots = 2.0 ** (scaler.bits - 1) * np.abs(sums.levels.astype(np.float64)).sum(axis=1)
    answers: Labels | Values
    if isinstance(meaning, ValueUnits):
        worth = np.full(dots.size, 0.0 if sums.levels is None else sums.worth)
        fixed = to_fixed_point(meaning, sums.scale, worth, sums.offset, n_sums, dots)
        answers, unit = fixed.values, fixed.values.unit
        multiplier, offset, linear = fixed.multiplier, fixed.offset, fixed.linear_multiplier
    else:
        answers = Labels(meaning)
        choose = _plain if sums.levels is None else _beside_linear
        multiplier, offset, unit, linear = choose(sums, n_sums, dots)
    parts: list[Part] = [Ternary(weights, multiplier.astype(np.int32), packed)]
    if sums.levels is not None:
        parts.append(Linear(sums.levels, linear.astype(np.int32)))
    return IntegerModel(
        input=Grid.table(scaler.raw_dtype, components.n_features),
        stages=(scaler, components),
        readout=Readout(tuple(parts), offset.astype(np.int32)),
        answers=answers,
        decision_scale=unit,
    )


def _plain(sums: Sums, n_sums: NDArray[np.int64], _: NDArray[np.float64]) -> _Outputs:
    """Choose what a unit of the scores is worth, and round multipliers and offsets to it."""
    scale, offset = sums.scale, sums.offset
    largest = float(np.abs(scale).max())
    if largest == 0:
        unit = max(float(np.abs(offset).max()), 1.0) / _INT32_MAX
    elif np.all(scale == scale[0]) and scale[0] > 0:
        whole = np.all(np.abs(offset / largest - np.rint(offset / largest)) < 1e-6)
        unit = largest if whole else largest / _EQUAL_MULTIPLIER
    else:
        unit = largest / _LARGEST_MULTIPLIER
    while np.any(
        np.rint(np.abs(scale) / unit) * n_sums + np.rint(np.abs(offset) / unit) > _INT32_MAX
    ):
        unit *= 2
    return np.rint(scale / unit), np.rint(offset / unit), unit, np.zeros(0)


def _beside_linear(sums: Sums, n_sums: NDArray[np.int64], dots: NDArray[np.float64]) -> _Outputs:
    """Choose the unit so that a level of the linear part is a whole number of them, exactly."""
    # That number is 0 where a level is worth less than half a unit of scores that fill their
    # integers.
    size = dots * sums.worth + np.abs(sums.scale) * n_sums + np.abs(sums.offset)
    most = (_INT32_MAX // 2) * sums.worth / float(size.max())
    # Below 1 the scores take up what is left of their integers, but for the rounding errors.
    whole = int(min(most, _EQUAL_MULTIPLIER)) if most >= 1 else int(most > 0.51)
    unit = sums.worth / whole if whole else float(size.max()) / (_INT32_MAX // 2)
    multiplier, rounded = np.rint(sums.scale / unit), np.rint(sums.offset / unit)
    return multiplier, rounded, unit, np.full(n_sums.size, float(whole))
