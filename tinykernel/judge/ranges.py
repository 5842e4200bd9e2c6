"""The ranges of inputs that a model was trained on, and rows outside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.text import count, visible
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


def input_ranges(model: IntegerModel, about: Mapping[str, Any]) -> tuple[InputRange, ...]:
    """Return the ranges of inputs or channels, then of numbers; unnamed equal ones are joined."""
    ranges = _ranges_of(model.raw_scaler, model.input.channels)
    ranges = _named(ranges, *_names(model, about), join=True)
    if model.beside is not None:
        names = recordings_of(about, "beside")
        ranges += _named(_numbers(model.beside), names, "number", join=True)
    return tuple(ranges)


def input_ends(model: IntegerModel, about: Mapping[str, Any]) -> list[InputRange]:
    """Return the range of each input of a table, or of each channel."""
    ranges = _ranges_of(model.raw_scaler, model.input.channels)
    return _named(ranges, *_names(model, about), join=False)


def number_ends(model: IntegerModel, about: Mapping[str, Any]) -> list[InputRange]:
    """Return the range of each number beside a window."""
    if model.beside is None:
        return []
    names = recordings_of(about, "beside")
    return _named(_numbers(model.beside), names, "number", join=False)


def outside(
    model: IntegerModel, X: NDArray[Any], about: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
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
    ranges = input_ends(model, about or {})
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


def _names(model: IntegerModel, about: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the names, where there are any, and what an input is called without one."""
    if model.input.is_table:
        return model.feature_names, "input"
    return recordings_of(about, "channels"), "channel"


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
    if scaler.span is None:
        width = np.divide(2.0**scaler.bits, slope, out=np.zeros(n), where=slope > 0)
    else:
        width = np.broadcast_to(scaler.span.astype(np.float64), n)
    ends = zip(offset.tolist(), (offset + width).tolist(), strict=True)
    return [
        InputRange(str(i), low if slope[i] else None, high if slope[i] else None)
        for i, (low, high) in enumerate(ends)
    ]


def recordings_of(about: Mapping[str, Any], key: str) -> Any:
    """Return an entry of the settings of recordings."""
    recordings = about.get("recordings")
    return recordings.get(key) if isinstance(recordings, dict) else None


def rate_of(about: Mapping[str, Any]) -> float | None:
    """Return the samples a second of the recordings of a training, where they are recorded."""
    rate = recordings_of(about, "rate")
    return rate if isinstance(rate, int | float) and rate > 0 else None


def _named(ranges: Sequence[InputRange], names: Any, noun: str, *, join: bool) -> list[InputRange]:
    """Name ranges; without names number them, or join neighbours of the same range."""
    if isinstance(names, list | tuple) and len(names) == len(ranges):
        return [replace(each, name=str(name)) for each, name in zip(ranges, names, strict=True)]
    if not join:
        return [replace(each, name=f"{noun} {each.name}") for each in ranges]
    joined = []
    for _, alike in groupby(ranges, lambda each: (each.low, each.high)):
        first, *more = alike
        last = f"s {first.name} to {more[-1].name}" if more else f" {first.name}"
        joined.append(replace(first, name=f"{noun}{last}"))
    return joined
