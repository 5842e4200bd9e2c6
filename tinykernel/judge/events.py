"""How good the events of a model are, on labelled recordings; its worst misses and false alarms."""

import csv
import io
import wave
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from tinykernel.base.errors import DataError, RowsError
from tinykernel.base.files import replace_folder_atomically
from tinykernel.base.progress import report as say
from tinykernel.base.text import count, join
from tinykernel.base.windows import as_rows
from tinykernel.data.clips import Recordings, join_clips, join_whole
from tinykernel.data.labels import Span, others_among
from tinykernel.data.reading import Recording
from tinykernel.data.recordings import RecordingSource
from tinykernel.data.sources import Source
from tinykernel.data.takes import recordings_in_takes
from tinykernel.judge import event_rules as rules
from tinykernel.model.answers import LARGEST_SUM, sums_over
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.record import raw_values

_ALARMS = 5.0  # in joined clips, at the promised rate
_MOST_JOINED = 2**31  # values of joined clips
_FEW_WINDOWS = 256  # of each recording, to recognise the training
# How much softer a pause is than the loudest window, in power; the share of words that is many.
_SOFTER, _MANY = 8, 0.2
#: Columns of `curve_in_words`.
CURVE_COLUMNS = ("threshold", "missed", "false alarms/h")
#: By what the least sums are multiplied for the curve of misses against false alarms.
_FACTORS = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class EventEvaluation:
    """Hits, misses and false alarms of a model in recordings with labelled events."""

    classes: tuple[Any, ...]
    heard: rules.Heard
    hours: float
    second: int
    # Factor, largest threshold of a class, share missed, false alarms an hour.
    curve: tuple[tuple[float, int, float, float], ...]

    def delays(self, samples: NDArray[np.int64]) -> dict[str, float] | None:
        """Return the median and what 95 % do not exceed, in seconds."""
        if not samples.size:
            return None
        median, most = np.quantile(samples / self.second, [0.5, 0.95]).tolist()
        return {"median": median, "most": most}

    def by_class(self) -> dict[str, dict[str, float]]:
        """Return events, hits and false alarms an hour of each class that has any."""
        heard, table = self.heard, {}
        for label, name in enumerate(self.classes):
            of_class, alarms = heard.labels == label, int((heard.alarms == label).sum())
            if of_class.any() or alarms:
                table[str(name)] = {
                    "events": int(of_class.sum()),
                    "hits": int(heard.hit[of_class].sum()),
                    "false_alarms_an_hour": alarms / self.hours,
                }
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON types."""
        heard = self.heard
        return {
            "hours": self.hours,
            "events": len(heard.hit),
            "hits": int(heard.hit.sum()),
            "misses": int((~heard.hit).sum()),
            "double_counts": heard.doubles,
            "false_alarms": len(heard.alarms),
            "false_alarms_an_hour": len(heard.alarms) / self.hours,
            "confused": heard.confused,
            "delay_from_start": self.delays(heard.after),
            "delay_from_end": self.delays(heard.behind),
            "classes": self.by_class(),
            "curve": [dict(zip(rules.CURVE, point, strict=True)) for point in self.curve],
        }


def recordings_for(model: IntegerModel, source: Source) -> Recordings | None:
    """Return recordings as those of the training, uncut; None of rows, or without a hop."""
    if not model.hop or model.is_regressor or not isinstance(source, RecordingSource):
        return None
    return source.uncut()


def calibrate_events(
    model: IntegerModel,
    data: Recordings,
    background: Sequence[object],
    an_hour: float,
    confidence: float | None = None,
    threshold: int | None = None,
) -> rules.EventCalibration:
    """Choose the events of a model on long recordings, or on clips that are joined.

    The rate is expected on average, or an upper bound with a `confidence`. A `threshold` takes the
    place of the one that keeps the rate, and gives the rate it promises.
    """
    # Clips are joined to as many hours as promise the rate with one false alarm, and at least to
    # those in which five are promised.
    source, joined, alone = data.source, "", None
    if data.are_whole:
        data = replace(data, recordings=recordings_in_takes(data.recordings))
    groups = len({span.label for each in data.recordings for span in each.groups})
    clips = f"{count(len(data.recordings), 'clip')} of {count(groups, 'group')} of"
    if data.are_whole:
        joined = f" of {clips}"
        data = join_whole(data, [each for each in model.classes if each not in background])
    elif not data.is_long:
        hours = max(rules.rate_after(1, 1.0, confidence) * 1.05, _ALARMS) / an_hour
        joined = f" joined from {clips}"
        if hours * 3600 * (data.rate or 0) * model.input.channels > _MOST_JOINED:
            raise RowsError(
                f"{an_hour:.3g} false alarms an hour take {hours:.3g} hours of joined clips, more "
                "than fit into memory; give a larger rate, or long recordings with labels"
            )
        alone = right_alone(model, data, background)
        data = join_clips(data, background, model.input.rows, hours, 0)
    streams = streams_of(model, data, background)
    result = rules.choose_events(model, streams, background, an_hour, confidence)
    automatic = result.threshold
    if threshold is not None:
        result = rules.with_threshold(result, streams, threshold, confidence)
    cautions = *_other_sounds(model.classes, background), *result.unknown
    counted, most = len(result.heard.alarms) / result.hours, "at most " * (confidence is not None)
    if result.promised > an_hour:
        cautions += (
            f"the threshold {threshold} promises {most}{result.promised:.3g} false alarms an hour, "
            f"not {an_hour:g}",
        )
    elif counted > an_hour:
        cautions += (
            f"groups that did not choose the thresholds raise {counted:.3g} false alarms an hour, "
            "more than is promised: groups vary; give more of them",
        )
    rate = result.promised
    how = "by their highest peaks and the words" if result.is_beyond else "on average"
    how = how if confidence is None else f"with {100 * confidence:g} % confidence"
    statement = (
        f"{most}{rate:.3g} false alarm{'s' * (rate != 1)} an hour, {how}: "
        f"{len(result.heard.alarms)} in {result.hours:.3g} hours{joined or ' of'} {source}"
        + ", each group judged by thresholds of the others" * (groups > 1 and threshold is None)
        + "; other speakers or machines may raise more" * bool(joined)
    )
    assert result.model.events is not None
    events = replace(result.model.events, statement=statement)
    curve = evaluate_events(result.model, streams, automatic / result.threshold).curve
    model = replace(result.model, events=events)
    return replace(result, model=model, curve=curve, alone=alone, cautions=cautions)


Clips = Sequence[tuple[NDArray[Any], Any, str]]  # samples, label and name


def places_in(model: IntegerModel, clips: Clips, background: Sequence[object]) -> dict[str, int]:
    """Return where in each clip of a word it is heard best: the first sample of this window."""
    places = {}
    for samples, label, name in clips:
        if label in model.classes and label not in background:
            scores = model.stream_scores(samples).astype(np.int64)
            word = model.classes.index(label)
            margin = scores[:, word] - np.delete(scores, word, axis=1).max(axis=1)
            if margin.size:
                places[name] = int(margin.argmax()) * model.hop
    return places


def in_pauses(model: IntegerModel, clips: Clips, places: Mapping[str, int]) -> tuple[str, ...]:
    """Say how many words were found where their clips are far softer than elsewhere, if many."""
    soft = 0
    for samples, _, name in clips:
        if name in places:
            power = np.square(samples - samples.mean()).sum(axis=1).cumsum()
            power = power[model.input.rows - 1 :] - np.append(0, power[: -model.input.rows])
            soft += int(power[places[name]] * _SOFTER < power.max())
    if soft < _MANY * len(places) or not soft:
        return ()
    return (
        f"{soft} of {len(places)} words were found in a pause of their recordings, as if pauses "
        "were the word: give background with pauses, such as silence of the same room",
    )


def calibrate_held_out(
    model: IntegerModel, clips: Clips, rate: float, background: Sequence[object], an_hour: float
) -> rules.EventCalibration | None:
    """Choose the events of a model on clips held out; None without both words and background."""
    words = [each for each in model.classes if each not in background]
    if len({label in words for _, label, _ in clips}) < 2:
        return None
    recordings = tuple(
        Recording(name, X, (Span(0, len(X), label),), (Span(0, len(X), name),))
        for X, label, name in clips
    )
    data = Recordings(recordings, rate, "the clips held out", False, are_whole=True)
    return calibrate_events(model, data, background, an_hour)


def at_promises(
    model: IntegerModel,
    streams: Sequence[rules.Stream],
    background: Sequence[object],
    an_hour: float,
    confidence: float | None,
) -> list[dict[str, Any]]:
    """Return hits, misses and false alarms at the rate, a quarter of it and four times as much.

    A rate that the hours cannot promise is left out.
    """
    rows = []
    for rate in (an_hour / 4, an_hour, an_hour * 4):
        try:
            chosen = rules.choose_events(model, streams, background, rate, confidence)
        except RowsError:
            continue
        heard = chosen.heard
        rows.append(
            {
                "false_alarms_an_hour": rate,
                "threshold": chosen.threshold,
                "hits": int(heard.hit.sum()),
                "misses": int((~heard.hit).sum()),
                "false_alarms": len(heard.alarms),
            }
        )
    return rows


def _other_sounds(classes: Sequence[object], background: Sequence[object]) -> tuple[str, ...]:
    """Say which classes may be background."""
    others = others_among(classes)
    if not others or not set(others).isdisjoint(map(str, background)):
        return ()
    names = ",".join([*map(str, background), *others])
    return (f"{join(others)} makes events; if it is background, give --set background={names}",)


def right_alone(
    model: IntegerModel, clips: Recordings, background: Sequence[object]
) -> float | None:
    """Return the share of clips of events that are right by the sum of the scores of their windows.

    None without any. Clips shorter than a window are padded with zeros.
    """
    right = []
    for clip in clips.recordings:
        if clip.spans[0].label not in background:
            lacking = max(0, model.input.rows - len(clip.X))
            sums = model.stream_scores(np.pad(clip.X, ((0, lacking), (0, 0)))).sum(axis=0)
            right.append(model.classes[int(sums.argmax())] == clip.spans[0].label)
    return float(np.mean(right)) if right else None


def some_windows(model: IntegerModel, data: Recordings) -> NDArray[Any]:
    """Return up to 256 windows of each recording, as rows: those of the training are among them."""
    rows = [np.zeros((0, model.n_inputs), model.raw_dtype)]
    for each in data.recordings:
        if len(each.X) >= model.input.rows:
            view = _windows_of(model, each)
            places = np.unique(np.linspace(0, len(view) - 1, _FEW_WINDOWS).astype(np.int64))
            rows.append(as_rows(view[places].transpose(0, 2, 1), model.n_numbers))
    joined = np.concatenate(rows)
    silent = joined.min(axis=1, initial=0) == joined.max(axis=1, initial=0)
    return np.asarray(joined[~silent])


def _windows_of(model: IntegerModel, recording: Recording) -> NDArray[Any]:
    samples = raw_values(recording.X, model.raw_dtype)
    return np.lib.stride_tricks.sliding_window_view(samples, model.input.rows, axis=0)[:: model.hop]


def streams_of(
    model: IntegerModel, data: Recordings, background: Sequence[object]
) -> list[rules.Stream]:
    """Compute the scores of all decisions of recordings; labels that are no class have no span."""
    if data.rate is None:
        raise DataError(f"{data.source}: has no sampling rate; give --set rate=HZ")
    long = [each for each in data.recordings if len(each.X) >= model.input.rows]
    if not long:
        raise DataError(f"{data.source}: no recording is as long as a window; give longer ones")
    labels = {str(span.label) for each in long for span in each.spans}
    if labels and labels.isdisjoint(map(str, model.classes)):
        raise DataError(
            f"{data.source}: no label is a class of the model: {join(sorted(labels), 5)}; "
            "correct the labels"
        )
    names = sorted({str(span.label) for each in long for span in each.groups})
    return [_stream(model, each, background, names, round(data.rate)) for each in long]


def _stream(
    model: IntegerModel,
    recording: Recording,
    background: Sequence[object],
    names: list[str],
    second: int,
) -> rules.Stream:
    say("listening", 0, None, recording.name)
    scores = model.stream_scores(recording.X)
    classes = {label: at for at, label in enumerate(model.classes) if label not in background}
    spans = [(s.first, s.end, classes[s.label]) for s in recording.spans if s.label in classes]
    groups = [(span.first, names.index(str(span.label))) for span in recording.groups]
    return rules.Stream(
        scores,
        np.arange(len(scores)) * model.hop + model.input.rows - 1,
        np.array(spans, np.int64).reshape(-1, 3),
        np.array(groups, np.int64).reshape(-1, 2),
        len(recording.X),
        second,
    )


def evaluate_events(
    model: IntegerModel, streams: Sequence[rules.Stream], start: float = 1.0
) -> EventEvaluation:
    """Judge the events of a model; the curve multiplies its least sums times `start` by factors."""
    events = model.events
    assert events is not None
    hours, curve = rules.hours_of(streams), dict[int, tuple[float, int, float, float]]()
    reached = LARGEST_SUM >> events.shift << events.shift
    for factor in sorted({1.0, *(start * factor for factor in _FACTORS)}):
        least = np.ceil(np.round(events.thresholds * factor, 6))
        scaled = np.minimum(least, reached).astype(np.uint32)
        most = int(scaled.max())
        if factor != 1 and most in curve:
            continue
        heard = rules.judge(streams, replace(events, thresholds=scaled))
        missed = 1 - float(heard.hit.mean()) if heard.hit.size else 0.0
        curve[most] = factor, most, missed, len(heard.alarms) / hours
    heard, second = rules.judge(streams, events), streams[0].second
    return EventEvaluation(model.classes, heard, hours, second, tuple(curve.values()))


def over_promise(result: EventEvaluation, about: Mapping[str, Any]) -> dict[str, list[str]]:
    """Say that there are more false alarms than calibrate promised, and whether by chance."""
    n, hours = len(result.heard.alarms), result.hours
    promised = about.get("events", {}).get("promised_an_hour")
    if promised is None or n <= promised * hours:
        return {"cautions": []}
    chance = 100 * float(gammainc(n, promised * hours))
    caution = (
        f"{n / hours:.3g} false alarms an hour, where {promised:.3g} were promised: as many by "
        f"chance in {chance:.2g} % of such recordings; calibrate with more that are like these"
    )
    return {"cautions": [caution]}


def events_in_words(result: EventEvaluation) -> list[tuple[str, str]]:
    """Return the figures as names and values for a person."""
    facts, heard, lines = result.to_dict(), result.heard, []
    (hits, share), alarms = rules.counts_in_words(heard, result.hours)
    for name, at in (("from its start", "delay_from_start"), ("from its end", "delay_from_end")):
        if facts[at]:
            lines.append(f"{facts[at]['median']:.2f} s {name}, 95 % {facts[at]['most']:.2f} s")
    pairs = [
        ("events", f"{facts['events']} in {result.hours:.3g} hours"),
        (hits, share + f", {heard.doubles} twice" * bool(heard.hit.size)),
        ("confused", f"{count(heard.confused, 'event')} where another class was"),
        alarms,
        ("delay", "; ".join(lines)),
    ]
    for name, each in result.by_class().items():
        rate = f"{each['false_alarms_an_hour']:.3g} false alarms an hour"
        pairs.append((name, f"{each['hits']} of {each['events']} hit, {rate}"))
    return pairs


def curve_in_words(result: EventEvaluation | rules.EventCalibration) -> list[tuple[str, str, str]]:
    """Return threshold, misses and false alarms an hour, without rows that repeat figures."""
    rows: dict[tuple[str, str], str] = {}
    for factor, threshold, missed, rate in result.curve:
        figures = f"{100 * missed:.1f} %" if result.heard.hit.size else "-", f"{rate:.3g}"
        if factor == 1 or figures not in rows:
            rows[figures] = f"{threshold}{' (chosen)' * (factor == 1)}"
    return [(threshold, *figures) for figures, threshold in rows.items()]


#: How many of each kind.
MOST = 5
#: The file that lists them beside their pieces.
TABLE = "worst.csv"
#: What it says of each.
FIELDS = ("kind", "file", "class", "start", "end", "sum")


@dataclass(frozen=True, eq=False)
class Mistake:
    """A missed span, or a false alarm."""

    kind: str  # "miss" or "false alarm"
    recording: Recording
    label: Any  # that was missed, or told
    first: int
    end: int  # samples
    sum: int  # the largest sum in the span, or that of the event
    second: int

    def fields(self) -> dict[str, Any]:
        """Return what `TABLE` says; times are seconds in the file."""
        at = [(self.recording.first + n) / self.second for n in (self.first, self.end)]
        start, end = (round(each, 3) for each in at)
        values = (self.kind, self.recording.name, str(self.label), start, end, self.sum)
        return dict(zip(FIELDS, values, strict=True))


def worst_of(
    model: IntegerModel, data: Recordings, streams: Sequence[rules.Stream]
) -> tuple[Mistake, ...]:
    """Return five misses with the least sums, and five false alarms with the largest ones."""
    events, window = model.events, model.input.rows
    assert events is not None
    silent, found = events.thresholds == 0, list[Mistake]()
    long = [each for each in data.recordings if len(each.X) >= window]
    for recording, stream in zip(long, streams, strict=True):
        heard, made = rules.judge([stream], events), events.follow(stream.scores)
        before = np.zeros(stream.scores.shape[1], np.int64)
        _, sums = sums_over(stream.scores, silent, events.shift, before)
        for (first, end, label), hit in zip(stream.spans.tolist(), heard.hit, strict=True):
            part = slice(*np.searchsorted(stream.ends, [first, end + stream.second]))
            most = int(sums[part, label].max(initial=0))
            name = model.classes[label]
            if not hit:
                found.append(Mistake("miss", recording, name, first, end, most, stream.second))
        near = _near_spans(stream)
        for at in np.flatnonzero((made >= 0) & ~near).tolist():
            end = int(stream.ends[at]) + 1
            name, total = model.classes[int(made[at])], int(sums[at, made[at]])
            found.append(
                Mistake("false alarm", recording, name, end - window, end, total, stream.second)
            )
    misses = sorted((m for m in found if m.kind == "miss"), key=lambda m: m.sum)
    alarms = sorted((m for m in found if m.kind != "miss"), key=lambda m: -m.sum)
    return (*misses[:MOST], *alarms[:MOST])


def _near_spans(stream: rules.Stream) -> NDArray[np.bool_]:
    """Mask decisions in a span or within a second after it: no false alarms."""
    near = np.zeros(len(stream.ends), bool)
    for first, end, _ in stream.spans.tolist():
        near |= (stream.ends >= first) & (stream.ends < end + stream.second)
    return near


def save_worst(folder: Path, mistakes: Sequence[Mistake], window: int, background: str) -> None:
    """Write `TABLE`, and a piece of each mistake that `train --also` takes.

    Sounds are LABEL/NAME.wav. Others are .csv with a column of labels: that of a missed span, and
    `background` elsewhere.
    """
    table = io.StringIO()
    writer = csv.DictWriter(table, FIELDS, lineterminator="\n")
    writer.writeheader()
    files = dict[str, bytes]()
    for number, mistake in enumerate(mistakes, 1):
        writer.writerow(mistake.fields())
        label = str(mistake.label) if mistake.kind == "miss" else background
        lacking = max(0, window - (mistake.end - mistake.first))
        is_sound = mistake.recording.table.is_sound
        around = lacking if is_sound or mistake.kind == "miss" else window
        X, first = mistake.recording.X, max(0, mistake.first - -(-around // 2))
        end = min(len(X), mistake.end + around // 2)
        stem = f"{number:02}_{Path(mistake.recording.name).stem}"
        if is_sound:
            files[f"{label}/{stem}.wav"] = _wav(X[first:end], mistake.second)
        else:
            labels = [label if mistake.first <= i < mistake.end else background
                      for i in range(first, end)]  # fmt: skip
            files[f"{stem}.csv"] = _csv(mistake.recording, first, labels, mistake.second)
    files[TABLE] = table.getvalue().encode()
    replace_folder_atomically(folder, files)


def _wav(X: NDArray[Any], rate: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((X.shape[1], 2, rate, 0, "NONE", ""))
        file.writeframes(X.astype("<i2").tobytes())
    return out.getvalue()


def _csv(recording: Recording, first: int, labels: Sequence[str], rate: int) -> bytes:
    """Return samples with times and labels as a table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["time_s", *recording.channels, "label"])
    for i, label in enumerate(labels, first):
        time = f"{(recording.first + i) / (recording.rate or rate):.6f}"
        writer.writerow([time, *recording.X[i], label])
    return out.getvalue().encode()
