"""What a page says of a model besides figures: inputs, ranges, training, margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.model import IntegerModel
from tinykernel.model.stages.beside import Beside
from tinykernel.model.stages.scale import Scale


@dataclass(frozen=True)
class InputRange:
    """Which values of an input, or of several inputs alike, a model tells apart."""

    name: str  # of the input, or of the first and the last one.
    # What lies outside counts as the end of the range; None for an input that is not used.
    low: float | None
    high: float | None
    median: float | None = None  # what the firmware must put in the place of a missing value.


@dataclass(frozen=True, eq=False)
class Coverage:
    """How errors fall when the least certain answers are not given.

    The certainty of an answer is its margin: the largest score less the second largest, an integer.
    """

    margin: NDArray[np.int64]  # (k,): least margin of the answers that are given, falling.
    share: NDArray[np.float64]  # (k,): share of the rows that are answered, rising to 1.
    error: NDArray[np.float64]  # (k,): share of these answers that are wrong.

    def at(self, share: float) -> tuple[int, float, float]:
        """Return margin, share and error where at least this share is answered."""
        i = int(np.searchsorted(self.share, share - 1e-12))
        i = min(i, len(self.share) - 1)
        return int(self.margin[i]), float(self.share[i]), float(self.error[i])


def coverage_of(model: IntegerModel, X: ArrayLike, y: ArrayLike) -> Coverage:
    """Return the errors among the surest answers, for every share of them."""
    scores = model.scores(X).astype(np.int64)
    right = np.array(model.classes)[scores.argmax(axis=1)] == np.asarray(y)
    best = np.sort(scores, axis=1)[:, -2:]
    margin = best[:, 1] - best[:, 0]
    order = np.argsort(-margin, kind="stable")
    wrong, margin = np.cumsum(~right[order]), margin[order]
    # Rows of one margin are answered together or not at all.
    last = np.append(np.flatnonzero(np.diff(margin)), len(margin) - 1)
    return Coverage(margin[last], (last + 1) / len(margin), wrong[last] / (last + 1))


def input_ranges(model: IntegerModel, about: Mapping[str, Any]) -> tuple[InputRange, ...]:
    """Return the range of each input, or of each channel; unnamed equal ones stand together.

    Those of numbers beside a window come last.
    """
    n, shaped = model.input.channels, not model.input.is_table
    names, medians = _names(model, about, n), about.get("medians")
    found = _ranges_of(model.raw_scaler, n, names, medians)
    found = found if names else _together(found, "channel" if shaped else "input")
    if model.beside is None:
        return tuple(found)
    names = _of_recordings(about, "beside", model.n_numbers)
    numbers = _numbers(model.beside, names)
    return (*found, *(numbers if names else _together(numbers, "number")))


def _numbers(beside: Beside, names: Sequence[str]) -> list[InputRange]:
    """Return the ranges of numbers, over all entries that look at each."""
    found = _ranges_of(beside.scaler, beside.n_entries, [], None)
    numbers = []
    for number in range(beside.n_numbers):
        own = [found[at] for at in np.flatnonzero(beside.source == number)]
        ends = [end for one in own for end in (one.low, one.high) if end is not None]
        name = names[number] if names else str(number)
        numbers.append(InputRange(name, min(ends), max(ends)))
    return numbers


def _ranges_of(scaler: Scale, n: int, names: Sequence[str], medians: Any) -> list[InputRange]:
    """Return the ranges of a scaler, of inputs that may have names and medians."""
    offset = np.broadcast_to(scaler.offset.astype(np.float64), n)
    slope = np.broadcast_to(scaler.multiplier.astype(np.float64), n)
    if scaler.span is None:
        width = np.divide(2.0**scaler.bits, slope, out=np.zeros(n), where=slope > 0)
    else:
        width = np.broadcast_to(scaler.span.astype(np.float64), n)
    known = isinstance(medians, list) and len(medians) == n
    return [
        InputRange(
            names[i] if names else str(i),
            None if slope[i] == 0 else float(offset[i]),
            None if slope[i] == 0 else float(offset[i] + width[i]),
            float(medians[i]) if known and medians is not None else None,
        )
        for i in range(n)
    ]


def _of_recordings(about: Mapping[str, Any], what: str, n: int) -> list[str]:
    """Return the names of n columns that recordings were read for."""
    recordings = about.get("recordings")
    names = recordings.get(what) if isinstance(recordings, dict) else None
    return list(map(str, names)) if isinstance(names, list | tuple) and len(names) == n else []


def _names(model: IntegerModel, about: Mapping[str, Any], n: int) -> list[str]:
    """Return the names of inputs or channels, where they are known."""
    if not model.input.is_table:
        return _of_recordings(about, "channels", n)
    names = model.feature_names or ()
    return list(map(str, names)) if len(names) == n else []


def _together(ranges: Sequence[InputRange], word: str) -> list[InputRange]:
    """Join neighbours of one range."""
    found: list[tuple[InputRange, str]] = []
    for one in ranges:
        before = found[-1][0] if found else None
        same = before is not None and (before.low, before.high, before.median) == (
            one.low,
            one.high,
            one.median,
        )
        if same and before is not None:
            found[-1] = (before, one.name)
        else:
            found.append((one, one.name))
    return [
        InputRange(
            f"{word} {first.name}" if first.name == last else f"{word}s {first.name} to {last}",
            first.low,
            first.high,
            first.median,
        )
        for first, last in found
    ]


def tuning_points(about: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return the points of the curve of `tune`, by flash; empty where the file has none."""
    tuned = about.get("tune")
    points = tuned.get("curve") if isinstance(tuned, dict) else None
    found = []
    for point in points if isinstance(points, list) else []:
        values = point if isinstance(point, list) else []
        numbers = [float(value) for value in values if type(value) in (int, float)]
        if len(numbers) >= 4:
            found.append(
                dict(zip(("budget", "flash", "accuracy", "spread"), numbers, strict=False))
            )
    return sorted(found, key=lambda point: point["flash"])
