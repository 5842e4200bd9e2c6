"""Exporting a model as a project that a firmware author can open and build.

A project format is a folder in ``templates/``, and all its words are in that folder's
``format.json``: where the generated sources go, which folders of templates make it up, which names
are taken, and where a format is for boards, its frameworks and the versions of platforms. Files
ending in ``.j2`` are Jinja templates, all others are copied as they are; ``NAME`` in a path stands
for the name of the model. Nothing here knows any format, framework or build system by name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

import tinykernel
from tinykernel import resources
from tinykernel.codegen.boards import Board
from tinykernel.codegen.ci import render_ci
from tinykernel.codegen.description import consists_of, made_of, taken_by
from tinykernel.codegen.enums import constants_of
from tinykernel.codegen.plan import FORMAT
from tinykernel.codegen.sources import render_selftest, render_single, render_sources
from tinykernel.codegen.targets import Target, board_for, find_target
from tinykernel.coding.codes import Coding
from tinykernel.errors import TinykernelError
from tinykernel.files import MANIFEST, manifest, replace_folder_atomically
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.stages.scale import Scale

#: Options of an export that its manifest names, so that `compare` can repeat it.
OPTIONS = ("target", "format", "board", "framework", "platform", "ci", "budget")
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
_VECTORS, _VECTOR_BYTES = 8, 16384
_Chosen: TypeAlias = tuple[Target, Board, str]


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

    They have its raw type and the shape (n_rows, n_inputs). The first row is the lowest value of
    every feature and the second row the highest; the others are uniform in between.
    """
    # The legacy generator is frozen by NumPy, so the same bytes come out with every version.
    place = np.random.RandomState(0).random_sample((n_rows, model.n_inputs))
    place[:1], place[1:2] = 0.0, 1.0
    size = model.input.size
    found = _at(model.raw_scaler, place[:, :size].reshape(-1, model.input.channels))
    found = found.reshape(n_rows, size)
    if model.beside is None:
        return found
    entries = _at(model.beside.scaler, place[:, size:][:, model.beside.source])
    first = np.unique(model.beside.source, return_index=True)[1]
    return np.hstack([found, entries[:, first]])


def n_vectors(model: IntegerModel) -> int:
    """Return how many test vectors an export holds: up to 8, in 16 KB of flash where one fits."""
    size = model.n_inputs * np.dtype(model.raw_dtype).itemsize
    return max(1, min(_VECTORS, _VECTOR_BYTES // size))


def _usual_vectors(model: IntegerModel) -> NDArray[Any]:
    """Return generated test vectors; where there is room for few, none of a single value."""
    n = n_vectors(model)
    return generated_inputs(model, n) if n > 2 else generated_inputs(model, n + 2)[2:]


def _at(scaler: Scale, place: NDArray[np.float64]) -> NDArray[Any]:
    """Return raw values at places from 0 to 1 in the range of a scaler."""
    offset = scaler.offset.astype(np.float64)
    if scaler.span is None:
        slope = scaler.multiplier.astype(np.float64)
        width = np.divide(2.0**scaler.bits, slope, out=np.zeros_like(slope), where=slope > 0)
        return (offset + place * width).astype(np.float32)
    raw = np.rint(offset + place * scaler.span.astype(np.float64))
    limits = np.iinfo(scaler.raw_dtype)
    return np.clip(raw, limits.min, limits.max).astype(scaler.raw_dtype)


def _format_folder(name: str) -> tuple[Path, dict[str, Any]]:
    """Find a project format and read its description."""
    folder = resources.folder("templates") / name
    if name not in formats():
        raise TinykernelError(
            f"unknown project format {name!r}; the known ones are {', '.join(formats())}"
        )
    description: dict[str, Any] = json.loads((folder / "format.json").read_text(encoding="utf-8"))
    return folder, description


def is_for_boards(format: str) -> bool:
    """Say whether a project format is for one target and its boards, or for every target."""
    return "frameworks" in _format_folder(format)[1]


def default_folder(format: str, name: str, target: str | None) -> str:
    """Name the folder that an export goes to where the user names none."""
    return str(_format_folder(format)[1]["folder"].format(name=name, target=target))


def next_step(format: str, name: str, folder: str | os.PathLike[str]) -> str:
    """Say in a few words what to do with an export."""
    text = _format_folder(format)[1]["next"]
    return str(text.format(name=name, folder=os.fspath(folder)))


def _named(path: str, name: str) -> str:
    """Put the name of the model into a path."""
    return path.replace("NAME", name)


def _placed(files: dict[str, bytes], places: dict[str, str], name: str) -> dict[str, bytes]:
    """Take the generated files and folders that a format wants to where it wants them."""
    moved: dict[str, bytes] = {}
    for source, place in places.items():
        wanted, to = _named(source, name), _named(place, name)
        found = {path: path[len(wanted) :] for path in files if f"{path}/".startswith(f"{wanted}/")}
        moved |= {f"{to}{rest}": files[path] for path, rest in found.items()}
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


def _board_context(
    target: Target, board: Board, framework: str, description: dict[str, Any]
) -> dict[str, Any]:
    """Collect what templates of a format for boards may use besides."""
    words = description["frameworks"][framework]
    return {
        "target": target,
        "board": board,
        "platform": _pinned(board.platform, description),
        "framework": framework,
        "framework_title": words["title"],
        "environment": _environment(board, framework, target, description),
        "board_language": words.get("language", "c"),
        "alternatives": _alternatives(target, board, framework, description),
    }


def _context(model: IntegerModel, name: str, n_vectors: int) -> dict[str, Any]:
    """Collect what every template may use."""
    return {
        "name": name,
        "macro": name.upper(),
        "title": name.replace("_", " ").capitalize(),
        "model": model,
        "taken": taken_by(model),
        "made": made_of(model),
        "pieces": consists_of(model),
        "fingerprint": model.fingerprint()[:8],
        "contract": FORMAT,
        "version": tinykernel.__version__,
        "n_vectors": n_vectors,
    }


def _render(folder: Path, parts: list[str], context: dict[str, Any]) -> dict[str, bytes]:
    """Render the template folders that make up a project."""
    files: dict[str, bytes] = {}
    for part in parts:
        for path, source in _templates(folder / part):
            path = _named(path, context["name"])
            if not path.endswith(".j2"):
                files[path] = source.read_bytes()
                continue
            name = source.relative_to(resources.folder("templates")).as_posix()
            text = resources.templates().get_template(name).render(context)
            files[path.removesuffix(".j2")] = text.encode()
    return files


def _render_format(
    format: str, sources: dict[str, bytes], context: dict[str, Any], chosen: _Chosen | None
) -> dict[str, bytes]:
    """Render a format, with the other formats that it holds."""
    folder, description = _format_folder(format)
    name = context["name"]
    if name in description["names_taken"]:
        raise TinykernelError(
            f"name: {name!r} is taken in projects of format {format}; give another, as in "
            f"name=my_{name}"
        )
    files: dict[str, bytes] = {}
    for other, place in description.get("holds", {}).items():
        inner = _render_format(other, sources, context, None)
        files |= {f"{_named(place, name)}/{path}": data for path, data in inner.items()}
    files |= _placed(sources, description["sources"], name)
    if chosen is None:
        parts = description["templates"]
        if context["model"].hop:
            parts = parts + description.get("stream_templates", [])
        return files | _render(folder, parts, context)
    target, board, framework = chosen
    if framework not in description["frameworks"]:
        raise TinykernelError(
            f"project format {format!r} has no template for framework {framework!r}; "
            f"it has {', '.join(description['frameworks'])}"
        )
    parts = description["frameworks"][framework]["templates"]
    words = _board_context(target, board, framework, description)
    return files | _render(folder, parts, context | words)


def _chosen(
    format: str,
    target: str | Target | None,
    board: str | None,
    framework: str | None,
    platform: str | None,
) -> _Chosen | None:
    """Find target, board and framework; None for a format that is for every target."""
    if is_for_boards(format):
        if target is None:
            raise TinykernelError(f"project format {format!r} is for one target: give --target")
        found = find_target(target)
        return (found, *board_for(found, board, framework, platform))
    given = {"target": target, "board": board, "framework": framework, "platform": platform}
    for word, value in given.items():
        if value is not None:
            raise TinykernelError(
                f"project format {format!r} is the same for every target: leave --{word} out"
            )
    return None


def render_project(
    model: object,
    target: str | Target | None,
    *,
    name: str = "model",
    board: str | None = None,
    framework: str | None = None,
    platform: str | None = None,
    format: str = "platformio",
    vectors: ArrayLike | None = None,
    coding: Coding | None = None,
    rate: float | None = None,
) -> dict[str, bytes]:
    """Render all files of a project, by relative POSIX path; options are those of `export`.

    `coding` holds the numbers of text and of missing values, which become constants of the header;
    `rate` is that of the recordings, in Hz.
    """
    chosen = _chosen(format, target, board, framework, platform)
    integer_model = as_integer_model(model)
    rows = _usual_vectors(integer_model) if vectors is None else np.asarray(vectors)
    if rows.ndim < 2 or rows.shape[0] == 0:
        raise TinykernelError("test vectors: give at least one row of raw inputs")
    sources = render_sources(integer_model, name, coding=coding)
    sources |= render_single(sources, name) | render_selftest(integer_model, name, rows)
    context = _context(integer_model, name, int(rows.shape[0]))
    context["constants"] = constants_of(coding, integer_model, name)
    context["period"] = None if rate is None else max(round(1e6 / rate), 1)
    return dict(sorted(_render_format(format, sources, context, chosen).items()))


def _provenance(name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest says besides tool, model and files; JSON types.

    `sizes` names the compiler that measured them: that of the table which comes with the package.
    """
    training = {key: about[key] for key in _TRAINING if key in about}
    rows = about.get("training_rows")
    if isinstance(rows, dict):
        # The digests of single rows stay in the model file.
        kept = {key: rows[key] for key in ("rows", "sha256") if key in rows}
        training["training_rows"] = kept
    return {"name": name, "contract": FORMAT, "training": training}


def _rate(about: Mapping[str, Any]) -> float | None:
    """Return the rate of the recordings, where a model file has one, in Hz."""
    cutting = about.get("recordings")
    rate = cutting.get("rate") if isinstance(cutting, dict) else None
    return float(rate) if isinstance(rate, int | float) and rate > 0 else None


def exported_files(
    model: object,
    target: str | Target | None,
    *,
    name: str = "model",
    board: str | None = None,
    framework: str | None = None,
    platform: str | None = None,
    format: str = "platformio",
    vectors: ArrayLike | None = None,
    ci: str | None = None,
    budget: str | int | None = None,
    about: Mapping[str, Any] | None = None,
) -> dict[str, bytes]:
    """Render all that `export` writes: the project, its workflow and its manifest."""
    integer_model = as_integer_model(model)
    row = None if target is None else find_target(target).name
    coding = Coding.read((about or {}).get("coding"))
    asked = {"board": board, "framework": framework, "platform": platform}
    files = render_project(
        integer_model,
        target,
        name=name,
        format=format,
        vectors=vectors,
        coding=coding,
        rate=_rate(about or {}),
        **asked,
    )
    if ci is not None:
        rows = _usual_vectors(integer_model) if vectors is None else vectors
        files |= render_ci(
            ci,
            integer_model,
            files,
            rows,
            name=name,
            target=row,
            budget=budget,
            coding=coding,
        )
    elif budget is not None:
        raise TinykernelError("budget: only a workflow checks it; give ci, too")
    options = {"target": row, "format": format, **asked, "ci": ci, "budget": budget}
    files[MANIFEST] = manifest(
        files,
        tool=f"tinykernel {tinykernel.__version__}",
        model=integer_model.fingerprint(),
        target=row,
        options={key: str(options[key]) for key in OPTIONS if options[key] is not None},
        **_provenance(name, about or {}),
    )
    return files


class _Exported(list[Path]):
    """The files of an export, which show themselves in one line."""

    def __repr__(self) -> str:
        folder = os.path.commonpath(self) if len(self) > 1 else ""
        return f"<{len(self)} files in {folder}>"


def export(
    model: object,
    target: str | Target | None,
    folder: str | os.PathLike[str],
    *,
    name: str | None = None,
    board: str | None = None,
    framework: str | None = None,
    platform: str | None = None,
    format: str = "platformio",
    force: bool = False,
    vectors: ArrayLike | None = None,
    ci: str | None = None,
    budget: str | int | None = None,
    about: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write a model as a complete project.

    Parameters
    ----------
    model : IntegerModel, KernelMachine or fitted classifier
    target : str, Target or None
        A name from `tinykernel.codegen.targets.TARGETS`; None for the formats that are the same for
        every target, ``"library"`` and ``"single"``.
    folder : path-like
        The folder to create.
    name : str, optional
        Prefix of all C names, ``"model"`` by default; see `tinykernel.codegen.literals.check_name`.
    board, framework, platform : str, optional
        PlatformIO's names; by default those of the target. A platform only for a board that
        `tinykernel.codegen.targets` does not know.
    format : str, default="platformio"
        One of `formats`.
    vectors : array-like, shape (n_rows, n_features), optional
        Raw inputs for the self-test; by default `generated_inputs`.
    force : bool, default=False
        Replace an earlier export. A folder without its ``manifest.json`` is never replaced.
    ci : {None, "github"}
        Add a workflow that generates the C again, verifies it and checks the memory on every commit
        of the firmware's repository, with the model in ``ci/``.
    budget : str or int, optional
        What the workflow checks, as `tinykernel.report` takes it; by default what the chip has.
    about : mapping, optional
        What a model file says of its training; the manifest repeats it, and the header has the
        texts and the missing value of its ``"coding"``.

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
    files = exported_files(
        model,
        target,
        name="model" if name is None else name,
        board=board,
        framework=framework,
        platform=platform,
        format=format,
        vectors=vectors,
        ci=ci,
        budget=budget,
        about=about,
    )
    replace_folder_atomically(folder, files, force=force)
    return _Exported(Path(folder, *path.split("/")) for path in files)
