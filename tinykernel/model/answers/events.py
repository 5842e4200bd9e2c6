"""A decision over time: from the scores of a stream to events, each reported once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.answers.decision import margins
from tinykernel.model.record import Record, limits
from tinykernel.text import count

#: Stands for "no event" where a label is expected; a refusal is -1.
NO_EVENT = -2
#: The most that a sum holds: sums are uint32 in C and never reach half of that.
LARGEST_SUM = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class Events(Record):
    """When a stream has enough evidence of a class; each event is reported once.

    The firmware keeps, of each class c, a sum in a uint32 that forgets: an exponential sum by
    shifts. It takes in by how much the score of the class exceeds those of the background, less
    a quarter of that of the best other class. With ``most = (2**31 - 1) >> shift``, all sums,
    `wait` and `held` 0 at the beginning::

        label     = that of the largest score
        rest      = largest score of background; without background, the second largest of all
        other_c   = largest score of the classes other than c
        gap_c     = score_c - rest - (max(other_c - rest, 0) >> 2)        for each class c
        sum_c     = sum_c - (sum_c >> shift) + min(max(gap_c, 0), most)
        held      = 0 if held > 0 and sum_(held - 1) < thresholds_(held - 1) >> 1
        event     = wait == 0, thresholds_label > 0, sum_label >= thresholds_label,
                    and held != label + 1
        wait      = pause if event, else max(wait - 1, 0)
        held      = label + 1 if event

    An event gives its label, all other decisions give `NO_EVENT`. So a class gives no second event
    before its sum fell below half its threshold, and no event follows another within `pause`
    decisions.

    No sum exceeds ``most << shift <= 2**31 - 1``: ``s - (s >> shift)`` does not fall as s rises, so
    a sum of at most ``most << shift`` loses at least what it is above ``(most << shift) - most``
    before it takes in at most `most`.

    >>> events = Events(np.array([0, 25], dtype=np.uint32), 1, 2)
    >>> scores = np.array([[0, 10], [0, 20], [0, 20], [9, 0], [9, 0], [9, 0], [0, 40]], np.int32)
    >>> events.follow(scores).tolist()
    [-2, 1, -2, -2, -2, -2, 1]
    """

    OWNER = "events"

    # (n_classes,): least sum of an event of each class; 0 of background, which never makes one
    thresholds: NDArray[np.uint32] = field(metadata=limits(0, LARGEST_SUM))
    shift: int = field(metadata=limits(0, 15))  # a sum remembers about ``2**shift`` decisions
    pause: int = field(metadata=limits(0, 65535))  # decisions without an event after one
    statement: str = field(default="", compare=False)  # the promise; information only

    def check(self) -> None:
        """Check that a class can make an event, and that sums can reach each threshold."""
        reached = LARGEST_SUM >> self.shift << self.shift
        if self.thresholds.max() > reached:
            raise self.refuse(f"thresholds holds more than {reached}, which no sum reaches")
        if not self.thresholds.any():
            raise self.refuse("every class is background, so nothing can happen")

    def follow(
        self, scores: NDArray[np.int32], state: EventState | None = None
    ) -> NDArray[np.int64]:
        """Return the event of each decision of a stream: a label or `NO_EVENT`.

        `scores` has one row a decision. They begin the stream, or go on from `state`, which then
        has what comes next. Sums are followed by `sums_over`.
        """
        state = EventState(scores.shape[1]) if state is None else state
        labels, sums = sums_over(scores, self.thresholds == 0, self.shift, state.sums)
        return self.of_sums(labels, sums, state)

    def of_sums(
        self, labels: NDArray[np.intp], sums: NDArray[np.int64], state: EventState | None = None
    ) -> NDArray[np.int64]:
        """Return the events of decisions whose labels and sums are known."""
        state = EventState(sums.shape[1]) if state is None else state
        thresholds, events = self.thresholds.astype(np.int64), np.full(len(labels), NO_EVENT)
        gathered = sums[np.arange(len(labels)), labels]
        least = thresholds[labels]
        wait_until, since = state.wait, 0
        for at in np.flatnonzero((least > 0) & (gathered >= least)).tolist():
            label = int(labels[at])
            state.let_fall(sums[since : at + 1], thresholds)
            since = at + 1
            if at >= wait_until and state.held != label:
                events[at], state.held, wait_until = label, label, at + 1 + self.pause
        state.let_fall(sums[since:], thresholds)
        state.wait = max(wait_until - len(labels), 0)
        return events.astype(np.int64)

    def facts(self) -> dict[str, Any]:
        """Return the fields, as JSON takes them."""
        return {field.name: getattr(self, field.name) for field in self.FIELDS} | {
            "thresholds": self.thresholds.tolist()
        }

    def in_words(self, classes: Sequence[object]) -> list[tuple[str, str]]:
        """Return names and values to print."""
        least = list(zip(classes, self.thresholds.tolist(), strict=True))
        length = f"about {1 << self.shift} decisions" if self.shift else "one decision"
        pause = f"; after an event none for {count(self.pause, 'decision')}" * (self.pause > 0)
        return [
            ("events", f"sums over {length}{pause}"),
            ("thresholds", ", ".join(f"{name} {limit}" for name, limit in least if limit)),
            ("background", ", ".join(str(name) for name, limit in least if not limit)),
            ("promise", self.statement),
        ]


class EventState:
    """Where a stream is, from one stretch of decisions to the next."""

    def __init__(self, n_classes: int) -> None:
        self.sums = np.zeros(n_classes, np.int64)
        self.wait, self.held = 0, -1

    def let_fall(self, sums: NDArray[np.int64], thresholds: NDArray[np.int64]) -> None:
        """Forget the class of the last event once its sum has fallen."""
        if self.held >= 0 and (sums[:, self.held] < thresholds[self.held] >> 1).any():
            self.held = -1


def sums_over(
    scores: NDArray[np.int32], silent: NDArray[np.bool_], shift: int, total: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the label of each decision, and the sums of `Events` after it, (n, n_classes).

    `total` has the sums before the first decision, then those after the last one.
    """
    labels, margin = margins(scores)
    wide, largest = scores.astype(np.int64), scores.max(axis=1).astype(np.int64)
    second = largest - margin
    rest = (wide[:, silent].max(axis=1) if silent.any() else second)[:, np.newaxis]
    is_label = np.arange(wide.shape[1]) == labels[:, np.newaxis]
    other = np.where(is_label, second[:, np.newaxis], largest[:, np.newaxis])
    gaps = wide - rest - (np.maximum(other - rest, 0) >> 2)
    taken = np.clip(gaps, 0, LARGEST_SUM >> shift)
    sums = np.empty_like(taken)
    for at, added in enumerate(taken):
        total += added - (total >> shift)
        sums[at] = total
    return labels, sums
