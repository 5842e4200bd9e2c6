"""The scaler of the inputs in floats, and as the stage `Scale`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError
from tinykernel.pieces.scale.spec import Scale

_KEPT = ("uint8", "int8", "uint16", "int16")


def raw_dtype_of(dtype: np.dtype[Any]) -> str:
    """Return the raw input type for training data of a dtype; int32 for integers over 16 bits."""
    if dtype.kind == "f":
        return "float32"
    if dtype.kind == "b":
        return "uint8"
    if dtype.kind in "iu":
        return dtype.name if dtype.name in _KEPT else "int32"
    raise DataError(f"X: values of type {dtype} are not numbers that firmware can take")


def to_raw(X: NDArray[Any], raw_dtype: str) -> NDArray[Any]:
    """Convert finite rows (n, n_features) to a raw type of `raw_dtype_of`, in C order."""
    # A TinykernelError names the first row and column whose value does not fit.
    dtype = np.dtype(raw_dtype)
    limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    low, high = float(limits.min), float(limits.max)
    if X.dtype != dtype and X.size and (X.min().item() < low or X.max().item() > high):
        row, column = np.argwhere(np.less(X, low) | np.greater(X, high))[0].tolist()
        raise DataError(
            f"X: row {row}, column {column} is {X[row, column]}, which {raw_dtype}, the widest "
            "type the firmware takes, cannot hold; rescale the column"
        )
    return np.ascontiguousarray(X, dtype=dtype)


@dataclass(frozen=True, eq=False)
class InputScaling:
    """A scaler in floats: ``x' = clip((x - offset) * scale, low, high)``."""

    offset: NDArray[np.float64]  # (n_features,), like the others
    scale: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def choose_scope(X: NDArray[Any], scope: str) -> str:
    """Decide whether inputs (n, n_features) have a scaler each, "feature", or share one, "global".

    "auto" shares one where most of the inputs that vary span at least half of the common range.

    >>> choose_scope(np.array([[0, 0], [16, 12]]), "auto")
    'global'
    >>> choose_scope(np.array([[0, 0], [1, 900]]), "auto")
    'feature'
    """
    if scope != "auto":
        return scope
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    varies = high > low
    if not varies.any():
        return "feature"
    # Halves, because the range of float64 extremes would overflow.
    whole = 0.5 * high[varies].max() - 0.5 * low[varies].min()
    spread = 0.5 * high[varies] - 0.5 * low[varies]
    return "global" if np.mean(spread >= 0.5 * whole) > 0.5 else "feature"


_SAMPLES = 4096
_INT32 = np.iinfo(np.int32)
# 2**100: a difference that binary32 can only hold as a subnormal number stays far below one level.
_LARGEST_FLOAT_MULTIPLIER = 2.0**100


@dataclass(frozen=True)
class QuantizedInputs:
    """An input scaler and what its integers stand for: ``x'_i ~ step * q_i + centre_i``."""

    scaler: Scale
    step: float  # scaled units per level, the same for all inputs because B holds only signs.
    # The scaled value that ``q = 0`` stands for; of a constant input, its value.
    centre: NDArray[np.float64]  # (n_inputs,)


def quantize_scaler(scaling: InputScaling, raw_dtype: str, bits: int) -> QuantizedInputs:
    """Choose the integers that stand for scaled inputs.

    Each level stands for the mean of the scaled values that fall on it, the lowest and the highest
    for ``low`` and ``high``, where saturated values and the background of images lie.

    The quantized value 0 stands for the scaled value 0, so that no phase has to be corrected,

    * where ``low = -1`` and ``high = 1 - step`` with ``step = 2 / 2**bits``, for all
      inputs, and raw values are floats, or integers with whole numbers k of levels per unit:
      ``scale = k * step``;
    * for raw integers in ``first..last`` with fewer levels than there are: where ``k = (2**bits -
      1) // (last - first)``, ``scale = k * step``, ``offset = first + 1 / (k * step)``,
      ``low = -1`` and ``high = k * step * (last - first) - 1``, the same k for all inputs. This
      loses nothing.
    """
    varying = (scaling.scale > 0) & (scaling.high > scaling.low)
    if not varying.any():
        span = None if raw_dtype == "float32" else np.zeros(1, dtype=np.uint32)
        scaler = Scale(raw_dtype, bits, np.zeros(1), np.zeros(1), span)
        return QuantizedInputs(scaler, 1.0, _constant_values(scaling))
    if raw_dtype == "float32":
        return _float_scaler(scaling, bits, varying)
    return _integer_scaler(scaling, raw_dtype, bits, varying)


def _constant_values(scaling: InputScaling) -> NDArray[np.float64]:
    return np.clip(np.zeros(scaling.scale.size), scaling.low, scaling.high)


def _one_scale(values: NDArray[Any]) -> NDArray[Any]:
    """Return one value if all inputs have the same, else all values."""
    return values[:1] if np.all(values == values[0]) else values


def _float_scaler(scaling: InputScaling, bits: int, varying: NDArray[np.bool_]) -> QuantizedInputs:
    """Choose ``level = floor((x' - low) / step + 1/2)``; a narrower input sits in the middle."""
    top = (1 << bits) - 1
    low, scale = scaling.low, np.where(varying, scaling.scale, 1.0)
    width = np.where(varying, scaling.high - low, 0.0)
    step = float(width.max()) / top
    multiplier = np.minimum(scale / step, _LARGEST_FLOAT_MULTIPLIER)
    lowest = np.floor((top - width / step) / 2 + 1e-6)
    offset = scaling.offset + low / scale - (lowest + 0.5) / multiplier
    multiplier = np.where(varying, multiplier, 0).astype(np.float32)
    offset = np.where(varying, offset, 0).astype(np.float32)
    # What the rounded numbers stand for: level t + 1/2 is the middle of bucket t.
    middle = 1 << (bits - 1)
    with np.errstate(divide="ignore"):
        raw = offset.astype(np.float64) + (middle + 0.5) / multiplier.astype(np.float64)
    with np.errstate(invalid="ignore"):
        centre = np.where(varying, (raw - scaling.offset) * scale, _constant_values(scaling))
    scaler = Scale("float32", bits, _one_scale(offset), _one_scale(multiplier))
    return QuantizedInputs(scaler, step, centre)


@dataclass(frozen=True)
class _RawRange:
    """Raw integers ``first..last`` that a scaler distinguishes, as ``low + slope (x - first)``."""

    first: int
    last: int
    slope: float
    low: float

    @property
    def width(self) -> float:
        """Scaled units from first to last."""
        return self.slope * (self.last - self.first)

    def line(self, raw: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scaled values of raw integers, constant outside of first..last."""
        above = np.clip(raw, self.first, self.last) - self.first
        return np.asarray(self.low + self.slope * above, dtype=np.float64)


def _samples(first: int, last: int) -> NDArray[np.int64]:
    """Return all integers from first to last, or enough of them."""
    return np.unique(np.linspace(first, last, min(last - first + 1, _SAMPLES)).astype(np.int64))


def _raw_range(scaling: InputScaling, raw_dtype: str, i: int) -> _RawRange:
    """Fit a straight line with ends to the scaled raw integers of input i."""
    # Where saturation begins between two integers, either the line has the slope of the scaler and
    # ends at the integers nearest to saturation, or it joins the first saturated integers at both
    # ends, which is better where there are no more than two or three: a standardised flag.
    limits = np.iinfo(raw_dtype)
    scale, offset = float(scaling.scale[i]), float(scaling.offset[i])
    saturation = np.array([scaling.low[i], scaling.high[i]])
    ends = offset + saturation / scale
    # 1e-5 forgives the rounding of float64 where the ends are whole numbers up to 2**31.
    outer = np.clip([np.floor(ends[0] + 1e-5), np.ceil(ends[1] - 1e-5)], limits.min, limits.max)
    nearest = np.clip(np.rint(ends), limits.min, limits.max)
    samples = _samples(int(outer[0]), int(outer[1]))
    wanted = np.clip((samples - offset) * scale, *saturation)
    slope = float(wanted[-1] - wanted[0]) / max(int(outer[1] - outer[0]), 1)
    chord = _RawRange(int(outer[0]), int(outer[1]), slope, float(wanted[0]))
    low = float(nearest[0] - offset) * scale
    exact = _RawRange(int(nearest[0]), int(nearest[1]), scale, low)
    errors = [np.abs(wanted - fit.line(samples)).mean() for fit in (chord, exact)]
    return chord if errors[0] <= errors[1] + 1e-9 * scale else exact


def _integer_scaler(
    scaling: InputScaling, raw_dtype: str, bits: int, varying: NDArray[np.bool_]
) -> QuantizedInputs:
    """Choose offset, span and multiplier of every input, then what its levels stand for."""
    ranges = {int(i): _raw_range(scaling, raw_dtype, int(i)) for i in np.flatnonzero(varying)}
    # Within its raw type an input may be constant.
    centre = _constant_values(scaling)
    for i in [i for i, raw in ranges.items() if raw.last == raw.first or raw.width <= 0]:
        centre[i] = ranges.pop(i).low
    fields = np.zeros((4, varying.size), dtype=np.int64)
    step = _integer_step(ranges, (1 << bits) - 1)
    for i, raw in ranges.items():
        fields[:, i] = _integer_fields(raw, step, bits)
    offset, multiplier, span, pre_shift = (_one_scale(row) for row in fields)
    scaler = Scale(raw_dtype, bits, offset, multiplier, span, pre_shift)
    for i, raw in ranges.items():
        samples = _samples(raw.first, raw.last)
        first, factor, last, drop = fields[:, i].tolist()
        level = (((np.clip(samples - first, 0, last) >> drop) * factor) >> 16) - (1 << (bits - 1))
        centre[i] = float(np.mean(raw.line(samples) - step * level))
    return QuantizedInputs(scaler, step, centre)


def _integer_step(ranges: dict[int, _RawRange], top: int) -> float:
    """Return scaled units per level."""
    # Where all inputs have the same number of levels per raw unit, and at least one, a whole number
    # of levels loses nothing: bytes then pass through unchanged.
    if not ranges:
        return 1.0
    step = max(raw.width for raw in ranges.values()) / top
    slopes = np.array([raw.slope for raw in ranges.values()])
    if np.ptp(slopes) <= 1e-9 * slopes[0] and slopes[0] >= step * (1 - 1e-9):
        return float(slopes[0]) / int(slopes[0] / step + 1e-9)
    return step


def _integer_fields(raw: _RawRange, step: float, bits: int) -> tuple[int, int, int, int]:
    """Return offset, multiplier, span and pre_shift of one input."""
    top = (1 << bits) - 1
    levels_per_unit = raw.slope / step
    offset = raw.first
    if levels_per_unit < 1:
        # Half a level lower, so that the shift rounds to the nearest level.
        offset = max(raw.first - round(0.5 / levels_per_unit), _INT32.min)
    span = raw.last - offset
    pre_shift = max(0, span.bit_length() - 16)
    largest = (((top + 1) << 16) - 1) // (span >> pre_shift)
    multiplier = levels_per_unit * (1 << (16 + pre_shift))
    whole = round(multiplier)
    if whole < multiplier * (1 - 1e-12) and levels_per_unit >= 1:
        whole += 1  # so that the last value reaches the top level
    return offset, max(1, min(whole, largest)), span, pre_shift
