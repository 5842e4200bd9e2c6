"""Labels and groups of recordings: in names, in files beside sounds, and as spans."""

import csv
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tinykernel.base.coding import number_of
from tinykernel.base.errors import DataError, FormatError, OptionError

_LABELS = ("label", "class", "target", "word", "y")
#: Names of columns and parts of paths that say groups.
GROUPS: tuple[str, ...] = ("group", "person", "speaker", "subject", "patient")
GROUPS += ("participant", "user", "machine", "device")
#: Label of samples that no span labels.
NO_SPAN = "background"
_BACKGROUND = {NO_SPAN, "noise", "silence", "none", "nothing", "off"}
_OTHERS = {"unknown", "other", "others", "rest"}
_PARTS = re.compile(r"\{(\w+)\}|\*")
_ROUNDED = 0.01  # seconds by which the end of a span may miss that of its sound


def names_say(path: Path) -> str:
    """Say how names would hold the labels, with what divides the name of a file.

    A word that all files of a folder begin with, as the title of an experiment, is no label.

    >>> names_say(Path("walk 2026-11-29.csv")), names_say(Path("walk1.csv"))
    ("--name '{label} *' or --name '{label}/*'", "--name '{label}{n}' or --name '{label}/*'")
    """
    mark = re.match(r"([^\W\d_]+)(?:([-_ .]).|\d+$)", path.stem)
    files = [each.name for each in path.parent.glob(f"*{path.suffix}")]
    if not mark or (len(files) > 1 and all(name.startswith(mark[1]) for name in files)):
        return "--name '{label}/*'"
    rest = f"{mark[2]}*" if mark[2] else "{n}"
    return f"--name '{{label}}{rest}' or --name '{{label}}/*'"


def says_group(column: str) -> bool:
    """Whether the name of a column is that of groups, also as an identifier.

    >>> [says_group(name) for name in ("Person", "subject_id", "userId", "device_temp")]
    [True, True, True, False]
    """
    return re.sub(r"[\W_]*id$", "", column.lower()) in GROUPS


def is_background(label: object) -> bool:
    """Whether all words of a label mean background.

    >>> [is_background(label) for label in ("_silence_", "Background noise", "light off", 0)]
    [True, True, False, False]
    """
    parts = re.findall(r"[^\W_]+", str(label).lower())
    return bool(parts) and _BACKGROUND.issuperset(parts)


def background_among(labels: Iterable[object], named: Sequence[object] = ()) -> str | None:
    """Return the label of what has no label: one of those named, or else whose words say so.

    >>> background_among(["yes", "unknown", "silence"], ["unknown", "silence"])
    'silence'
    >>> background_among(["yes", "no"], ["yes"]), background_among(["yes", "no"])
    ('yes', None)
    """
    names = set(map(str, named))
    fits = [
        str(label) for label in labels if (str(label) in names if names else is_background(label))
    ]
    return min(fits, key=_background_first, default=None)


def _background_first(label: str) -> tuple[bool, bool, str]:
    return not is_background(label), label.lower() == "off", label


def backgrounds_among(labels: Iterable[object]) -> tuple[Any, ...]:
    """Return the labels whose words say background; "off" only if no other one does.

    >>> backgrounds_among(["off", "on", "silence"]), backgrounds_among(["off", "on"])
    (('silence',), ('off',))
    """
    fits = tuple(label for label in labels if is_background(label))
    return tuple(label for label in fits if str(label).lower() != "off") or fits


def others_among(labels: Iterable[object]) -> list[str]:
    """Return the labels that may mean what is none of the other classes.

    >>> others_among(["yes", "_unknown_", "silence"])
    ['_unknown_']
    """
    return [str(label) for label in labels if str(label).lower().strip("_ ") in _OTHERS]


@dataclass(frozen=True)
class NamePattern:
    """Where label and group are in the path of a file.

    The text describes the last parts of the path, without a suffix: ``"{label}_{person}_{n}"`` or
    ``"{person}/{label}/*"``. ``{field}`` is at least one character and as few as possible, ``*``
    anything; neither contains a ``/``. Right behind another field, as in ``"{label}{n}"``, ``{n}``
    is digits. `label` and `group` name fields, by default label, class,
    target, word or y, and one of `GROUPS`.
    """

    text: str
    label: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        """Check the text, and find the fields of label and group."""
        fields = [name for name in _PARTS.findall(self.text) if name]
        are_braced = not set(_PARTS.sub("", self.text)) & set("{}")
        if (
            len(set(fields)) < len(fields)
            or "}{" in self.text.replace("}{n}", "}")
            or not are_braced
        ):
            raise OptionError(
                f"--name {self.text!r}: write each field once, as {{label}}, with text between them"
            )
        for role, known in (("label", _LABELS), ("group", GROUPS)):
            asked = getattr(self, role)
            if asked is not None and asked not in fields:
                object.__setattr__(self, role, None)  # it may be a column
            elif asked is None:
                object.__setattr__(
                    self, role, next((name for name in known if name in fields), None)
                )
        if self.label is None and self.group is None:
            raise OptionError(
                f"--name {self.text!r}: no field is the label or a group; call them {{label}} and "
                "{group}, or name other fields with --label and --groups"
            )

    def find(self, path: Path, *, needed: bool = False) -> tuple[str | None, str | None] | None:
        """Return label and group of a file; None, or an error, if its path does not match."""
        whole = Path(os.path.abspath(path))  # links may lead in a circle
        parts = whole.with_suffix("").parts[-1 - self.text.count("/") :]
        match = re.fullmatch(self._expression(), "/".join(parts))
        if match is None and needed:
            raise DataError(
                f"{path}: its name does not match {self.text!r}; move it elsewhere, or give "
                "another --name"
            )
        if match is None:
            return None
        fields = [name for name in _PARTS.findall(self.text) if name]
        values = dict(zip(fields, match.groups(), strict=True))
        return values.get(self.label or ""), values.get(self.group or "")

    def _expression(self) -> str:
        out, end = "", 0
        for part in _PARTS.finditer(self.text):
            out += re.escape(self.text[end : part.start()])
            is_behind = part[1] == "n" and self.text[: part.start()].endswith("}")
            out += r"(\d+)" if is_behind else "([^/]+?)" if part[1] else "[^/]*"
            end = part.end()
        return out + re.escape(self.text[end:])


@dataclass(frozen=True, eq=False)
class Span:
    """Samples first to end, without end, that have one label."""

    first: int
    end: int
    label: Any

    def at(self, scale: float) -> "Span":
        """Return the span in samples of another rate."""
        return Span(round(self.first * scale), round(self.end * scale), self.label)


def within(spans: Iterable[Span], first: int, end: int) -> tuple[Span, ...]:
    """Return the parts of spans between two samples, counted from the first of these."""
    parts = ((max(s.first, first) - first, min(s.end, end) - first, s.label) for s in spans)
    return tuple(Span(a, b, label) for a, b, label in parts if a < b)


def read_label_file(sound: Path, rate: float, n: int) -> tuple[Span, ...] | None:
    """Read the spans of a sound from the file of labels beside it, where there is one.

    ``NAME.csv`` has a header with start, end and label, ``NAME.json`` a list of objects with them;
    ``NAME.txt`` is what Audacity exports, without a header and with tabs. Times are seconds; what
    is in no span is background.
    """
    stem = os.path.splitext(sound)[0]
    found = next((s for s in (".csv", ".txt", ".json") if os.path.isfile(stem + s)), None)
    if found is None:
        return None
    file = Path(stem + found)
    spans, lines = list[Span](), dict[Span, int]()
    for line, (start, end, label) in _rows(file):
        times = [number_of(text) for text in (start, end)]
        if None in times or not 0 <= times[0] <= times[1] < np.inf:  # type: ignore[operator]
            raise FormatError(
                f"{file}: line {line}: {start!r} to {end!r} is not a span of seconds; correct it"
            )
        first, last = (round(float(time) * rate) for time in times if time is not None)
        if first >= n or last > n + rate * _ROUNDED:
            raise DataError(
                f"{file}: line {line}: {end} s is after the end of {sound.name}, {n / rate:.6g} s; "
                "correct it"
            )
        spans.append(Span(first, min(max(last, first + 1), n), label.strip()))
        lines[spans[-1]] = line
    spans.sort(key=lambda span: span.first)
    for before, after in pairwise(spans):
        if after.first < before.end:
            raise DataError(
                f"{file}: lines {lines[before]} and {lines[after]} overlap; give each moment one "
                "label"
            )
    return tuple(spans)


def _rows(file: Path) -> list[tuple[int, list[str]]]:
    """Return the number of each line of a file of labels, with start, end and label."""
    text = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    header = names = ["start", "end", "label"]
    if file.suffix == ".json":
        with suppress(ValueError, TypeError, KeyError):
            entries = json.loads("\n".join(text))
            return [(i, [str(entry[name]) for name in names]) for i, entry in enumerate(entries, 1)]
        raise FormatError(f"{file}: is not a list of objects with start, end and label; correct it")
    if file.suffix == ".txt":  # Audacity writes a second line, from a backslash on, for a band
        split = (line.split("\t") for line in text)
        lines = [(i, row) for i, row in enumerate(split, 1) if row[0].strip() not in ("", "\\")]
    else:
        lines = [(i, row) for i, row in enumerate(csv.reader(text), 1) if row]
        header = [name.strip().lower() for name in lines.pop(0)[1]] if lines else []
    if not set(names) <= set(header):
        raise FormatError(f"{file}: needs a header with start, end and label; write one")
    places = [header.index(name) for name in names]
    short = next((i for i, row in lines if len(row) <= max(places)), None)
    if short is not None:
        raise FormatError(
            f"{file}: line {short}: has too few columns; correct it, or move the file if it holds "
            "no labels"
        )
    return [(i, [row[place] for place in places]) for i, row in lines]
