"""NumPy files: .npz archives, and .npy with the labels in another file."""

import math
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tinykernel import stored
from tinykernel.data.formats.tables import FilePart, Parts, Selection
from tinykernel.errors import DataError, FormatError, ShapeError
from tinykernel.text import similar


@contextmanager
def _one_line(problem: str) -> Iterator[None]:
    """Replace the many exceptions of NumPy and zipfile for damaged files; wrap only their calls."""
    try:
        yield
    except (MemoryError, OSError):
        raise
    except Exception:
        raise FormatError(problem) from None


def _array(path: Path, name: str, stream: Any, length: int, in_pieces: bool = False) -> Any:
    """Load one array without unpickling; with `in_pieces` many rows stay in a file (memmap)."""
    where = f"{path}: {name}"
    problem = f"{where} cannot be read (damaged or cut short)"
    rows = _checked_header(where, stream, length, problem)
    with _one_line(problem):
        if rows is None or not in_pieces or length <= stored.IN_PIECES:
            stream.seek(0)
            return np.asarray(np.load(stream, allow_pickle=False))
        shape, dtype = rows
        if not isinstance(stream, zipfile.ZipExtFile):
            return np.memmap(path, dtype, "r", stream.tell(), shape)
        with tempfile.TemporaryFile() as file:
            shutil.copyfileobj(stream, file, 1 << 20)
            return np.memmap(file, dtype, "r", 0, shape)


def _checked_header(
    where: str, stream: Any, length: int, problem: str
) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Return shape and type of rows of numbers, else None; refuse arrays longer than the file."""
    with _one_line(problem):
        first = npy.read_magic(stream) == (1, 0)
        # Versions 2 and 3 differ only in the encoding of field names.
        read = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
    if dtype.hasobject:
        raise FormatError(
            f"{where} is an array of Python objects; save it with a number or string dtype"
        )
    if math.prod(shape) * dtype.itemsize > length - stream.tell():
        raise FormatError(problem)
    is_plain = dtype.kind in "biuf" and dtype != np.float16 and all(n > 0 for n in shape)
    return (shape, dtype) if len(shape) > 1 and not by_columns and is_plain else None


@contextmanager
def open_npz(path: Path) -> Iterator[Any]:
    """Open an archive for `npz_array`."""
    with path.open("rb") as stream:
        with _one_line(f"{path}: is not a readable .npz file"):
            archive = np.load(stream, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise FormatError(f"{path}: is not an .npz file; rename it if it is an .npy file")
        with archive:
            yield archive


def npz_array(path: Path, archive: Any, key: str, in_pieces: bool = False) -> Any:
    """Load one array of an archive."""
    member = f"{key}.npy" if f"{key}.npy" in archive.zip.namelist() else key
    with _one_line(f"{path}: {key} cannot be read (damaged or cut short)"):
        stream = archive.zip.open(member)
    with stream:
        return _array(path, key, stream, archive.zip.getinfo(member).file_size, in_pieces)


def read_npz(path: Path, selection: Selection, needed: bool, in_pieces: bool = False) -> Parts:
    """Read X_train, y_train, X_test, y_test, or X and y, in any case."""
    with open_npz(path) as archive:
        names = {key.lower() for key in archive.files}
        for name in (selection.label, selection.groups):
            if needed and name is not None and name.lower() not in names:
                hint = f"{similar(name, archive.files, repr)} it holds".lstrip()
                raise DataError(f"{path}: has no array {name!r}; {hint} {', '.join(archive.files)}")
        return _npz_parts(path, archive, selection, in_pieces)


def _npz_parts(path: Path, archive: Any, selection: Selection, in_pieces: bool) -> Parts:
    groups = (selection.groups or "").lower()
    keys = {key.lower(): key for key in archive.files}

    def get(*names: str, in_pieces: bool = False) -> Any:
        key = next((keys[name.lower()] for name in names if name.lower() in keys), None)
        return None if key is None else npz_array(path, archive, key, in_pieces)

    def part(suffix: str, labels: str) -> FilePart | None:
        X = get(f"X{suffix}", in_pieces=in_pieces)
        if X is None:
            return None
        beside = get(f"beside{suffix}")
        if beside is not None:
            X = _with_numbers(path, X, beside)
        group = get(f"group{suffix}", f"groups{suffix}")
        if groups in keys and suffix != "_test":
            group = get(groups)
        n_numbers = 0 if beside is None else beside[:1].size
        return FilePart(path, keys[f"x{suffix}"], X, get(labels), group, beside=n_numbers)

    test = part("_test", "y_test")
    train = part("_train", "y_train") or part("", selection.label or "y")
    if train is None and test is None:
        raise DataError(
            f"{path}: needs the arrays X_train, y_train, X_test, y_test or X, y; "
            f"it holds {', '.join(archive.files) or 'nothing'}"
        )
    return Parts(train, test)


def _with_numbers(path: Path, X: Any, beside: NDArray[Any]) -> NDArray[Any]:
    """Append the numbers beside windows to their rows, in the type of these."""
    problem = ""
    if beside.dtype.kind not in "biuf":
        problem = f"beside holds values of type {beside.dtype}; give numbers"
    elif beside.shape[:1] != X.shape[:1] or beside.ndim > 2 or X.ndim < 2:
        problem = f"beside has shape {beside.shape} for X of shape {X.shape}; give a row per window"
    else:
        with np.errstate(invalid="ignore"):
            same = np.array_equal(beside.astype(X.dtype), beside) or X.dtype.kind == "f"
        if not same:
            problem = (
                f"a number of beside does not fit {X.dtype}, the type of X; take another unit, "
                "such as tenths, or a wider type of X"
            )
    if problem:
        raise ShapeError(f"{path}: {problem}")
    return np.hstack([X.reshape(len(X), -1), beside.reshape(len(X), -1).astype(X.dtype)])


def _label_file(path: Path) -> Path | None:
    """Return the file of labels: ``X.npy`` or ``gesture_X.npy`` with y for X."""
    stem = re.sub(r"(^|_)X(_|$)", r"\1y\2", path.stem)
    return None if stem == path.stem else path.with_name(stem + path.suffix)


def read_npy(
    path: Path, selection: Selection, labels_needed: bool, in_pieces: bool = False
) -> Parts:
    """Read an array and its labels."""
    label = selection.label
    if selection.groups is not None:
        raise DataError(f"{path}: has no groups; save X, y and {selection.groups} in an .npz")

    def load(file: Path, in_pieces: bool = False) -> Any:
        with file.open("rb") as stream:
            length = os.fstat(stream.fileno()).st_size
            return _array(file, "the array", stream, length, in_pieces)

    labels = Path(label) if label is not None else _label_file(path)
    if labels is not None and label is not None and not labels.exists():
        labels = path.with_name(label)
    if labels is None or not labels.exists():
        if labels_needed or label is not None:
            raise DataError(
                f"{path}: there is no file {labels or 'of labels'}; name the labels with --label "
                "FILE.npy, or call the two files NAME_X.npy and NAME_y.npy"
            )
        return Parts(FilePart(path, "X", load(path, in_pieces)), None)
    return Parts(FilePart(path, "X", load(path, in_pieces), load(labels)), None)
