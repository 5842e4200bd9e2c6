"""Training data of novelty detection: normal rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.data.columns import without_needless
from tinykernel.data.faults import checked_part
from tinykernel.data.formats import read_parts
from tinykernel.data.formats.tables import Selection
from tinykernel.data.paths import find_data
from tinykernel.data.recordings import windows
from tinykernel.data.signals import cutting_of
from tinykernel.errors import TinykernelError
from tinykernel.text import listed


@dataclass(frozen=True, eq=False)
class NormalRows:
    """Normal rows."""

    X: NDArray[Any]  # (n, n_inputs) or (n, samples, channels)
    group: NDArray[Any] | None  # (n,)
    columns: tuple[str, ...] | None  # names of the inputs.
    source: str  # name of the file or folder.
    hop: int  # of recordings; 0 of rows.
    about: dict[str, Any]  # settings that the model file stores.
    notes: tuple[str, ...] = ()  # changes to the rows, one line each.


def normal_rows(
    path: str | os.PathLike[str], *, label: str | None, groups: str | None, selection: Selection
) -> NormalRows:
    """Load all rows of a file; labels are optional, but several classes are refused."""
    file = find_data(path)
    parts = read_parts(
        file, label=label, labels_needed=False, groups=groups, selection=selection, keep_all=True
    )
    part = parts.train or parts.any_part
    notes = part.notes
    if selection.inputs is None and part.columns is not None:
        part, column_notes = without_needless(part)
        notes += column_notes
    part = checked_part(part)
    _check_one(file.name, part.y)
    if part.beside:
        raise TinykernelError(f"{file}: a model of one class takes no numbers beside windows")
    if part.texts:
        raise TinykernelError(
            f"{file}: column {next(iter(part.texts))!r} holds text; a model of one class takes "
            "numbers; leave the column out with --set drop=NAME"
        )
    about = {"inputs": list(part.columns)} if part.columns else {}
    return NormalRows(part.X, part.group, part.columns, file.name, 0, about, notes)


def normal_recordings(path: str | os.PathLike[str], **how: Any) -> NormalRows:
    """Cut recordings into windows; `how` are parameters of `windows`."""
    cut = windows(path, labels_needed=False, **how)
    _check_one(cut.source, cut.y)
    return NormalRows(cut.X, cut.groups, None, cut.source, cut.hop, cutting_of(cut, how))


def _check_one(source: str, labels: Sequence[Any] | NDArray[Any] | None) -> None:
    """Refuse rows of several classes."""
    classes = [] if labels is None else np.unique(np.asarray(labels)).tolist()
    if len(classes) > 1:
        shown = listed(classes, 3, repr)
        raise TinykernelError(
            f"{source}: has rows of {len(classes)} classes ({shown}); one class is learned from "
            "rows that are all normal"
        )
