"""Writing files so that an interrupted run leaves nothing half-written behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tinykernel.errors import TinykernelError

__all__ = ["refuse_occupied", "replace_folder_atomically", "write_bytes_atomically"]


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

    An existing file keeps its permissions and a symbolic link keeps pointing where it does. What
    is not a file at all (``/dev/stdout``, a named pipe) is written to directly.

    Parameters
    ----------
    path : path-like
        The file to create or replace. Its folder must exist.
    data : bytes
        The whole content.

    Raises
    ------
    TinykernelError
        If the folder does not exist or cannot be written. No partial file is left.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes_atomically(Path(folder, "model.bin"), b"abc")
    ...     Path(folder, "model.bin").read_bytes()
    b'abc'
    """
    given = Path(path)
    try:
        if given.is_dir():
            raise TinykernelError(f"{given}: is a folder; choose another output file")
        target = given.resolve()
        mode = _mode_of(target)
        if mode is not None and not stat.S_ISREG(mode):
            target.write_bytes(data)
            return
        _replace_file(target, data, _usual_mode(0o666) if mode is None else stat.S_IMODE(mode))
    except OSError as error:
        raise _unwritable(given, error) from None


def _replace_file(target: Path, data: bytes, mode: int) -> None:
    handle, name = tempfile.mkstemp(prefix=".tinykernel-", dir=target.parent)
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
    """Write a folder of files under a temporary name, then rename it to `path`.

    Parameters
    ----------
    path : path-like
        The folder to create. Missing parents are created too.
    files : mapping of str to bytes
        Content by relative POSIX path, e.g. ``{"src/main.c": b"..."}``.
    force : bool, default=False
        Replace an existing folder that is not empty. All its old content goes.

    Raises
    ------
    TinykernelError
        If `path` is a file, is a non-empty folder and `force` is false, is a folder whose loss
        nobody can mean (the working folder or one above it, the home folder, a repository), or
        cannot be written. The old content is then untouched and no partial folder is left.
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
    given = Path(path)
    try:
        target = given.resolve()
        refuse_occupied(given, force=force)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".tinykernel-", dir=target.parent))
        try:
            new = temporary / "new"
            new.mkdir()
            for name, data in files.items():
                file = new.joinpath(*names[name].parts)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            _swap(new, target, temporary / "old")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise _unwritable(given, error) from None


def refuse_occupied(path: str | os.PathLike[str], *, force: bool) -> None:
    """Refuse an output folder that must not be replaced.

    Parameters
    ----------
    path : path-like
        The folder to be written later; not touched.
    force : bool
        Whether a folder that is not empty may be replaced.

    Raises
    ------
    TinykernelError
        As in `replace_folder_atomically`.
    OSError
        If it cannot be read.
    """
    given, target = Path(path), Path(path).resolve()
    if not target.exists():
        return
    if not target.is_dir():
        raise TinykernelError(f"{given}: is a file; choose another output folder")
    if not any(target.iterdir()):
        return
    if not force:
        raise TinykernelError(f"{given}: folder exists and is not empty; add --force to replace it")
    current = Path.cwd()
    if target in (current, *current.parents, Path.home().resolve()) or (target / ".git").exists():
        raise TinykernelError(
            f"{given}: replacing this folder would delete more than an export; "
            "choose a folder inside it"
        )


def _swap(new: Path, target: Path, old: Path) -> None:
    """Rename `new` to `target`; what stood there goes to `old`, or back if the renaming fails."""
    if not target.exists():
        os.replace(new, target)
    elif not any(target.iterdir()):
        _fill(target, new)
    else:
        # Inside the block from the first renaming on, or Ctrl-C between the two would lose `old`.
        try:
            os.replace(target, old)
            os.replace(new, target)
        except BaseException:
            if not target.exists():
                os.replace(old, target)
            raise


def _fill(empty: Path, new: Path) -> None:
    """Move the content of `new` into a folder, which may be the one that a shell stands in."""
    try:
        for child in sorted(new.iterdir()):
            os.replace(child, empty / child.name)
    except BaseException:
        for child in empty.iterdir():
            os.replace(child, new / child.name)
        raise
