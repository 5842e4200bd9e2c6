"""Events of streams: judged against labelled spans, with thresholds chosen for a rate.

An event of a class is a hit if it is in a span of that class or within a second after it, as in the
streaming wake word of MLPerf Tiny. A second event in the span is a double count; an event in the
span of another class is confused. All others are false alarms. TensorFlow's streaming test of
speech commands also distinguishes wrong words from false positives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from tinykernel.errors import OptionError, RowsError
from tinykernel.model.answers.events import LARGEST_SUM, NO_EVENT, Events, sums_over
from tinykernel.model.integer import IntegerModel
from tinykernel.text import count, percent

_FOLDS = 5
# Fewer and fewer false alarms are allowed where a threshold is chosen, then thresholds are larger,
# until groups that it was not chosen on keep the rate.
_FEWER, _TRIED = 0.8, 40
_FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0)


@dataclass(frozen=True, eq=False)
class Stream:
    """The decisions of a stream, and what happens in it, in samples."""

    scores: NDArray[np.int32]  # (decisions, classes)
    ends: NDArray[np.int64]  # the last sample of the window of each decision.
    spans: NDArray[np.int64]  # (n, 3): first sample, end and label, by first; no background.
    groups: NDArray[np.int64]  # (n, 2): first sample and number of each group, by first.
    samples: int
    second: int  # samples per second.


@dataclass(frozen=True, eq=False)
class Heard:
    """Hits, misses and false alarms in streams."""

    hit: NDArray[np.bool_]  # of each span
    after: NDArray[np.int64]  # samples from the beginning of each span that was hit to its event.
    behind: NDArray[np.int64]  # samples from its end to the event; inside, 0 or less.
    labels: NDArray[np.int64]  # of each span
    alarms: NDArray[np.int64]  # the label of each false alarm
    groups: NDArray[np.int64]  # the group of each
    confused: int  # events in the span of another class.
    doubles: int


def judged(streams: Sequence[Stream], events: Events) -> Heard:
    """Compare the events of streams with their spans."""
    return _joined([_judged(stream, events.follow(stream.scores)) for stream in streams])


def _judged(stream: Stream, made: NDArray[np.int64]) -> Heard:
    n = len(stream.spans)
    hit, after, behind = np.zeros(n, bool), np.zeros(n, np.int64), np.zeros(n, np.int64)
    alarms, groups, confused, doubles = [], [], 0, 0
    reach = stream.spans[:, 1] + stream.second
    for at in np.flatnonzero(made >= 0).tolist():
        sample, label = int(stream.ends[at]), int(made[at])
        near = np.flatnonzero((stream.spans[:, 0] <= sample) & (sample < reach))
        right = near[stream.spans[near, 2] == label]
        fresh = right[~hit[right]]
        if fresh.size:
            span = fresh[0]
            hit[span] = True
            after[span] = sample - stream.spans[span, 0]
            behind[span] = sample - stream.spans[span, 1] + 1
        elif right.size:
            doubles += 1
        elif near.size:
            confused += 1
        else:
            alarms.append(label)
            group = int(np.searchsorted(stream.groups[:, 0], sample, side="right")) - 1
            groups.append(int(stream.groups[max(group, 0), 1]))
    return Heard(
        hit,
        after[hit],
        behind[hit],
        stream.spans[:, 2],
        np.array(alarms, np.int64),
        np.array(groups, np.int64),
        confused,
        doubles,
    )


def _joined(parts: Sequence[Heard]) -> Heard:
    names = ("hit", "after", "behind", "labels", "alarms", "groups")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    confused, doubles = (sum(getattr(p, name) for p in parts) for name in ("confused", "doubles"))
    return Heard(**arrays, confused=confused, doubles=doubles)


def most_often(count: int, hours: float, confidence: float) -> float:
    """Return the upper bound of a rate per hour after `count` events (Poisson).

    Garwood, Biometrika 28, 1936: half the quantile of chi-squared with 2 (count + 1) degrees of
    freedom. Counts that vary between groups more than by chance count as fewer hours.

    >>> round(most_often(0, 3.0, 0.95), 3)
    0.999
    """
    return float(chi2.ppf(confidence, 2 * (count + 1)) / 2 / hours)


def spread(streams: Sequence[Stream], heard: Heard) -> float:
    """Return the variance of false alarms between groups, relative to chance; 1 or more.

    The mean of (count - expected)^2 / expected over groups, as of a quasi-Poisson model.
    """
    length: dict[int, float] = {}
    for stream in streams:
        ends = np.append(stream.groups[1:, 0], stream.samples)
        for (first, group), end in zip(stream.groups.tolist(), ends.tolist(), strict=True):
            length[group] = length.get(group, 0.0) + end - first
    n, total = len(heard.alarms), sum(length.values())
    if len(length) < 2 or not n:
        return 1.0
    expected = np.array([n * part / total for part in length.values()])
    counts = np.array([np.sum(heard.groups == group) for group in length])
    return max(1.0, float(((counts - expected) ** 2 / expected).sum() / (len(length) - 1)))


def hours_of(streams: Sequence[Stream]) -> float:
    """Return the total length of streams in hours."""
    return sum(stream.samples / stream.second for stream in streams) / 3600


#: What a point of a curve of misses against false alarms says.
CURVE = ("factor", "threshold", "missed", "false_alarms_an_hour")
# Share of hits below which most people want another model.
_FEW_HITS = 0.6


@dataclass(frozen=True, eq=False)
class EventCalibration:
    """The chosen thresholds, and the rate that they promise."""

    model: IntegerModel
    heard: Heard
    hours: float
    most: float  # upper bound of false alarms an hour, at the confidence level.
    spread: float
    # Of the chosen thresholds times some factors: see `EventEvaluation`.
    curve: tuple[tuple[float, int, float, float], ...] = ()
    alone: float | None = None  # share of single clips of events that are right.
    cautions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what was chosen and promised as JSON types."""
        assert self.model.events is not None
        return {
            **self.model.events.facts(),
            "hours": self.hours,
            "events": len(self.heard.hit),
            "hits": int(self.heard.hit.sum()),
            "confused": self.heard.confused,
            "false_alarms": len(self.heard.alarms),
            "most_an_hour": self.most,
            "spread": self.spread,
            "single_clips": self.alone,
            "curve": [dict(zip(CURVE, point, strict=True)) for point in self.curve],
        }

    @property
    def threshold(self) -> int:
        """The least sum of an event, the same for all classes."""
        assert self.model.events is not None
        return int(self.model.events.thresholds.max())

    @property
    def remarks(self) -> tuple[str, ...]:
        """The cautions, and what to try where few events are hit."""
        if not self.heard.hit.size:
            unknown = "no event of a class is in the recordings: how many are hit is unknown"
            return *self.cautions, f"{unknown}; give recordings with labelled events, too"
        hits = float(self.heard.hit.mean())
        if hits >= _FEW_HITS:
            return self.cautions
        return (
            *self.cautions,
            f"{100 * hits:.0f} % of the events are hit: train with a shorter --hop, with more "
            "recordings of the background and of other words, or allow more false alarms",
        )

    def in_words(self) -> list[tuple[str, str]]:
        """Return names and values to print."""
        assert self.model.events is not None
        heard, n = self.heard, max(1, len(self.heard.hit))
        hits = f"{heard.hit.sum()} of {len(heard.hit)} ({100 * heard.hit.sum() / n:.1f} %)"
        alarms = f"{len(heard.alarms)} in {self.hours:.3g} hours"
        varied = f"; they vary between groups {self.spread:.1f} times as much as by chance"
        alone = "" if self.alone is None else f"{percent(self.alone)} of those of events are right"
        return [
            ("single clips", alone),
            ("hits", hits),
            ("confused", f"{count(heard.confused, 'event')} where another class was"),
            ("false alarms", alarms + varied * (self.spread > 1)),
            *self.model.events.in_words(self.model.classes),
        ]


def choose_events(
    model: IntegerModel,
    streams: Sequence[Stream],
    background: Sequence[object],
    an_hour: float,
    confidence: float,
) -> EventCalibration:
    """Choose the decay of sums, and thresholds, for most hits at a promised rate.

    The pause is as long as a window, and sums remember a quarter of it to twice as much. All
    classes have the same threshold: on few speakers, one of each class learns these speakers. For
    each decay, hits and false alarms are counted on other groups: each fold of groups is judged
    with the threshold of the others. The least threshold whose upper bound keeps the rate is taken,
    and of all decays the one with most hits. The model gets the threshold chosen in the same way on
    all groups. Raises TinykernelError if no candidate keeps the rate.
    """
    hours = hours_of(streams)
    if most_often(0, hours, confidence) > an_hour:
        raise RowsError(
            f"{hours:.2g} hours without a false alarm promise no less than "
            f"{most_often(0, hours, confidence):.2g} an hour; give more recordings, or a larger "
            "rate"
        )
    silent = np.array([label in background for label in model.classes])
    pause, allowed = min(-(-model.input.rows // model.hop), 65535), 0
    while most_often(allowed + 1, hours, confidence) <= an_hour:
        allowed += 1
    numbers = dict.fromkeys(int(allowed * _FEWER**n) for n in range(_TRIED))
    steps = [(n, 1.0) for n in numbers] + [(0, factor) for factor in _FACTORS]
    best: EventCalibration | None = None
    for shift in _shifts(pause):
        trial = _DecayedStreams(streams, silent, shift, pause)
        folds, every = trial.folds(), trial.thresholds(allowed, ())
        of_folds = [trial.thresholds(allowed, fold) for fold in folds]
        for number, factor in steps:
            rules = [trial.events(least[number] * factor) for least in of_folds]
            heard = trial.heard(folds, rules)
            wide = spread(streams, heard)
            most = most_often(round(len(heard.alarms) / wide), hours / wide, confidence)
            if most <= an_hour:
                break
        else:
            continue
        if best is None or heard.hit.sum() > best.heard.hit.sum():
            chosen = replace(model, events=trial.events(every[number] * factor))
            best = EventCalibration(chosen, heard, hours, most, wide)
    if best is None:
        raise RowsError(
            f"no thresholds keep false alarms at {an_hour:g} an hour; give more recordings, or a "
            "larger rate"
        )
    return best


def _shifts(pause: int) -> list[int]:
    """Return the shifts of sums that remember a quarter of a window to two windows.

    >>> _shifts(2), _shifts(13)
    ([0, 1, 2], [2, 3, 4])
    """
    return [shift for shift in range(16) if pause <= 4 << shift and 1 << shift <= 2 * pause]


def with_threshold(
    chosen: EventCalibration, streams: Sequence[Stream], threshold: int, confidence: float
) -> EventCalibration:
    """Return the calibration with another threshold of all classes, and the rate it promises."""
    events = chosen.model.events
    assert events is not None
    reached = LARGEST_SUM >> events.shift << events.shift
    if not 0 < threshold <= reached:
        raise OptionError(f"threshold: {threshold}; give a sum of the table, 1 to {reached}")
    least = np.where(events.thresholds == 0, 0, threshold).astype(np.uint32)
    model = replace(chosen.model, events=replace(events, thresholds=least))
    assert model.events is not None
    heard = judged(streams, model.events)
    wide = spread(streams, heard)
    most = most_often(round(len(heard.alarms) / wide), chosen.hours / wide, confidence)
    return replace(chosen, model=model, heard=heard, most=most, spread=wide)


class _DecayedStreams:
    """Streams with sums that decay by `shift`, to choose thresholds on."""

    def __init__(
        self, streams: Sequence[Stream], silent: NDArray[np.bool_], shift: int, pause: int
    ) -> None:
        self.streams, self.silent, self.shift, self.pause = streams, silent, shift, pause
        self.followed, self.groups = [], []
        for stream in streams:
            before = np.zeros(stream.scores.shape[1], np.int64)
            self.followed.append(sums_over(stream.scores, silent, shift, before))
            at = np.searchsorted(stream.groups[:, 0], stream.ends, side="right") - 1
            self.groups.append(stream.groups[np.maximum(at, 0), 1])

    def folds(self) -> list[tuple[int, ...]]:
        """Divide the groups into folds; a single group gives one empty fold."""
        every = np.unique(np.concatenate(self.groups)).tolist()
        n = min(_FOLDS, len(every))
        return [tuple(every[first::n]) for first in range(n)] if n > 1 else [()]

    def thresholds(self, allowed: int, without: tuple[int, ...]) -> list[int]:
        """Return the best threshold for 0 to `allowed` false alarms, ignoring groups `without`."""
        peaks, alarms = self._peaks(without)
        return [_between(peaks, alarms, number) for number in range(allowed + 1)]

    def events(self, least: float) -> Events:
        """Return the rule with the same threshold for all classes."""
        reached = min(int(np.ceil(least)), LARGEST_SUM >> self.shift << self.shift)
        return Events(np.where(self.silent, 0, reached).astype(np.uint32), self.shift, self.pause)

    def heard(self, folds: Sequence[tuple[int, ...]], parts: Sequence[Events]) -> Heard:
        """Judge each fold of groups with its rule; an empty fold stands for all groups."""
        judgements = []
        for stream, (labels, sums), groups in zip(
            self.streams, self.followed, self.groups, strict=True
        ):
            made = np.full(len(labels), NO_EVENT, np.int64)
            for fold, events in zip(folds, parts, strict=True):
                inside = np.isin(groups, fold) if fold else np.ones(len(labels), bool)
                made[inside] = events.of_sums(labels, sums)[inside]
            judgements.append(_judged(stream, made))
        return _joined(judgements)

    def _peaks(self, without: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the largest sums, falling: of each span's class in it, and of blocks outside."""
        peaks, alarms = [], []
        for stream, (labels, sums), groups in zip(
            self.streams, self.followed, self.groups, strict=True
        ):
            used = ~self.silent[labels] & ~np.isin(groups, without)
            reached = np.where(used, sums[np.arange(len(labels)), labels], 0)
            outside = reached.copy()
            for first, end, spoken in stream.spans.tolist():
                part = slice(*np.searchsorted(stream.ends, [first, end + stream.second]))
                outside[part] = 0
                peaks.append(int(reached[part][labels[part] == spoken].max(initial=0)))
            pause = self.pause + 1
            blocks = np.pad(outside, (0, -len(outside) % pause)).reshape(-1, pause)
            alarms += blocks.max(axis=1).tolist()
        return np.sort(peaks)[::-1].astype(np.int64), np.sort(alarms)[::-1].astype(np.int64)


def _between(peaks: NDArray[np.int64], alarms: NDArray[np.int64], allowed: int) -> int:
    """Return the threshold midway between the next alarm and the least hit above it."""
    below = int(alarms[allowed]) if allowed < len(alarms) else 0
    hits = int((peaks > below).sum())
    least = int(peaks[hits - 1]) if hits else below + 1
    return max(1, below + 1 + (least - below - 1) // 2)
