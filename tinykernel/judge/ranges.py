"""The ranges of inputs that a model was trained on, and rows outside them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.text import count, visible
from tinykernel.data.origin import Origin
from tinykernel.data.reading import Reading
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.beside.spec import Beside
from tinykernel.pieces.scale.spec import Scale

# Shares of the values of an input that are outside, and far outside, if the unit is another.
_HALF, _FEW = 0.5, 0.05
# The part of its range that an input fills at least, and the rows that tell.
_NARROW, _MANY = 0.005, 20
_SHOWN = 3


@dataclass(frozen=True)
class InputRange:
    """Range of an input, or of several inputs with the same range."""

    name: str  # of the input, or of the first and the last one
    low: float | None  # values outside are clipped; None for an unused input
    high: float | None


def input_ranges(model: IntegerModel, origin: Origin | None = None) -> tuple[InputRange, ...]:
    """Return the ranges of inputs or channels, then of numbers; unnamed equal ones are joined."""
    ranges = input_ends(model, origin, join=True) + number_ends(model, origin, join=True)
    return tuple(ranges)


def input_ends(
    model: IntegerModel, origin: Origin | None = None, *, join: bool = False
) -> list[InputRange]:
    """Return the range of each input of a table, or of each channel."""
    ranges = _ranges_of(model.raw_scaler, model.input.channels)
    if model.input.is_table:
        return _with_names(ranges, model.feature_names, "input", join=join)
    return _with_names(ranges, _recordings(origin).inputs, "channel", join=join)


def number_ends(
    model: IntegerModel, origin: Origin | None = None, *, join: bool = False
) -> list[InputRange]:
    """Return the range of each number beside a window."""
    if model.beside is None:
        return []
    return _with_names(_numbers(model.beside), _recordings(origin).beside, "number", join=join)


def _recordings(origin: Origin | None) -> Reading:
    known = None if origin is None else origin.recordings
    return known or Reading()


def outside(model: IntegerModel, X: NDArray[Any], origin: Origin | None = None) -> tuple[str, ...]:
    """Say which inputs of rows are far outside their range, probably for another unit."""
    # An input is named if more than half of its values are outside, or a twentieth by more than the
    # range is wide; and of a table if all inputs that vary keep to 0.5 % of their ranges.
    # Converted trees have 32 bits, and the range of their thresholds: rows beyond it mean nothing.
    scaler = model.stages[0].raw_scaler
    if scaler is None or scaler.bits == 32 or not len(X):
        return ()
    channels, rows = model.input.channels, np.asarray(X).reshape(len(X), -1)
    rows = rows.astype(np.float32) if model.raw_dtype == "float32" else rows
    values = rows[:, : model.input.size].reshape(-1, channels)
    ranges = input_ends(model, origin)
    # An input that shares a scale may have been constant anywhere in training.
    is_shared = channels > 1 and model.raw_scaler.multiplier.size == 1
    far, constant = list[str](), list[str]()
    narrow = [len(rows) >= _MANY and model.input.is_table]
    for each, column in zip(ranges, values.T, strict=True):
        if each.low is None or each.high is None:
            continue
        column = column.astype(np.float64)
        low, high, width = column.min(), column.max(), each.high - each.low
        beyond = np.maximum(each.low - column, column - each.high)
        share = float(np.mean(beyond > 0))
        if share > _HALF or np.mean(beyond > width) > _FEW:
            ends = f"{low:.6g} to {high:.6g}, trained on {each.low:.6g} to {each.high:.6g}"
            line = f"{visible(each.name)} ({100 * share:.3g} % of the values; {ends})"
            (constant if is_shared and low == high else far).append(line)
        narrow.append(bool(high - low < _NARROW * width) or low == high)
    if len(constant) == channels:
        far = constant
    if far:
        more = f" and {count(len(far) - _SHOWN, 'more input')}" if len(far) > _SHOWN else ""
        which = ", ".join(far[:_SHOWN])
        return (f"outside the training range: {which}{more}: another unit or scaling?",)
    if len(narrow) > 1 and all(narrow) and np.ptp(values, axis=0).any():
        share = 100 * _NARROW
        return (f"all inputs keep to {share:g} % of their training range: another unit?",)
    return ()


def _numbers(beside: Beside) -> list[InputRange]:
    """Return the ranges of numbers, over all entries that read them."""
    ranges = _ranges_of(beside.scaler, beside.n_entries)
    numbers = []
    for number in range(beside.n_numbers):
        entries = [ranges[at] for at in np.flatnonzero(beside.source == number)]
        ends = [end for entry in entries for end in (entry.low, entry.high) if end is not None]
        numbers.append(InputRange(str(number), min(ends), max(ends)))
    return numbers


def _ranges_of(scaler: Scale, n: int) -> list[InputRange]:
    """Return the ranges of n inputs by their scaler."""
    offset = np.broadcast_to(scaler.offset.astype(np.float64), n)
    slope = np.broadcast_to(scaler.multiplier.astype(np.float64), n)
    ends = zip(offset.tolist(), (offset + scaler.width).tolist(), strict=True)
    return [
        InputRange(str(i), low if slope[i] else None, high if slope[i] else None)
        for i, (low, high) in enumerate(ends)
    ]


def _with_names(
    ranges: Sequence[InputRange], names: Sequence[str] | None, noun: str, *, join: bool
) -> list[InputRange]:
    """Name ranges; without names number them, or join neighbours of the same range."""
    if names is not None and len(names) == len(ranges):
        return [replace(each, name=name) for each, name in zip(ranges, names, strict=True)]
    if not join:
        return [replace(each, name=f"{noun} {each.name}") for each in ranges]
    joined = []
    for _, alike in groupby(ranges, lambda each: (each.low, each.high)):
        first, *more = alike
        last = f"s {first.name} to {more[-1].name}" if more else f" {first.name}"
        joined.append(replace(first, name=f"{noun}{last}"))
    return joined
