"""Files of labels beside sounds: spans of seconds."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tinykernel.coding.cells import number_of
from tinykernel.errors import TinykernelError

_ROUNDED = 0.01  # seconds by which the end of a span may miss that of its sound


@dataclass(frozen=True, eq=False)
class Span:
    """Samples first to end, without end, that have one label."""

    first: int
    end: int
    label: Any

    def at(self, scale: float) -> Span:
        """Return the span in samples of another rate."""
        return Span(round(self.first * scale), round(self.end * scale), self.label)


def label_file(sound: Path) -> Path | None:
    """Return the file of labels beside a sound."""
    files = [sound.with_suffix(suffix) for suffix in (".csv", ".txt", ".json")]
    return next((each for each in files if each.is_file()), None)


def read_label_file(sound: Path, rate: float, n: int) -> tuple[Span, ...] | None:
    """Read the spans of a sound from the file of labels beside it, where there is one.

    ``NAME.csv`` has a header with start, end and label; ``NAME.txt`` is what Audacity exports;
    ``NAME.json`` is a list of objects with start, end and label. Times are seconds; what is in no
    span is background.
    """
    file = label_file(sound)
    if file is None:
        return None
    spans, lines = list[Span](), dict[Span, int]()
    for line, (start, end, label) in _rows(file):
        times = [number_of(text) for text in (start, end)]
        if None in times or not 0 <= times[0] <= times[1] < np.inf:  # type: ignore[operator]
            raise TinykernelError(
                f"{file}: line {line}: {start!r} to {end!r} is no span of seconds; correct it"
            )
        first, last = (round(float(time) * rate) for time in times if time is not None)
        if first >= n or last > n + rate * _ROUNDED:
            raise TinykernelError(
                f"{file}: line {line}: {end} s is after the end of {sound.name}, {n / rate:.6g} s; "
                "correct it"
            )
        spans.append(Span(first, min(max(last, first + 1), n), label.strip()))
        lines[spans[-1]] = line
    spans.sort(key=lambda span: span.first)
    for before, after in pairwise(spans):
        if after.first < before.end:
            raise TinykernelError(
                f"{file}: lines {lines[before]} and {lines[after]} overlap; give each moment one "
                "label"
            )
    return tuple(spans)


def _rows(file: Path) -> list[tuple[int, tuple[str, str, str]]]:
    """Return the number of each line of a file of labels, with start, end and label."""
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    if file.suffix == ".json":
        return list(enumerate(_objects(file, text), 1))
    if file.suffix == ".txt":
        lines = [line.split("\t") for line in text.splitlines()]
        numbered = [(i, line) for i, line in enumerate(lines, 1) if any(map(str.strip, line))]
        short = next((i for i, line in numbered if len(line) < 3), None)
        if short is not None:
            raise TinykernelError(
                f"{file}: line {short}: is no start, end and label with tabs between them, as "
                "Audacity exports; correct it, or move the file if it holds no labels"
            )
        return [(i, (a, b, c)) for i, (a, b, c, *_) in numbered if a.strip() != "\\"]
    lines = list(csv.reader(text.splitlines()))
    header = [name.strip().lower() for name in lines[0]] if lines else []
    if not {"start", "end", "label"} <= set(header):
        raise TinykernelError(f"{file}: needs a header with start, end and label; write one")
    places = [header.index(name) for name in ("start", "end", "label")]
    numbered = [(i, row) for i, row in enumerate(lines[1:], 2) if row]
    short = next((i for i, row in numbered if len(row) <= max(places)), None)
    if short is not None:
        raise TinykernelError(f"{file}: line {short}: has too few columns; correct it")
    rows = [(i, [row[place] for place in places]) for i, row in numbered]
    return [(i, (a, b, c)) for i, (a, b, c) in rows]


def _objects(file: Path, text: str) -> list[tuple[str, str, str]]:
    """Return start, end and label of each object of a list in JSON."""
    names = ("start", "end", "label")
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, list):
        raise TinykernelError(
            f"{file}: holds no list of objects with start, end and label; write one, or move the "
            "file if it holds no labels"
        )
    for number, each in enumerate(held, 1):
        if not isinstance(each, dict) or not set(names) <= set(each):
            raise TinykernelError(
                f"{file}: entry {number}: is no object with start, end and label; correct it"
            )
    return [(str(each["start"]), str(each["end"]), str(each["label"])) for each in held]
