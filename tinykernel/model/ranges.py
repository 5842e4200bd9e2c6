"""The proof that no intermediate value overflows, and the shift schedules chosen by it.

Both transforms are linear up to rounding, so the worst case of an intermediate value over the box
of quantised inputs is the L1 norm of its row of coefficients times half the width of the box,
exactly. (Interval arithmetic forgets that the same input enters many terms and is about ``sqrt(d)``
times wider in the second transform.) To that comes the interval of all rounding errors so far, a
few units. Nothing is assumed about the inputs: every value of the quantised type counts, for every
feature but the constant ones, whose values are ignored.

The limits of the 16-bit stages are -32767..32767, symmetric, so that no change of sign overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import padded_dimension, run_on_rows, useful_threads
from tinykernel.model.diagonals import SHIFTS
from tinykernel.model.permutation import Permutation

if TYPE_CHECKING:
    from tinykernel.model.integer import IntegerModel

__all__ = ["INT16_LIMIT", "Range", "choose_schedules", "prove"]

INT16_LIMIT = 32767
_INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Range:
    """The proved range of all values of one stage, over every possible input.

    Parameters
    ----------
    stage : str
        What is computed.
    low, high : int
        No value of the stage is ever outside.
    limit_low, limit_high : int
        What the integers of the stage may hold.

    Examples
    --------
    >>> Range("sum", -10, 10, -32767, 32767).fits
    True
    """

    stage: str
    low: int
    high: int
    limit_low: int
    limit_high: int

    @property
    def fits(self) -> bool:
        """Whether the proved range is inside the limits."""
        return self.limit_low <= self.low and self.high <= self.limit_high


@dataclass(frozen=True)
class _Values:
    """Bounds of d values (of all blocks: shape (m, d)), and the error in them through rounding.

    ``low <= value <= high`` in integers. Where the transforms without any rounding give the real
    number y, ``value - y`` lies in ``[error_low, error_high]``. Errors are dyadic fractions of few
    bits, which float64 holds exactly.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    error_low: NDArray[np.float64]
    error_high: NDArray[np.float64]


def _input_bounds(sign: NDArray[Any], bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return low and high of ``u = B q``, padded; int16 q are at least -32767."""
    sign = sign.astype(np.int64)
    largest = (1 << (bits - 1)) - 1
    smallest = -largest if bits == 16 else -largest - 1
    low, high = np.zeros((2, padded_dimension(sign.size)), dtype=np.int64)
    low[: sign.size] = np.minimum(sign * smallest, sign * largest)
    high[: sign.size] = np.maximum(sign * smallest, sign * largest)
    return low, high


def _butterflies(
    low: NDArray[Any], high: NDArray[Any], stride: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Apply one stage to intervals; shape (..., d)."""
    pairs = (*low.shape[:-1], low.shape[-1] // (2 * stride), 2, stride)
    a_low, b_low = np.moveaxis(low.reshape(pairs), -2, 0)
    a_high, b_high = np.moveaxis(high.reshape(pairs), -2, 0)
    new_low = np.stack([a_low + b_low, a_low - b_high], axis=-2)
    new_high = np.stack([a_high + b_high, a_high - b_low], axis=-2)
    return new_low.reshape(low.shape), new_high.reshape(high.shape)


def _stage(values: _Values, stride: int, halve: bool) -> _Values:
    """Apply one stage of a transform to bounds and errors, by interval arithmetic."""
    low, high = _butterflies(values.low, values.high, stride)
    error_low, error_high = _butterflies(values.error_low, values.error_high, stride)
    if halve:
        low, high = low >> 1, high >> 1
        # Half a unit is lost where the sum is odd.
        error_low, error_high = error_low / 2 - 0.5, error_high / 2
    return _Values(low, high, error_low, error_high)


def _fits(values: _Values) -> bool:
    return bool(values.low.min() >= -INT16_LIMIT and values.high.max() <= INT16_LIMIT)


def _run_stages(
    values: _Values, norms: NDArray[np.int64] | None, centre: NDArray[np.int64] | None,
    unit: int, schedule: Sequence[bool] | None,
) -> tuple[list[_Values], tuple[bool, ...]]:  # fmt: skip
    """Follow a transform stage by stage.

    Without a `schedule` one is chosen: halve as late as the proof allows, because what is rounded
    off early is amplified by every later stage. Halving always fits: it averages values that do.

    `norms` and `centre` give the exact range of the linear part: at stage k (k = 0 before the
    first), times `unit` and two to the number of halvings so far, its doubled bounds are
    ``centre[k] - norms[k]`` and ``centre[k] + norms[k]``.
    """
    stages: list[_Values] = []
    chosen: list[bool] = []
    n_stages = values.low.shape[-1].bit_length() - 1
    for k in range(n_stages):
        halve = bool(schedule[k]) if schedule is not None else False
        n_halved = sum(chosen) + halve
        candidate = _linear(_stage(values, 1 << k, halve), norms, centre, k + 1, unit << n_halved)
        if schedule is None and not _fits(candidate):
            halve = True
            n_halved += 1
            candidate = _linear(_stage(values, 1 << k, True), norms, centre, k + 1,
                                unit << n_halved)  # fmt: skip
        chosen.append(halve)
        stages.append(candidate)
        values = candidate
    return stages, tuple(chosen)


def _linear(
    values: _Values, norms: NDArray[np.int64] | None, centre: NDArray[np.int64] | None,
    stage: int, unit: int,
) -> _Values:  # fmt: skip
    """Tighten interval bounds by the exact worst case of the linear part plus the errors."""
    if norms is None or centre is None:
        return values
    # Both terms are integers below 2**53 over a power of two: exact in float64.
    low = (centre[stage] - norms[stage]) / (2 * unit) + values.error_low
    high = (centre[stage] + norms[stage]) / (2 * unit) + values.error_high
    return _Values(
        np.maximum(values.low, np.ceil(low).astype(np.int64)),
        np.minimum(values.high, np.floor(high).astype(np.int64)),
        values.error_low,
        values.error_high,
    )


def _product(mixed: _Values, diagonal: NDArray[Any], diagonal_kind: str) -> _Values:
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
    return _Values(low >> shift, high >> shift, (error_low - lost) / unit, error_high / unit)


@njit(cache=True, nogil=True)
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


def _row_norms(
    varying: NDArray[np.int64], diagonal: NDArray[Any], gather: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the L1 norms of all rows after each stage; shape (log2(d) + 1, m, d)."""
    m, d = diagonal.shape
    n_stages = d.bit_length() - 1
    n_chunks = max(1, min(useful_threads(varying.size * m * d * n_stages), varying.size))
    norms = np.zeros((n_chunks, m, n_stages + 1, d), dtype=np.int64)
    run_on_rows(
        _accumulate_norms, n_chunks, n_chunks, varying, diagonal.astype(np.int32),
        gather.astype(np.int64), norms,
    )  # fmt: skip
    return np.moveaxis(norms.sum(axis=0), 1, 0)


def _exact_stages(vector: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `vector`, shape (..., d), before the transform and after each stage, unrounded."""
    stages = [vector]
    for k in range(vector.shape[-1].bit_length() - 1):
        stages.append(_butterflies(stages[-1], stages[-1], 1 << k)[0])
    return np.stack(stages)


@dataclass(frozen=True)
class _Proof:
    """Bounds of every stage of the linear part, in order."""

    inputs: _Values
    first: list[_Values]
    halve_first: tuple[bool, ...]
    product: _Values
    second: list[_Values]
    halve_second: tuple[bool, ...]


def _prove_transforms(
    sign: NDArray[Any], bits: int, permutation: Permutation, diagonal: NDArray[Any],
    diagonal_kind: str, halve_first: Sequence[bool] | None, halve_second: Sequence[bool] | None,
) -> _Proof:  # fmt: skip
    """Bound every value of both transforms; choose the schedules that are None."""
    low, high = _input_bounds(sign, bits)
    exact = np.zeros(low.shape)
    inputs = _Values(low, high, exact, exact)
    # In the first transform every butterfly joins values of disjoint sets of inputs, so that
    # interval arithmetic is exact, rounding included.
    first, halve_first = _run_stages(inputs, None, None, 1, halve_first)
    gather = permutation.indices(low.size)
    mixed = _Values(*(getattr(first[-1], name)[gather] for name in _Values.__annotations__))
    product = _product(mixed, diagonal, diagonal_kind)

    varying = np.flatnonzero(high > low)
    norms = _row_norms(varying, diagonal, gather)
    if varying.size:
        # All varying inputs have the same width; their centres are 0 (16 bits) or -+ 1/2.
        norms = norms * (high - low).max()
    doubled_centre = _exact_stages(low + high)[-1][gather]
    centre = _exact_stages(diagonal.astype(np.int64) * doubled_centre)
    unit = 1 << (SHIFTS[diagonal_kind] + sum(halve_first))
    second, halve_second = _run_stages(product, norms, centre, unit, halve_second)
    return _Proof(inputs, first, halve_first, product, second, halve_second)


def choose_schedules(
    sign: NDArray[Any], bits: int, permutation: Permutation, diagonal: NDArray[Any],
    diagonal_kind: str,
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:  # fmt: skip
    """Choose the shift schedules that halve as late as the proof allows.

    Parameters
    ----------
    sign : ndarray of int8, shape (n_features,)
        As in `IntegerModel`: 0 for constant features.
    bits : {8, 16}
        Width of the quantised inputs.
    permutation : Permutation
    diagonal : ndarray of int8, shape (n_blocks, d)
    diagonal_kind : {"int8", "int4", "sign"}

    Returns
    -------
    tuple of tuple of bool
        ``halve_first`` and ``halve_second``, each of length log2(d).

    Examples
    --------
    >>> signs = np.ones(4, dtype=np.int8)
    >>> choose_schedules(signs, 8, Permutation(), np.ones((1, 32)), "sign")[0]
    (False, False, False, False, False)
    """
    proof = _prove_transforms(sign, bits, permutation, diagonal, diagonal_kind, None, None)
    return proof.halve_first, proof.halve_second


def _range(stage: str, low: Any, high: Any, limit: int) -> Range:
    return Range(stage, int(np.min(low)), int(np.max(high)), -limit, limit)


def prove(model: IntegerModel) -> tuple[Range, ...]:
    """Bound every stage of a model, over every possible input.

    Parameters
    ----------
    model : IntegerModel

    Returns
    -------
    tuple of Range
        Inputs, each stage of the first transform, products, each stage of the second transform (the
        widest of all blocks), phases, sums, scores.

    Raises
    ------
    TinykernelError
        If a stage could leave its limits; names the first such stage.
    """
    bits = model.scaler.bits
    proof = _prove_transforms(
        model.sign, bits, model.permutation, model.diagonal, model.diagonal_kind,
        model.halve_first, model.halve_second,
    )  # fmt: skip
    half = 1 << (bits - 1)
    ranges = [
        Range("quantised input", -half, half - 1, -half, half - 1),
        _range("input of the first transform", proof.inputs.low, proof.inputs.high, INT16_LIMIT),
    ]
    ranges += _stage_ranges("first transform", proof.first, proof.halve_first)
    if model.diagonal_kind != "sign":
        largest = np.abs(model.diagonal.astype(np.int64)) * max(-ranges[-1].low, ranges[-1].high)
        ranges.append(_range("product before its shift", -largest, largest, _INT32_LIMIT))
    ranges.append(_range("product", proof.product.low, proof.product.high, INT16_LIMIT))
    ranges += _stage_ranges("second transform", proof.second, proof.halve_second)
    ranges += _output_ranges(model, proof.second[-1])
    for stage in ranges:
        if not stage.fits:
            raise TinykernelError(
                f"integer model: {stage.stage} can reach {stage.low}..{stage.high}, allowed are "
                f"{stage.limit_low}..{stage.limit_high}; halve in an earlier stage"
            )
    return tuple(ranges)


def _stage_ranges(name: str, stages: list[_Values], schedule: tuple[bool, ...]) -> list[Range]:
    return [
        _range(
            f"{name}, stage {k}{' (halved)' if halve else ''}", values.low, values.high, INT16_LIMIT
        )
        for k, (values, halve) in enumerate(zip(stages, schedule, strict=True))
    ]


def _output_ranges(model: IntegerModel, rows: _Values) -> list[Range]:
    """Bound what the kept rows go through: phases, sums, scores."""
    scale = model.scale.astype(np.int64)
    sums = np.count_nonzero(model.weights, axis=1)
    centre, radius = model.offset.astype(np.int64), np.abs(model.multiplier.astype(np.int64)) * sums
    low, high = centre - radius, centre + radius
    if model.n_outputs == 1:
        low, high = np.minimum(low, -high), np.maximum(high, -low)
    return [
        _range("scale times row", scale * rows.low[model.row_kept],
               scale * rows.high[model.row_kept], _INT32_LIMIT),
        _range("sum", -sums, sums, _INT32_LIMIT),
        _range("score", low, high, _INT32_LIMIT),
    ]  # fmt: skip
