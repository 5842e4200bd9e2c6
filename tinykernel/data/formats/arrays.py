"""Recordings as arrays of an .npz."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, ShapeError
from tinykernel.base.text import join
from tinykernel.data.binary import npz_array, open_npz
from tinykernel.data.columns import is_time_name
from tinykernel.data.reading import Columns, Reading
from tinykernel.data.tables import told_apart


def read_arrays(path: Path, reading: Reading) -> Columns:
    """Read X, y, and what else an archive has by its name."""
    with open_npz(path) as archive:
        arrays = {name: npz_array(path, archive, name) for name in archive.files}
    lower = {name.lower(): name for name in arrays}
    if "x" not in lower:
        raise DataError(
            f"{path}: has no array X of shape (samples, channels); it holds "
            f"{join(list(arrays), 12) or 'nothing'}"
        )
    X = arrays[lower["x"]]
    X = X[:, np.newaxis] if X.ndim == 1 else X
    if X.ndim != 2 or X.dtype.kind not in "biuf" or not X.size:
        raise ShapeError(
            f"{path}: X has shape {X.shape} and type {X.dtype}; it must hold numbers of shape "
            "(samples, channels); to train on windows that are cut already, take --window-shape"
        )
    y = _one_a_row(path, arrays, reading.label, lower.get("y"), len(X))
    if y is None and reading.labels_needed:
        raise DataError(f"{path}: has no labels; add the array y or name one with --label")
    usual = next((lower[name] for name in ("group", "groups") if name in lower), None)
    group = _one_a_row(path, arrays, reading.groups, usual, len(X))
    names, rate = _channel_names(path, arrays, X.shape[1]), _rate(path, arrays)
    data = dict(zip(names, X.T, strict=True))
    for key, values in arrays.items():
        if (key == reading.time or is_time_name(key)) and values.shape == (len(X),):
            data = {key: values, **data}
    return Columns(path, data, y, group, rate=rate, keeps_type=True)


def _channel_names(path: Path, arrays: dict[str, NDArray[Any]], n: int) -> tuple[str, ...]:
    """Return the names in the array channels, or numbers."""
    if "channels" not in arrays:
        return tuple(f"channel {i}" for i in range(1, n + 1))
    names = told_apart(map(str, arrays["channels"].ravel()))
    if len(names) != n:
        raise DataError(f"{path}: has {n} channels but {len(names)} names; give one each")
    return names


def _rate(path: Path, arrays: dict[str, NDArray[Any]]) -> float | None:
    """Return the array `rate`, one number in Hz, if there is one."""
    if "rate" not in arrays:
        return None
    rate = arrays["rate"]
    if rate.size != 1 or rate.dtype.kind not in "iuf" or not 0 < float(rate.ravel()[0]) < np.inf:
        raise DataError(f"{path}: the array rate is not one positive number; give it in Hz")
    return float(rate.ravel()[0])


def _one_a_row(
    path: Path, arrays: dict[str, NDArray[Any]], named: str | None, usual: str | None, n: int
) -> NDArray[Any] | None:
    """Return labels or groups as text, from the named array, else from the usual one, if any."""
    name = named or usual
    if name is None:
        return None
    if name not in arrays:
        raise DataError(f"{path}: has no array {name!r}; it holds {join(list(arrays), 12)}")
    values = arrays[name]
    if values.shape != (n,) or values.dtype.kind not in "biufU":
        raise ShapeError(
            f"{path}: {name} has shape {values.shape} and type {values.dtype}; X needs {n} "
            "numbers or texts"
        )
    return values.astype(np.str_)
