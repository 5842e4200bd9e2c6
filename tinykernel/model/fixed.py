"""Floats as the whole numbers of the firmware: components, outputs, and units of values."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, RangeError
from tinykernel.model.answers import LARGEST_SHIFT, Labels, Values
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.fastfood import Permutation
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.piece import Part, Readout
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.ternary.spec import Ternary

STEPS_PER_TURN = 256  # start and width are 8-bit fractions of a turn
LARGEST_SCALE = 255


@dataclass(frozen=True)
class QuantizedWindows:
    """Phase windows of all rows, shape (n_blocks, d)."""

    scale: NDArray[np.int64]
    start: NDArray[np.int64]
    width: NDArray[np.int64]
    phase_shift: int
    # +1 or -1 where the component is always or never on, 0 where it varies
    constant: NDArray[np.int64]


def quantize_windows(
    start: NDArray[np.float64], width: NDArray[np.float64], slope: NDArray[np.float64]
) -> QuantizedWindows:
    """Round scale, start and width of every row, in turns, to 8 bits."""
    # The phase is ``slope * v + start``. The two phases at which a component turns on and off are
    # rounded.
    if np.abs(slope).max() > 0.5:
        slope = slope - np.rint(slope)  # v is an integer: whole turns a unit change nothing
    # A falling phase enters the window from the other side.
    start = np.where(slope < 0, width - start, start)
    slope = np.abs(slope)
    phase_shift = phase_shift_for(float(slope.max()))
    scale = np.rint(slope * 2.0 ** (32 - phase_shift)).astype(np.int64)
    phase = np.mod(start, 1)
    rising = np.rint(-phase * STEPS_PER_TURN).astype(np.int64)
    falling = np.rint((width - phase) * STEPS_PER_TURN).astype(np.int64)
    rounded = np.clip(falling - rising, 0, STEPS_PER_TURN)
    constant = np.where(rounded == 0, -1, np.where(rounded == STEPS_PER_TURN, 1, 0))
    still = (scale == 0) & (constant == 0)
    constant[still] = np.where(phase < width, 1, -1)[still]
    return QuantizedWindows(scale, -rising % STEPS_PER_TURN, rounded, phase_shift, constant)


def phase_shift_for(largest: float) -> int:
    """Return the smallest shift with which the largest slope, in turns, is an 8-bit scale."""
    phase_shift = 0
    while np.rint(largest * 2.0 ** (32 - phase_shift)) > LARGEST_SCALE:
        phase_shift += 1
    return phase_shift


@dataclass(frozen=True, eq=False)
class Stored:
    """Whole numbers of all rows of all blocks, of which a model keeps those that matter."""

    sign: NDArray[np.int8]
    permutation: Permutation
    diagonal: NDArray[np.int8]  # (n_blocks, d)
    kind: str
    halve: tuple[tuple[bool, ...], tuple[bool, ...]]  # of both transforms.
    windows: QuantizedWindows

    def components(
        self, weights: NDArray[np.int8], small_code: bool = False
    ) -> tuple[Components, NDArray[np.int8], NDArray[np.int64]]:
        """Return what some output weighs and what varies, its weights, and the sum of the rest."""
        # `weights` have the shape (n_outputs, n_blocks, d), those returned (n_outputs, p).
        windows = self.windows
        used = np.any(weights != 0, axis=0) & (windows.constant == 0)
        if not used.any():
            # The firmware has at least one component; this one has no weight.
            used[0, 0] = True
        remaining = used.any(axis=1)
        components = Components(
            sign=self.sign,
            permutation=self.permutation,
            diagonal=self.diagonal[remaining],
            diagonal_kind=self.kind,
            halve_first=self.halve[0],
            halve_second=self.halve[1],
            row_kept=used[remaining],
            scale=np.maximum(windows.scale, 1)[used],
            start=windows.start[used],
            width=np.clip(windows.width, 1, STEPS_PER_TURN - 1)[used],
            phase_shift=windows.phase_shift,
            small_code=small_code,
        )
        constant = np.sum(weights.astype(np.int64) * windows.constant, axis=(1, 2))
        return components, weights[:, used], constant


_Array = NDArray[Any]
_INT32_MAX = 2**31 - 1
# The smallest factor need not be finer: that changes no value by more than its last bits.
_FINE_FACTOR = 2**16 - 1
# By how much rounded factors may move a value, in units of how much the values vary.
_LARGEST_ERROR = 0.05


@dataclass(frozen=True, eq=False)
class ValueUnits:
    """How outputs become values: ``offset + scale * f``."""

    names: tuple[str, ...]
    offset: NDArray[np.float64]  # (n_outputs,)
    scale: NDArray[np.float64]  # (n_outputs,), 0 for a value that never varies, else positive


@dataclass(frozen=True, eq=False)
class FixedSums:
    """Integers of the outputs: ``total = multiplier * sum + linear_multiplier * dot + offset``."""

    multiplier: NDArray[np.int32]
    linear_multiplier: NDArray[np.int32]
    offset: NDArray[np.int32]
    values: Values


def to_fixed_point(
    units: ValueUnits, scale: _Array, linear: _Array, offset: _Array, sums: _Array, dots: _Array
) -> FixedSums:
    """Choose the finest fixed point in which no ``scale * sum + linear * dot + offset`` overflows.

    All have the shape (n_outputs,); `sums` and `dots` bound the magnitudes of sum and dot, 0 where
    there is none. Outputs that differ too much in size for one fixed point are a TinykernelError.

    >>> unit, none = np.ones(1), np.zeros(1)
    >>> fixed = to_fixed_point(ValueUnits(("y",), 20 * unit, unit), unit / 64, none, none,
    ...                        64 * unit, none)
    >>> fixed.values.shift, fixed.multiplier.tolist(), fixed.offset.tolist()
    (21, [32768], [41943040])
    """
    real = np.stack([scale * units.scale, linear * units.scale])
    bounds = np.stack([sums, dots]).astype(np.float64)
    real = np.where(bounds > 0, real, 0.0)
    start = units.offset + units.scale * offset
    if not (np.all(np.isfinite(real)) and np.all(np.isfinite(start))):
        raise DataError("regressor: the values are too large; give them in another unit")
    shift = _finest(real, bounds, start)
    factors, rounded = np.rint(real * 2.0**shift), np.rint(start * 2.0**shift)
    error = (np.abs(factors - real * 2.0**shift) * bounds).sum(axis=0) + 1
    if np.any((error > _LARGEST_ERROR * units.scale * 2.0**shift) & (units.scale > 0)):
        remedy = "give outputs that differ much in size a model each"
        if start.size == 1:
            remedy = "give the difference from the mean, or fewer inputs to the linear part"
        raise RangeError(f"regressor: 32 bits are too few for the values; {remedy}")
    return FixedSums(
        factors[0].astype(np.int32),
        factors[1].astype(np.int32),
        rounded.astype(np.int32),
        Values(units.names, shift),
    )


def _finest(
    real: NDArray[np.float64], bounds: NDArray[np.float64], start: NDArray[np.float64]
) -> int:
    """Return the largest shift at which every sum of the firmware fits into int32."""
    smallest = float(np.abs(real[real != 0]).min(initial=np.inf))
    size, at = (
        (smallest, _FINE_FACTOR)
        if np.isfinite(smallest)
        else (float(np.abs(start).max()) or 1.0, 2**30)
    )
    shift = int(np.clip(np.floor(np.log2(at / size)), -LARGEST_SHIFT, LARGEST_SHIFT))
    while shift > -LARGEST_SHIFT:
        factors, rounded = np.rint(np.abs(real) * 2.0**shift), np.rint(np.abs(start) * 2.0**shift)
        most = (factors * bounds).sum(axis=0) + rounded
        if most.max() <= _INT32_MAX:
            break
        shift -= 1
    return shift


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
