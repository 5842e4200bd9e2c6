"""Archives of time series: .ts of aeon and sktime, and .tsv of the UCR archive."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, FormatError
from tinykernel.data.delimited import TextTable
from tinykernel.data.formats.joining import unlabelled
from tinykernel.data.reading import Columns, Reading


def read_ts(path: Path, reading: Reading) -> Columns:
    """Read a .ts: a series a line, its dimensions and its label separated by colons."""
    has_label, series, labels, is_data = True, list[Any](), list[str](), False
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
        text = line.strip()
        word = text.lower().split()
        if not text or text.startswith("#"):
            continue
        if text.startswith("@"):
            is_data |= word[0] == "@data"
            if word[0] in ("@classlabel", "@targetlabel"):
                has_label = word[1:2] == ["true"]
            continue
        if not is_data:
            break
        parts = text.split(":")
        labels.append(parts.pop().strip() if has_label else "")
        try:
            cells = [part.split(",") for part in parts]
            values = [[np.nan if c.strip() == "?" else float(c) for c in row] for row in cells]
            series.append(np.array(values, np.float64).T)
        except ValueError:
            raise FormatError(
                f"{path}: line {number}: is no series of numbers, with dimensions of one length; "
                "correct it (times in parentheses are not read)"
            ) from None
    if not series:
        raise FormatError(f"{path}: has no series below @data; give a .ts of aeon or sktime")
    return _of_series(path, series, labels if has_label else None, reading)


def read_tsv(table: TextTable, reading: Reading) -> Columns:
    """Read a table of the UCR archive: a label, and the values of a series behind it."""
    columns = [table.numbers(i) for i in range(len(table.names))]
    wrong = next((i for i, column in enumerate(columns) if i and column.texts is not None), None)
    if wrong is not None:
        raise DataError(f"{table.path}: column {wrong + 1} holds text; series are numbers")
    X = np.column_stack([column.values for column in columns[1:]])
    # Shorter series are filled up with NaN.
    ends = X.shape[1] - np.argmax(~np.isnan(X[:, ::-1]), axis=1)
    series = [row[:end].reshape(-1, 1) for row, end in zip(X, ends.tolist(), strict=True)]
    return _of_series(table.path, series, table.texts(0).tolist(), reading)


def _of_series(
    path: Path, series: list[NDArray[Any]], labels: list[str] | None, reading: Reading
) -> Columns:
    """Return series one after the other; each is a group, so that no window spans two."""
    if len({each.shape[1] for each in series}) > 1:
        raise DataError(f"{path}: its series have different numbers of dimensions; correct it")
    if labels is None and reading.labels_needed:
        raise unlabelled(path)
    lengths = [len(each) for each in series]
    X = np.concatenate(series)
    columns = {f"channel {i + 1}": x for i, x in enumerate(X.T)}
    y = None if labels is None else np.repeat(labels, lengths)
    group = np.repeat([f"{path.name}:{i}" for i in range(1, len(series) + 1)], lengths)
    notes = dict[str, int]()
    if min(lengths) < max(lengths):
        notes[f"{len(series)} series of {min(lengths)} to {max(lengths)} samples"] = 0
    return Columns(path, columns, y, group, notes=notes)
