"""Find data: a path as written, or a bare name in the folder TINYKERNEL_DATA.

The command line imports this module before anything heavy.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from tinykernel.base.errors import FileError, FormatError

ARCHIVE = ".zip"

SOUNDS = (".wav", ".flac", ".ogg", ".aiff", ".aif", ".w64", ".rf64")
_PHOTOS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif")
PICTURES = (*_PHOTOS, ".tif", ".tiff", ".ppm", ".pgm", ".jp2", ".avif")
#: Recordings of devices and archives, which are no tables.
_OF_DEVICES = (".hea", ".edf", ".bdf", ".ts", ".cbor", ".json")
RECORDINGS = (".csv", ".tsv", ".parquet", ".npz", *SOUNDS, *_OF_DEVICES)

#: Folders of the two parts of data, in lower case.
TRAIN, TEST = ("train", "training"), ("test", "testing")


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
    """Find a folder or an archive, a bare name also in TINYKERNEL_DATA; None for another file."""
    folder, shared = Path(path), os.environ.get("TINYKERNEL_DATA")
    if shared and not folder.exists() and folder.name == str(folder):
        folder = Path(shared) / folder
    if folder.is_dir():
        return folder
    is_archive = folder.suffix.lower() == ARCHIVE and folder.is_file()
    return unpacked(folder) if is_archive else None


@cache
def _scratch() -> Path:
    """Return a folder for what archives hold, which lasts as long as this process."""
    import atexit
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="tinykernel-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name).resolve()


def unpacked(archive: Path) -> Path:
    """Return a folder with the files of an archive, below a path as that of the archive."""
    status = archive.stat()
    return _unpack(archive.absolute(), status.st_mtime_ns, status.st_size)


@lru_cache
def _unpack(archive: Path, _changed: int, _size: int) -> Path:
    import shutil
    import zipfile
    import zlib

    place = Path(_scratch(), *archive.parts[1:])
    try:
        with zipfile.ZipFile(archive) as file:
            members = file.infolist()
            if min((member.header_offset for member in members), default=0):
                raise zipfile.BadZipFile  # the last of the archives in one that is cut short
            needed = sum(member.file_size for member in members)
            if needed > shutil.disk_usage(_scratch()).free:
                raise FileError(
                    f"{archive}: holds {needed / 1e6:,.0f} MB, more than is free for temporary "
                    "files; set TMPDIR to another folder"
                )
            shutil.rmtree(place, ignore_errors=True)  # of an archive that has changed
            file.extractall(place)
    except FileError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        reason = "with a password" if "password" in str(error) else "damaged or cut short"
        raise FormatError(f"{archive}: cannot be unpacked ({reason}); pack it again") from None
    return place


def as_packed(text: str) -> str:
    """Return a message with ARCHIVE:MEMBER in place of where what was in it lies."""
    if not _scratch.cache_info().currsize:
        return text
    place = rf"(?:{re.escape(str(_scratch()))})+(?:([^:]*?\.zip)/)?"
    return re.sub(place, lambda found: f"{found[1]}:" if found[1] else "", text, flags=re.I)


def name_below(folder: Path, file: Path) -> str:
    """Return the name of a file of a folder, or of an archive below it."""
    if not file.is_relative_to(folder):
        folder = Path(_scratch(), *folder.absolute().parts[1:])
    return file.relative_to(folder).as_posix()


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


def parts_of(names: Sequence[str]) -> list[str]:
    """Return the part of each file, train or test, by folders or endings; empty if one has none.

    >>> parts_of(["a/Training/1.csv", "a/testing/1.csv"]), parts_of(["test/1.csv", "2.csv"])
    (['Training', 'testing'], [])
    >>> parts_of(["Coffee_TRAIN.ts", "Coffee_TEST.ts"])
    ['TRAIN', 'TEST']
    """
    words = [(Path(name).stem.rpartition("_")[2], *Path(name).parts[:-1]) for name in names]
    named = [[word for word in each if word.lower() in (*TRAIN, *TEST)] for each in words]
    parts = [each[-1] for each in named if each]  # the nearest folder, else the ending
    are_both = len({part.lower() in TEST for part in parts}) == 2
    return parts if are_both and len(parts) == len(named) else []


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
