"""What was changed in an export since it was written, and whether it is that of a model."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tinykernel
from tinykernel.codegen.projects import OPTIONS, exported_files
from tinykernel.errors import TinykernelError
from tinykernel.files import MANIFEST, read_manifest
from tinykernel.model.integer import IntegerModel

#: What builds and editors make at the top of a project.
_OF_TOOLS = (".git", ".pio", ".vscode", "build")
_LARGEST_FILE = 64 << 20
_MOST_FILES = 20_000
_NO_FILE, _TOO_LONG = "no plain file", "too long"
_VECTORS = re.compile(r"vector_inputs\[\w+\]\[\w+\] = \{\n(.*?)\n\};", re.DOTALL)
_NUMBER = re.compile(r"\(-2147483647 - 1\)|-?[0-9][0-9.e+-]*")


@dataclass(frozen=True)
class Audit:
    """What an audit found; paths are relative to the project.

    Parameters
    ----------
    manifest : dict
        As it stands in the project.
    changed, missing, added : tuple of str
        Files against the manifest, and with a model against what it generates.
    fingerprint : bool or None
        Whether the manifest names the model; None without one.
    generated : tuple of str or None
        Files that are not what the model generates, whatever the manifest says; None where
        nothing was compared.
    problem : str
        Why nothing was compared though a model was given; else empty.
    not_covered : tuple of str
        What the audit says nothing of.
    """

    manifest: dict[str, Any]
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]
    fingerprint: bool | None = None
    generated: tuple[str, ...] | None = None
    problem: str = ""
    not_covered: tuple[str, ...] = ()

    def passes(self, *, allow_added: bool = False) -> bool:
        """Say whether the project is what was exported, and belongs to the model if one was given.

        Parameters
        ----------
        allow_added : bool, default=False
            Files beside those of the export do not matter.
        """
        clean = not (self.changed or self.missing or self.generated or self.problem)
        return clean and self.fingerprint is not False and (allow_added or not self.added)


def audit(
    folder: Path, model: IntegerModel | None = None, about: Mapping[str, Any] | None = None
) -> Audit:
    """Compare an export with its manifest, and with a model.

    The manifest is no signature: who can change a file can change it, too. With the model that
    does not help them. The whole project is generated again, with the options that the manifest
    names; these, and all else that stays uncompared, are in `Audit.not_covered`.

    Parameters
    ----------
    folder : pathlib.Path
    model : IntegerModel, optional
    about : mapping, optional
        As for `export`.

    Raises
    ------
    TinykernelError
        If the folder is no export, or cannot be read.
    """
    found = read_manifest(folder)
    expected = None if found is None else found.get("files")
    if found is None or not isinstance(expected, dict):
        raise TinykernelError(
            f"{folder}: no export of tinykernel (it has no {MANIFEST} of one); "
            "give the folder that `tinykernel export` wrote"
        )
    own: dict[str, str] | None = None
    problem, open_ends = "", []
    try:
        if model is None:
            open_ends = ["whatever the manifest was changed with: give MODEL to compare with that"]
        else:
            try:
                own = _generated(folder, found, model, about, open_ends)
            except TinykernelError as error:
                problem = str(error)
        there, skipped = _digests_in(folder, expected if own is None else own)
    except OSError as error:
        raise TinykernelError(f"{folder}: cannot be read ({error.strerror})") from None
    names = set(expected) if own is None else set(own)
    return Audit(
        found,
        tuple(sorted(n for n in expected if n in there and there[n] != expected[n])),
        tuple(sorted((set(expected) | names) - set(there))),
        tuple(sorted(set(there) - (set(expected) & names))),
        None if model is None else found.get("model") == model.fingerprint(),
        None if own is None else tuple(sorted(n for n in own if there.get(n) != own[n])),
        problem,
        (*open_ends, *(f"{name}: what a build or an editor made" for name in skipped)),
    )


def _digests_in(folder: Path, exported: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the SHA-256 of every file, of what is no plain file its kind; and what was skipped."""
    scripts = {name.removesuffix(".py") for name in exported if name.endswith(".py")}
    found: dict[str, str] = {}
    skipped = []

    def refuse(error: OSError) -> None:
        raise error

    for place, folders, files in os.walk(folder, onerror=refuse):
        here = Path(place)
        if here == folder:
            skipped = [n for n in sorted(folders) if n in _OF_TOOLS and not (here / n).is_symlink()]
            folders[:] = [name for name in folders if name not in skipped]
        for name in (*files, *(name for name in folders if (here / name).is_symlink())):
            path = (here / name).relative_to(folder)
            script = path.parent.parent / name.partition(".")[0]
            if path.parent.name == "__pycache__" and script.as_posix() in scripts:
                skipped.append(path.as_posix())
            elif path.as_posix() != MANIFEST:
                found[path.as_posix()] = _digest(here / name)
        if len(found) > _MOST_FILES:
            raise TinykernelError(f"{folder}: more than {_MOST_FILES} files, which no export has")
    return found, skipped


def _digest(path: Path) -> str:
    """Return the SHA-256 of a plain file that is not too long; else what is wrong with it."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return _NO_FILE
    if status.st_size > _LARGEST_FILE:
        return _TOO_LONG
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _generated(
    folder: Path,
    found: Mapping[str, Any],
    model: IntegerModel,
    about: Mapping[str, Any] | None,
    open_ends: list[str],
) -> dict[str, str]:
    """Return the digests of the project that the model generates with the options of a manifest."""
    tool = f"tinykernel {tinykernel.__version__}"
    if found.get("tool") != tool:
        raise TinykernelError(f"another version made this project, this is {tool}: use that one")
    given = found.get("options")
    words = {"name": found.get("name"), **given} if isinstance(given, dict) else {}
    if set(words) - {"name", *OPTIONS} or not all(isinstance(w, str) for w in words.values()):
        words = {}
    if not words:
        raise TinykernelError("the manifest does not name the options of an export")
    target, as_data = words.pop("target", None), found.get("as_data") is True
    said = " ".join(
        f"--{key} {value}" for key, value in {"target": target, **words}.items() if value
    )
    open_ends.append(f"the options of the export, which are the manifest's: {said}")
    open_ends.append("what the manifest says of the training")
    words |= {"as_data": as_data, "about": about}
    files = exported_files(model, target, **words)
    rows = _rows(folder, files, model)
    if rows is not None:
        open_ends.append("which rows the self-test has; their scores are those of MODEL")
        files = exported_files(model, target, **words, vectors=rows)
    del files[MANIFEST]
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def _rows(folder: Path, files: Mapping[str, bytes], model: IntegerModel) -> NDArray[Any] | None:
    """Return the inputs of a self-test whose rows the user chose; None where there are no such."""
    for name, data in files.items():
        path = folder / name
        if not name.endswith("_vectors.h") or not os.path.lexists(path):
            continue
        if _digest(path) in (_NO_FILE, _TOO_LONG, hashlib.sha256(data).hexdigest()):
            continue
        table = _VECTORS.search(path.read_text("ascii", "replace"))
        numbers = _NUMBER.findall(table[1]) if table else []
        try:
            values = np.array([-(2**31) if n[0] == "(" else float(n) for n in numbers])
            return model.as_raw(values.astype(model.raw_dtype).reshape(-1, model.n_inputs))
        except (ValueError, TinykernelError):
            continue
    return None
