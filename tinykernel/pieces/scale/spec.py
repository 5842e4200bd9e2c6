"""Scale: raw values to quantized ones of 8, 16 or 32 bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import RAW_DTYPES
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.proof import Range
from tinykernel.pieces.record import checked_array, limits

_VALUES_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Scale(Stage):
    """The stage *scale*: how value x of input i becomes the quantized value q.

    It takes a table of `raw_dtype` and gives one of int8, int16 or int32, with the same positions.

    Every array has length ``n_features``, or length 1 where one value serves all inputs (each
    array for itself). With ``top = 2**bits - 1`` and ``half = 2**(bits - 1)``:

    * ``multiplier_i == 0`` marks a constant input: ``q = 0``, whatever x is.
    * raw float32: ``t = (x - offset_i) * multiplier_i``, two IEEE 754 binary32 operations, each
      rounded to nearest even by itself (never contracted). Then, by comparisons in this order,
      ``t = 0 unless t > 0`` (so that NaN gives 0) and ``t = top if t > top``. ``q = int(t) - half``
      where ``int`` truncates; t is not negative, so that is the floor.
    * raw integer: ``u = 0 if x <= offset_i``, ``u = span_i if x - offset_i >= span_i``, else
      ``u = x - offset_i``; the differences are mathematical ones (compare before subtracting in
      C; with int32 they need 33 bits). ``q = (((u >> pre_shift_i) * multiplier_i) >> 16) - half``
      in uint32, where the product is below 2**(16 + bits) <= 2**32 and cannot wrap.

    The result is in ``[-half, half - 1]``: int8 for 8 bits, int16 for 16.

    With 32 bits nothing is scaled or lost, for trees: ``q = x`` of raw integers. Of raw float32, q
    is the integer of the same order, ``b`` of the bits b of x, ``-(b & 0x7fffffff)`` if the sign
    is set, and ``-2**31`` of NaN. The arrays only say where values lie, and which are constant.

    >>> scaler = Scale("uint8", 8, [0], [65536], [255])
    >>> scaler.quantize(np.array([[0, 1, 255]], dtype=np.uint8)).tolist()
    [[-128, -127, 127]]
    """

    KIND = "scale"
    TAKES = ("samples", "counts", "maps", "units")
    GIVES = "inputs"

    raw_dtype: str  # of `RAW_DTYPES`
    bits: int  # 8, 16 or 32
    offset: NDArray[Any] = field(metadata={"dtype": "float32|int32"})
    # levels per raw unit; for raw integers times ``2**(16 + pre_shift)``
    multiplier: NDArray[Any] = field(metadata={"dtype": "float32|uint32"})
    # raw integers only: where the range ends above the offset
    span: NDArray[np.uint32] | None = None
    # raw integers only: 0 unless the span needs more than 16 bits
    pre_shift: NDArray[np.uint8] = field(
        default_factory=lambda: np.zeros(1, dtype=np.uint8), metadata=limits(0, 31)
    )

    def check(self) -> None:
        if self.raw_dtype not in RAW_DTYPES:
            raise self.refuse(f"unknown raw type {self.raw_dtype!r}")
        if self.bits not in (8, 16, 32):
            raise self.refuse(f"inputs of {self.bits} bits; 8, 16 or 32 are known")
        kinds = ("float32", "float32") if self.is_float else ("int32", "uint32")
        for name, kind in zip(("offset", "multiplier"), kinds, strict=True):
            array = checked_array(f"scaler {name}", getattr(self, name), kind, (None,))
            object.__setattr__(self, name, array)
        if self.is_float:
            if self.span is not None or np.any(self.pre_shift):
                raise self.refuse("span and pre_shift go with raw integers only")
            if np.any(self.multiplier < 0):
                raise self.refuse("a scaler multiplier is negative")
            return
        if self.span is None:
            raise self.refuse("raw integers need the span of each feature")
        largest = (self.span.astype(np.int64) >> self.pre_shift.astype(np.int64)).astype(object)
        if np.any(largest * self.multiplier.astype(object) >= 2 ** (16 + self.bits)):
            raise self.refuse(f"a scaler multiplier takes its span beyond {self.bits} bits")

    @property
    def is_float(self) -> bool:
        """Whether raw values are floats."""
        return self.raw_dtype == "float32"

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """Type of the quantized values: int8, int16 or int32."""
        return np.dtype(f"int{self.bits}")

    @property
    def raw_scaler(self) -> Scale:
        return self

    def gives(self, grid: Grid) -> Grid:
        if grid.dtype != self.raw_dtype:
            raise self.refuse(f"the scaler takes {self.raw_dtype}, not {grid.dtype}")
        for name, array in self.arrays.items():
            if array.shape[0] not in (1, grid.size):
                raise self.refuse(
                    f"scaler {name} has {array.shape[0]} values for {grid.size} features"
                )
        half = 1 << (self.bits - 1)
        constant = frozenset(np.flatnonzero(self.constant(grid.size)).tolist())
        return Grid(1, 1, grid.size, self.input_dtype.name, -half, half - 1, constant)

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        return self.quantize(values)

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        half = 1 << (self.bits - 1)
        return (Range("quantized input", -half, half - 1, -half, half - 1),)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by field name, `span` only where there is one."""
        named = {"offset": self.offset, "multiplier": self.multiplier}
        if self.span is not None:
            named["span"] = self.span
        return {**named, "pre_shift": self.pre_shift}

    def reorder(self, order: NDArray[np.int64]) -> Scale:
        arrays = {name: a if a.size == 1 else a[order] for name, a in self.arrays.items()}
        return Scale(self.raw_dtype, self.bits, **arrays)

    def constant(self, n_features: int) -> NDArray[np.bool_]:
        """Return which inputs are constant, hence ignored; shape (n_features,)."""
        return np.broadcast_to(self.multiplier == 0, (n_features,)).copy()

    def quantize(self, raw: NDArray[Any]) -> NDArray[Any]:
        """Quantize raw values of the type `raw_dtype` (n_rows, n_features) to int8 or int16."""
        out = np.empty(raw.shape, dtype=self.input_dtype)
        # A few rows at a time: what is between takes 64 bits a value.
        at_once = max(1, _VALUES_AT_ONCE * len(raw) // max(1, raw.size))
        for first in range(0, len(raw), at_once):
            out[first : first + at_once] = self._quantize(raw[first : first + at_once])
        return out

    def _quantize(self, raw: NDArray[Any]) -> NDArray[np.int32]:
        if self.bits == 32:
            ordered = order_of(raw) if self.is_float else raw.astype(np.int32)
            return np.where(self.multiplier == 0, np.int32(0), ordered)
        half = 1 << (self.bits - 1)
        if self.is_float:
            level = self._float_level(raw)
        else:
            above = raw.astype(np.int64) - self.offset
            assert self.span is not None
            clamped = np.clip(above, 0, self.span.astype(np.int64)).astype(np.uint64)
            level = (clamped >> self.pre_shift.astype(np.uint64)) * self.multiplier >> np.uint64(16)
        return np.where(self.multiplier == 0, 0, level.astype(np.int32) - half)

    @property
    def width(self) -> NDArray[np.float64]:
        """Raw units between the ends of the range of an input; 0 of a constant one."""
        if self.span is not None:
            return self.span.astype(np.float64)
        slope = self.multiplier.astype(np.float64)
        return np.divide(2.0**self.bits, slope, out=np.zeros_like(slope), where=slope > 0)

    def _float_level(self, raw: NDArray[Any]) -> NDArray[np.float32]:
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            level: NDArray[np.float32] = (raw - self.offset) * self.multiplier
            level[~(level > 0)] = 0
            level[level > 2**self.bits - 1] = 2**self.bits - 1
        return level


def order_of(values: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return integers in the order of binary32 numbers: of -0 and 0 the same, of NaN the least.

    >>> order_of(np.array([-np.inf, -1, 0, 1e-45, np.nan], np.float32)).tolist()
    [-2139095040, -1065353216, 0, 1, -2147483648]
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.int32)
    ordered = np.where(bits < 0, -(bits & np.int32(0x7FFFFFFF)), bits)
    return np.asarray(np.where(np.isnan(values), np.int32(-(2**31)), ordered), dtype=np.int32)
