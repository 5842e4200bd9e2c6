"""List the targets and the boards, and which boards hold a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.errors import TinykernelError
from tinykernel.base.text import size
from tinykernel.compile.targets import BOARDS, TARGETS, Target, boards_of
from tinykernel.face import arguments as args
from tinykernel.face.output import print_json, print_table
from tinykernel.face.rows import open_model

if TYPE_CHECKING:
    from tinykernel.model.integer import IntegerModel


def targets_command(
    fits: Path | None = args.option("MODEL", "list the boards that can hold this model"),
    target: list[str] = args.TARGETS,
    tools: bool = args.flag("--tools", "list the compilers and emulators of this computer"),
    as_json: bool = args.JSON,
) -> None:
    """List processors, boards or tools, or boards for a model.

    --target limits the list to these processors.
    """
    names = args.expand_targets(target, TARGETS)[0] if target else list(TARGETS)
    chosen = [TARGETS[name] for name in names]
    if tools:
        if fits is not None:
            raise args.misuse("--fits", "not with --tools; give one of them")
        _show_tools(chosen, as_json=as_json)
    elif fits is not None:
        cores = {each.core for each in chosen if each.family != "host"}
        _show_fits(fits, cores, as_json=as_json)
    elif as_json:
        print_json([_facts(each) for each in chosen])
    else:
        _print(chosen)


def _facts(target: Target) -> dict[str, Any]:
    """Return the ``targets --json`` of a processor."""
    names = ("title", "platform", "flash", "ram", "clock")
    return {
        "target": target.name,
        "description": target.description,
        "flash": target.flash,
        "ram": target.ram,
        "boards": [board.name for board in target.boards if board.name],
        "frameworks": list(target.frameworks),
        "board_memory": [
            {"board": board.name, **{name: getattr(board, name) for name in names}}
            | {"platform": board.platform or None}
            for board in boards_of(target.core)
            if board.name
        ],
    }


def _print(targets: list[Target]) -> None:
    rows = [
        (
            target.name,
            target.description.split(":")[0],
            size(target.flash) if target.flash else "-",
            size(target.ram) if target.ram else "-",
            target.board.name or "-",
            ", ".join(target.board.frameworks),
        )
        for target in targets
    ]
    columns = ("target", "core", "flash", "RAM", "board", "frameworks")
    print_table(columns, rows, right=("flash", "RAM"))
    typer.echo()
    rows = [
        (
            board.name,
            board.target,
            size(board.flash),
            size(board.ram),
            f"{board.clock // 1_000_000} MHz",
            board.title,
        )
        for target in targets
        for board in boards_of(target.name)
        if board.name
    ]
    columns = ("board", "target", "flash", "RAM", "clock", "name on the box")
    print_table(columns, rows, right=("flash", "RAM", "clock"))


def _show_tools(targets: list[Target], *, as_json: bool) -> None:
    """Print what was found on this computer for each target, and what to install."""
    from tinykernel.run.program import find_platforms, tools_for
    from tinykernel.run.toolchains import find_toolchain

    rows = []
    for target in targets:
        chain, emulator, missing = find_toolchain(target), None, None
        try:
            platform = find_platforms(target)[0]
            chain, emulator = platform.chain, platform.emulator or "this computer"
        except TinykernelError:
            missing = tools_for(target)
        compiler = None if chain is None else chain.title
        row = {"target": target.name, "compiler": compiler, "emulator": emulator}
        rows.append(row | {"install": missing})
    if as_json:
        print_json(rows)
    else:
        columns = ("target", "compiler", "emulator", "install")
        print_table(columns, [[each or "-" for each in row.values()] for row in rows])


def _show_fits(path: Path, cores: set[str], *, as_json: bool) -> None:
    """Print the boards of these cores that hold a model, and the memory left."""
    rows = _fits(open_model(path).model, cores)
    if as_json:
        print_json(rows)
        return
    left, holding = ("flash left", "RAM left", "clock"), [row for row in rows if row["fits"]]
    table = []
    for row in holding:
        memory = (size(row[f"{kind}_left"]) for kind in ("flash", "ram"))
        clock = f"{row['clock'] // 1_000_000} MHz"
        table.append((row["board"], row["target"], *memory, clock, row["title"]))
    print_table(("board", "target", *left, "name on the box"), table, right=left)
    lacking: dict[str, list[str]] = {}
    for row in rows:
        if not row["fits"]:
            lacking.setdefault(row["problem"], []).append(row["board"])
    for problem, boards in lacking.items():
        typer.echo(f"{', '.join(boards)}: {problem}")
    typer.echo(f"{len(holding)} of {len(rows)} boards can hold it")
    typer.echo(
        "estimated without a compiler: tables, code, scratch and stack of the model, without the "
        "framework and the rest of the program"
    )


def _fits(model: IntegerModel, cores: set[str]) -> list[dict[str, Any]]:
    """Compare the memory of a model with that of each board, the smallest first."""
    from tinykernel.run.estimate import estimate_footprint

    needs: dict[str, tuple[int, int] | str] = {}
    for core in cores:
        try:
            sizes = estimate_footprint(model, core)
            needs[core] = sizes.flash, sizes.static + sizes.scratch + sizes.stack
        except TinykernelError as error:
            needs[core] = str(error)
    rows: list[dict[str, Any]] = []
    named = (board for board in BOARDS if board.name and board.target in cores)
    for board in sorted(named, key=lambda board: (board.flash, board.ram, board.name)):
        need = needs[board.target]
        left: dict[str, int | None] = {"flash_left": None, "ram_left": None}
        problem: str | None = str(need)
        if not isinstance(need, str):
            free = board.flash - need[0], board.ram - need[1]
            left = dict(zip(left, free, strict=True))
            kinds = zip(("flash", "RAM"), free, strict=True)
            short = [f"{-n_bytes} bytes of {kind}" for kind, n_bytes in kinds if n_bytes < 0]
            problem = f"lacks {' and '.join(short)}" if short else None
        names = ("title", "target", "clock", "flash", "ram")
        facts = {"board": board.name, **{name: getattr(board, name) for name in names}}
        rows.append(facts | {"fits": problem is None, "problem": problem, **left})
    return rows
