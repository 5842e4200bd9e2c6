"""List the targets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.options import JsonOption
from tinykernel.cli.common.output import print_json, print_table, size

if TYPE_CHECKING:
    from tinykernel.codegen.targets import Target

__all__ = ["targets_command"]


def targets_command(
    tools: Annotated[
        bool,
        typer.Option("--tools", metavar="", help="also look for the compilers on this computer"),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the processors, their boards and frameworks."""
    from tinykernel.codegen.targets import TARGETS

    rows: list[dict[str, Any]] = [
        {
            "target": target.name,
            "description": target.description,
            "flash": target.flash,
            "ram": target.ram,
            "boards": [board.name for board in target.boards if board.name],
            "frameworks": list(target.frameworks),
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
