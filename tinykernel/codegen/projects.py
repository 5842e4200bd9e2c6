"""Exporting a model as a project that a firmware author can open, build and flash.

A project format is a folder in ``templates/``, and all its words are in that folder's
``format.json``: where the generated sources go, which names are taken, the versions of platforms,
and for each framework its title, the subfolders that make up a project, the name of an environment
and the language of the board file. Files ending in ``.j2`` are Jinja templates, all others are
copied as they are. Nothing here knows any format or framework by name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel import resources
from tinykernel.codegen.sources import render_sources, render_vectors
from tinykernel.codegen.targets import Board, Target, board_for, find_target
from tinykernel.errors import TinykernelError
from tinykernel.files import MANIFEST, manifest, replace_folder_atomically
from tinykernel.model import IntegerModel, as_integer_model

__all__ = ["export", "formats", "generated_inputs", "render_project"]

_VECTORS = 8


def formats() -> tuple[str, ...]:
    """List the project formats.

    Returns
    -------
    tuple of str
        Names of the folders in ``templates/`` that hold a ``format.json``.
    """
    return tuple(sorted(p.parent.name for p in resources.folder("templates").glob("*/format.json")))


def generated_inputs(model: IntegerModel, n_rows: int = _VECTORS) -> NDArray[Any]:
    """Make inputs spread over the range that a model was scaled for, always the same ones.

    Parameters
    ----------
    model : IntegerModel
    n_rows : int, default=8

    Returns
    -------
    ndarray of the model's raw type, shape (n_rows, n_inputs)
        The first row is the lowest value of every feature and the second row the highest; the
        others are uniform in between.
    """
    scaler = model.scaler if model.local is None else model.local.scaler
    per_row = model.n_features if model.local is None else model.local.channels
    # The legacy generator is frozen by NumPy, so the same bytes come out with every version.
    place = np.random.RandomState(0).random_sample((n_rows, model.n_inputs))
    place[:1], place[1:2] = 0.0, 1.0
    place = place.reshape(-1, per_row)
    offset = scaler.offset.astype(np.float64)
    if scaler.span is None:
        slope = scaler.multiplier.astype(np.float64)
        width = np.divide(2.0**scaler.bits, slope, out=np.zeros_like(slope), where=slope > 0)
        return (offset + place * width).astype(np.float32).reshape(n_rows, -1)
    raw = np.rint(offset + place * scaler.span.astype(np.float64))
    limits = np.iinfo(model.raw_dtype)
    return np.clip(raw, limits.min, limits.max).astype(model.raw_dtype).reshape(n_rows, -1)


def _format_folder(name: str) -> tuple[Path, dict[str, Any]]:
    """Find a project format and read its description."""
    folder = resources.folder("templates") / name
    if name not in formats():
        raise TinykernelError(
            f"unknown project format {name!r}; the known ones are {', '.join(formats())}"
        )
    description: dict[str, Any] = json.loads((folder / "format.json").read_text(encoding="utf-8"))
    return folder, description


def _placed(files: dict[str, bytes], places: dict[str, str]) -> dict[str, bytes]:
    """Move generated sources to where a format wants them."""
    moved = {}
    for path, data in files.items():
        first, _, rest = path.partition("/")
        moved[f"{places[first]}/{rest}"] = data
    return moved


def _templates(folder: Path) -> Iterator[tuple[str, Path]]:
    """List the files under a folder with their relative POSIX names, in a fixed order."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix(), path


def _alternatives(
    target: Target, board: Board, framework: str, description: dict[str, Any]
) -> list[dict[str, str]]:
    """List the other boards and frameworks of a target."""
    listed = []
    for other in (board, *target.boards):
        for name in other.frameworks:
            row = {
                "environment": _environment(other, name, target, description),
                "platform": _pinned(other.platform, description),
                "board": other.name,
                "framework": name,
                "title": other.title,
            }
            if (other.name, name) != (board.name, framework) and row not in listed:
                listed.append(row)
    return listed


def _pinned(platform: str, description: dict[str, Any]) -> str:
    """Write a platform with the version that the format was made for, unless the user names one."""
    version = description["platforms"].get(platform)
    return f"{platform} @ {version}" if version else platform


def _environment(board: Board, framework: str, target: Target, description: dict[str, Any]) -> str:
    """Name the build of one board and framework."""
    pattern = description["frameworks"].get(framework, {}).get("environment", "{board}_{framework}")
    return str(pattern.format(board=board.name or target.name, framework=framework))


def _context(
    name: str,
    target: Target,
    board: Board,
    framework: str,
    files: dict[str, bytes],
    description: dict[str, Any],
) -> dict[str, Any]:
    """Collect what templates may use."""
    headers = {path.rpartition("/")[0] for path in files if path.endswith(".h")}
    words = description["frameworks"][framework]
    return {
        "name": name,
        "macro": name.upper(),
        "title": name.replace("_", " ").capitalize(),
        "target": target,
        "board": board,
        "platform": _pinned(board.platform, description),
        "framework": framework,
        "framework_title": words["title"],
        "environment": _environment(board, framework, target, description),
        "board_language": words.get("language", "c"),
        "alternatives": _alternatives(target, board, framework, description),
        "include_folders": sorted(headers | set(description["include_folders"])),
        "c_sources": sorted(
            set(description["c_sources"])
            | {path[4:] for path in files if path.startswith("src/") and path.endswith(".c")}
        ),
        "vectors": {
            "count": f"{name.upper()}_VECTORS",
            "inputs": f"{name}_vector_inputs",
            "scores": f"{name}_vector_scores",
            "labels": f"{name}_vector_labels",
        },
    }


def _render(folder: Path, parts: list[str], context: dict[str, Any]) -> dict[str, bytes]:
    """Render the template folders of one framework."""
    engine = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    files: dict[str, bytes] = {}
    for part in parts:
        for path, source in _templates(folder / part):
            data = source.read_bytes()
            if path.endswith(".j2"):
                path = path.removesuffix(".j2")
                text = engine.from_string(data.decode()).render(context)
                data = text.encode()
            files[path] = data
    return files


def render_project(
    model: object,
    target: str | Target,
    *,
    name: str = "model",
    board: str | None = None,
    framework: str | None = None,
    platform: str | None = None,
    format: str = "platformio",
    vectors: ArrayLike | None = None,
) -> dict[str, bytes]:
    """Render all files of a project.

    Parameters
    ----------
    model : IntegerModel, KernelMachine or fitted classifier
    target : str or Target
    name : str, default="model"
        Prefix of all C names, see `tinykernel.codegen.literals.check_name`.
    board, framework, platform : str, optional
        PlatformIO's names; by default those of the target. A platform only for a board that
        `tinykernel.codegen.targets` does not know.
    format : str, default="platformio"
        One of `formats`.
    vectors : array-like, shape (n_rows, n_features), optional
        Raw inputs for the self-test; by default `generated_inputs`.

    Returns
    -------
    dict of str to bytes
        Content by relative POSIX path; the same bytes for the same arguments.

    Raises
    ------
    TinykernelError
        If a name is unknown or does not fit the target.
    """
    chosen_target = find_target(target)
    chosen_board, chosen_framework = board_for(chosen_target, board, framework, platform)
    folder, description = _format_folder(format)
    if name in description["names_taken"]:
        raise TinykernelError(f"model name {name!r} is taken by a file of the project; use another")
    if chosen_framework not in description["frameworks"]:
        raise TinykernelError(
            f"project format {format!r} has no template for framework {chosen_framework!r}; "
            f"it has {', '.join(description['frameworks'])}"
        )
    integer_model = as_integer_model(model)
    rows = generated_inputs(integer_model) if vectors is None else np.asarray(vectors)
    if rows.ndim < 2 or rows.shape[0] == 0:
        raise TinykernelError("test vectors: give at least one row of raw inputs")
    files = _placed(
        {**render_sources(integer_model, name), **render_vectors(integer_model, name, rows)},
        description["sources"],
    )
    context = _context(name, chosen_target, chosen_board, chosen_framework, files, description)
    context["model"] = integer_model
    context["n_vectors"] = int(rows.shape[0])
    parts = description["frameworks"][chosen_framework]["templates"]
    files.update(_render(folder, parts, context))
    return dict(sorted(files.items()))


def export(
    model: object,
    target: str | Target,
    folder: str | os.PathLike[str],
    *,
    name: str | None = None,
    board: str | None = None,
    framework: str | None = None,
    platform: str | None = None,
    format: str = "platformio",
    force: bool = False,
    vectors: ArrayLike | None = None,
) -> list[Path]:
    """Write a model as a complete project.

    Parameters
    ----------
    model : IntegerModel, KernelMachine or fitted classifier
    target : str or Target
        A name from `tinykernel.codegen.targets.TARGETS`.
    folder : path-like
        The folder to create.
    name : str, optional
        Prefix of all C names, ``"model"`` by default.
    board, framework, platform, format, vectors
        See `render_project`.
    force : bool, default=False
        Replace an earlier export. A folder without its ``manifest.json`` is never replaced.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    TinykernelError
        If a name is unknown or does not fit, the folder exists and is not empty, or it cannot be
        written. Nothing is left half-written.
    """
    import tinykernel

    integer_model = as_integer_model(model)
    files = render_project(
        integer_model,
        target,
        name="model" if name is None else name,
        board=board,
        framework=framework,
        platform=platform,
        format=format,
        vectors=vectors,
    )
    files[MANIFEST] = manifest(
        files,
        tool=f"tinykernel {tinykernel.__version__}",
        model=integer_model.fingerprint(),
        target=find_target(target).name,
    )
    replace_folder_atomically(folder, files, force=force)
    return [Path(folder, *path.split("/")) for path in files]
