"""Verify and time a model on a board, for `verify --port`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinykernel.cli.common.arguments import misuse
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.output import fail_if_any, print_json, print_pairs
from tinykernel.cli.common.rows import open_model, rows_to_judge
from tinykernel.cli.common.verification import print_verification, verification_json
from tinykernel.text import count

if TYPE_CHECKING:
    from tinykernel.data.partition import Rows
    from tinykernel.model import IntegerModel


def verify_on_port(
    model: Path, data: str, port: str, rows: str, *, as_json: bool, quiet: bool
) -> None:
    """Compare a board with Python, print the result, and exit with 1 on a difference."""
    from tinykernel.board.checking import verify_on_board
    from tinykernel.board.link import ConnectedBoard, Link, find_port

    if not re.fullmatch(r"all|0*[1-9][0-9]{0,8}", rows):
        raise misuse("--rows", f"{rows!r}: give a number of rows, or all")
    most, opened = None if rows == "all" else int(rows), open_model(model)
    integer = opened.model
    with showing_progress(quiet), Link(find_port(port)) as link:
        board = ConnectedBoard(link)
        judged = rows_to_judge(opened, data, needs_labels=False)
        chosen = _some(integer, replace(judged.rows, y=judged.y), most)
        recordings = chosen.streams or None
        result = verify_on_board(board, integer, chosen.X, chosen.y, recordings=recordings)
    part = chosen.part if most is None else f"{count(len(chosen.X), 'row')}: {chosen.part}"
    if as_json:
        print_json(
            verification_json(result.verification)
            | {"part": part, "notes": list(chosen.notes)}
            | result.timing.to_dict()
            | {"stack": result.stack, "stack_promised": result.stack_promised}
        )
    elif not quiet:
        print_verification([result.verification], f"{part} of {chosen.source}")
        promised = "" if result.stack_promised is None else f", {result.stack_promised} promised"
        stack = "not measured" if result.stack is None else f"{result.stack} bytes seen{promised}"
        timing = result.timing
        time = f"{timing.microseconds:.1f} microseconds" if timing.microseconds else ""
        print_pairs([("inference", time), ("cycles", str(timing.cycles or "")), ("stack", stack)])
    verification, problems = result.verification, list[str]()
    if not verification.ok:
        problems.append(
            f"{result.timing.name}: {count(verification.differences, 'difference')} between board "
            f"and Python; the first: {verification.first_difference}"
        )
    if not result.stack_holds:
        problems.append(
            f"{result.timing.name}: an inference took {result.stack} bytes of stack, more than "
            f"the {result.stack_promised} of the report; interrupts count, too"
        )
    fail_if_any(problems)


def _some(model: IntegerModel, rows: Rows, most: int | None) -> Rows:
    """Return at most `most` rows, stratified by class, and recordings of as many decisions."""
    import numpy as np

    from tinykernel.stored import drawn_places

    if most is None:
        return rows
    streams, left = [], most
    for samples in rows.streams:
        needed = model.input.rows + (left - 1) * model.hop
        if left > 0 and len(samples) >= model.input.rows:
            streams.append(samples[:needed])
            left -= (len(streams[-1]) - model.input.rows) // model.hop + 1
    y = np.zeros(len(rows.X)) if rows.y is None else rows.y
    return replace(rows.at(np.sort(drawn_places(y, most, 0)[:most])), streams=tuple(streams))
