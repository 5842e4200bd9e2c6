"""Files: written atomically, found in a checkout or a wheel, and rows that lie in one."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tinykernel.base.errors import FileError, TinykernelError
from tinykernel.base.text import join, visible

if TYPE_CHECKING:
    import jinja2
    import numpy as np
    from numpy.typing import NDArray

#: The name in an index of packages, where another project is called tinykernel.
DISTRIBUTION = "tinykernel-mcu"
#: The file that marks a folder as an export.
MANIFEST = "manifest.json"
_EXPORT = "tinykernel-export"
_EXPORT_VERSION = 1
_LARGEST_MANIFEST = 1 << 20
_BUILD = ".pio"  # where PlatformIO builds
# Names of temporary files and folders beside their target. A killed run may leave one.
_PREFIX, _SUFFIX = ".tinykernel-", ".tmp"


def unwritable(path: Path, error: OSError) -> TinykernelError:
    """Return the error of an output that cannot be written."""
    reason = error.strerror or str(error)
    return FileError(f"{path}: cannot be written ({reason}); choose another output path")


def _new_file_mode() -> int:
    """Return the permissions of a new file under the user's umask."""
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def write_bytes_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to a temporary file beside `path`, then rename it to `path`."""
    # An existing file keeps its permissions, a symbolic link its target. A device or named pipe
    # (``/dev/stdout``) is written directly. A missing or read-only folder is a TinykernelError.
    output = Path(path)
    try:
        if output.is_dir():
            raise FileError(f"{output}: is a folder; choose another output file")
        target = output.resolve()
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            target.write_bytes(data)
            return
        replace_file(target, data, _new_file_mode() if mode is None else stat.S_IMODE(mode))
    except OSError as error:
        raise unwritable(output, error) from None


def replace_file(target: Path, data: bytes, mode: int) -> None:
    """Write a temporary file with these permissions beside a file, then rename it to that."""
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
    """Write an export, content by relative POSIX path, under a temporary name; rename it to `path`.

    Missing parents are created. `force` replaces an earlier export with all its content. A folder
    that `refuse_occupied` refuses or that cannot be written is a TinykernelError and is left
    untouched; a name in `files` that leads out of the folder is a ValueError.
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
        raise unwritable(output, error) from None


def manifest(files: Mapping[str, bytes], **details: object) -> bytes:
    """Return the manifest of an export, JSON of digests of `files` and of `details`."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    content = {"format": _EXPORT, "version": _EXPORT_VERSION, **details, "files": digests}
    return (json.dumps(content, indent=1) + "\n").encode()


def changed_files(folder: Path) -> list[str]:
    """Return the files that differ from an export's manifest, except what PlatformIO builds.

    They were changed, added or removed. A folder that is no export, or cannot be read, has ".".
    """
    expected, digests = _digests(folder), {}
    if not isinstance(expected, dict):
        return ["."]
    try:
        for path in folder.rglob("*"):
            name = path.relative_to(folder)
            if name.parts[0] in (MANIFEST, _BUILD) or path.is_dir():
                continue
            is_file = stat.S_ISREG(path.lstat().st_mode)
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else None
            digests[name.as_posix()] = digest
    except OSError:
        return ["."]
    names = sorted(expected.keys() | digests.keys())
    return [name for name in names if expected.get(name, "") != digests.get(name, "")]


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of an export, or None where there is none."""
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
    """Return the digests in the manifest of an export, or None where there is none."""
    content = read_manifest(folder)
    return None if content is None else content.get("files", {})


def is_file_of_export(folder: Path, name: str) -> bool:
    """Whether a folder is an export and a file in it is unchanged."""
    digests = _digests(folder)
    try:
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    except OSError:
        return False
    return isinstance(digests, dict) and digests.get(name) == digest


def refuse_occupied(path: str | os.PathLike[str], *, force: bool) -> None:
    """Refuse an output folder that must not be replaced: a file, or a folder that is not empty."""
    # Without `force` any such folder is refused, with it those that are not an export of
    # tinykernel, and the working folder or one above it, the home folder, and repositories.
    output, target = Path(path), Path(path).resolve()
    if not target.exists():
        return
    if not target.is_dir():
        raise FileError(f"{output}: is a file; choose another output folder")
    if not any(target.iterdir()):
        return
    current = Path.cwd()
    if target in (current, *current.parents, home()) or (target / ".git").exists():
        raise FileError(
            f"{output}: replacing this folder would delete more than an export; "
            "choose a folder inside it"
        )
    if read_manifest(target) is None:
        raise FileError(
            f"{output}: folder is not an export of tinykernel (it has no {MANIFEST} of one), "
            "so {force} does not replace it; choose another output folder",
            force=True,
        )
    if not force:
        what = join([f"{output / name}" for name in changed_files(target)] or [str(output)], 3)
        problem = f"{output}: {what} would be lost; add {{force}} to replace the folder"
        raise FileError(problem, force=True)


def home() -> Path | None:
    """Return the home folder; None for a user without one, as in many containers."""
    try:
        return Path.home().resolve()
    except RuntimeError:
        return None


def refuse_inputs(output: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse an output that is an input, or a folder that holds one."""
    target = Path(output).resolve()
    for path in inputs:
        source = Path(path).resolve()
        if target in (source, *source.parents):
            relation = "is the input" if source == target else f"holds the input {path}"
            raise FileError(f"{output}: {relation}, which would be lost; choose another output")


def _put(new: Path, target: Path, old: Path) -> None:
    """Rename `new` to `target`; an earlier `target` becomes `old`."""
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
    """Move `new` into an empty folder, which may be a working folder; the manifest comes last."""
    try:
        for child in sorted(new.iterdir(), key=lambda path: (path.name == MANIFEST, path.name)):
            os.replace(child, empty / child.name)
    except BaseException:
        for child in empty.iterdir():
            os.replace(child, new / child.name)
        raise


_PACKAGE = Path(__file__).resolve().parent.parent


def checkout() -> Path | None:
    """Return the root of the source tree of the package; None for an installed wheel."""
    # site-packages may hold "templates", "firmware" and even pyproject.toml of other packages.
    root = _PACKAGE.parent
    try:
        project = (root / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return root if f'name = "{DISTRIBUTION}"' in project.splitlines() else None


def source_folder(name: str) -> Path:
    """Return "templates" or "firmware": beside the package in a checkout, inside it in a wheel."""
    path = (checkout() or _PACKAGE) / name
    if not path.is_dir():
        raise FileNotFoundError(
            f"{path}: this folder of tinykernel is missing; install the package again"
        )
    return path


@functools.cache
def template_engine() -> jinja2.Environment:
    """Return the environment that renders templates, also of pieces; one a process: it caches."""
    import jinja2

    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader([source_folder("templates"), _PACKAGE]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    # A code span of Markdown.
    engine.filters["code"] = lambda value: f"`{visible(str(value)).replace('`', chr(39))}`"
    return engine


#: Larger inputs, in bytes, stay in their file.
IN_PIECES = 1 << 28
#: Limits of a training set.
MOST_ROWS, MOST_VALUES = 2_000_000, 1 << 28
#: Rows of a piece.
ROWS_AT_ONCE = 1 << 16


def row_blocks(X: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield pieces of the rows, each with the number of its first row."""
    for first in range(0, len(X), ROWS_AT_ONCE):
        yield first, X[first : first + ROWS_AT_ONCE]


def rows_at(X: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Return the rows at some places, in that order; a file is read from its begin to its end."""
    import numpy as np  # the command line answers without it

    selected = np.empty((len(places), *X.shape[1:]), X.dtype)
    for _, part in row_blocks(np.argsort(places, kind="stable")):
        selected[part] = X[places[part]]
    return selected


def drawn_places(y: NDArray[Any], most: int, seed: int | tuple[int, ...]) -> NDArray[np.intp]:
    """Return at most `most` random places; for labels stratified, with at least one per class."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(y))
    if y.dtype.kind == "f" or len(y) <= most:
        return np.asarray(order[:most], np.intp)
    _, code, size = np.unique(y[order], return_inverse=True, return_counts=True)
    by_class = np.argsort(code, kind="stable")
    first = np.cumsum(size) - size
    rank = np.empty(len(y))
    rank[by_class] = np.arange(len(y)) - first[code[by_class]]
    # Classes take turns in proportion to their rows; the first row of each class leads.
    turn = np.where(rank == 0, 0, (rank + 0.5) / size[code])
    chosen = np.argsort(turn, kind="stable")[: max(most, len(size))]
    return np.asarray(order[np.sort(chosen)], np.intp)


def package_version() -> str:
    """Return the version in ``pyproject.toml``, the only place where it is written."""
    root = checkout()
    if root is None:
        from importlib.metadata import version

        return version(DISTRIBUTION)
    # In a checkout the metadata may be outdated or missing.
    for line in (root / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("version = "):
            return line.split('"')[1]
    raise RuntimeError("pyproject.toml states no version")
