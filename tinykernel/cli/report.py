"""Say how much memory a model takes, and whether it fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinykernel.cli.common.errors import FAILED, fail
from tinykernel.cli.common.options import (
    BudgetOption,
    JsonOption,
    ModelArgument,
    QuietOption,
    TargetsOption,
    check_output_file,
    expand_targets,
)
from tinykernel.cli.common.output import print_json, print_table, size
from tinykernel.cli.common.remembered import remembered

if TYPE_CHECKING:
    from tinykernel.measure.report import Report

__all__ = ["print_report", "report_command"]


def report_command(
    model: ModelArgument,
    target: TargetsOption = [],  # noqa: B006
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
    where a compiler is found, an estimate otherwise; the report says which. Target and budget are
    those of the training unless given, else cortex-m4 and none.
    """
    from tinykernel.codegen.targets import TARGETS

    memory = remembered(model)
    names, several = expand_targets(
        target or [memory.target or "cortex-m4"],
        [t.name for t in TARGETS.values() if t.family != "host"],
    )
    if html is not None:
        check_output_file(html, (".html", ".htm"))
        if several:
            raise typer.BadParameter("goes with one target", param_hint="--html")
    from tinykernel.measure.report import report
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    integer = as_integer_model(load(model))
    reports = [
        report(integer, name, budget or memory.budget_for(name), compiler=compiler)
        for name in names
    ]
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
    if result.stream is not None:
        state, scratch = result.stream["state"], result.stream["scratch"]
        typer.echo(f"a stream takes {state} bytes of state and {scratch} of scratch instead of "
                   f"{result.scratch}")  # fmt: skip
    for note in result.notes:
        typer.echo(f"note: {note}")
    limits = result.limits
    if limits is not None and limits.beside_flash:
        if result.instructions is not None:
            time = "" if result.seconds is None else f", {1e3 * result.seconds:.3g} ms"
            typer.echo(f"about {result.instructions} instructions an inference{time} (estimate)")
        if result.fits:
            typer.echo(f"keeps to {limits}")
    elif result.budget is not None and result.flash <= result.budget:
        left = size(result.budget - result.flash)
        typer.echo(f"fits the budget of {size(result.budget)}, {left} left")
