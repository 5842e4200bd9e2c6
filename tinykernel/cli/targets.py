"""List the targets and the boards, and which boards hold a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import JsonOption, TargetsOption, expand_targets, option
from tinykernel.cli.common.output import print_json, print_table, size
from tinykernel.codegen.boards import BOARDS, boards_of
from tinykernel.codegen.targets import TARGETS, Target
from tinykernel.errors import TinykernelError
from tinykernel.text import listed

if TYPE_CHECKING:
    from tinykernel.model import IntegerModel

_ALSO = 3  # boards named in the line of a core


def targets_command(
    fits: Annotated[
        Path | None, option("MODEL", "list the boards that can hold this model")
    ] = None,
    target: TargetsOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """List processors and boards, or those that hold a model.

    --target limits the list to these processors, and --fits then names each board.
    """
    names = expand_targets(target, TARGETS)[0] if target else list(TARGETS)
    chosen = [TARGETS[name] for name in names]
    if fits is not None:
        _show_fits(fits, {each.core for each in chosen}, each_board=bool(target), as_json=as_json)
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


def _show_fits(path: Path, cores: set[str], *, each_board: bool, as_json: bool) -> None:
    """Print the boards of these cores that hold a model, and the memory left."""
    from tinykernel.cli.common.rows import open_model

    rows = [row for row in _fits(open_model(path).model) if TARGETS[row["target"]].core in cores]
    if as_json:
        print_json(rows)
        return
    holding = [row for row in rows if row["fits"]]
    _print_holding(holding, each_board=each_board)
    lacking: dict[str, list[str]] = {}
    for row in rows:
        if not row["fits"]:
            lacking.setdefault(row["problem"], []).append(row["board"])
    for problem, boards in lacking.items():
        typer.echo(f"{', '.join(boards)}: {problem}")
    more = "" if each_board or not holding else "; --target CORE lists every board of a core"
    typer.echo(f"{len(holding)} of {len(rows)} boards can hold it{more}")
    typer.echo(
        "estimated without a compiler: tables, code, scratch and stack of the model, without the "
        "framework and the rest of the program"
    )


def _print_holding(rows: list[dict[str, Any]], *, each_board: bool) -> None:
    """Print a line a board, or a line a core with the smallest of its boards."""
    by_core: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_core.setdefault(row["target"], []).append(row)
    left = ("flash left", "RAM left", "clock")

    def cells(row: dict[str, Any]) -> tuple[str, str, str]:
        clock = f"{row['clock'] // 1_000_000} MHz"
        return size(row["flash_left"]), size(row["ram_left"]), clock

    if each_board:
        columns = ["board", "target", *left, "name on the box"]
        table: list[tuple[str, ...]] = [
            (row["board"], row["target"], *cells(row), row["title"]) for row in rows
        ]
    else:
        columns = ["core", "boards", "the smallest", *left, "also"]
        table = [
            (
                core,
                str(len(boards)),
                boards[0]["board"],
                *cells(boards[0]),
                listed([row["board"] for row in boards[1:]], _ALSO),
            )
            for core, boards in by_core.items()
        ]
    print_table(columns, table, right=("boards", *left))


def _fits(model: IntegerModel) -> list[dict[str, Any]]:
    """Compare the memory of a model with that of each board, the smallest first."""
    from tinykernel.measure.estimate import estimate_footprint

    needs: dict[str, tuple[int, int] | str] = {}
    named = (board for board in BOARDS if board.name)
    rows: list[dict[str, Any]] = []
    for board in sorted(named, key=lambda board: (board.flash, board.ram, board.name)):
        if board.target not in needs:
            try:
                sizes = estimate_footprint(model, board.target)
                needs[board.target] = (sizes.flash, sizes.static + sizes.scratch + sizes.stack)
            except TinykernelError as error:
                needs[board.target] = str(error)
        need, problem, left = needs[board.target], None, list[int]()
        if isinstance(need, str):
            problem = need
        else:
            left = [board.flash - need[0], board.ram - need[1]]
            kinds = zip(("flash", "RAM"), left, strict=True)
            short = [f"{-n_bytes} bytes of {kind}" for kind, n_bytes in kinds if n_bytes < 0]
            problem = f"lacks {' and '.join(short)}" if short else None
        names = ("title", "target", "clock", "flash", "ram")
        facts = {"board": board.name, **{name: getattr(board, name) for name in names}}
        facts |= {"fits": problem is None, "problem": problem}
        flash_left, ram_left = left or (None, None)
        rows.append(facts | {"flash_left": flash_left, "ram_left": ram_left})
    return rows
