"""Writing files so that an interrupted run leaves no half-written file under its name."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tinykernel.errors import TinykernelError

#: The file that marks a folder as an export.
MANIFEST = "manifest.json"
_EXPORT = "tinykernel-export"
_EXPORT_VERSION = 1
_LARGEST_MANIFEST = 1 << 20
# Of temporary files and folders, which stand beside their target. A killed run may leave one.
_PREFIX, _SUFFIX = ".tinykernel-", ".tmp"


def _unwritable(path: Path, error: OSError) -> TinykernelError:
    reason = error.strerror or str(error)
    return TinykernelError(f"{path}: cannot be written ({reason}); choose another output path")


def _usual_mode(mode: int) -> int:
    """Return `mode` without the permissions that the user's umask takes away."""
    umask = os.umask(0)
    os.umask(umask)
    return mode & ~umask


def _mode_of(path: Path) -> int | None:
    """Return the type and permissions of `path`, or None where nothing is there."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def write_bytes_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to a temporary file beside `path`, then rename it to `path`.

    An existing file keeps its permissions and a symbolic link keeps pointing where it does. What is
    not a file at all (``/dev/stdout``, a named pipe) is written to directly. A folder that does not
    exist or cannot be written is a TinykernelError. A run that is killed may leave a ``.tmp``.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes_atomically(Path(folder, "model.bin"), b"abc")
    ...     Path(folder, "model.bin").read_bytes()
    b'abc'
    """
    output = Path(path)
    try:
        if output.is_dir():
            raise TinykernelError(f"{output}: is a folder; choose another output file")
        target = output.resolve()
        mode = _mode_of(target)
        if mode is not None and not stat.S_ISREG(mode):
            target.write_bytes(data)
            return
        _replace_file(target, data, _usual_mode(0o666) if mode is None else stat.S_IMODE(mode))
    except OSError as error:
        raise _unwritable(output, error) from None


def _replace_file(target: Path, data: bytes, mode: int) -> None:
    handle, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(name, mode)
        os.replace(name, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def replace_folder_atomically(
    path: str | os.PathLike[str], files: Mapping[str, bytes], *, force: bool = False
) -> None:
    """Write an export under a temporary name beside `path`, then rename it to `path`.

    Parameters
    ----------
    path : path-like
        The folder to create. Missing parents are created too.
    files : mapping of str to bytes
        Content by relative POSIX path, e.g. ``{"src/main.c": b"..."}``. With a manifest of
        `manifest` the folder can be replaced later.
    force : bool, default=False
        Replace an earlier export, of which all content goes.

    Raises
    ------
    TinykernelError
        If `path` is a file; is a folder that is not empty, and `force` is false or it is no
        export; is a folder whose loss nobody can mean (the working folder or one above it, the
        home folder, a repository); or cannot be written. The old content is then untouched.
    ValueError
        If a key of `files` leads out of the folder.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_folder_atomically(Path(folder, "out"), {"src/main.c": b"int x;"})
    ...     Path(folder, "out", "src", "main.c").read_bytes()
    b'int x;'
    """
    names = {name: PurePosixPath(name) for name in files}
    for name, relative in names.items():
        if relative.is_absolute() or ".." in relative.parts or not relative.parts:
            raise ValueError(f"{name!r} is not a relative path inside the folder")
    output = Path(path)
    try:
        target = output.resolve()
        refuse_occupied(output, force=force)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=_PREFIX, suffix=_SUFFIX, dir=target.parent))
        new, old = temporary / "new", temporary / "old"
        try:
            new.mkdir()
            for name, data in files.items():
                file = new.joinpath(*names[name].parts)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            _put(new, target, old)
        finally:
            if target.exists() or not old.exists():
                shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise _unwritable(output, error) from None


def manifest(files: Mapping[str, bytes], **details: object) -> bytes:
    """Return the manifest of an export as JSON text: the mark of a folder that may be replaced.

    `files` are all other files, `details` say in JSON types what was exported, and by what.

    >>> json.loads(manifest({"a.c": b""}, tool="tinykernel 1.0"))["files"]["a.c"][:8]
    'e3b0c442'
    """
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    content = {"format": _EXPORT, "version": _EXPORT_VERSION, **details, "files": digests}
    return (json.dumps(content, indent=1) + "\n").encode()


def is_export(folder: Path) -> bool:
    """Say whether a folder has the manifest of an export."""
    return _digests(folder) is not None


def is_unchanged_export(folder: Path, besides: Iterable[str] = ()) -> bool:
    """Say whether a folder holds the files of its manifest as they were written, and no others.

    What stands in a folder of `besides`, of a build for example, does not matter.
    """
    expected, found = _digests(folder), {}
    try:
        for path in folder.rglob("*"):
            name = path.relative_to(folder)
            if name.parts[0] in (MANIFEST, *besides) or path.is_dir():
                continue
            if not stat.S_ISREG(path.lstat().st_mode):
                return False
            found[name.as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return False
    return found == expected


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return what the manifest of an export says, or None where there is no such."""
    file = folder / MANIFEST
    try:
        if not stat.S_ISREG(file.lstat().st_mode) or file.stat().st_size > _LARGEST_MANIFEST:
            return None
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    is_ours = isinstance(content, dict) and content.get("format") == _EXPORT
    return content if is_ours else None


def _digests(folder: Path) -> object:
    """Return what the manifest of an export says of its files, or None where there is no such."""
    content = read_manifest(folder)
    return None if content is None else content.get("files", {})


def is_file_of_export(folder: Path, name: str) -> bool:
    """Say whether a folder is an export and still holds a file as it was written."""
    digests = _digests(folder)
    try:
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    except OSError:
        return False
    return isinstance(digests, dict) and digests.get(name) == digest


def refuse_occupied(path: str | os.PathLike[str], *, force: bool) -> None:
    """Refuse an output folder that must not be replaced, as `replace_folder_atomically` does.

    Nothing is touched. Raises TinykernelError, or OSError if the folder cannot be read.
    """
    output, target = Path(path), Path(path).resolve()
    if not target.exists():
        return
    if not target.is_dir():
        raise TinykernelError(f"{output}: is a file; choose another output folder")
    if not any(target.iterdir()):
        return
    current = Path.cwd()
    if target in (current, *current.parents, home()) or (target / ".git").exists():
        raise TinykernelError(
            f"{output}: replacing this folder would delete more than an export; "
            "choose a folder inside it"
        )
    if not is_export(target):
        raise TinykernelError(
            f"{output}: folder is no export of tinykernel (it has no {MANIFEST} of one), so "
            "that not even --force replaces it; choose another output folder (-o)"
        )
    if not force:
        raise TinykernelError(
            f"{output}: folder exists and is not empty; add --force to replace it"
        )


def home() -> Path | None:
    """Return the home folder; None for a user who has none, as in many containers."""
    try:
        return Path.home().resolve()
    except RuntimeError:
        return None


def refuse_inputs(output: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse an output that is an input, or a folder that holds one; the error names both."""
    target = Path(output).resolve()
    for given in inputs:
        source = Path(given).resolve()
        if target in (source, *source.parents):
            what = "is" if source == target else "holds"
            raise TinykernelError(
                f"{output}: {what} the input {given}, which would be lost; choose another output"
            )


def _put(new: Path, target: Path, old: Path) -> None:
    """Put `new` in the place of `target`; what stood there is then `old`."""
    if not target.exists():
        os.replace(new, target)
        return
    os.chmod(new, stat.S_IMODE(target.stat().st_mode))
    if not any(target.iterdir()):
        _fill(target, new)
        return
    # Inside the block from the first renaming on, or Ctrl-C between the two would lose `old`.
    try:
        os.replace(target, old)
        os.replace(new, target)
    except BaseException:
        if not target.exists():
            os.replace(old, target)
        raise


def _fill(empty: Path, new: Path) -> None:
    """Move what is in `new` into an empty folder, in which a shell may stand; the manifest last."""
    try:
        for child in sorted(new.iterdir(), key=lambda path: (path.name == MANIFEST, path.name)):
            os.replace(child, empty / child.name)
    except BaseException:
        for child in empty.iterdir():
            os.replace(child, new / child.name)
        raise
