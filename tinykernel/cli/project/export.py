"""Write a model as a project that can be built and flashed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import (
    ForceOption,
    JsonOption,
    ModelArgument,
    QuietOption,
    check_output_folder,
    complete_target,
)
from tinykernel.cli.common.memory import Remembered, remembered
from tinykernel.cli.common.output import print_json, print_pairs, size
from tinykernel.cli.common.rows import recordings_for, rows_for
from tinykernel.cli.settings.gathering import ConfigOption, SetOption, gather

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.model import IntegerModel

_VECTORS = 8
# Rows among which a refusal is looked for.
_SEARCHED = 2000


def export_command(
    ctx: typer.Context,
    model: ModelArgument,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            help="processor, for a project of one board",
            autocompletion=complete_target,
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="folder to write, NAME-TARGET or NAME by default"
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="prefix of all C names, from the model's file name by default"),
    ] = None,
    project_format: Annotated[
        str, typer.Option("--format", help="platformio, library, single or blob")
    ] = "platformio",
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="DATA",
            help="take the rows of the self-test from here",
            show_default=False,
        ),
    ] = None,
    assignments: SetOption = [],  # noqa: B006
    config: ConfigOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = None,
) -> None:
    """Write C99: a PlatformIO project, a library for any build system, or a single source; or data.

    The target is that of the training unless given.
    """
    from tinykernel.codegen.projects import default_folder, is_for_boards, next_step
    from tinykernel.codegen.targets import find_target
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    options, given = gather(ctx.params, ("export",), model)
    if "ci_budget" in given and "ci" not in given:
        raise typer.BadParameter("needs ci=github, which checks it", param_hint="--set ci_budget")
    from tinykernel.codegen.literals import name_from

    memory = remembered(model)
    if target is None and is_for_boards(project_format):
        target = memory.target
        if target is None:
            raise typer.BadParameter(
                f"missing, and format {project_format} is for one", param_hint="--target"
            )
    chosen = None if target is None else find_target(target)
    if chosen is not None and not is_for_boards(project_format):
        typer.echo(f"note: format {project_format} is the same for every target", err=True)
        chosen = None
    row = None if chosen is None else chosen.name
    prefix = name_from(model.stem) if name is None else name
    folder = Path(default_folder(project_format, prefix, row)) if output is None else output
    inputs = [model] if data is None else [model, Path(data)]
    force = check_output_folder(folder, force=force, inputs=inputs)
    integer = as_integer_model(load(model))
    vectors = None
    if data is not None:
        cut = recordings_for(model, integer, data, mixed="majority")
        if cut is None:
            vectors = _telling(integer, rows_for(model, integer, data).X)
        else:
            from tinykernel.data.signals import stretch

            vectors = stretch(cut, _VECTORS)
    result = write_project(
        integer,
        row,
        folder,
        name=prefix,
        **{name: options[name] for name in ("board", "framework", "platform", "ci", "as_data")},
        format=project_format,
        vectors=vectors,
        force=force,
        budget=_budget(options, memory, row),
        about=memory.everything,
    )
    if as_json:
        print_json(result)
    elif not quiet:
        processor, flashed = "", ""
        if chosen is not None:
            processor = f"{chosen.name}, {chosen.description}"
            flashed = "" if chosen.family == "host" else f"tinykernel flash {folder}"
        print_pairs(
            [
                ("project", f"{folder} ({len(result['files'])} files, {size(result['bytes'])})"),
                ("target", processor),
                ("header", "" if project_format == "blob" else f'#include "{prefix}.h"'),
                ("build", next_step(project_format, prefix, folder)),
                ("flash", flashed),
            ]
        )


def _budget(options: Mapping[str, Any], memory: Remembered, target: str | None) -> str | int | None:
    """Return what a workflow checks: the budget as given, else that of the training."""
    if options["ci"] is None:
        return None
    given = options["ci_budget"]
    return memory.budget_for(target or "cortex-m4") if given is None else str(given)


def write_project(
    integer: object, target: str | None, folder: Path, *, name: str, **options: Any
) -> dict[str, Any]:
    """Export a model and say what was written.

    `options` are further ones of `tinykernel.export`. Returns target, name, folder, files (relative
    paths) and bytes.
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


def _telling(model: IntegerModel, X: NDArray[Any]) -> NDArray[Any]:
    """Return the first rows; the last one is the first refusal where none is among them."""
    chosen = list(range(min(_VECTORS, len(X))))
    if model.decision is not None:
        refused = (model.decide(X[:_SEARCHED]) < 0).nonzero()[0].tolist()
        if refused and refused[0] > chosen[-1]:
            chosen[-1] = refused[0]
    return X[chosen]
