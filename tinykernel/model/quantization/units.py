"""What the scores of a regressor mean: values, in floats and in fixed point."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import DataError, RangeError
from tinykernel.model.answers.values import LARGEST_SHIFT, Values

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
