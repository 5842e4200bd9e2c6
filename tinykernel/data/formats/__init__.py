"""Read a data file by its suffix: .npz, .npy pairs, .csv, .tsv and .parquet."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tinykernel.data.formats.delimited import names_of, read_csv
from tinykernel.data.formats.numpy_files import read_npy, read_npz
from tinykernel.data.formats.parquet import read_parquet
from tinykernel.data.formats.tables import ColumnChooser, FilePart, Parts, Selection
from tinykernel.errors import TinykernelError

__all__ = ["FORMATS", "FilePart", "Parts", "names_in", "read_parts"]


FORMATS = (".npz", ".npy", ".csv", ".tsv", ".parquet")
_TEXTS = (".csv", ".tsv")


def read_parts(
    path: Path,
    *,
    label: str | None,
    labels_needed: bool,
    n_features: int | None = None,
    groups: str | None = None,
    selection: Selection | None = None,
    in_pieces: bool = False,
    keep_all: bool = False,
) -> Parts:
    """Read an existing data file by its suffix.

    `label` and `groups` name columns of tables, arrays of an .npz or files of an .npy. If a table
    has `n_features` columns, none is the label. With `in_pieces` many rows stay in a file, as
    `numpy.memmap`. With `keep_all` rows without a label stay, and labels are then ignored.
    """
    suffix = path.suffix.lower()
    selection = selection or Selection()
    if selection.names_columns and suffix in (".npz", ".npy"):
        raise TinykernelError(f"{path}: has no columns; leave out inputs and drop, or give a table")
    chooser = ColumnChooser(path, label, labels_needed, n_features, groups, selection, keep_all)
    try:
        if suffix == ".npz":
            return read_npz(path, label, groups, in_pieces)
        if suffix == ".npy":
            return read_npy(path, label, labels_needed, groups, in_pieces)
        if suffix in _TEXTS:
            return Parts(read_csv(path, chooser), None)
        if suffix == ".parquet":
            return Parts(read_parquet(path, chooser, in_pieces), None)
    except OSError as error:
        reason = error.strerror or "damaged or cut short"
        raise TinykernelError(f"{path}: cannot be read ({reason})") from None
    raise TinykernelError(
        f"{path}: cannot be read as data; give a file that ends in {', '.join(FORMATS)}"
    )


def names_in(path: Path) -> frozenset[str]:
    """Return the names of columns or arrays of a file; none if it cannot be read."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return frozenset(name.removesuffix(".npy") for name in archive.namelist())
        if suffix in _TEXTS:
            return frozenset(names_of(path))
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            return frozenset(pq.read_schema(path).names)
    except Exception:  # reading the rows reports the fault
        pass
    return frozenset()
