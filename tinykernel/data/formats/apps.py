"""Folders of the apps Sensor Logger and phyphox: a file for each sensor, joined by time."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from tinykernel.base.errors import DataError
from tinykernel.data.clock import read_clock, time_column
from tinykernel.data.formats.joining import Sampled, joined
from tinykernel.data.formats.rows import read_rows
from tinykernel.data.reading import Columns, Reading

# What says that a folder is of phyphox, or of Sensor Logger; other files hold no samples.
_MARKS = ("meta/device.csv", "meta/time.csv", "Metadata.csv")
_NO_SENSORS = ("metadata.csv", "annotation.csv", "location.csv", "studyMetadata.csv")


def session_of(file: Path) -> Path | None:
    """Return the folder of an app that a file is in, or None."""
    places = [file.parent, file.parent.parent] if file.parent.name == "meta" else [file.parent]
    return next((p for p in places if any((p / mark).is_file() for mark in _MARKS)), None)


def read_session(path: Path, reading: Reading) -> Columns:
    """Read all sensors of a folder as one recording."""
    signals, ignored = dict[str, Sampled](), list[str]()
    plain = replace(reading, label=None, groups=None, labels_needed=False, labels_said=True)
    for file in sorted(path.glob("*.csv")):
        if file.name.lower() in _NO_SENSORS:
            ignored.append(file.name)
            continue
        table = read_rows(file, plain)
        clock = time_column(table, table.columns, reading.time)
        if clock is None:
            ignored.append(file.name)
            continue
        times, rate, _ = read_clock(table, clock, table.columns[clock], None)
        if times is None or rate is None:
            ignored.append(file.name)
            continue
        names = [n for n, x in table.columns.items() if n != clock and x.dtype.kind in "iuf"]
        names = [
            n for n in names if n != "seconds_elapsed" and not np.isnan(table.columns[n]).all()
        ]
        if names:
            X = np.column_stack([table.columns[name] for name in names]).astype(np.float64)
            signals[file.stem] = Sampled(X, tuple(names), rate, times)
    if not signals:
        raise DataError(f"{path}: holds no file of a sensor with times; remove the folder")
    columns, times, rate, notes = joined(path, signals, reading.rate)
    if "Annotation.csv" in ignored:
        notes["not used: Annotation.csv; --name says the label of a folder"] = 0
    if reading.labels_needed:
        raise DataError(
            f"{path}: is a recording of an app, without labels; say them by its name, as in "
            "--name '{label}_*' or --name '{label}/*'"
        )
    return Columns(path, columns, rate=rate, notes=notes)
