"""Rows of a file, read as commands do."""

import os
from collections.abc import Sequence
from typing import Any

from tinykernel.data.load import PictureSource, TableSource
from tinykernel.data.partition import Dataset, Rows
from tinykernel.data.paths import kind_of
from tinykernel.data.pictures import PictureReading
from tinykernel.data.tables import Selection

_Path = str | os.PathLike[str]
_ALL = Selection()


def _source(
    path: _Path,
    selection: Selection,
    values: bool,
    pictures: PictureReading | None,
    classes: Sequence[object] | None = None,
    **how: Any,
) -> TableSource | PictureSource:
    if pictures is not None or kind_of(path) == "pictures":
        return PictureSource(path, pictures, values, classes)
    return TableSource(path, selection, values, classes=classes, **how)


def load_data(
    path: _Path,
    selection: Selection = _ALL,
    *,
    test_size: float = 0.2,
    seed: int = 0,
    values: bool = False,
    pictures: PictureReading | None = None,
    **how: Any,
) -> Dataset:
    """Load rows to train on; `how` are fields of `TableSource`."""
    return _source(path, selection, values, pictures, **how).train_rows(test_size, seed)


def load_rows(
    path: _Path,
    selection: Selection = _ALL,
    *,
    test_size: float | None = None,
    seed: int = 0,
    values: bool = False,
    pictures: PictureReading | None = None,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
    **how: Any,
) -> Rows:
    """Load rows for a finished model; `how` are fields of `TableSource`."""
    if feature_names is not None:
        how = {"n_features": len(feature_names), **how, "feature_names": feature_names}
    return _source(path, selection, values, pictures, classes, **how).rows(test_size, seed)
