"""What Edge Impulse writes: acquisitions as JSON or CBOR, and the labels of a project."""

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tinykernel.base.errors import DataError, FormatError, ToolError
from tinykernel.base.text import join
from tinykernel.data.formats.joining import checked_spans, needs, unlabelled
from tinykernel.data.labels import Span
from tinykernel.data.reading import Columns, Reading, of_all

#: The file of labels of an exported project, above its recordings.
INFO = "info.labels"
_ABOVE = 3  # folders in which it is looked for


def read_acquisition(path: Path, reading: Reading) -> Columns:
    """Read payload.sensors, interval_ms and values; the label begins the name of the file."""
    try:
        payload = _content(path)["payload"]
        interval = float(payload["interval_ms"])
        names = [str(sensor["name"]) for sensor in payload["sensors"]]
        rows = [row if isinstance(row, list) else [row] for row in payload["values"]]
    except ToolError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError):
        raise FormatError(
            f"{path}: is no acquisition of Edge Impulse (payload with sensors, interval_ms and "
            "values); remove it"
        ) from None
    if not 0 < interval < np.inf:
        raise DataError(f"{path}: interval_ms is {interval:g}, so it has no rate; correct it")
    wrong = next((i for i, row in enumerate(rows, 1) if len(row) != len(names)), None)
    if wrong is not None or not rows or len(set(names)) < len(names):
        place = "has no values" if not rows else f"sample {wrong} does not fit {join(names, 8)}"
        raise DataError(f"{path}: {place}; correct it")
    # null, and what is undefined, is a missing value.
    values = [[x if isinstance(x, int | float) else np.nan for x in row] for row in rows]
    columns = dict(zip(names, np.array(values, np.float64).T, strict=True))
    label = path.name.split(".")[0]
    return Columns(path, columns, of_all(label, len(rows)), rate=1000 / interval)


def _content(path: Path) -> Any:
    """Return what a file holds, or raise a ValueError."""
    if path.suffix.lower() == ".json":
        return json.loads(path.read_bytes())
    try:
        import cbor2
    except ImportError:
        raise needs(path, "cbor2") from None
    try:
        return cbor2.loads(path.read_bytes())
    except cbor2.CBORDecodeError as error:  # not always a ValueError
        raise ValueError(error) from None


def is_acquisition(path: Path) -> bool:
    """Whether a .json may be one, and not the settings of something."""
    with path.open("rb") as file:
        return b'"payload"' in file.read(1 << 16)


def label_in_project(table: Columns, needed: bool) -> None:
    """Take the label of a recording from the project that it was exported with, if any."""
    place = folder = os.path.abspath(table.file)
    for _ in range(_ABOVE):
        folder = os.path.dirname(folder)
        if not os.path.isfile(os.path.join(folder, INFO)):
            continue
        file = Path(folder, INFO)
        entry = _project(file, file.stat().st_mtime_ns).get(place)
        if entry is None:
            continue
        table.y = table.label = None
        if entry.get("type") == "multi-label":
            spans = [
                Span(int(s["startIndex"]), int(s["endIndex"]) + 1, str(s["label"]))
                for s in entry["labels"]
            ]
            table.spans = checked_spans(file, spans, table.n_rows, table.notes)
        elif "label" in entry:
            table.y = of_all(str(entry["label"]), table.n_rows)
        if needed and table.y is None and table.spans is None:
            raise unlabelled(table.file, f"label in {INFO}")
        return


@lru_cache
def _project(file: Path, _changed: int) -> Mapping[str, Mapping[str, Any]]:
    """Return the label of each file of a project, by its path."""
    try:
        files = json.loads(file.read_bytes())["files"]
        return {str(file.parent / each["path"]): each.get("label", {}) for each in files}
    except (ValueError, TypeError, KeyError):
        raise FormatError(f"{file}: is no list of files with labels; export it again") from None
