"""The proof that no intermediate value overflows, and the shift schedules chosen by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model import bounds
from tinykernel.model.bounds import INT16_LIMIT, Bounds, exact_stages, follow_stages
from tinykernel.model.diagonals import SHIFTS
from tinykernel.model.permutation import Permutation

_Array = NDArray[Any]
INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Range:
    """The proved range of all values of one stage, over every possible input."""

    stage: str  # what is computed
    low: int  # no value of the stage is ever outside low..high
    high: int
    limit_low: int  # what the integers of the stage may hold
    limit_high: int

    @property
    def fits(self) -> bool:
        """Whether the proved range is inside the limits."""
        return self.limit_low <= self.low and self.high <= self.limit_high


@dataclass(frozen=True)
class TransformBounds:
    """Bounds of the inputs of a transform (of the second: the products with G), and its stages."""

    inputs: Bounds
    stages: list[Bounds]
    halve: tuple[bool, ...]


def bound_first(sign: _Array, bits: int, halve: Sequence[bool] | None) -> TransformBounds:
    """Bound the first transform; choose its schedule if that is None."""
    low, high = bounds.input_bounds(sign, bits)
    exact = np.zeros(low.shape)
    inputs = Bounds(low, high, exact, exact)
    # Here every butterfly joins values of disjoint sets of inputs, so that interval arithmetic is
    # exact, rounding included.
    return TransformBounds(inputs, *follow_stages(inputs, None, None, 1, halve))


def bound_second(
    first: TransformBounds,
    permutation: Permutation,
    diagonal: _Array,
    diagonal_kind: str,
    halve: Sequence[bool] | None,
) -> TransformBounds:
    """Bound the second transform of all blocks; choose its schedule if that is None."""
    low, high = first.inputs.low, first.inputs.high
    gather = permutation.indices(low.size)
    last = first.stages[-1]
    mixed = Bounds(*(getattr(last, name)[gather] for name in Bounds.__annotations__))
    product = bounds.product_bounds(mixed, diagonal, diagonal_kind)
    varying = np.flatnonzero(high > low)
    norms = bounds.row_norms(varying, diagonal, gather)
    if varying.size:
        # All varying inputs have the same width; their centres are 0 (16 bits) or -+ 1/2.
        norms = norms * (high - low).max()
    doubled_centre = exact_stages(low + high)[-1][gather]
    centre = exact_stages(diagonal.astype(np.int64) * doubled_centre)
    unit = 1 << (SHIFTS[diagonal_kind] + sum(first.halve))
    return TransformBounds(product, *follow_stages(product, norms, centre, unit, halve))


def choose_schedules(
    sign: _Array, bits: int, permutation: Permutation, diagonal: _Array, diagonal_kind: str
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Choose schedules of both transforms, log2(d) each, that halve as late as the proof allows.

    `sign` is 0 for constant inputs, `bits` the width of the quantized inputs, `diagonal` G.

    >>> signs = np.ones(4, dtype=np.int8)
    >>> choose_schedules(signs, 8, Permutation(), np.ones((1, 32)), "sign")[0]
    (False, False, False, False, False)
    """
    first = bound_first(sign, bits, None)
    second = bound_second(first, permutation, diagonal, diagonal_kind, None)
    return first.halve, second.halve


def range_of(stage: str, low: Any, high: Any, limit: int = INT32_LIMIT) -> Range:
    """Return the range of all numbers of two arrays, within -limit..limit."""
    return Range(stage, int(np.min(low)), int(np.max(high)), -limit, limit)


def stage_ranges(name: str, stages: list[Bounds], schedule: tuple[bool, ...]) -> list[Range]:
    """Return the ranges of the stages of a transform, by its schedule."""
    return [
        range_of(
            f"{name}, stage {k}{' (halved)' if halve else ''}", values.low, values.high, INT16_LIMIT
        )
        for k, (values, halve) in enumerate(zip(stages, schedule, strict=True))
    ]
