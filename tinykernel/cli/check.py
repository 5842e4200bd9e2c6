"""Commands whose exit code answers a question: verify, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.group import FAILED, fail
from tinykernel.cli.options import (
    LARGEST_SEED,
    BudgetOption,
    GroupsOption,
    JsonOption,
    LabelOption,
    ModelArgument,
    QuietOption,
    TargetsOption,
    check_output_file,
    expand_targets,
)
from tinykernel.cli.output import percent, print_json, print_table, size

if TYPE_CHECKING:
    from tinykernel.measure.report import Report
    from tinykernel.parity import VerifyResult

__all__ = [
    "print_report",
    "print_verification",
    "report_command",
    "verification_json",
    "verify_command",
]


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
    test_size: Annotated[
        float | None,
        typer.Option(
            "--test-size",
            min=0.001,
            max=0.99,
            help="only the rows that train keeps aside for this size, --seed and --groups",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="see --test-size")
    ] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Build the C, run every row through it, and compare every score with Python.

    Ends with status 1 on one differing score. DATA's test part is taken where it has one, all its
    rows otherwise.
    """
    from tinykernel.codegen.targets import TARGETS

    names, several = expand_targets(
        target, [t.name for t in TARGETS.values() if t.family == "host" or t.machines]
    )
    from tinykernel.data.load import load_rows
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load
    from tinykernel.parity import verify

    integer = as_integer_model(load(model))
    rows = load_rows(
        data,
        label=label,
        groups=groups,
        n_features=integer.n_features,
        feature_names=integer.feature_names,
        classes=integer.classes,
        test_size=test_size,
        seed=seed,
    )
    results = [verify(integer, rows.X, rows.y, target=name) for name in names]
    if as_json:
        found = [verification_json(result) | {"part": rows.part} for result in results]
        print_json(found if several else found[0])
    elif not quiet:
        print_verification(results, f"{rows.part} of {rows.source}")
        if rows.part == "all rows" and rows.y is not None:
            typer.echo(
                "the accuracy includes rows used in training; --test-size 0.2, with the --seed "
                "and --groups of train, leaves them out"
            )
    wrong = [result for result in results if not result.ok]
    for result in wrong:
        fail(
            f"{result.target}: {result.differences} values of the C differ from Python; the first: "
            f"{result.first_difference}"
        )
    if wrong:
        raise typer.Exit(FAILED)


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
        "differences": result.differences,
        "accuracy": result.accuracy,
        "first_difference": None if first is None else str(first),
        "emulator": result.emulator or None,
        "core": result.core or None,
        "note": result.note or None,
    }


def print_verification(results: list[VerifyResult], where: str) -> None:
    """Print one line a target.

    Parameters
    ----------
    results : list of VerifyResult
    where : str
        Which rows were compared.
    """
    print_table(
        ("target", "rows", "scores", "differences", "accuracy", "built and run with"),
        (
            (
                result.target,
                str(result.rows),
                str(result.scores),
                str(result.differences),
                percent(result.accuracy),
                ", ".join(part for part in (result.compiler, result.emulator, result.core) if part),
            )
            for result in results
        ),
        right=("rows", "scores", "differences", "accuracy"),
    )
    for result in results:
        if result.note:
            typer.echo(f"{result.target}: {result.note}")
    if all(result.ok for result in results):
        typer.echo(f"C and Python agree on every score ({where})")


def report_command(
    model: ModelArgument,
    target: TargetsOption = ["cortex-m4"],  # noqa: B006
    budget: BudgetOption = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="also write a page with figures")
    ] = None,
    compiler: Annotated[
        str,
        typer.Option("--compiler", help="auto, gcc, zig, or none for the estimate without one"),
    ] = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say how much flash, RAM and stack a model takes, and whether it fits.

    Ends with status 1 when it does not fit. Flash is the linked difference to an empty program
    where a compiler is found, an estimate otherwise; the report says which.
    """
    from tinykernel.codegen.targets import TARGETS

    names, several = expand_targets(
        target, [t.name for t in TARGETS.values() if t.family != "host"]
    )
    if html is not None:
        check_output_file(html, (".html", ".htm"))
        if several:
            raise typer.BadParameter("goes with one target", param_hint="--html")
    from tinykernel.measure.report import report
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    integer = as_integer_model(load(model))
    reports = [report(integer, name, budget, compiler=compiler) for name in names]
    if html is not None:
        from tinykernel.files import write_bytes_atomically

        write_bytes_atomically(html, reports[0].to_html().encode("utf-8"))
    if as_json:
        found = [result.to_dict() for result in reports]
        print_json(found if several else found[0])
    elif not quiet:
        print_report(reports)
    for result in reports:
        if not result.fits:
            fail(f"{result.target}: " + "; ".join(result.problems))
    if not all(result.fits for result in reports):
        raise typer.Exit(FAILED)


def print_report(reports: list[Report]) -> None:
    """Print one target in full, several in one line each.

    Parameters
    ----------
    reports : list of Report
    """
    if len(reports) == 1:
        _print_one(reports[0])
        return
    print_table(
        ("target", "flash", "RAM", "stack", "fits", "source"),
        (
            (
                result.target,
                size(result.flash),
                size(result.ram),
                size(result.stack),
                "yes" if result.fits else "no",
                result.compiler or result.source,
            )
            for result in reports
        ),
        right=("flash", "RAM", "stack"),
    )


def _print_one(result: Report) -> None:
    source = f"linked with {result.compiler}" if result.compiler else "estimate, no compiler used"
    typer.echo(f"{result.target}, {source}")
    rows = []
    for memory, parts in result.parts.items():
        total = result.flash if memory == "flash" else result.ram
        rows.append((memory if memory == "flash" else "RAM", "", str(total)))
        rows += [("", part, str(n_bytes)) for part, n_bytes in parts.items() if n_bytes]
    print_table(("memory", "part", "bytes"), rows, right=("bytes",))
    for note in result.notes:
        typer.echo(f"note: {note}")
    if result.budget is not None and result.flash <= result.budget:
        left = size(result.budget - result.flash)
        typer.echo(f"fits the budget of {size(result.budget)}, {left} left")
