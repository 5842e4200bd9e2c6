"""List the targets and the boards, and which boards hold a model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.options import JsonOption
from tinykernel.cli.common.output import print_json, print_table, size

if TYPE_CHECKING:
    from tinykernel.codegen.boards import Board
    from tinykernel.codegen.targets import Target
    from tinykernel.model import IntegerModel

__all__ = ["targets_command"]


def targets_command(
    tools: Annotated[
        bool,
        typer.Option("--tools", metavar="", help="also look for the compilers on this computer"),
    ] = False,
    fits: Annotated[
        Path | None,
        typer.Option("--fits", metavar="MODEL", help="which boards hold this model"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the processors, their boards and frameworks, or the boards that hold a model."""
    from tinykernel.codegen.boards import boards_of
    from tinykernel.codegen.targets import TARGETS
    from tinykernel.errors import TinykernelError

    if fits is not None:
        if tools:
            raise TinykernelError("--fits and --tools are two questions: ask one at a time")
        _show_fits(fits, as_json)
        return

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
        for target in TARGETS.values()
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
        _print(TARGETS.values())


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
                _clock(board),
                board.title,
            )
            for target in targets
            for board in boards_of(target.name)
            if board.name
        ),
        right=("flash", "RAM", "clock"),
    )


def _clock(board: Board) -> str:
    return f"{board.clock // 1_000_000} MHz"


def _show_fits(path: Path, as_json: bool) -> None:
    """Print which boards hold a model, and how much each has left."""
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    rows = _fits(as_integer_model(load(path)))
    if as_json:
        print_json(rows)
        return
    holding = [row for row in rows if row["fits"]]
    print_table(
        ("board", "target", "flash left", "RAM left", "clock", "name on the box"),
        (
            (row["board"], row["target"], size(row["flash_left"]), size(row["ram_left"]),
             f"{row['clock'] // 1_000_000} MHz", row["title"])
            for row in holding
        ),
        right=("flash left", "RAM left", "clock"),
    )  # fmt: skip
    for row in rows:
        if not row["fits"]:
            typer.echo(f"{row['board']}: {row['problem']}")
    typer.echo(
        "estimated without a compiler: tables, code, scratch and stack of the model; what the "
        "framework and the rest of the program take comes on top"
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
        "board": board.name, "title": board.title, "target": board.target, "clock": board.clock,
        "flash": board.flash, "ram": board.ram, "fits": False, "problem": None,
        "flash_left": None, "ram_left": None,
    }  # fmt: skip
    if isinstance(need, str):
        return row | {"problem": need}
    flash, ram = board.flash - need[0], board.ram - need[1]
    short = [f"{-left} bytes of {kind}" for kind, left in (("flash", flash), ("RAM", ram))
             if left < 0]  # fmt: skip
    return row | {
        "flash_left": flash, "ram_left": ram, "fits": not short,
        "problem": f"lacks {' and '.join(short)}" if short else None,
    }  # fmt: skip
