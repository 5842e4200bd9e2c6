"""The proof that no intermediate value overflows: bounds over all possible inputs.

Both are linear up to rounding. So the worst case of a value over the box of inputs is exactly the
L1 norm of its row of coefficients times half the width of the box, plus the interval of all
rounding errors so far. (Interval arithmetic is about ``sqrt(d)`` times wider in the second.)
The exact norms take ``n m d log2(d)`` steps. Above `MOST_STEPS` their bounds by Cauchy and Schwarz
replace them, which are about ``sqrt(pi / 2 * d / n)`` times wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import njit
from tinykernel.base.hadamard import padded_dimension, run_on_rows, useful_threads
from tinykernel.pieces.fastfood import SHIFTS, Permutation

_Integers = NDArray[np.int64]
_Array = NDArray[Any]
# Symmetric, so that no change of sign overflows.
INT16_LIMIT = 32767
#: Longest computation of exact norms, in butterflies: about two seconds.
MOST_STEPS = 1 << 31
_STEPS_AT_ONCE = 1 << 27


@dataclass(frozen=True)
class Bounds:
    """Bounds of d values (of all blocks: shape (m, d)), and the error in them through rounding."""

    low: _Integers
    high: _Integers
    # ``value - y`` with the real y without rounding; dyadic fractions, exact in float64
    error_low: NDArray[np.float64]
    error_high: NDArray[np.float64]


def input_bounds(sign: _Array, bits: int) -> tuple[_Integers, _Integers]:
    """Return low and high of ``u = B q``, padded; int16 q are at least -32767."""
    sign = sign.astype(np.int64)
    largest = (1 << (bits - 1)) - 1
    smallest = -largest if bits == 16 else -largest - 1
    low, high = np.zeros((2, padded_dimension(sign.size)), dtype=np.int64)
    low[: sign.size] = np.minimum(sign * smallest, sign * largest)
    high[: sign.size] = np.maximum(sign * smallest, sign * largest)
    return low, high


def _butterflies(low: _Array, high: _Array, stride: int) -> tuple[_Array, _Array]:
    """Apply one stage to intervals; shape (..., d)."""
    pairs = (*low.shape[:-1], low.shape[-1] // (2 * stride), 2, stride)
    a, b = ((low.reshape(pairs)[..., k, :], high.reshape(pairs)[..., k, :]) for k in (0, 1))
    new = np.empty((2, *pairs), low.dtype)
    for bound in (0, 1):
        np.add(a[bound], b[bound], out=new[bound, ..., 0, :])
        np.subtract(a[bound], b[1 - bound], out=new[bound, ..., 1, :])
    return new[0].reshape(low.shape), new[1].reshape(low.shape)


def _stage(values: Bounds, stride: int, halve: bool) -> Bounds:
    """Apply one stage of a transform to bounds and errors, by interval arithmetic."""
    low, high = _butterflies(values.low, values.high, stride)
    error_low, error_high = _butterflies(values.error_low, values.error_high, stride)
    if halve:
        low, high = low >> 1, high >> 1
        # Half a unit is lost where the sum is odd.
        error_low, error_high = error_low / 2 - 0.5, error_high / 2
    return Bounds(low, high, error_low, error_high)


def _fits(values: Bounds) -> bool:
    return bool(values.low.min() >= -INT16_LIMIT and values.high.max() <= INT16_LIMIT)


def follow_stages(
    values: Bounds,
    norms: _Integers | None,
    centre: _Integers | None,
    unit: int,
    schedule: Sequence[bool] | None,
) -> tuple[list[Bounds], tuple[bool, ...]]:
    """Follow a transform by stages; without a `schedule`, halve as late as the proof allows."""
    # What is rounded off early is amplified by every later stage. Halving always fits: it averages.
    # At stage k the doubled bounds of the linear part, times `unit` and two to the number of
    # halvings, are ``centre[k] - norms[k]`` and ``centre[k] + norms[k]``.
    stages: list[Bounds] = []
    chosen: list[bool] = []
    n_stages = values.low.shape[-1].bit_length() - 1
    for k in range(n_stages):
        halve = bool(schedule[k]) if schedule is not None else False
        n_halved = sum(chosen) + halve
        candidate = _linear(_stage(values, 1 << k, halve), norms, centre, k + 1, unit << n_halved)
        if schedule is None and not _fits(candidate):
            halve, doubled = True, unit << n_halved + 1
            candidate = _linear(_stage(values, 1 << k, True), norms, centre, k + 1, doubled)
        chosen.append(halve)
        stages.append(candidate)
        values = candidate
    return stages, tuple(chosen)


def _linear(
    values: Bounds, norms: _Integers | None, centre: _Integers | None, stage: int, unit: int
) -> Bounds:
    """Tighten interval bounds by the exact worst case of the linear part plus the errors."""
    if norms is None or centre is None:
        return values
    # Both terms are integers below 2**53 over a power of two: exact in float64.
    low = (centre[stage] - norms[stage]) / (2 * unit) + values.error_low
    high = (centre[stage] + norms[stage]) / (2 * unit) + values.error_high
    return Bounds(
        np.maximum(values.low, np.ceil(low).astype(np.int64)),
        np.minimum(values.high, np.floor(high).astype(np.int64)),
        values.error_low,
        values.error_high,
    )


def product_bounds(mixed: Bounds, diagonal: _Array, diagonal_kind: str) -> Bounds:
    """Bounds of ``v = G P u`` for all blocks; `mixed` are the bounds of ``P u``."""
    g = diagonal.astype(np.int64)
    positive = g >= 0
    low = g * np.where(positive, mixed.low, mixed.high)
    high = g * np.where(positive, mixed.high, mixed.low)
    factor = g.astype(np.float64)
    error_low = factor * np.where(positive, mixed.error_low, mixed.error_high)
    error_high = factor * np.where(positive, mixed.error_high, mixed.error_low)
    shift = SHIFTS[diagonal_kind]
    unit = 1 << shift
    # The product is a multiple of gcd(g, unit), so the shift loses at most the unit minus that.
    lost = unit - np.gcd(g, unit)
    return Bounds(low >> shift, high >> shift, (error_low - lost) / unit, error_high / unit)


@njit(nogil=True)
def _accumulate_norms(begin, end, columns, diagonal, gather, norms):  # type: ignore[no-untyped-def]
    """Add up ``|coefficient|`` of every value of every stage of ``H G P H``, column by column."""
    m, d = diagonal.shape
    w = np.empty(d, dtype=np.int32)
    signs = np.empty(d, dtype=np.int32)
    for chunk in range(begin, end):
        for index in range(chunk, columns.shape[0], norms.shape[0]):
            for j in range(d):
                parity = gather[j] & columns[index]
                for shift in (8, 4, 2, 1):
                    parity ^= parity >> shift
                signs[j] = 1 - 2 * (parity & 1)
            for block in range(m):
                total = norms[chunk, block]
                for j in range(d):
                    w[j] = diagonal[block, j] * signs[j]
                    total[0, j] += abs(w[j])
                stride = 1
                stage = 1
                while stride < d:
                    for i in range(0, d, 2 * stride):
                        for j in range(i, i + stride):
                            a, b = w[j], w[j + stride]
                            w[j] = a + b
                            w[j + stride] = a - b
                    for j in range(d):
                        total[stage, j] += abs(w[j])
                    stride *= 2
                    stage += 1


def row_norms(varying: _Integers, diagonal: _Array, gather: _Array) -> _Integers:
    """Return the L1 norms of all rows after each stage, or bounds of them; (log2(d) + 1, m, d)."""
    m, d = diagonal.shape
    n_stages = d.bit_length() - 1
    steps_a_column = m * d * max(n_stages, 1)
    if varying.size * steps_a_column > MOST_STEPS:
        return _norms_by_energy(varying.size, diagonal)
    n_chunks = max(1, min(useful_threads(varying.size * steps_a_column), varying.size))
    norms = np.zeros((n_chunks, m, n_stages + 1, d), dtype=np.int64)
    # In pieces of a tenth of a second, between which Ctrl-C is heard.
    columns = max(_STEPS_AT_ONCE // steps_a_column, n_chunks)
    for begin in range(0, varying.size, columns):
        run_on_rows(
            _accumulate_norms,
            n_chunks,
            n_chunks,
            varying[begin : begin + columns],
            diagonal.astype(np.int32),
            gather.astype(np.int64),
            norms,
        )
    return np.moveaxis(norms.sum(axis=0), 1, 0)


def _norms_by_energy(n_varying: int, diagonal: _Array) -> _Integers:
    """Bound the L1 norms by ``sqrt(n)`` times the L2 norms."""
    # The rows of a Walsh-Hadamard matrix are orthogonal. So after stage k the squared coefficients
    # of a row add up, over all d inputs, to d times the sum of g^2 over its group of 2^k rows.
    m, d = diagonal.shape
    squares = diagonal.astype(np.int64) ** 2
    norms = np.empty((d.bit_length(), m, d), dtype=np.int64)
    for stage in range(d.bit_length()):
        energy = squares.reshape(m, -1, 1 << stage).sum(axis=2) * (d * n_varying)  # below 2^62
        bound = np.floor(np.sqrt(energy)).astype(np.int64) + 1
        norms[stage] = np.repeat(bound, 1 << stage, axis=1)
    return norms


def exact_stages(vector: _Integers) -> _Integers:
    """Return `vector`, shape (..., d), before the transform and after each stage, unrounded."""
    stages = [vector]
    for k in range(vector.shape[-1].bit_length() - 1):
        stages.append(_butterflies(stages[-1], stages[-1], 1 << k)[0])
    return np.stack(stages)


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
    low, high = input_bounds(sign, bits)
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
    product = product_bounds(mixed, diagonal, diagonal_kind)
    varying = np.flatnonzero(high > low)
    norms = row_norms(varying, diagonal, gather)
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
