"""Decisions and events along recordings, as soon as their samples are there."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, ModelError
from tinykernel.base.text import count, percent
from tinykernel.data.cutting import first_hole, notes_on, window_labels
from tinykernel.data.reading import Reading, Recording
from tinykernel.data.recordings import as_classes
from tinykernel.data.streams import PIPE, pieces
from tinykernel.model.answers import EventState
from tinykernel.model.integer import IntegerModel

Rows = list[dict[str, Any]]
_Arrays = dict[str, NDArray[Any]]


def decisions_of(model: IntegerModel, scores: NDArray[Any]) -> dict[str, list[Any]]:
    """Return decision (None if refused) and confidence of each row; empty without decisions."""
    if model.decision is None:
        return {}
    decisions = _labels(model, model.decision.decide(scores))
    return {"decision": decisions, "confidence": model.decision.confidence(scores).tolist()}


def _labels(model: IntegerModel, places: NDArray[np.int64]) -> list[Any]:
    return [None if place < 0 else model.classes[place] for place in places.tolist()]


class StreamDecisions:
    """The decisions of a model along recordings, or of samples that come through a pipe."""

    def __init__(self, model: IntegerModel, reading: Reading | None, path: str) -> None:
        if reading is None:
            raise ModelError(f"{path}: --stream needs a model of signals; give one")
        if not model.hop:
            raise ModelError(
                "the model has no hop, so it takes windows, not recordings; train it with --hop"
            )
        self.model, self.reading, self.path = model, reading, path
        self._counts = Counter[str]()
        self._channels: dict[str, bool] = {}  # of sounds, and whether they are taken
        self._labels = list[Any]()  # those in recordings, as classes

    def __iter__(self) -> Iterator[Rows]:
        """Yield the decisions of each piece of a recording that has any, a dictionary each."""
        source = pieces(self.path, self.reading, self.model.input.channels + self.model.n_numbers)
        for _, parts in groupby(source, lambda piece: piece.name):
            yield from self._of_recording(parts)
            self._counts["recordings"] += 1
        name = "standard input" if self.path == PIPE else self.path
        if not self._counts["recordings"]:
            raise DataError(f"{name}: holds no samples; give a recording")
        if not self._counts["decisions"]:
            raise DataError(f"{name}: holds no whole window; give a longer recording")

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the recordings so far; see `Windows`."""
        used = [name for name, is_used in self._channels.items() if is_used]
        others = [name for name, is_used in self._channels.items() if not is_used]
        return notes_on(self._counts, self.reading.rate, used, others, self.reading.time)

    @property
    def summary(self) -> str:
        """How many events there were, or how many decisions are right, so far."""
        counts = self._counts
        if self.model.events is not None:
            return f"{count(counts['events'], 'event')} in {count(counts['decisions'], 'decision')}"
        if not counts["judged"]:
            return ""
        share = percent(counts["right"] / counts["judged"])
        return f"label right in {share} of {count(counts['judged'], 'decision')}"

    def _count(self, rows: Rows) -> Rows:
        judged = [row for row in rows if row["true"] in self.model.classes]
        self._counts["decisions"] += len(rows)
        self._counts["events"] += sum(row.get("event") is not None for row in rows)
        self._counts["judged"] += len(judged)
        self._counts["right"] += sum(row["label"] == row["true"] for row in judged)
        return rows

    def _of_recording(self, parts: Iterable[Recording]) -> Iterator[Rows]:
        """Decide along a recording; one shorter than a window is padded, dropped or refused."""
        rest, state, n = _Arrays(), EventState(self.model.n_classes), 0
        for piece in parts:
            self._note(piece)
            if not piece.follows:
                rest, state = _Arrays(), EventState(self.model.n_classes)
            rest = {
                name: np.concatenate([rest.get(name, values[:0]), values])
                for name, values in self._arrays(piece).items()
            }
            rows, rest = self._decide(piece, rest, state)
            n += len(rows)
            if rows:
                yield rows
            elif not piece.table.is_sound:
                self._counts["short"] += 1
        if n:
            return
        is_sound, lacking = piece.table.is_sound, self.model.input.rows - len(rest["X"])
        if self.reading.short == "pad" or (self.reading.short is None and is_sound):
            longer = {
                name: np.pad(x, (0, lacking), "edge") for name, x in rest.items() if x.ndim == 1
            }
            longer["X"] = np.pad(rest["X"], ((0, lacking), (0, 0)))
            self._counts["padded"] += 1
            rows, _ = self._decide(piece, longer, state)
            if rows:
                yield rows
        elif self.reading.short is None:
            raise DataError(
                f"{piece.name}: a window of {self.model.input.rows} samples is longer than the "
                f"recording, or than its stretches without a gap; give a longer one"
            )

    def _note(self, piece: Recording) -> None:
        """Note what is done to sounds."""
        table = piece.table
        if table.is_sound and not piece.first:
            self._counts["resampled"] += table.own_rate is not None
            self._channels |= {name: name in piece.channels for name in table.columns}

    def _arrays(self, piece: Recording) -> _Arrays:
        """Return what decisions need of a piece; the labels of its samples as classes."""
        arrays = _Arrays()
        arrays["X"], arrays["lost"] = piece.X, piece.holes
        arrays["sample"] = piece.first + np.arange(len(piece.X))
        times = piece.times if piece.times is not None else piece.times_at(arrays["sample"])
        if times is not None:
            arrays["time"] = times
        if piece.y is not None and not piece.unlabelled.all():
            labels, of_sample = np.unique(piece.y, return_inverse=True)
            names = {*piece.labels, *map(str, labels.tolist())}
            classes = as_classes(
                names, self.model.classes, self.reading.background, piece.table.is_sound
            )
            if classes is not None:
                values = [classes[str(label)] for label in labels.tolist()]
                self._labels += [value for value in values if value not in self._labels]
                arrays["true"] = np.array(list(map(self._labels.index, values)))[of_sample]
        return arrays

    def _decide(self, piece: Recording, arrays: _Arrays, state: EventState) -> tuple[Rows, _Arrays]:
        """Decide on all windows of samples; also return the samples of later ones."""
        model, window = self.model, self.model.input.rows
        starts = np.arange(0, len(arrays["X"]) - window + 1, model.hop)
        rest = {name: values[len(starts) * model.hop :] for name, values in arrays.items()}
        scores = model.stream_scores(arrays["X"])
        lost = np.concatenate(([0], np.cumsum(arrays["lost"])))
        whole = lost[starts + window] == lost[starts]
        if not whole.all() and self.reading.missing == "error":
            raise DataError(first_hole(piece, int(starts[whole.argmin()])))
        self._counts["missing"] += int((~whole).sum())
        starts, scores = starts[whole], scores[whole]
        ends, n = starts + window - 1, len(starts)
        columns: dict[str, Any] = {"recording": [piece.name] * n}
        columns["sample"] = arrays["sample"][ends].tolist()
        columns["time"] = arrays["time"][ends].tolist() if "time" in arrays else [None] * n
        columns["label"] = list(model.answers.predict(scores))
        y, _ = window_labels(arrays.get("true"), starts, window)
        columns["true"] = [None] * n if y is None else [self._labels[i] for i in y.tolist()]
        if model.events is not None:
            columns["event"] = _labels(model, model.events.follow(scores, state))
        columns |= decisions_of(model, scores)
        lines = zip(*columns.values(), strict=True)
        return self._count([dict(zip(columns, line, strict=True)) for line in lines]), rest
