"""Find data: a path as written, or a bare name in the folder TINYKERNEL_DATA.

The command line imports this module before anything heavy.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from tinykernel.base.errors import FileError

SOUNDS = (".wav", ".flac", ".ogg", ".aiff", ".aif", ".w64", ".rf64")
_PHOTOS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif")
PICTURES = (*_PHOTOS, ".tif", ".tiff", ".ppm", ".pgm", ".jp2", ".avif")
#: Recordings of devices and archives, which are no tables.
_OF_DEVICES = (".hea", ".edf", ".bdf", ".ts", ".cbor", ".json")
RECORDINGS = (".csv", ".tsv", ".parquet", ".npz", *SOUNDS, *_OF_DEVICES)


def find_data(path: str | os.PathLike[str]) -> Path:
    """Find a data file; a bare name may also be in the folder TINYKERNEL_DATA."""
    file = Path(path)
    if file.is_file():
        return file
    if file.is_dir():
        raise FileError(f"{file}: is a folder; give a data file")
    folder = os.environ.get("TINYKERNEL_DATA")
    if folder and file.name == str(file):
        shared = Path(folder) / file
        if shared.is_file():
            return shared
        raise FileError(
            f"{file}: no such file here or in {folder} (TINYKERNEL_DATA); check its name"
        )
    raise FileError(f"{file}: no such file; check the path")


def data_folder(path: str | os.PathLike[str]) -> Path | None:
    """Find a folder, a bare name also in TINYKERNEL_DATA; None for a file."""
    folder, shared = Path(path), os.environ.get("TINYKERNEL_DATA")
    if folder.is_dir():
        return folder
    if not shared or folder.exists() or folder.name != str(folder):
        return None
    return Path(shared) / folder if (Path(shared) / folder).is_dir() else None


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the visible files below a folder; a link to a folder above it is not followed."""

    def refuse(error: OSError) -> None:
        raise FileError(f"{error.filename}: cannot be read ({error.strerror})") from None

    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        here = Path(place).resolve()
        above = {here, *here.parents}
        folders[:] = [n for n in folders if n[0] != "." and Path(place, n).resolve() not in above]
        yield from (Path(place, name) for name in names if name[0] != ".")


def files_with(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files of a folder and below it with one of the suffixes, sorted."""
    return sorted(file for file in files_below(folder) if file.name.lower().endswith(suffixes))


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return "recordings", "rows", or "pictures": also for a folder with mostly pictures."""
    folder = data_folder(path)
    if folder is None:
        suffix = Path(path).suffix.lower()
        are_recordings = suffix in (*SOUNDS, *_OF_DEVICES)
        return "recordings" if are_recordings else "pictures" if suffix in PICTURES else "rows"
    names = [file.name.lower() for file in files_below(folder)]
    n_pictures, n_recordings = (
        sum(name.endswith(suffixes) for name in names) for suffixes in (PICTURES, RECORDINGS[:-1])
    )
    return "pictures" if n_pictures > n_recordings else "recordings"
