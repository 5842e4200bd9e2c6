"""Write a model as a project that can be built and flashed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tinykernel.cli._options import (
    ForceOption,
    GroupsOption,
    JsonOption,
    LabelOption,
    ModelArgument,
    QuietOption,
    TargetOption,
    check_output_folder,
    recordings_for,
    rows_for,
)
from tinykernel.cli._output import print_json, print_pairs, size

__all__ = ["export_command", "write_project"]

_VECTORS = 8


def export_command(
    model: ModelArgument,
    target: TargetOption,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="folder to write, NAME-TARGET by default"
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="prefix of all C names, from the model's file name by default"),
    ] = None,
    board: Annotated[str | None, typer.Option("--board", help="PlatformIO board")] = None,
    framework: Annotated[
        str | None, typer.Option("--framework", help="arduino, espidf, cmsis, ...")
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option("--platform", help="PlatformIO platform, for a board that is not listed"),
    ] = None,
    project_format: Annotated[str, typer.Option("--format", help="project format")] = "platformio",
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="DATA",
            help="take the rows of the self-test from here",
            show_default=False,
        ),
    ] = None,
    label: LabelOption = None,
    groups: GroupsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a complete PlatformIO project: C99 sources, self-test, README."""
    from tinykernel.codegen.literals import name_from
    from tinykernel.codegen.targets import find_target
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    chosen = find_target(target)
    prefix = name_from(model.stem) if name is None else name
    folder = Path(f"{prefix}-{chosen.name}") if output is None else output
    inputs = [model] if data is None else [model, Path(data)]
    check_output_folder(folder, force=force, inputs=inputs)
    integer = as_integer_model(load(model))
    vectors = None
    if data is not None:
        named = {"label": label, "groups": groups}
        cut = recordings_for(model, integer, data, mixed="majority", **named)
        if cut is None:
            vectors = rows_for(model, integer, data, **named).X[:_VECTORS]
        else:
            from tinykernel.data.signals import stretch

            vectors = stretch(cut, _VECTORS)
    result = write_project(
        integer,
        chosen.name,
        folder,
        name=prefix,
        board=board,
        framework=framework,
        platform=platform,
        format=project_format,
        vectors=vectors,
        force=force,
    )
    if as_json:
        print_json(result)
    elif not quiet:
        print_pairs(
            [
                ("project", f"{folder} ({len(result['files'])} files, {size(result['bytes'])})"),
                ("target", f"{chosen.name}, {chosen.description}"),
                ("header", f'#include "{prefix}.h"'),
                ("build", f"cd {folder} && pio run"),
                ("flash", "" if chosen.family == "host" else f"tinykernel flash {folder}"),
            ]
        )


def write_project(
    integer: object, target: str, folder: Path, *, name: str, **options: Any
) -> dict[str, Any]:
    """Export a model and say what was written.

    Parameters
    ----------
    integer : IntegerModel
    target : str
    folder : pathlib.Path
    name : str
    **options
        Further options of `tinykernel.export`.

    Returns
    -------
    dict
        target, name, folder, files (relative paths) and bytes.
    """
    from tinykernel.codegen import export

    files = export(integer, target, folder, name=name, **options)
    return {
        "target": target,
        "name": name,
        "folder": folder,
        "files": [file.relative_to(folder).as_posix() for file in files],
        "bytes": sum(file.stat().st_size for file in files),
    }
