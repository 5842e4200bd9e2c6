"""Where an export comes from, as its manifest says, and what was changed in it since."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tinykernel
from tinykernel.codegen.blobs.blob import render_blob
from tinykernel.codegen.packing import FORMAT
from tinykernel.codegen.sources import render_single, render_sources
from tinykernel.errors import TinykernelError
from tinykernel.files import MANIFEST, read_manifest
from tinykernel.model.integer import IntegerModel

#: What builds and editors make in a project.
_OF_TOOLS = (".git", ".pio", ".vscode", "build", "__pycache__")
#: What the manifest repeats of a model file.
_TRAINING = (
    "data",
    "label",
    "groups",
    "split",
    "test_size",
    "seed",
    "task",
    "method",
    "target",
    "budget",
    "limits",
    "accuracy",
    "sizes",
)


def provenance(name: str, about: Mapping[str, Any], *, as_data: bool = False) -> dict[str, Any]:
    """Return what a manifest says besides tool, model and files; JSON types.

    `sizes` names the compiler that measured them: that of the table which comes with the package.
    """
    training = {key: about[key] for key in _TRAINING if key in about}
    rows = about.get("training_rows")
    if isinstance(rows, dict):
        # The digests of single rows stay in the model file.
        kept = {key: rows[key] for key in ("rows", "sha256") if key in rows}
        training["training_rows"] = kept
    said = {"name": name, "contract": FORMAT, "training": training}
    return said | {"as_data": True} if as_data else said


@dataclass(frozen=True)
class Audit:
    """What an audit found; paths are relative to the project.

    Parameters
    ----------
    manifest : dict
        As it stands in the project.
    changed, missing, added : tuple of str
        Files against the manifest. What builds and editors make (``.pio``, ``build``, ...) is
        left out.
    fingerprint : bool or None
        Whether the manifest names the model; None without one.
    generated : tuple of str or None
        Files whose C is not what the model generates, whatever the manifest says; None without a
        model, or where another version of this package made the export.
    """

    manifest: dict[str, Any]
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]
    fingerprint: bool | None = None
    generated: tuple[str, ...] | None = None

    def passes(self, *, allow_added: bool = False) -> bool:
        """Say whether the project is what was exported, and belongs to the model if one was given.

        Parameters
        ----------
        allow_added : bool, default=False
            Files beside those of the export do not matter.
        """
        clean = not (self.changed or self.missing or self.generated)
        return clean and self.fingerprint is not False and (allow_added or not self.added)


def audit(folder: Path, model: IntegerModel | None = None) -> Audit:
    """Compare an export with its manifest, and with a model.

    The manifest is no signature: who can change a file can change it, too. With the model that
    does not help them, because its C is generated again.

    Parameters
    ----------
    folder : pathlib.Path
    model : IntegerModel, optional

    Returns
    -------
    Audit

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
    try:
        there = _digests_in(folder)
        changed = {name for name in expected if name in there and there[name] != expected[name]}
        own = None if model is None else _not_generated(folder, found, there, model)
    except OSError as error:
        raise TinykernelError(f"{folder}: cannot be read ({error.strerror})") from None
    return Audit(
        found,
        tuple(sorted(changed)),
        tuple(sorted(set(expected) - set(there))),
        tuple(sorted(set(there) - set(expected))),
        None if model is None else found.get("model") == model.fingerprint(),
        own,
    )


def _digests_in(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file; of what is no plain file its kind."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if name.parts[0] in (MANIFEST, *_OF_TOOLS) or "__pycache__" in name.parts:
            continue
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        plain = stat.S_ISREG(mode)
        found[name.as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest() if plain else "link"
    return found


def _not_generated(
    folder: Path, found: Mapping[str, Any], there: Mapping[str, str], model: IntegerModel
) -> tuple[str, ...] | None:
    """Return the files of the model that differ from what it generates."""
    name = found.get("name")
    if found.get("tool") != f"tinykernel {tinykernel.__version__}" or not isinstance(name, str):
        return None
    blob = render_blob(model, name)
    is_blob = f"{name}.bin" in there
    sources = blob if is_blob else render_sources(model, name, as_data=bool(found.get("as_data")))
    single = {} if is_blob else render_single(sources, name)
    allowed: dict[str, set[bytes]] = {}
    for path, data in (*sources.items(), *single.items()):
        if path.endswith((".c", ".h", ".bin")):
            allowed.setdefault(path.rpartition("/")[2], set()).add(data)
    differ = [
        path
        for path in there
        if (base := path.rpartition("/")[2]) in allowed
        and (folder / path).read_bytes() not in allowed[base]
    ]
    seen = {path.rpartition("/")[2] for path in there}
    missing = {f"{name}.bin"} if is_blob else {f"{name}.c", f"{name}.h"}
    missing -= seen
    return tuple(sorted([*differ, *missing]))
