"""Show what is understood of data, before any training."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.errors import TinykernelError
from tinykernel.base.files import template_engine, write_bytes_atomically
from tinykernel.base.text import count, join
from tinykernel.face import arguments as args
from tinykernel.face.evaluation import print_notes
from tinykernel.face.output import print_json, print_pairs, print_table, showing_progress

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset
    from tinykernel.data.reading import Recording
    from tinykernel.data.recordings import RecordingSource

_STRIP = 1200  # samples of a class that a page shows
_COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2")


@args.has_settings("label", "groups", "name", "window", "hop")
def data_command(
    ctx: typer.Context,
    data: str = args.DATA,
    settings: None = None,
    assignments: list[str] = args.SET,
    config: Path | None = args.CONFIG,
    html: Path | None = args.option("FILE", "write a page with a strip of each class"),
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
    **_: Any,
) -> None:
    """Show how train understands DATA, before any training.

    That is channels, rate, classes, windows, split, and what is left out. Takes the settings of
    train that say how DATA are read. What train would refuse is a caution.
    """
    from tinykernel.data.recordings import RecordingSource
    from tinykernel.face.dataset import source_of

    if html is not None:
        args.check_output_file(html, (".html", ".htm"))
    parameters = {**ctx.params, "save_config": None}
    options, _typed = args.gather(parameters, ("data", "train"), data)
    options["data"] = data
    with showing_progress(quiet):
        source = source_of(options, options.get("image_shape"))
        share = options["test"] if isinstance(options["test"], float) else 0.0
        if isinstance(source, RecordingSource):
            shown = _of_recordings(source, share, options["seed"])
        else:
            shown = _Shown("table" if options["window_shape"] is None else "windows")
            shown.take(source.train_rows(share, options["seed"]))
    if html is not None:
        write_bytes_atomically(html, shown.page(data).encode())
        shown.facts["page"] = html
    if as_json:
        lists = {"classes": shown.classes, "notes": shown.notes, "cautions": shown.cautions}
        print_json({"data": data, "kind": shown.kind, **shown.facts, **lists})
    elif not quiet:
        pairs = [(name, str(value)) for name, value in shown.facts.items()]
        print_pairs([("data", f"{data}: {shown.kind}"), *pairs])
        print_table(*shown.table(), right=shown.table()[0][1:])
        print_notes(shown.notes)
        print_notes(shown.cautions, "caution")


@dataclass
class _Shown:
    """What is understood of data."""

    kind: str
    facts: dict[str, Any] = field(default_factory=dict)
    classes: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    strips: dict[str, Any] = field(default_factory=dict)  # samples x channels, by class
    channels: tuple[str, ...] = ()

    def take(self, dataset: Dataset) -> None:
        """Add the rows, or windows, of each part."""
        unit = "rows" if dataset.origin.recordings is None else "windows"
        shape = "x".join(map(str, dataset.shape or dataset.X_train.shape[1:]))
        self.facts |= {"inputs": shape, "split": dataset.split}
        if dataset.columns and unit == "rows":
            self.facts["columns"] = join(dataset.columns, 12)
        parts = {f"training {unit}": dataset.y_train}
        if dataset.y_test is not None:
            parts[f"test {unit}"] = dataset.y_test
        is_class = dataset.y_train.dtype.kind != "f"
        for name, y in parts.items():
            for label, n in Counter(y.tolist() if is_class else ["values"] * len(y)).items():
                self.classes.setdefault(str(label), {})[name] = n
        self.notes += [note for note in dataset.notes if note not in self.notes]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the columns and rows of the classes."""
        names = list(dict.fromkeys(name for each in self.classes.values() for name in each))
        rows = [
            [label, *(f"{each.get(name, 0):g}" for name in names)]
            for label, each in sorted(self.classes.items())
        ]
        return ["class", *names], rows

    def page(self, data: str) -> str:
        """Return a page with the facts, the classes and a strip of each."""
        columns, rows = self.table()
        engine = template_engine().overlay(autoescape=True)
        return engine.get_template("report/data.html.j2").render(
            data=data,
            shown=self,
            rows=[columns, *rows],
            strips={label: _strip(X) for label, X in sorted(self.strips.items())},
            colours=_COLOURS,
        )


def _strip(X: Any) -> dict[str, Any]:
    """Return samples as lines of an SVG that is a hundred high, one for each channel."""
    low, high = float(X.min()), float(X.max())
    scale = 100 / (high - low or 1)
    lines = [
        " ".join(f"{x},{100 - scale * (v - low):.1f}" for x, v in enumerate(values))
        for values in X.T.tolist()
    ]
    return {"end": max(len(X) - 1, 1), "lines": lines}


def _of_recordings(source: RecordingSource, share: float, seed: int) -> _Shown:
    """Show recordings; without a window, before they are cut."""
    shown, window = _Shown("recordings"), source.reading.window
    try:
        tracks, notes = source.tracks()
    except TinykernelError as error:  # without labels there is much to show, too
        source = replace(source, reading=replace(source.reading, labels_needed=False))
        try:
            tracks, notes = source.tracks()
        except TinykernelError:
            raise error from None
        shown.cautions.append(str(error))
    first = tracks[0]
    shown.channels = first.channels
    shown.facts = {
        "files": len(tracks),
        "channels": f"{count(len(first.channels), 'channel')}: {join(first.channels, 12)}",
        "times": first.time or "",
        "rate": "unknown" if first.rate is None else f"{first.rate:g} Hz{_jitter(tracks)}",
        "gaps": sum(len(track.breaks) for track in tracks),
    }
    shown.notes += notes
    _add_classes(shown, tracks)
    if window is None:
        shown.notes.append("give --window, as in --window 2s, to see windows and the split")
    elif not shown.cautions:
        try:
            shown.take(source.train_rows(share, seed))
            shown.notes += [note for note in source.windows().notes if note not in shown.notes]
        except TinykernelError as error:
            shown.cautions.append(str(error))
    return shown


def _add_classes(shown: _Shown, tracks: list[Recording]) -> None:
    """Count recordings and seconds of each class, and take the first stretch as its strip."""
    import numpy as np

    for track in tracks:
        y, seen = track.y, set[str]()
        ends = [len(track.X)]
        if y is not None and len(y) and any(y.strides):
            ends = [*(np.flatnonzero(y[1:] != y[:-1]) + 1).tolist(), len(y)]
        for first, end in pairwise([0, *ends]):
            label = "without a label" if y is None else str(y[first])
            facts = shown.classes.setdefault(label, {"recordings": 0})
            facts["recordings"] += label not in seen
            unit, length = "samples", float(end - first)
            if track.rate is not None:
                unit, length = "seconds", round(length / track.rate, 2)
            facts[unit] = facts.get(unit, 0) + length
            seen.add(label)
            shown.strips.setdefault(label, track.X[first : min(end, first + _STRIP)])


def _jitter(tracks: list[Recording]) -> str:
    """Say how far the steps of time lie apart, but for gaps."""
    import numpy as np

    steps = list[Any]()
    for track in tracks:
        if track.times is not None:
            inner = np.delete(np.diff(track.times), track.breaks - 1)
            steps.append(inner[inner >= 0])
    if not steps:
        return ""
    low, high = np.quantile(np.concatenate(steps) * 1000, [0.01, 0.99]).tolist()
    return f", 98 % of the steps {low:.4g} to {high:.4g} ms"
