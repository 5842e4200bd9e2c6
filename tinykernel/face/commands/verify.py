"""Compare the C with Python, score by score, here or on a board."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.text import count
from tinykernel.compile.targets import TARGETS
from tinykernel.face import arguments as args
from tinykernel.face.arguments import misuse
from tinykernel.face.evaluation import (
    evaluation_in_words,
    print_notes,
    print_verification,
    seen_in_words,
    verification_json,
)
from tinykernel.face.output import fail_if_any, print_json, print_pairs, showing_progress
from tinykernel.face.rows import open_model, rows_to_judge

if TYPE_CHECKING:
    from tinykernel.data.partition import Rows
    from tinykernel.model.integer import IntegerModel


def verify_on_port(
    model: Path, data: str, port: str, rows: str, *, as_json: bool, quiet: bool
) -> None:
    """Compare a board with Python, print the result, and exit with 1 on a difference."""
    from tinykernel.run.checking import verify_on_board
    from tinykernel.run.link import ConnectedBoard, Link, find_port

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

    from tinykernel.base.files import drawn_places

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


def verify_command(
    model: Path = args.MODEL,
    data: str = args.DATA,
    target: list[str] = args.TARGETS,
    port: str | None = args.BOARD,
    rows: str | None = args.option("N|all", "rows to send, stratified by class", default="200"),
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Run every row through the C and through Python, and compare.

    The default target is the host. Ends with status 1 if a score differs, or if a target is too
    small for the model. Uses the test part of DATA, or the held-out rows if the model was trained
    on DATA, or all rows.

    With --port a board that runs the export computes the scores, and reports time and stack.
    """
    if port is not None:
        if target:
            raise args.misuse("--target", "excludes --port; leave one out")
        verify_on_port(model, data, port, rows or "200", as_json=as_json, quiet=quiet)
        return
    if rows is not None:
        raise args.misuse("--rows", "needs --port")
    target = target or ["host"]
    names, several = args.expand_targets(
        target, [t.name for t in TARGETS.values() if t.family == "host" or t.machines]
    )
    from tinykernel.judge.models import evaluate
    from tinykernel.run.parity import verify

    opened = open_model(model)
    integer = opened.model
    with showing_progress(quiet):
        judged = rows_to_judge(opened, data, needs_labels=False)
        compared = replace(judged.rows, y=judged.y)
        recordings = compared.streams or None
        results, too_small = args.each_that_fits(
            names,
            target,
            lambda name: verify(
                integer, compared.X, compared.y, target=name, recordings=recordings
            ),
        )
    evaluation = None
    if compared.y is not None:
        evaluation = evaluate(integer, compared.X, compared.y, groups=compared.group)
    seen = opened.share_seen(compared.X)
    if as_json:
        extra: dict[str, Any] = {"part": compared.part, "notes": list(compared.notes)}
        extra |= {"seen_in_training": seen, "evaluation": evaluation and evaluation.to_dict()}
        answers = [verification_json(result) | extra for result in results]
        print_json(answers if several else answers[0])
    elif results and not quiet:
        print_verification(results, f"{compared.part} of {compared.source}")
        print_notes(compared.notes)
        if evaluation is not None:
            print_pairs(evaluation_in_words(evaluation))
        if seen:
            typer.echo(seen_in_words(seen))
    wrong = [
        f"{result.target}: {count(result.differences, 'difference')} between C and Python; the "
        f"first: {result.first_difference}"
        for result in results
        if not result.ok
    ]
    fail_if_any(wrong + too_small)
