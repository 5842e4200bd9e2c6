"""Events of streams: judged against labelled spans, with thresholds chosen for a rate.

An event of a class is a hit if it is in a span of that class or within a second after it, as in the
streaming wake word of MLPerf Tiny. A second event in the span is a double count; an event in the
span of another class is confused. All others are false alarms. TensorFlow's streaming test of
speech commands also distinguishes wrong words from false positives.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from tinykernel.base.errors import OptionError, RowsError
from tinykernel.base.text import count, percent
from tinykernel.judge.figures import accuracy_interval, interval_in_words
from tinykernel.model.answers import LARGEST_SUM, NO_EVENT, Events, sums_over
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.separable.spec import Separable

_FOLDS = 5
# Peaks by which the tail of sums is known, beyond what the hours can show; with fewer, a threshold
# is this part of the median sum of words.
_TAIL, _OF_WORDS = 10, 1 / 3


@dataclass(frozen=True, eq=False)
class Stream:
    """The decisions of a stream, and what happens in it, in samples."""

    scores: NDArray[np.int32]  # (decisions, classes)
    ends: NDArray[np.int64]  # the last sample of the window of each decision.
    spans: NDArray[np.int64]  # (n, 3): first sample, end and label, by first; no background.
    groups: NDArray[np.int64]  # (n, 2): first sample and number of each group, by first.
    samples: int
    second: int  # samples per second.

    @property
    def is_spoken(self) -> bool:
        """Whether it is events all the time, so that it tells nothing of false alarms."""
        return int((self.spans[:, 1] - self.spans[:, 0]).sum()) >= self.samples > 0

    def groups_at(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the group of each sample."""
        at = np.searchsorted(self.groups[:, 0], samples, side="right") - 1
        return np.asarray(self.groups[np.maximum(at, 0), 1])


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


def judge(streams: Sequence[Stream], events: Events) -> Heard:
    """Compare the events of streams with their spans."""
    return _join([_judge(stream, events.follow(stream.scores)) for stream in streams])


def _judge(stream: Stream, made: NDArray[np.int64]) -> Heard:
    n = len(stream.spans)
    hit, after, behind = np.zeros(n, bool), np.zeros(n, np.int64), np.zeros(n, np.int64)
    alarms, places, confused, doubles = [], [], 0, 0
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
            places.append(sample)
    return Heard(
        hit,
        after[hit],
        behind[hit],
        stream.spans[:, 2],
        np.array(alarms, np.int64),
        stream.groups_at(np.array(places, np.int64)),
        confused,
        doubles,
    )


def _join(parts: Sequence[Heard]) -> Heard:
    names = ("hit", "after", "behind", "labels", "alarms", "groups")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    confused, doubles = (sum(getattr(p, name) for p in parts) for name in ("confused", "doubles"))
    return Heard(**arrays, confused=confused, doubles=doubles)


def rate_after(count: float, hours: float, confidence: float | None) -> float:
    """Return the rate per hour that `count` events tell (Poisson): its mean, or an upper bound.

    Garwood, Biometrika 28, 1936: the quantile of the gamma distribution with shape count + 1. The
    mean is that of the same distribution. Counts that vary between groups more than by
    chance count as fewer hours.

    >>> round(rate_after(0, 3.0, 0.95), 3), rate_after(2, 3.0, None)
    (0.999, 1.0)
    """
    if confidence is None:
        return (count + 1) / hours
    return float(gammaincinv(count + 1, confidence)) / hours


def interval_of(count: int, hours: float) -> tuple[float, float]:
    """Return the 95 % confidence interval of a rate per hour (Garwood 1936).

    >>> [round(end, 2) for end in interval_of(2, 1.0)]
    [0.24, 7.22]
    """
    low = float(gammaincinv(count, 0.025)) / hours if count else 0.0
    return low, rate_after(count, hours, 0.975)


def counts_in_words(heard: "Heard", hours: float) -> list[tuple[str, str]]:
    """Return hits and false alarms, each with its interval, as names and values to print."""
    n, n_hit, alarms = len(heard.hit), int(heard.hit.sum()), len(heard.alarms)
    low, high = interval_of(alarms, hours)
    share = interval_in_words(accuracy_interval(heard.hit), None) if n else ""
    return [
        ("hits", f"{n_hit} of {n} ({100 * n_hit / n:.1f} %, {share})" if n else "no event"),
        (
            "false alarms",
            f"{alarms} in {hours:.3g} hours: {alarms / hours:.3g} an hour, with 95 % confidence "
            f"{low:.2g} to {high:.2g}",
        ),
    ]


def spread(lengths: Mapping[int, float], groups: NDArray[np.int64]) -> float:
    """Return the variance of counts between groups of some lengths, relative to chance; 1 or more.

    The mean of (count - expected)^2 / expected over groups, as of a quasi-Poisson model. `groups`
    has the group of each event.
    """
    if len(lengths) < 2 or not groups.size:
        return 1.0
    expected = np.array(list(lengths.values())) * (len(groups) / sum(lengths.values()))
    counts = np.array([np.sum(groups == group) for group in lengths])
    return max(1.0, float(((counts - expected) ** 2 / expected).sum() / (len(lengths) - 1)))


def lengths_of(streams: Sequence[Stream]) -> dict[int, float]:
    """Return the hours of each group; events joined without background count for none."""
    lengths: dict[int, float] = {}
    for stream in [each for each in streams if not each.is_spoken] or streams:
        ends, hour = np.append(stream.groups[1:, 0], stream.samples), stream.second * 3600
        for (first, group), end in zip(stream.groups.tolist(), ends.tolist(), strict=True):
            lengths[group] = lengths.get(group, 0.0) + (end - first) / hour
    return lengths


def hours_of(streams: Sequence[Stream]) -> float:
    """Return the total length of streams in hours, as `lengths_of` counts it."""
    counted = [each for each in streams if not each.is_spoken] or streams
    return sum(stream.samples / stream.second for stream in counted) / 3600


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
    promised: float  # false alarms an hour: expected, or the most at a confidence level.
    spread: float
    # Of the chosen thresholds times some factors: see `EventEvaluation`.
    curve: tuple[tuple[float, int, float, float], ...] = ()
    alone: float | None = None  # share of single clips of events that are right.
    cautions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what was chosen and promised as JSON types."""
        assert self.model.events is not None
        hits = accuracy_interval(self.heard.hit) if self.heard.hit.size else None
        return {
            **self.model.events.facts(),
            "hours": self.hours,
            "events": len(self.heard.hit),
            "hits": int(self.heard.hit.sum()),
            "confused": self.heard.confused,
            "false_alarms": len(self.heard.alarms),
            "promised_an_hour": self.promised,
            "is_extrapolated": self.is_beyond,
            "hits_interval": hits and list(hits),
            "false_alarms_interval": list(interval_of(len(self.heard.alarms), self.hours)),
            "spread": self.spread,
            "single_clips": self.alone,
            "curve": [dict(zip(CURVE, point, strict=True)) for point in self.curve],
        }

    @property
    def is_beyond(self) -> bool:
        """Whether the hours are too short to show the rate, even without a false alarm."""
        return rate_after(0, self.hours, None) > self.promised

    @property
    def unknown(self) -> tuple[str, ...]:
        """The hours that a rate takes to be known, where there are fewer."""
        needed = rate_after(0, self.promised, 0.95)
        if needed <= self.hours:
            return ()
        tail = ": the threshold follows from their peaks, if ten are seen, else from the words"
        return (
            f"{self.promised:.3g} an hour needs {needed:.2g} hours of background, of other voices "
            f"than the training's, to be known; you gave {self.hours:.2g}{tail * self.is_beyond}",
        )

    @property
    def line(self) -> str:
        """Hits and false alarms in one line, and what they lack to be known."""
        (_, hits), (_, alarms) = counts_in_words(self.heard, self.hours)
        return "; ".join([f"hits {hits}", f"false alarms {alarms}", *self.unknown])

    @property
    def threshold(self) -> int:
        """The least sum of an event, the same for all classes."""
        assert self.model.events is not None
        return int(self.model.events.thresholds.max())

    @property
    def remarks(self) -> tuple[str, ...]:
        """The cautions, and what to try where few events are hit."""
        if not self.heard.hit.size:
            unknown = "no event of a class is labelled: all counts as background"
            return *self.cautions, f"{unknown}; give recordings with labelled events, too"
        hits = float(self.heard.hit.mean())
        if hits >= _FEW_HITS:
            return self.cautions
        convolutions, options = self.model.find(Separable), ""
        if convolutions is not None:
            # Whole clips, of which streams are learned, have no teachers.
            is_stream = convolutions.row_strides is not None
            options = "--set streaming=on, --set teachers=3, "
            options = "more recordings of the word, by more people, " if is_stream else options
        return (
            *self.cautions,
            f"{100 * hits:.0f} % of the events are hit: train with {options}a shorter --hop, more "
            "recordings of the background and of other words, or allow more false alarms",
        )

    def in_words(self) -> list[tuple[str, str]]:
        """Return names and values to print."""
        assert self.model.events is not None
        hits, (name, alarms) = counts_in_words(self.heard, self.hours)
        varied = f"; they vary between groups {self.spread:.1f} times as much as by chance"
        alone = "" if self.alone is None else f"{percent(self.alone)} of those of events are right"
        return [
            ("single clips", alone),
            hits,
            ("confused", f"{count(self.heard.confused, 'event')} where another class was"),
            (name, alarms + varied * (self.spread > 1)),
            *self.model.events.in_words(self.model.classes),
        ]


def choose_events(
    model: IntegerModel,
    streams: Sequence[Stream],
    background: Sequence[object],
    an_hour: float,
    confidence: float | None,
) -> EventCalibration:
    """Choose the decay of sums, and the least threshold that is expected to keep a rate.

    With a `confidence`, an upper bound keeps it. The pause is as long as a window, and sums
    remember up to twice as much. All classes have the same threshold: on few speakers,
    one of each class learns these speakers. Hits and false alarms are counted on other groups: each
    fold of groups is judged with the threshold of the others. The decay with most hits is taken.
    Raises TinykernelError if no threshold keeps the rate.
    """
    hours = hours_of(streams)
    if confidence is not None and rate_after(0, hours, confidence) > an_hour:
        raise RowsError(
            f"{hours:.2g} hours without a false alarm promise no less than "
            f"{rate_after(0, hours, confidence):.2g} an hour; give more recordings, or a larger "
            "rate"
        )
    silent = np.array([label in background for label in model.classes])
    pause = min(-(-model.input.rows // model.hop), 65535)
    best: EventCalibration | None = None
    for shift in _shifts(pause):
        trial = _DecayedStreams(streams, silent, shift, pause)
        folds = trial.folds()
        heard = trial.heard(folds, [trial.events(an_hour, confidence, fold) for fold in folds])
        events = trial.events(an_hour, confidence)
        if best is None or heard.hit.sum() > best.heard.hit.sum():
            wide = spread(trial.lengths, heard.groups)
            best = EventCalibration(replace(model, events=events), heard, hours, an_hour, wide)
    assert best is not None
    return best


def _shifts(pause: int) -> list[int]:
    """Return the shifts of sums that remember up to two windows, those of a quarter first.

    >>> _shifts(2), _shifts(13)
    ([0, 1, 2], [2, 3, 4, 0, 1])
    """
    shifts = [shift for shift in range(16) if 1 << shift <= 2 * pause]
    return sorted(shifts, key=lambda shift: pause > 4 << shift)


def with_threshold(
    chosen: EventCalibration, streams: Sequence[Stream], threshold: int, confidence: float | None
) -> EventCalibration:
    """Return the calibration with another threshold of all classes, and the rate it promises."""
    events = chosen.model.events
    assert events is not None
    reached = LARGEST_SUM >> events.shift << events.shift
    if not 0 < threshold <= reached:
        raise OptionError(f"threshold: {threshold}; give a sum of the table, 1 to {reached}")
    trial = _DecayedStreams(streams, events.thresholds == 0, events.shift, events.pause)
    model = replace(chosen.model, events=trial.with_least(threshold))
    assert model.events is not None
    heard, promised = judge(streams, model.events), trial.rate(threshold, confidence)
    wide = spread(trial.lengths, heard.groups)
    return replace(chosen, model=model, heard=heard, promised=promised, spread=wide)


class _DecayedStreams:
    """Streams with sums that decay by `shift`, to choose thresholds on."""

    def __init__(
        self, streams: Sequence[Stream], silent: NDArray[np.bool_], shift: int, pause: int
    ) -> None:
        self.streams, self.silent, self.shift, self.pause = streams, silent, shift, pause
        self.followed, self.groups, self.lengths = [], [], lengths_of(streams)
        self.counted: dict[int, Heard] = {}  # by threshold
        peaks, owners = list[int](), list[NDArray[np.int64]]()
        for stream in streams:
            before = np.zeros(stream.scores.shape[1], np.int64)
            labels, sums = sums_over(stream.scores, silent, shift, before)
            self.followed.append((labels, sums))
            self.groups.append(stream.groups_at(stream.ends))
            owners.append(stream.groups_at(stream.spans[:, 0]))
            for first, end, spoken in stream.spans.tolist():
                part = slice(*np.searchsorted(stream.ends, [first, end + stream.second]))
                peaks.append(int(sums[part, spoken][labels[part] == spoken].max(initial=0)))
        # Of each span the largest sum of its class in it, and its group.
        self.peaks, self.owners = np.array(peaks, np.int64), np.concatenate(owners)

    def rate(
        self, threshold: int, confidence: float | None, without: tuple[int, ...] = ()
    ) -> float:
        """Return the rate of false alarms at a threshold: expected, or its upper bound.

        Groups that are left out count as if they were like the others.
        """
        alarms = self.at(threshold).groups
        groups = alarms[~np.isin(alarms, without)]
        lengths = {group: each for group, each in self.lengths.items() if group not in without}
        hours, wide = sum(self.lengths.values()), spread(lengths, groups)
        share = sum(lengths.values()) / hours
        return rate_after(len(groups) / share / wide, hours / wide, confidence)

    def at(self, threshold: int) -> Heard:
        """Judge all groups with one threshold."""
        if threshold not in self.counted:
            self.counted[threshold] = self.heard([()], [self.with_least(threshold)])
        return self.counted[threshold]

    def folds(self) -> list[tuple[int, ...]]:
        """Divide the groups into folds; a single group gives one empty fold."""
        every = np.unique(np.concatenate(self.groups)).tolist()
        n = min(_FOLDS, len(every))
        return [tuple(every[first::n]) for first in range(n)] if n > 1 else [()]

    def events(
        self, an_hour: float, confidence: float | None, without: tuple[int, ...] = ()
    ) -> Events:
        """Return the rule with the least threshold that keeps a rate, for all classes.

        A few times that one is taken where it hits more: early events of a wrong class are fewer.
        It lies midway between the largest sum that is no event and the least hit above it.
        """
        reached = LARGEST_SUM >> self.shift << self.shift
        others = ~np.isin(self.owners, without)

        def keeps(threshold: int) -> bool:
            rate = self.rate(threshold, confidence, without)
            return rate <= an_hour * (1 + 1e-9)  # hours of groups add up to roundings less.

        if rate_after(0, sum(self.lengths.values()), confidence) > an_hour:
            least = min(self.beyond(an_hour, without, self.peaks[others]), reached)
        else:
            least = 1 + bisect_left(range(1, reached), True, key=keeps)
            if not keeps(least):
                raise RowsError(
                    f"no threshold keeps false alarms at {an_hour:g} an hour; give more "
                    "recordings, or a larger rate"
                )
            multiples = filter(
                keeps, [least, *(least << n for n in range(1, 5) if least << n < reached)]
            )
            least = max(multiples, key=lambda threshold: int(self.at(threshold).hit[others].sum()))
        hits = self.peaks[others & (self.peaks >= least)]
        return self.with_least(least + (int(hits.min()) - least) // 2 if hits.size else least)

    def beyond(self, an_hour: float, without: tuple[int, ...], words: NDArray[np.int64]) -> int:
        """Return the threshold of a rate that the hours are too short to show.

        Of the highest peaks, what is above the next one, u, is taken as exponential, as tails are
        (Pickands, Annals of Statistics 3, 1975, with shape 0). Of a posterior of its mean m and of
        the rate, t is exceeded ``(k + 1) / hours * (1 + (t - u) / (k m))**-k`` times an hour.

        Fewer than ten peaks tell too little: from none followed 1, from two three times the sum of
        a usual word. A third of the median sum of `words` stands in, if that is above all peaks,
        whatever the rate.
        """
        hours = sum(each for group, each in self.lengths.items() if group not in without)
        peaks = [height for height, group in self._tail if group not in without]
        k = min(_TAIL, len(peaks))
        most = peaks[0] if k else 0
        if k < _TAIL and words.size:
            return max(most + 1, int(_OF_WORDS * np.median(words)))
        floor = peaks[k] if len(peaks) > k else 0
        above = sum(peaks[:k]) - k * floor
        stretch = max(0.0, float(((k + 1) / hours / an_hour) ** (1 / k)) - 1) if k else 0.0
        return max(most + 1, floor + math.ceil(above * stretch))

    @cached_property
    def _tail(self) -> list[tuple[int, int]]:
        """The highest peaks of background, non-adjacent, each with its group."""
        peaks = []
        for stream, (labels, sums), groups in zip(
            self.streams, self.followed, self.groups, strict=True
        ):
            heights = np.where(self.silent[labels], 0, sums[np.arange(len(labels)), labels])
            for first, end, _ in stream.spans.tolist():
                heights[slice(*np.searchsorted(stream.ends, [first, end + stream.second]))] = 0
            for _ in range(_FOLDS * _TAIL):
                at = int(heights.argmax())
                if heights[at] == 0:
                    break
                peaks.append((int(heights[at]), int(groups[at])))
                heights[max(0, at - self.pause) : at + self.pause + 1] = 0
        return sorted(peaks, reverse=True)

    def with_least(self, least: int) -> Events:
        """Return the rule with the same threshold for all classes."""
        return Events(np.where(self.silent, 0, least).astype(np.uint32), self.shift, self.pause)

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
            judgements.append(_judge(stream, made))
        return _join(judgements)
