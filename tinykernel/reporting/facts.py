"""Facts on a report page: input ranges, margins, the tuning curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import margins
from tinykernel.model.stages.beside import Beside
from tinykernel.model.stages.scale import Scale


@dataclass(frozen=True)
class InputRange:
    """Range of an input, or of several inputs with the same range."""

    name: str  # of the input, or of the first and the last one
    low: float | None  # values outside are clipped; None for an unused input
    high: float | None
    median: float | None = None  # value of the firmware for a missing value


@dataclass(frozen=True, eq=False)
class Coverage:
    """Errors when answers of small margin, the largest score less the second, are refused."""

    margin: NDArray[np.int64]  # (k,): least margin of the answers, falling
    share: NDArray[np.float64]  # (k,): share of the answered rows, rising to 1
    error: NDArray[np.float64]  # (k,): share of these answers that are wrong

    def at(self, share: float) -> tuple[int, float, float]:
        """Return margin, share and error with at least this share answered."""
        i = min(int(np.searchsorted(self.share, share - 1e-12)), len(self.share) - 1)
        return int(self.margin[i]), float(self.share[i]), float(self.error[i])


def coverage_of(model: IntegerModel, X: ArrayLike, y: ArrayLike) -> Coverage:
    """Return the errors among the answers of largest margin, for every share of them."""
    labels, unsigned = margins(model.scores(X))
    right, margin = np.array(model.classes)[labels] == np.asarray(y), unsigned.astype(np.int64)
    order = np.argsort(-margin, kind="stable")
    wrong, margin = np.cumsum(~right[order]), margin[order]
    # Rows of the same margin are answered together or not at all.
    last = np.append(np.flatnonzero(np.diff(margin)), len(margin) - 1)
    return Coverage(margin[last], (last + 1) / len(margin), wrong[last] / (last + 1))


def input_ranges(model: IntegerModel, about: Mapping[str, Any]) -> tuple[InputRange, ...]:
    """Return the ranges of inputs or channels, then of numbers; unnamed equal ones are joined."""
    n, is_table = model.input.channels, model.input.is_table
    names: Any = model.feature_names if is_table else _of_recordings(about, "channels")
    ranges = _ranges_of(model.raw_scaler, n, about.get("medians"))
    ranges = _named(ranges, names, "input" if is_table else "channel")
    if model.beside is not None:
        numbers = _numbers(model.beside)
        ranges += _named(numbers, _of_recordings(about, "beside"), "number")
    return tuple(ranges)


def _numbers(beside: Beside) -> list[InputRange]:
    """Return the ranges of numbers, over all entries that read them."""
    ranges = _ranges_of(beside.scaler, beside.n_entries, None)
    numbers = []
    for number in range(beside.n_numbers):
        entries = [ranges[at] for at in np.flatnonzero(beside.source == number)]
        ends = [end for entry in entries for end in (entry.low, entry.high) if end is not None]
        numbers.append(InputRange(str(number), min(ends), max(ends)))
    return numbers


def _ranges_of(scaler: Scale, n: int, medians: Any) -> list[InputRange]:
    """Return the ranges of n inputs by their scaler."""
    offset = np.broadcast_to(scaler.offset.astype(np.float64), n)
    slope = np.broadcast_to(scaler.multiplier.astype(np.float64), n)
    if scaler.span is None:
        width = np.divide(2.0**scaler.bits, slope, out=np.zeros(n), where=slope > 0)
    else:
        width = np.broadcast_to(scaler.span.astype(np.float64), n)
    if not isinstance(medians, list) or len(medians) != n:
        medians = [None] * n
    ends = zip(offset.tolist(), (offset + width).tolist(), strict=True)
    return [
        InputRange(str(i), low if slope[i] else None, high if slope[i] else None, medians[i])
        for i, (low, high) in enumerate(ends)
    ]


def _of_recordings(about: Mapping[str, Any], key: str) -> Any:
    """Return the names of columns in the settings of recordings."""
    recordings = about.get("recordings")
    return recordings.get(key) if isinstance(recordings, dict) else None


def _named(ranges: Sequence[InputRange], names: Any, noun: str) -> list[InputRange]:
    """Name ranges; without names join neighbours of the same range."""
    if isinstance(names, list | tuple) and len(names) == len(ranges):
        return [replace(each, name=str(name)) for each, name in zip(ranges, names, strict=True)]
    joined = []
    for _, alike in groupby(ranges, lambda each: (each.low, each.high, each.median)):
        first, *more = alike
        last = f"s {first.name} to {more[-1].name}" if more else f" {first.name}"
        joined.append(replace(first, name=f"{noun}{last}"))
    return joined


def tuning_points(about: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return the points of the curve of `tune` in a model file, by flash."""
    tuned = about.get("tune")
    curve = tuned.get("curve") if isinstance(tuned, dict) else None
    points = []
    for values in curve if isinstance(curve, list) else []:
        numbers = values if isinstance(values, list) else []
        numbers = [float(value) for value in numbers if type(value) in (int, float)]
        if len(numbers) >= 4:
            points.append(
                dict(zip(("budget", "flash", "accuracy", "spread"), numbers, strict=False))
            )
    return sorted(points, key=lambda point: point["flash"])
