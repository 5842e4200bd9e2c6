"""Find pictures in folders, and read labels and groups from their names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tinykernel.data.paths import PICTURES, data_folder, files_with, find_data
from tinykernel.data.recordings.labels import NamePattern
from tinykernel.errors import TinykernelError

_TRAIN, _TEST = ("train", "training"), ("test", "testing")


@dataclass(frozen=True)
class PictureFiles:
    """Pictures in the order of their names."""

    source: Path  # the file or folder
    train: list[Path]  # all pictures, or those below the folder ``train``
    test: list[Path]
    note: str = ""  # on pictures that are not used


def find_pictures(path: str | os.PathLike[str]) -> PictureFiles:
    """Find the pictures of a file, or of a folder and below it, except hidden ones."""
    folder = data_folder(path)
    if folder is None:
        file = find_data(path)
        return PictureFiles(file, [file], [])
    files = files_with(folder, PICTURES)
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
    """Return a label and a group for each picture; None where the names have none.

    Without a label in the pattern, the label is the name of the folder.
    """
    if pattern is None and needed:
        _refuse_strays(files)
    if pattern is None:
        return [_folder_of(file) for file in files], None
    fields = [pattern.find(file) for file in files]
    lacking = next((file for file, each in zip(files, fields, strict=True) if each is None), None)
    if lacking is not None and (needed or any(fields)):
        raise TinykernelError(
            f"{lacking}: its name is not of the form {pattern.text!r}; move it elsewhere or give "
            "another --name"
        )
    known = [each for each in fields if each is not None]
    if len(known) < len(fields):
        return None, None
    labels = [label or _folder_of(file) for file, (label, _) in zip(files, known, strict=True)]
    groups = [group for _, group in known if group is not None]
    return labels, groups or None


def _folder_of(file: Path) -> str:
    return Path(os.path.abspath(file)).parent.name


def _refuse_strays(files: Sequence[Path]) -> None:
    """Refuse pictures beside the folders of classes: they would become a class, too."""
    folders = {file.parent for file in files}
    above = {folder for inner in folders for folder in inner.parents}
    stray = next((file for file in files if file.parent in above), None)
    if stray is not None:
        raise TinykernelError(
            f"{stray}: lies beside the folders of the classes; move it away, or say with --name "
            "where the label stands"
        )
