"""Verify and time a model on a board, and say what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.failures import FAILED, fail
from tinykernel.cli.common.output import print_json, print_pairs
from tinykernel.cli.common.rows import rows_to_judge

if TYPE_CHECKING:
    from tinykernel.board.checking import BoardResult, Timing
    from tinykernel.data.partition import Rows
    from tinykernel.model import IntegerModel


def asked_port(port: str) -> str:
    """Return the port of an option: ``auto`` is that of the only board."""
    from tinykernel.board.link import find_port

    return find_port(None if port == "auto" else port)


def parse_rows(text: str) -> int | None:
    """Read ``--rows``: a number, or None for all."""
    if text == "all":
        return None
    if not text.isdigit() or int(text) == 0:
        raise typer.BadParameter(f"{text!r}: give a number of rows, or all", param_hint="--rows")
    return int(text)


def verify_on_port(
    model: Path, data: str, port: str, rows: str, *, as_json: bool, quiet: bool | None
) -> None:
    """Compare a board with Python and print it; ends with status 1 on a difference."""
    from tinykernel.board.checking import verify_on_board
    from tinykernel.board.link import Link
    from tinykernel.board.protocol import Board
    from tinykernel.cli.verify import print_verification, verification_json
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    most, integer = parse_rows(rows), as_integer_model(load(model))
    with showing_progress(quiet), Link(asked_port(port)) as link:
        board = Board(link)
        judged = rows_to_judge(model, integer, data, needs_labels=False)
        chosen = _some(integer, replace(judged.rows, y=judged.y), most)
        recordings = chosen.streams or None
        result = verify_on_board(board, integer, chosen.X, chosen.y, recordings=recordings)
    part = chosen.part if most is None else f"{len(chosen.X)} rows of {chosen.part}"
    if as_json:
        print_json(
            verification_json(result.verification)
            | {"part": part, "notes": list(chosen.notes)}
            | result.timing.to_dict()
            | {"stack": result.stack, "stack_promised": result.stack_promised}
        )
    elif not quiet:
        print_verification([result.verification], f"{part} of {chosen.source}")
        print_pairs([*timing_in_words(result.timing), ("stack", _stack_in_words(result))])
    _say_failures(result)
    if not result.ok:
        raise typer.Exit(FAILED)


def _say_failures(result: BoardResult) -> None:
    found = result.verification
    if not found.ok:
        fail(
            f"{result.timing.name}: {found.differences} scores of the board differ from Python; "
            f"the first: {found.first_difference}"
        )
    if not result.stack_holds:
        fail(
            f"{result.timing.name}: an inference took {result.stack} bytes of stack, more than "
            f"the {result.stack_promised} of the report; interrupts count, too"
        )


def _some(model: IntegerModel, rows: Rows, most: int | None) -> Rows:
    """Keep at most so many rows, of each class its share, and recordings of so many decisions."""
    import numpy as np

    if most is None:
        return rows
    streams, left = [], most
    for samples in rows.streams:
        needed = model.input.rows + (left - 1) * model.hop
        if left > 0 and len(samples) >= model.input.rows:
            streams.append(samples[:needed])
            left -= (len(streams[-1]) - model.input.rows) // model.hop + 1
    order = np.random.RandomState(0).permutation(len(rows.X))
    if rows.y is not None and rows.y.ndim == 1 and not model.is_regressor:
        order = order[np.argsort(rows.y[order], kind="stable")]
    chosen = np.sort(order[np.unique(np.linspace(0, len(order) - 1, most).astype(int))])
    y, group = (None if part is None else part[chosen] for part in (rows.y, rows.group))
    return replace(rows, X=rows.X[chosen], y=y, group=group, streams=tuple(streams))


def timing_in_words(timing: Timing) -> list[tuple[str, str]]:
    """Return what an inference took, as pairs for a table."""
    time = f"{timing.microseconds:.1f} microseconds" if timing.microseconds else ""
    cycles = "" if timing.cycles is None else f"{timing.cycles}"
    if timing.cycles_per_instruction is not None:
        cycles += f", {timing.cycles_per_instruction:.2f} an instruction on this board"
    instructions = ""
    if timing.instructions is not None:
        instructions = f"{timing.instructions} ({timing.instructions_source})"
    return [("inference", time), ("cycles", cycles), ("instructions", instructions)]


def _stack_in_words(result: BoardResult) -> str:
    if result.stack is None:
        return ""
    promised = "" if result.stack_promised is None else f", {result.stack_promised} promised"
    return f"{result.stack} bytes seen{promised}"
