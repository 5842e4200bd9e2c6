"""Rows of one class, which are normal."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, ShapeError
from tinykernel.base.text import join
from tinykernel.data.columns import without_needless
from tinykernel.data.faults import checked_part
from tinykernel.data.load import read_parts
from tinykernel.data.origin import Origin
from tinykernel.data.partition import Dataset
from tinykernel.data.paths import find_data
from tinykernel.data.recordings import RecordingSource
from tinykernel.data.tables import Selection, no_column


def normal_rows(path: str | os.PathLike[str], selection: Selection) -> Dataset:
    """Load all rows of a file; labels are optional, but several classes are refused."""
    file = find_data(path)
    parts = read_parts(file, selection, labels_needed=False, keep_all=True)
    part = parts.train or parts.any_part
    wanted = {selection.label: part.y, selection.groups: part.group}
    _refuse_lacking(file, wanted, part.columns)
    notes = part.notes
    if selection.inputs is None and part.columns is not None:
        part, column_notes = without_needless(part)
        notes += column_notes
    part = checked_part(part)
    _check_one(file.name, part.y)
    if part.beside:
        raise ShapeError(f"{file}: a model of one class takes no numbers beside windows; drop them")
    if part.texts:
        raise DataError(
            f"{file}: column {next(iter(part.texts))!r} holds text; a model of one class takes "
            "numbers; leave the column out with --set drop=NAME"
        )
    origin = Origin(inputs=part.columns)
    return _unsplit(part.X, part.group, file.name, columns=part.columns, notes=notes, origin=origin)


def normal_windows(source: RecordingSource) -> Dataset:
    """Cut recordings of one class; their labels are optional."""
    source = replace(source, reading=replace(source.reading, labels_needed=False))
    cut, how = source.windows(), source.reading
    _refuse_lacking(source.path, {how.label: cut.y, how.groups: cut.groups}, cut.channels)
    _check_one(cut.source, cut.y)
    note = (
        "samples are floats, which have no spectrum: record whole numbers, such as the counts of "
        "the sensor, so that one competes"
    )
    notes, origin = (note,) * (cut.X.dtype.kind == "f"), Origin(recordings=cut.as_cut(how))
    return _unsplit(cut.X, cut.groups, cut.source, notes=notes, origin=origin)


def _unsplit(X: NDArray[Any], group: NDArray[Any] | None, source: str, **more: Any) -> Dataset:
    return Dataset(X, np.zeros(len(X)), None, None, source, "", group, **more)


def _refuse_lacking(
    file: object, wanted: Mapping[str | None, Any], columns: Sequence[str] | None
) -> None:
    """Refuse a name of labels or groups, optional for one class, that no column has."""
    for name, values in wanted.items():
        if name is not None and values is None:
            raise no_column(file, name, columns or ())


def _check_one(source: str, labels: NDArray[Any] | None) -> None:
    """Refuse rows of several classes."""
    classes = [] if labels is None else np.unique(labels).tolist()
    if len(classes) > 1:
        names = join(classes, 3, repr)
        raise DataError(
            f"{source}: has rows of {len(classes)} classes ({names}); give normal rows only"
        )
