"""The worst misses and false alarms of events: when they are, and their samples."""

import csv
import io
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.files import replace_folder_atomically
from tinykernel.data.clips import Recordings
from tinykernel.data.reading import Recording
from tinykernel.judge.event_rules import Stream, judged
from tinykernel.model.answers import sums_over
from tinykernel.model.integer import IntegerModel

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
    model: IntegerModel, data: Recordings, streams: Sequence[Stream]
) -> tuple[Mistake, ...]:
    """Return five misses with the least sums, and five false alarms with the largest ones."""
    events, window = model.events, model.input.rows
    assert events is not None
    silent, found = events.thresholds == 0, list[Mistake]()
    long = [each for each in data.recordings if len(each.X) >= window]
    for recording, stream in zip(long, streams, strict=True):
        heard, made = judged([stream], events), events.follow(stream.scores)
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


def _near_spans(stream: Stream) -> NDArray[np.bool_]:
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
        writer.writerow([time, *recording.X[i].tolist(), label])
    return out.getvalue().encode()
