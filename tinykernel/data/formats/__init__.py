"""Read a data file by its suffix: .npz, .npy pairs, .csv, .tsv and .parquet."""

from pathlib import Path

from tinykernel.data.formats.delimited import read_table
from tinykernel.data.formats.numpy_files import read_npy, read_npz
from tinykernel.data.formats.parquet import read_parquet
from tinykernel.data.formats.tables import ColumnChooser, FilePart, Parts, Selection, part_of
from tinykernel.errors import FileError, FormatError, OptionError

__all__ = ["FORMATS", "FilePart", "Parts", "read_parts"]


FORMATS = (".npz", ".npy", ".csv", ".tsv", ".parquet")


def read_parts(
    path: Path,
    selection: Selection,
    *,
    labels_needed: bool,
    n_features: int | None = None,
    in_pieces: bool = False,
    keep_all: bool = False,
) -> Parts:
    """Read an existing data file by its suffix.

    If labels are not needed, labels and groups may be missing. If a table has `n_features` columns,
    none is the label. With `in_pieces` many rows stay in a file, as `numpy.memmap`. With
    `keep_all` rows without a label stay, and labels are then ignored.
    """
    suffix = path.suffix.lower()
    if selection.names_columns and suffix in (".npz", ".npy"):
        raise OptionError(f"{path}: has no columns; leave out inputs and drop, or give a table")
    chooser = ColumnChooser(path, selection, labels_needed, n_features, keep_all)
    try:
        if suffix == ".npz":
            return read_npz(path, selection, labels_needed, in_pieces)
        if suffix == ".npy":
            return read_npy(path, selection, labels_needed, in_pieces)
        if suffix in (".csv", ".tsv"):
            return Parts(part_of(read_table(path, chooser.known), chooser), None)
        if suffix == ".parquet":
            return Parts(read_parquet(path, chooser, in_pieces), None)
    except OSError as error:
        reason = error.strerror or "damaged or cut short"
        raise FileError(f"{path}: cannot be read ({reason})") from None
    raise FormatError(
        f"{path}: cannot be read as data; give a file that ends in {', '.join(FORMATS)}"
    )
