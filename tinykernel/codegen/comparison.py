"""An export compared with what a model generates now."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from tinykernel.codegen.projects import OPTIONS, exported_files
from tinykernel.errors import FileError, FormatError
from tinykernel.files import MANIFEST, read_manifest


def compare(
    paths: Sequence[Path],
    model: object,
    *,
    vectors: ArrayLike | None = None,
    about: Mapping[str, Any] | None = None,
) -> tuple[Path, int, dict[str, list[str]]]:
    """Render an export again, and compare it byte by byte."""
    # Returns the export, the number of files that the model generates there, and those that are
    # changed, missing, or extra, which the model does not generate.
    # The options are those of its manifest, which itself is not compared. `paths` are the export,
    # or folders and files in it. Files neither generated nor in the manifest are ignored.
    exports = [_export_of(path) for path in paths]
    folder, manifest = exports[0]
    for path, (other, _) in zip(paths, exports, strict=True):
        if other != folder:
            raise FileError(f"{path}: is not in the export {folder}; check one export at a time")
    files = exported_files(model, **_options(folder, manifest), vectors=vectors, about=about)
    del files[MANIFEST]
    places = [Path(os.path.relpath(path.absolute(), folder)).as_posix() for path in paths]
    names = [name for name in files if _is_in(name, places)]
    listed = [name for name in manifest["files"] if _is_in(name, places)]
    try:
        missing = [name for name in names if not os.path.lexists(folder / name)]
        changed = [n for n in names if n not in missing and not _holds(folder / n, files[n])]
        extra = [n for n in listed if n not in files and os.path.lexists(folder / n)]
    except OSError as error:
        raise FileError(f"{folder}: cannot be read ({error.strerror})") from None
    return folder, len(names), {"changed": changed, "missing": missing, "extra": extra}


def _export_of(path: Path) -> tuple[Path, dict[str, Any]]:
    """Return the export that contains a path, and its manifest."""
    for folder in (path.absolute(), *path.absolute().parents):
        manifest = read_manifest(folder)
        if manifest is not None and isinstance(manifest.get("files"), dict):
            return folder, manifest
    raise FormatError(
        f"{path}: not an export of tinykernel (there is no {MANIFEST} of one); give the folder "
        "that 'tinykernel export' wrote, or files in it"
    )


def _options(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    listed = manifest.get("options")
    options = {"name": manifest.get("name"), **(listed if isinstance(listed, dict) else {})}
    is_known = options.keys() <= {"name", *OPTIONS} and "format" in options
    if not is_known or not all(isinstance(value, str) for value in options.values()):
        raise FormatError(
            f"{folder / MANIFEST}: lists no options of an export; export the model again"
        )
    return {"target": None, **options}


def _is_in(name: str, places: Sequence[str]) -> bool:
    """Say whether a file is one of the places or below one."""
    return any(place in (".", name) or name.startswith(f"{place}/") for place in places)


def _holds(path: Path, data: bytes) -> bool:
    """Say whether a path is a plain file of this content; others are not opened."""
    status = path.lstat()
    is_possible = stat.S_ISREG(status.st_mode) and status.st_size == len(data)
    return is_possible and path.read_bytes() == data
