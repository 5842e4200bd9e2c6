"""Which pictures a folder holds, and what their names say of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tinykernel.data.paths import PICTURES, data_folder, files_below, find_data
from tinykernel.data.recordings.names import NamePattern
from tinykernel.errors import TinykernelError

_TRAIN, _TEST = ("train", "training"), ("test", "testing")


@dataclass(frozen=True)
class PictureFiles:
    """Pictures in the order of their names.

    Parameters
    ----------
    source : Path
        The file or folder.
    train, test : list of Path
        All pictures, or those below the folders ``train`` and ``test``.
    note : str
        What of the folder is not used; empty where nothing is.
    """

    source: Path
    train: list[Path]
    test: list[Path]
    note: str = ""


def find_pictures(path: str | os.PathLike[str]) -> PictureFiles:
    """Find the pictures of a file or folder, and below it, but for hidden ones."""
    folder = data_folder(path)
    if folder is None:
        file = find_data(path)
        return PictureFiles(file, [file], [])
    circles = list[Path]()
    below = files_below(folder, circles)
    files = sorted(file for file in below if file.name.lower().endswith(PICTURES))
    if circles:
        raise TinykernelError(f"{circles[0]}: is a link to a folder that holds it; remove it")
    if not files:
        raise TinykernelError(f"{folder}: holds no pictures ({', '.join(PICTURES)})")
    parts = [file.relative_to(folder).parts[0].lower() for file in files]
    train = [file for file, part in zip(files, parts, strict=True) if part in _TRAIN]
    test = [file for file, part in zip(files, parts, strict=True) if part in _TEST]
    if not train or not test:
        return PictureFiles(folder, files, [])
    rest = len(files) - len(train) - len(test)
    note = f"not used: {rest} pictures beside the folders train and test" if rest else ""
    return PictureFiles(folder, train, test, note)


def labels_of(
    files: Sequence[Path], pattern: NamePattern | None, *, needed: bool
) -> tuple[list[str] | None, list[str] | None]:
    """Return a label and a group for each picture; None where the names do not say them.

    Without a pattern, or one without a label, the label is the name of the folder.
    """
    if pattern is None and needed:
        _refuse_strays(files)
    said = [None if pattern is None else pattern.find(file) for file in files]
    lacking = next((file for file, one in zip(files, said, strict=True) if one is None), None)
    if pattern is not None and lacking is not None and (needed or any(said)):
        raise TinykernelError(
            f"{lacking}: its name is not of the form {pattern.text!r}; move it elsewhere or give "
            "another --name"
        )
    if pattern is not None and lacking is not None:
        return None, None
    labels, groups = list[str](), list[str]()
    for file, one in zip(files, said, strict=True):
        label, group = one or (None, None)
        folder = Path(os.path.abspath(file)).parent
        labels.append(folder.name if label is None else label)
        if group is not None:
            groups.append(group)
    return labels, groups or None


def _refuse_strays(files: Sequence[Path]) -> None:
    """Refuse pictures that lie beside folders of others: they would be a class of their own."""
    folders = {file.parent for file in files}
    above = {folder for inner in folders for folder in inner.parents}
    stray = next((file for file in files if file.parent in above), None)
    if stray is not None:
        raise TinykernelError(
            f"{stray}: lies beside the folders of the classes; move it away, or say with --name "
            "where the label stands"
        )
