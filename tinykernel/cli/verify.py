"""Compare the C with Python, score by score."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.errors import FAILED, fail
from tinykernel.cli.common.holding import those_that_hold
from tinykernel.cli.common.judged import labels_to_judge_by
from tinykernel.cli.common.judging import evaluation_in_words, print_notes, seen_in_words
from tinykernel.cli.common.options import (
    GroupsOption,
    JsonOption,
    LabelOption,
    MissingOption,
    ModelArgument,
    QuietOption,
    SplitSeedOption,
    TargetsOption,
    TestSizeOption,
    expand_targets,
    rows_for,
)
from tinykernel.cli.common.output import percent, print_json, print_pairs, print_table
from tinykernel.cli.common.remembered import remembered

if TYPE_CHECKING:
    from tinykernel.data.load import Rows
    from tinykernel.evaluation import Judged
    from tinykernel.model import IntegerModel
    from tinykernel.parity import VerifyResult

# Of the sequence of counters and class offsets.
_STEPS = 10_000


def verify_command(
    model: ModelArgument,
    data: Annotated[
        str,
        typer.Option(
            "--data", metavar="DATA", help="rows to compare on: its test part, else all its rows"
        ),
    ],
    target: TargetsOption = ["host"],  # noqa: B006
    label: LabelOption = None,
    groups: GroupsOption = None,
    missing: MissingOption = None,
    test_size: TestSizeOption = None,
    seed: SplitSeedOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Build the C, run every row through it, and compare every score with Python.

    Of classifiers, counters and class offsets are compared, too, over 10,000 steps. Ends with
    status 1 on one difference. DATA's test part is taken where it has one, all its rows otherwise.
    """
    from tinykernel.codegen.targets import TARGETS

    names, several = expand_targets(
        target, [t.name for t in TARGETS.values() if t.family == "host" or t.machines]
    )
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load
    from tinykernel.parity import verify

    integer, memory = as_integer_model(load(model)), remembered(model)
    names = those_that_hold(integer, names, target)
    rows = rows_for(
        model,
        integer,
        data,
        **memory.names(data, label, groups, missing),
        missing=missing,
        test_size=test_size,
        seed=seed,
    )
    rows = replace(rows, y=labels_to_judge_by(integer, data, rows.y))
    recordings = rows.streams or None
    results = [
        verify(integer, rows.X, rows.y, target=name, recordings=recordings, steps=_STEPS)
        for name in names
    ]
    judged, seen = _evaluation(integer, rows), memory.share_seen(rows.X)
    if as_json:
        extra = {
            "part": rows.part,
            "notes": list(rows.notes),
            "seen_in_training": seen,
            "evaluation": None if judged is None else judged.to_dict(),
        }
        found = [verification_json(result) | extra for result in results]
        print_json(found if several else found[0])
    elif not quiet:
        print_verification(results, f"{rows.part} of {rows.source}")
        print_notes(rows)
        if judged is not None:
            print_pairs(evaluation_in_words(judged))
        if seen:
            typer.echo(
                f"{seen_in_words(seen)}; --test-size 0.2, with the --seed and --groups of train, "
                "leaves them out"
            )
    wrong = [result for result in results if not result.ok]
    for result in wrong:
        fail(
            f"{result.target}: {result.differences} values of the C differ from Python; the first: "
            f"{result.first_difference}"
        )
    if wrong:
        raise typer.Exit(FAILED)


def _evaluation(integer: IntegerModel, rows: Rows) -> Judged | None:
    """Judge the labels in Python's arithmetic, which the C was compared with."""
    from tinykernel.evaluation import evaluate

    return None if rows.y is None else evaluate(integer, rows.X, rows.y, groups=rows.group)


def verification_json(result: VerifyResult) -> dict[str, Any]:
    """Return what ``verify --json`` prints of one target.

    Parameters
    ----------
    result : VerifyResult
    """
    first = result.first_difference
    return {
        "target": result.target,
        "compiler": result.compiler,
        "rows": result.rows,
        "scores": result.scores,
        "hops": result.hops,
        "steps": result.steps,
        "refusals": result.refusals,
        "differences": result.differences,
        "accuracy": result.accuracy,
        "first_difference": None if first is None else str(first),
        "emulator": result.emulator or None,
        "core": result.core or None,
        "note": result.note or None,
    } | ({} if result.r2 is None else {"r2": result.r2})


def print_verification(results: list[VerifyResult], where: str) -> None:
    """Print one line a target.

    Parameters
    ----------
    results : list of VerifyResult
    where : str
        Which rows were compared.
    """
    values = any(result.r2 is not None for result in results)
    measure = "R2" if values else "accuracy"
    print_table(
        ("target", "rows", "scores", "differences", measure, "built and run with"),
        (
            (
                result.target,
                str(result.rows),
                str(result.scores),
                str(result.differences),
                percent(result.accuracy) if result.r2 is None else f"{result.r2:.4f}",
                ", ".join(part for part in (result.compiler, result.emulator, result.core) if part),
            )
            for result in results
        ),
        right=("rows", "scores", "differences", measure),
    )
    for result in results:
        if result.note:
            typer.echo(f"{result.target}: {result.note}")
    hops = {result.hops for result in results if result.hops}
    if hops:
        typer.echo(f"compared as a stream, too: {min(hops)} decisions")
    steps = {(result.steps, result.refusals) for result in results if result.steps}
    if steps:
        n, refusals = min(steps)
        typer.echo(
            f"compared as a sequence, too: counters and class offsets over {n} decisions, "
            f"{refusals} of them refusals"
        )
    if all(result.ok for result in results):
        typer.echo(f"C and Python agree on every score ({where})")
