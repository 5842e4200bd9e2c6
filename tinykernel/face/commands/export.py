"""Write a model as a project that can be built and flashed, and put it on a board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.errors import BudgetError
from tinykernel.base.text import size
from tinykernel.compile.targets import Target, find_target
from tinykernel.face import arguments as args
from tinykernel.face.output import print_json, print_pairs
from tinykernel.face.rows import ModelFile, open_model, rows_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEARCHED = 2000  # rows searched for a refusal
# Parameters that --check reads from the manifest, or ignores.
_OF_EXPORTS = ("target", "output", "name", "project_format", "assignments", "config", "force")


def export_command(
    ctx: typer.Context,
    model: Path = args.MODEL,
    target: str | None = args.option(
        "--target -t TARGET", "processor of the platformio project", default="that of the training"
    ),
    output: Path | None = args.option(
        "--output -o DIR", "folder to write", default="NAME-TARGET or NAME"
    ),
    name: str | None = args.option("NAME", "prefix of all C names", default="from the file name"),
    project_format: str = args.option(
        "--format FORMAT", "platformio, library, single or web", value="platformio"
    ),
    data: str | None = args.option("DATA", "rows for the self-test", default="generated"),
    check: list[Path] = args.option(
        "PATH",
        "compare an export with what MODEL generates: write nothing, list the files that "
        "differ, and end with status 1 if there are any",
        value=[],
    ),
    assignments: list[str] = args.SET,
    config: Path | None = args.CONFIG,
    force: bool = args.FORCE,
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Write C99: a project, a library, or a single file.

    A platformio project is for one target. The library is for any build system, such as Arduino,
    ESP-IDF, Zephyr or CMake; single is one .c and one .h file; web is the C as a WebAssembly module
    for browsers and Node, which needs zig. A target whose chip is too small is refused, unless with
    --force.
    """
    if check:
        _check(ctx, check, model, data, as_json=as_json)
        return
    from tinykernel.compile.projects import describe_format, export
    from tinykernel.pieces.tables import name_from

    options, _ = args.gather(ctx.params, ("export",), model)
    platform, _, board = (options["board"] or "").rpartition(":")
    options |= {"board": board or None, "platform": platform or None}
    opened = open_model(model)
    chosen = _target(target, project_format, opened)
    row = None if chosen is None else chosen.name
    prefix = name_from(model.stem) if name is None else name
    _, texts = describe_format(project_format)
    folder = output or Path(texts["folder"].format(name=prefix, target=row))
    inputs = [Path(path) for path in (model, data) if path is not None]
    needs = "" if chosen is None else _needs(opened, chosen, force=force)
    force = args.check_output_folder(folder, force=force, inputs=inputs)
    files = export(
        opened.model,
        row,
        folder,
        name=prefix,
        format=project_format,
        vectors=None if data is None else _vectors(opened, data),
        force=force,
        budget=opened.budget_for(row or "cortex-m4") if options["ci"] else None,
        about=opened.about,
        **options,
    )
    n_bytes = sum(file.stat().st_size for file in files)
    if as_json:
        names = [file.relative_to(folder).as_posix() for file in files]
        place = {"target": row, "name": prefix, "folder": folder}
        print_json(place | {"files": names, "bytes": n_bytes})
    elif not quiet:
        on_board = chosen is not None and chosen.family != "host"
        pairs = {
            "project": f"{folder} ({len(files)} files, {size(n_bytes)})",
            "target": "" if chosen is None else f"{chosen.name}, {chosen.description}",
            "needs": needs,
            "header": "" if "module" in texts else f'#include "{prefix}.h"',
            "build": texts["next"].format(name=prefix, folder=folder),
            "flash": f"tinykernel flash {folder}" if on_board else "",
        }
        print_pairs(pairs.items())


def _check(
    ctx: typer.Context, paths: list[Path], path: Path, data: str | None, *, as_json: bool
) -> None:
    """Compare an export with the files that a model generates; exit with 1 if they differ."""
    from tinykernel.compile.projects import compare

    for name in _OF_EXPORTS:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            typed = next(p.opts[0] for p in ctx.command.params if p.name == name)
            raise args.misuse(
                typed, "--check takes the options from the manifest of the export; leave it out"
            )
    opened = open_model(path)
    vectors = None if data is None else _vectors(opened, data)
    folder, n_files, kinds = compare(paths, opened.model, vectors=vectors, about=opened.about)
    n = sum(map(len, kinds.values()))
    if as_json:
        print_json({"folder": folder, "files": n_files, **kinds})
    elif not ctx.params["quiet"]:
        lines = [(kind, name) for kind, names in kinds.items() for name in names]
        end = f"{n} of {n_files} files differ{'s' * (n == 1)} from what {path} generates"
        same = f"{n_files} files are what {path} generates"
        print_pairs([*lines, ("result", end if n else same)])
        if data is None and any(name.endswith("_vectors.h") for name in kinds["changed"]):
            typer.echo("hint: if the export was made with --data, give the same rows")
    if n:
        raise typer.Exit(1)


def _target(name: str | None, project_format: str, opened: ModelFile) -> Target | None:
    """Return the target of a project of one board, by default that of the training."""
    from tinykernel.compile.projects import is_for_boards

    if is_for_boards(project_format):
        name = name or opened.target
        if name is None:
            raise args.misuse("--target", "the model has no target of its training; give one")
        return find_target(name)
    if name is not None:
        find_target(name)  # refuses an unknown target
        text = f"note: --target is ignored: format {project_format} is the same for every target"
        typer.echo(text, err=True)
    return None


def _needs(opened: ModelFile, target: Target, *, force: bool) -> str:
    """Return the memory that the model takes; refuse a chip that is too small."""
    from tinykernel.run.report import report

    if target.family == "host":
        return ""
    needs = report(opened.model, target, compiler="none")
    if not (needs.fits or force):
        needs = report(opened.model, target)  # an estimate may be too large
    if not (needs.fits or force):
        raise BudgetError(
            f"{target.name}: {'; '.join(needs.problems)}; choose a larger chip, train with a "
            "smaller --budget, or write it all the same with --force"
        )
    ram = f"{size(needs.ram)} RAM, {size(needs.stack)} of them stack"
    return f"{size(needs.flash)} flash, {ram} ({needs.source}, -Os)"


def _vectors(opened: ModelFile, data: str) -> NDArray[Any]:
    """Choose rows of the self-test, with one refusal if there is any."""
    from tinykernel.compile.sources import n_vectors
    from tinykernel.data.recordings import RecordingSource

    model = opened.model
    source = opened.source(data)
    if isinstance(source, RecordingSource):
        return source.windows("majority").adjacent(n_vectors(model))
    rows = rows_for(opened, data)
    for note in rows.notes:
        typer.echo(f"note: {note}", err=True)
    X = rows.X
    chosen = list(range(min(n_vectors(model), len(X))))
    if model.decision is not None:
        refused = (model.decide(X[:_SEARCHED]) < 0).nonzero()[0].tolist()
        if refused and refused[0] > chosen[-1]:
            chosen[-1] = refused[0]
    return X[chosen]


def flash_command(
    folder: Path = args.argument("DIR", "the exported project"),
    environment: str | None = args.option(
        "--environment -e NAME", "environment of platformio.ini", default="all"
    ),
    port: str | None = args.option("PORT", "serial port, if several boards are connected"),
    trust: bool = args.flag("--trust", "build a folder that was not exported or was changed"),
) -> None:
    """Build an exported project and flash the board.

    Runs `pio run -t upload`. A build can run any program that the folder names. So the folder must
    be an export of tinykernel with an unchanged platformio.ini, unless --trust is given.
    """
    from tinykernel.run.link import upload

    upload(folder, environment=environment, port=port, trust=trust)
