"""Folders of the apps Sensor Logger and phyphox: a file for each sensor, joined by time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError
from tinykernel.data.clock import read_clock, time_column
from tinykernel.data.columns import ticks_per_second
from tinykernel.data.formats.joining import Sampled, join_signals, unlabelled
from tinykernel.data.formats.rows import read_rows
from tinykernel.data.labels import Span
from tinykernel.data.reading import Columns, Reading

# What says that a folder is of phyphox, or of Sensor Logger; other files hold no samples.
_MARKS = ("meta/device.csv", "meta/time.csv", "Metadata.csv")
_NO_SENSORS = ("metadata.csv", "annotation.csv", "location.csv", "studymetadata.csv")
_ANNOTATIONS = "Annotation.csv"


def session_of(file: Path) -> Path | None:
    """Return the folder of an app that a file is in, or None."""
    places = [file.parent, file.parent.parent] if file.parent.name == "meta" else [file.parent]
    return next((p for p in places if any((p / mark).is_file() for mark in _MARKS)), None)


def read_session(path: Path, reading: Reading) -> Columns:
    """Read all sensors of a folder as one recording."""
    signals, timeless = dict[str, Sampled](), list[str]()
    plain = replace(reading, label=None, groups=None, labels_needed=False, labels_said=True)
    for file in sorted(path.glob("*.csv")):
        if file.name.lower() not in _NO_SENSORS:
            sampled = _sensor(file, plain)
            signals |= {} if sampled is None else {file.stem: sampled}
            timeless += [] if sampled is not None else [file.name]
    if not signals:
        raise DataError(f"{path}: holds no file of a sensor with times; remove the folder")
    columns, times, rate, notes = join_signals(path, signals, reading.rate)
    notes |= {f"left out: {name} (no samples with times)": 0 for name in timeless}
    is_asked = reading.label in (None, _ANNOTATIONS)
    spans = _annotated(path, times, plain, notes) if is_asked else None
    if spans is None and reading.labels_needed:
        raise unlabelled(path)
    label = None if spans is None else _ANNOTATIONS
    columns = {reading.time or "time_s": times} | columns  # a longer step is a gap
    return Columns(path, columns, rate=rate, notes=notes, spans=spans, label=label)


def _sensor(file: Path, plain: Reading) -> Sampled | None:
    """Read the samples of a sensor in the order of their times, or None where it has none."""
    table = read_rows(file, plain)
    clock = time_column(table, table.columns, plain.time)
    order = None if clock is None else np.argsort(table.columns[clock], kind="stable")
    if clock is None or order is None:
        return None
    times, rate, breaks = read_clock(table, clock, table.columns[clock][order], None)
    names = [
        name
        for name, x in table.columns.items()
        if name not in (clock, "seconds_elapsed") and x.dtype.kind in "iuf" and not _is_empty(x)
    ]
    if times is None or rate is None or not names:
        return None
    X = np.column_stack([table.columns[name][order] for name in names]).astype(np.float64)
    return Sampled(X, tuple(names), rate, times, breaks)


def _is_empty(values: NDArray[Any]) -> bool:
    return bool(np.isnan(values).all())


def _annotated(
    path: Path, times: NDArray[np.float64], plain: Reading, notes: dict[str, int]
) -> tuple[Span, ...] | None:
    """Return spans from each annotation of Sensor Logger to the next one; None without any."""
    file = path / _ANNOTATIONS
    if not file.is_file() or len(file.read_bytes().splitlines()) < 2:
        return None
    table = read_rows(file, replace(plain, label="text"))
    clock = time_column(table, table.columns, plain.time)
    if clock is None or table.y is None:
        return None
    ticks = table.columns[clock]
    begins = ticks / (ticks_per_second(clock, float(ticks[0])) or 1)
    firsts = np.searchsorted(times, begins).tolist()
    notes[f"each text of {_ANNOTATIONS} is the label up to the next one"] = 0
    if late := firsts.count(len(times)):
        notes["left out: {n} annotations after the last sample"] = late
    marks = zip(firsts, [*firsts[1:], len(times)], table.y.tolist(), strict=True)
    return tuple(Span(a, b, text) for a, b, text in marks if a < b and text) or None
