"""Decisions on a stream, one a hop, and smoothed decisions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.checks import check_count
from tinykernel.data.recordings import Windows
from tinykernel.data.recordings.names import is_background
from tinykernel.data.recordings.tracks import majority
from tinykernel.errors import TinykernelError


@dataclass(frozen=True)
class Decision:
    """The decision of a model at one moment of a stream."""

    recording: str  # the name of the file
    sample: int  # the last one of the window, from the beginning of the recording
    time: float | None  # of that sample in seconds, by the clock of the recording
    label: Any
    smoothed: Any  # the majority of the last labels


@dataclass(frozen=True)
class FalseAlarms:
    """False alarms on background."""

    count: int  # changes of the decision to a label that is not background
    hours: float  # of background

    @property
    def an_hour(self) -> float:
        """False alarms an hour."""
        return self.count / self.hours


def false_alarms(data: Windows, said: Sequence[object]) -> FalseAlarms | None:
    """Count the decisions, one a window, that begin during background (`is_background`).

    None decides nothing. Returns None if no label is background, or the rate is not known.
    """
    if data.y is None or data.rate is None or data.hop is None:
        return None
    still = [is_background(label) for label in data.y.tolist()]
    heard = [label is not None and not is_background(label) for label in said]
    count = 0
    for i in range(len(said)):
        goes_on = i and data.segments[i] == data.segments[i - 1] and said[i] == said[i - 1]
        count += still[i] and heard[i] and not goes_on
    hours = sum(still) * data.hop / data.rate / 3600
    return FalseAlarms(count, hours) if hours else None


def decisions(data: Windows, labels: ArrayLike, last: int = 5) -> Iterator[Decision]:
    """Yield a decision for every window, with its time and a smoothed one.

    Windows are cut with ``mixed="majority"``, so that none is missing; `labels` are the decisions
    of the model. A smoothed one is the majority of the `last`, since the last gap in time.
    """
    said = np.asarray(labels)
    if said.shape != data.starts.shape:
        raise TinykernelError(f"{len(data.starts)} windows need as many labels; got {said.shape}")
    ends = data.starts + data.X.shape[1] - 1
    for i, smooth in enumerate(smoothed(said, last, data.segments)):
        time = None if data.end_times is None else float(data.end_times[i])
        name = data.recordings[data.recording[i]]
        yield Decision(name, int(ends[i]), time, said[i], smooth)


def smoothed(labels: ArrayLike, last: int, segments: ArrayLike | None = None) -> NDArray[Any]:
    """Return the majority of the `last` decisions at each; of a tie the latest.

    A new segment starts afresh.

    >>> smoothed(["a", "a", "b", "a", "b", "b"], 3).tolist()
    ['a', 'a', 'a', 'a', 'b', 'b']
    """
    check_count("last", last)
    said = np.asarray(labels)
    where = np.zeros(len(said)) if segments is None else np.asarray(segments)
    recent: deque[int] = deque(maxlen=last)
    result = said.copy()
    for i in range(len(said)):
        if i and where[i] != where[i - 1]:
            recent.clear()
        recent.append(i)
        result[i] = majority(said[list(recent)])
    return result
