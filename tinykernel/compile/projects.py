"""Exporting a model as a project that a firmware author can open, and comparing exports.

A project format is a folder in ``templates/`` with a ``format.json``. Files ending in ``.j2`` are
Jinja templates, others are copied; ``NAME`` in a path is the name of the model.
"""

import io
import json
import os
import re
import shlex
import stat
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tinykernel.base.checks import check_choice
from tinykernel.base.coding import Coding
from tinykernel.base.errors import DataError, FileError, FormatError, OptionError
from tinykernel.base.files import (
    MANIFEST,
    manifest,
    package_version,
    read_manifest,
    replace_folder_atomically,
    source_folder,
    template_engine,
)
from tinykernel.base.frames import in_numbers
from tinykernel.compile.enums import consists_of, constants_of, made_of, takes_of
from tinykernel.compile.plan import FORMAT, pack
from tinykernel.compile.sources import (
    as_script,
    generated_inputs,
    module_facts,
    n_vectors,
    render_selftest,
    render_single,
    render_sources,
    web_module,
)
from tinykernel.compile.targets import Board, Target, board_for, find_target
from tinykernel.model.file import to_bytes
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model

#: Options of an export that its manifest names, so that `compare` can repeat it.
OPTIONS = ("target", "format", "version", "board", "framework", "platform", "ci", "budget")
#: Entries of a model file that the manifest repeats.
_TRAINING = (
    *("data", "label", "groups", "split", "test_size", "seed", "task", "method"),
    *("target", "budget", "limits", "accuracy"),
)
# Range of sampling rates of microphones on boards, in Hz.
_SLOWEST_SOUND, _FASTEST_SOUND = 4000, 96000
# MAJOR.MINOR.PATCH and a pre-release, as in semver.org; build metadata holds the fingerprint.
_VERSION = re.compile(
    r"(0|[1-9]\d{0,5})(\.(0|[1-9]\d{0,5})){2}(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?", re.A
)
_Chosen: TypeAlias = tuple[Target, Board, str]


def formats() -> tuple[str, ...]:
    """List the project formats: the folders in ``templates/`` that hold a ``format.json``."""
    return tuple(sorted(p.parent.name for p in source_folder("templates").glob("*/format.json")))


def describe_format(name: str) -> tuple[Path, dict[str, Any]]:
    """Find a project format and read its description."""
    folder = source_folder("templates") / name
    if name not in formats():
        raise OptionError(f"format: {name!r} is not known; choose from {', '.join(formats())}")
    description: dict[str, Any] = json.loads((folder / "format.json").read_text(encoding="utf-8"))
    return folder, description


def is_for_boards(format: str) -> bool:
    """Say whether a project format is for one target and its boards, or for every target."""
    return "frameworks" in describe_format(format)[1]


def _board_context(
    target: Target, board: Board, framework: str, description: dict[str, Any]
) -> dict[str, Any]:
    """Collect the context of templates of a format for boards."""

    def row_of(board: Board, framework: str) -> dict[str, str]:
        known = description["frameworks"].get(framework, {})
        version = description["platforms"].get(board.platform)
        environment = known.get("environment", "{board}_{framework}")
        return {
            "environment": environment.format(board=board.name or target.name, framework=framework),
            # The version that the format was made for, unless the user names one.
            "platform": f"{board.platform} @ {version}" if version else board.platform,
            "board": board.name,
            "framework": framework,
            "title": board.title,
        }

    chosen = row_of(board, framework)
    rows = [row_of(other, name) for other in (board, *target.boards) for name in other.frameworks]
    facts = description["frameworks"][framework]
    return {
        "target": target,
        "board": board,
        "platform": chosen["platform"],
        "framework": framework,
        "environment": chosen["environment"],
        "framework_title": facts["title"],
        "board_language": facts.get("language", "c"),
        "alternatives": [
            row for i, row in enumerate(rows) if row != chosen and row not in rows[:i]
        ],
    }


def _context(model: IntegerModel, name: str, n_vectors: int) -> dict[str, Any]:
    return {
        "name": name,
        "macro": name.upper(),
        "title": name.replace("_", " ").capitalize(),
        "model": model,
        "taken": takes_of(model),
        "made": made_of(model),
        "pieces": consists_of(model),
        "fingerprint": model.fingerprint()[:8],
        "contract": FORMAT,
        "version": package_version(),
        "n_vectors": n_vectors,
        "model_in_words": consists_of(model).replace("\n", " "),
        "web_facts": as_script(module_facts(model)),
    }


def _render(folder: Path, parts: list[str], context: dict[str, Any]) -> dict[str, bytes]:
    """Render the template folders that make up a project."""
    files: dict[str, bytes] = {}
    for root in (folder / part for part in parts):
        for source in sorted(root.rglob("*")):
            if not source.is_file() or "__pycache__" in source.parts:
                continue
            path = source.relative_to(root).as_posix().replace("NAME", context["name"])
            if path.endswith(".j2"):
                name = source.relative_to(source_folder("templates")).as_posix()
                text = template_engine().get_template(name).render(context)
                files[path.removesuffix(".j2")] = text.encode()
            else:
                files[path] = source.read_bytes()
    return files


def _render_format(
    format: str, sources: dict[str, bytes], context: dict[str, Any], chosen: _Chosen | None
) -> dict[str, bytes]:
    """Render a format, with the other formats in it."""
    folder, description = describe_format(format)
    name = context["name"]
    if name in description["names_taken"]:
        raise OptionError(
            f"name: {name!r} is used by the files of format {format}; give another, such as "
            "{name}",
            name=f"my_{name}",
        )
    files: dict[str, bytes] = {}
    for other, part in description.get("holds", {}).items():
        place = part["place"].replace("NAME", name)
        for path, data in _render_format(other, sources, context, None).items():
            if path.split("/")[0] in part["files"]:  # those that this format reads
                files[f"{place}/{path}"] = data
    for source, place in description["sources"].items():
        source, place = source.replace("NAME", name), place.replace("NAME", name)
        for path, data in sources.items():
            if f"{path}/".startswith(f"{source}/"):
                files[place + path[len(source) :]] = data
    if chosen is None:
        camera, frame, known = None, context["model"].camera, description.get("camera")
        if frame is not None and known:  # the names that esp_camera has, where it has both
            pixels = known["formats"].get(frame.pixel_format)
            size = known["sizes"].get(f"{frame.width}x{frame.height}")
            camera = {"format": pixels, "size": size} if pixels and size else None
        having = {
            "stream_templates": context["model"].hop,
            "microphone_templates": context["microphone"],
        }
        parts = [*description["templates"], *(["camera"] if camera else [])]
        parts += [name for key, has in having.items() if has for name in description.get(key, [])]
        return files | _render(folder, parts, context | {"camera": camera})
    target, board, framework = chosen
    if framework not in description["frameworks"]:
        raise OptionError(
            f"framework: {framework!r} has no template in format {format!r}; choose from "
            f"{', '.join(description['frameworks'])}"
        )
    parts = description["frameworks"][framework]["templates"]
    more = _board_context(target, board, framework, description)
    return files | _render(folder, parts, context | more)


def _choose(
    format: str, target: str | Target | None, options: Mapping[str, str | None]
) -> _Chosen | None:
    """Find target, board and framework; None for a format that fits every target."""
    if is_for_boards(format):
        if target is None:
            raise OptionError(f"format {format!r} is for one target; give --target")
        row = find_target(target)
        return (row, *board_for(row, **options))
    for option, value in {"target": target, **options}.items():
        if value is not None:
            raise OptionError(
                f"format {format!r} is the same for every target; leave --{option} out"
            )
    return None


def _training(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of the training for a manifest, as JSON types."""
    training = {key: about[key] for key in _TRAINING if key in about}
    rows = about.get("training_rows")
    if isinstance(rows, dict):
        # The digests of single rows stay in the model file.
        training["training_rows"] = {key: rows[key] for key in ("rows", "sha256") if key in rows}
    return training


def _of_sensor(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sampling period in microseconds, and the channels if all are C identifiers."""
    cutting = about.get("recordings")
    cutting = cutting if isinstance(cutting, dict) else {}
    rate, names = cutting.get("rate"), cutting.get("channels")
    period: Fraction | None = None
    if isinstance(rate, int | float) and 0 < rate <= 1e6:
        period = (1000000 / Fraction(rate)).limit_denominator(4000)
    channels = [str(name) for name in names] if isinstance(names, list) else []
    are_words = all(re.fullmatch(r"[A-Za-z_]\w*", word, re.ASCII) for word in channels)
    return {"period": period, "channels": channels if are_words else []}


def _hears(model: IntegerModel, period: Fraction | None) -> bool:
    """Whether the samples may come from a microphone: one channel at the rate of audio."""
    is_audio = model.hop > 0 and model.input.channels == 1 and model.raw_dtype == "int16"
    return is_audio and period is not None and _SLOWEST_SOUND <= 1000000 / period <= _FASTEST_SOUND


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
    version: str | None = None,
) -> dict[str, bytes]:
    """Render the files of an export by relative POSIX path; options are those of `export`."""
    about, wanted = about or {}, {"board": board, "framework": framework, "platform": platform}
    chosen = _choose(format, target, wanted)
    integer_model, coding = as_integer_model(model), about.get("coding")
    coding = Coding.read(coding or getattr(model, "coding_", None)) or integer_model.coding
    if vectors is None:
        # If at most two fit, leave out the lowest and the highest inputs.
        n = n_vectors(integer_model)
        rows = generated_inputs(integer_model, n + 2 * (n <= 2))[2 * (n <= 2) :]
    else:
        rows = integer_model.as_raw(in_numbers(model, vectors))
    if rows.ndim < 2 or rows.shape[0] == 0:
        raise DataError("test vectors: give at least one row of raw inputs")
    if version is not None and (len(version) > 40 or not _VERSION.fullmatch(version)):
        raise OptionError(
            f"version: {version!r} is not a semantic version; write it as 1.4.0 or 1.4.0-rc.1"
        )
    sources = render_sources(integer_model, name, coding=coding, version=version)
    sources |= render_single(sources, name) | render_selftest(integer_model, name, rows)
    context = _context(integer_model, name, int(rows.shape[0]))
    context["constants"] = constants_of(coding, integer_model, name)
    context |= _of_sensor(about)
    context["microphone"] = _hears(integer_model, context["period"])
    # Package managers must see each training as another version.
    context["release"] = version or f"{package_version()}+{context['fingerprint']}"
    files = dict(sorted(_render_format(format, sources, context, chosen).items()))
    if (module := describe_format(format)[1].get("module")) is not None:
        files[module.format(name=name)] = web_module(integer_model, name)
    row = None if target is None else find_target(target).name
    if ci is not None:
        files |= render_ci(
            ci, integer_model, files, rows, name=name, target=row, budget=budget, coding=coding
        )
    elif budget is not None:
        raise OptionError("budget: only a CI workflow checks it; give ci, or leave it out")
    options = {"target": row, "format": format, "version": version, **wanted, "ci": ci}
    options["budget"] = None if budget is None else str(budget)
    renamed = context["constants"].renamed
    files[MANIFEST] = manifest(
        files,
        tool=f"tinykernel {package_version()}",
        model=integer_model.fingerprint(),
        target=row,
        options={key: options[key] for key in OPTIONS if options[key] is not None},
        name=name,
        contract=FORMAT,
        memory=pack(integer_model).buffers(),
        training=_training(about),
        **({"renamed": renamed} if renamed else {}),
    )
    return files


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
    version: str | None = None,
) -> list[Path]:
    """Write a model as a complete project.

    Parameters
    ----------
    model : IntegerModel or fitted classifier
    target : str, Target or None
        A name from `tinykernel targets`; None for ``"library"``, ``"single"`` and ``"web"``.
    folder : path-like
        The folder to create.
    name : str, optional
        Prefix of all C names, ``"model"`` by default; see `tinykernel.pieces.tables.check_name`.
    board, framework, platform : str, optional
        PlatformIO's names; by default those of the target. A platform only for an unlisted board.
    format : str, default="platformio"
        One of `formats`.
    vectors : array-like, shape (n_rows, n_features), optional
        Raw inputs for the self-test; by default `generated_inputs`.
    force : bool, default=False
        Replace an earlier export. A folder without its ``manifest.json`` is never replaced.
    ci : {None, "github"}
        Add a workflow that generates the C again, verifies it and checks the memory on every
        commit, with the model in ``ci/``.
    budget : str or int, optional
        Limit that the workflow checks, as for `tinykernel.report`; by default the chip's memory.
    about : mapping, optional
        Training information of a model file, for the manifest. The header defines the texts and
        the missing value of its ``"coding"``.
    version : str, optional
        Of the model, as ``"1.4.0"``: ``NAME_VERSION`` in the header, and what package managers
        read; without it that of tinykernel with the fingerprint.

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
        version=version,
    )
    replace_folder_atomically(folder, files, force=force)
    return [Path(folder, *path.split("/")) for path in files]


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


#: Where the file of a service belongs.
CI_SERVICES = {"github": ".github/workflows/model.yml"}
_DEFAULT_TARGET = "cortex-m4"


def render_ci(
    service: str,
    model: IntegerModel,
    files: Iterable[str],
    rows: ArrayLike,
    *,
    name: str,
    target: str | None,
    budget: str | int | None,
    coding: Coding | None = None,
) -> dict[str, bytes]:
    """Return the workflow that rebuilds, verifies and measures an export, and its files."""
    # `files` are the paths of the export, `rows` raw inputs (n_rows, n_inputs) to verify on.
    # Without a target it is cortex-m4, without a budget the chip's memory is the limit.
    check_choice("ci", service, tuple(CI_SERVICES))
    if budget is not None and not re.fullmatch(r"[\w.,=@ ]+", str(budget), re.ASCII):
        raise OptionError(
            f"budget: a workflow cannot check {budget!r}; give a size, as in {{budget}}",
            budget="8KB",
        )
    row = find_target(target or _DEFAULT_TARGET)
    on_chip = row.family != "host"
    # What comes with tinykernel-mcu[boards] compiles and runs ARM and RISC-V.
    emulated = on_chip and row.zig is not None and bool(row.machines)
    # The folders, or files at the top, of the generated C.
    paths = map(PurePosixPath, files)
    generated = [path for path in paths if path.name in (f"{name}.c", f"{name}.h")]
    text = (
        template_engine()
        .get_template(f"ci/{service}.yml.j2")
        .render(
            version=package_version(),
            name=name,
            compared=sorted(
                {str(path if len(path.parts) == 1 else path.parent) for path in generated}
            ),
            verified=f"host,{row.name}" if emulated else "host",
            reported=row.name if on_chip else "",
            budget=shlex.quote(str(budget)) if budget else "",
        )
    )
    array = io.BytesIO()
    np.save(array, model.as_raw(rows))
    return {
        CI_SERVICES[service]: text.encode(),
        # Without the training, but with the coding.
        f"ci/{name}.tkm": to_bytes(model, {} if coding is None else {"coding": coding.written()}),
        "ci/rows.npy": array.getvalue(),
    }
