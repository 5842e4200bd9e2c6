"""Compare the C with Python, score by score."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from tinykernel.cli.board.verify import verify_on_port
from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.evaluation import evaluation_in_words, print_notes, seen_in_words
from tinykernel.cli.common.output import fail_if_any, print_json, print_pairs
from tinykernel.cli.common.rows import open_model, rows_to_judge
from tinykernel.cli.common.verification import print_verification, verification_json
from tinykernel.codegen.targets import TARGETS
from tinykernel.text import count


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
    from tinykernel.build.parity import verify
    from tinykernel.evaluation import evaluate

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
