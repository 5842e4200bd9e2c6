"""List the targets and the boards, and which boards hold a model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import JsonOption, TargetsOption, expand_targets
from tinykernel.cli.common.output import print_json, print_table, size

if TYPE_CHECKING:
    from tinykernel.codegen.boards import Board
    from tinykernel.codegen.targets import Target
    from tinykernel.model import IntegerModel

# Boards of a core that are named in its line.
_ALSO = 4


def targets_command(
    tools: Annotated[
        bool,
        typer.Option("--tools", metavar="", help="also look for the compilers on this computer"),
    ] = False,
    fits: Annotated[
        Path | None,
        typer.Option("--fits", metavar="MODEL", help="which boards hold this model, by core"),
    ] = None,
    target: TargetsOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """List the processors, their boards and frameworks, or the boards that hold a model.

    With --target it is about the boards of these processors alone; --fits then names each.
    """
    from tinykernel.codegen.boards import boards_of
    from tinykernel.codegen.targets import TARGETS
    from tinykernel.errors import TinykernelError

    if fits is not None:
        if tools:
            raise TinykernelError("--fits and --tools are two questions: ask one at a time")
        _show_fits(fits, target, as_json)
        return

    names = expand_targets(target, TARGETS)[0] if target else list(TARGETS)
    chosen = [TARGETS[name] for name in names]
    rows: list[dict[str, Any]] = [
        {
            "target": target.name,
            "description": target.description,
            "flash": target.flash,
            "ram": target.ram,
            "boards": [board.name for board in target.boards if board.name],
            "frameworks": list(target.frameworks),
            "board_memory": [
                {
                    "board": board.name,
                    "title": board.title,
                    "platform": board.platform or None,
                    "flash": board.flash,
                    "ram": board.ram,
                    "clock": board.clock,
                }
                for board in boards_of(target.core)
                if board.name
            ],
        }
        for target in chosen
    ]
    if tools:
        for row in rows:
            row["compilers"] = _compilers(row["target"])
    if as_json:
        print_json(rows)
    elif tools:
        print_table(
            ("target", "compilers on this computer"),
            ((row["target"], ", ".join(row["compilers"]) or "none") for row in rows),
        )
    else:
        _print(chosen)


def _compilers(target: str) -> list[str]:
    from tinykernel.build.toolchains import find_toolchains

    return [
        chain.title + (" (for a related processor)" if chain.stand_in else "")
        for chain in find_toolchains(target)
    ]


def _print(targets: Iterable[Target]) -> None:
    from tinykernel.codegen.boards import boards_of

    targets = list(targets)
    print_table(
        ("target", "core", "flash", "RAM", "board", "frameworks"),
        (
            (
                target.name,
                target.description.split(":")[0],
                size(target.flash) if target.flash else "-",
                size(target.ram) if target.ram else "-",
                target.board.name or "-",
                ", ".join(target.board.frameworks),
            )
            for target in targets
        ),
        right=("flash", "RAM"),
    )
    typer.echo()
    print_table(
        ("board", "target", "flash", "RAM", "clock", "name on the box"),
        (
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
        ),
        right=("flash", "RAM", "clock"),
    )


def _show_fits(path: Path, asked: list[str], as_json: bool) -> None:
    """Print which boards hold a model, and how much they have left."""
    from tinykernel.codegen.targets import TARGETS
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    names = expand_targets(asked, TARGETS)[0] if asked else []
    cores = {TARGETS[name].core for name in names}  # boards are listed under these
    rows = [
        row
        for row in _fits(as_integer_model(load(path)))
        if not asked or TARGETS[row["target"]].core in cores
    ]
    if as_json:
        print_json(rows)
        return
    holding = [row for row in rows if row["fits"]]
    if asked:
        _print_each(holding)
    else:
        _print_by_core(holding)
    lacking: dict[str, list[str]] = {}
    for row in rows:
        if not row["fits"]:
            lacking.setdefault(row["problem"], []).append(row["board"])
    for problem, boards in lacking.items():
        typer.echo(f"{', '.join(boards)}: {problem}")
    typer.echo(
        f"{len(holding)} of {len(rows)} boards hold it"
        + ("" if asked or not holding else "; each of a core, with what is left: --target CORE")
    )
    typer.echo(
        "estimated without a compiler: tables, code, scratch and stack of the model; what the "
        "framework and the rest of the program take comes on top"
    )


def _print_each(rows: Iterable[dict[str, Any]]) -> None:
    """Print a line a board."""
    print_table(
        ("board", "target", "flash left", "RAM left", "clock", "name on the box"),
        (
            (
                row["board"],
                row["target"],
                size(row["flash_left"]),
                size(row["ram_left"]),
                f"{row['clock'] // 1_000_000} MHz",
                row["title"],
            )
            for row in rows
        ),
        right=("flash left", "RAM left", "clock"),
    )


def _print_by_core(rows: Iterable[dict[str, Any]]) -> None:
    """Print a line a core: how many boards, and the smallest of them."""
    by_core: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_core.setdefault(row["target"], []).append(row)
    columns = ("core", "boards", "the smallest", "flash left", "RAM left", "clock", "also")
    print_table(
        columns,
        (
            (
                core,
                str(len(boards)),
                boards[0]["board"],
                size(boards[0]["flash_left"]),
                size(boards[0]["ram_left"]),
                f"{boards[0]['clock'] // 1_000_000} MHz",
                ", ".join(row["board"] for row in boards[1:_ALSO])
                + ", ..." * (len(boards) > _ALSO),
            )
            for core, boards in by_core.items()
        ),
        right=("boards", "flash left", "RAM left", "clock"),
    )


def _fits(model: IntegerModel) -> list[dict[str, Any]]:
    """Compare what a model takes with what each board has, the smallest board first."""
    from tinykernel.codegen.boards import BOARDS
    from tinykernel.errors import TinykernelError
    from tinykernel.measure.estimate import estimate_footprint

    needs: dict[str, tuple[int, int] | str] = {}
    rows = []
    for board in sorted(BOARDS, key=lambda board: (board.flash, board.ram, board.name)):
        if not board.name:
            continue
        if board.target not in needs:
            try:
                found = estimate_footprint(model, board.target)
                needs[board.target] = (found.flash, found.static + found.scratch + found.stack)
            except TinykernelError as error:
                needs[board.target] = str(error)
        rows.append(_fit(board, needs[board.target]))
    return rows


def _fit(board: Board, need: tuple[int, int] | str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "board": board.name,
        "title": board.title,
        "target": board.target,
        "clock": board.clock,
        "flash": board.flash,
        "ram": board.ram,
        "fits": False,
        "problem": None,
        "flash_left": None,
        "ram_left": None,
    }
    if isinstance(need, str):
        return row | {"problem": need}
    flash, ram = board.flash - need[0], board.ram - need[1]
    short = [
        f"{-left} bytes of {kind}" for kind, left in (("flash", flash), ("RAM", ram)) if left < 0
    ]
    return row | {
        "flash_left": flash,
        "ram_left": ram,
        "fits": not short,
        "problem": f"lacks {' and '.join(short)}" if short else None,
    }
