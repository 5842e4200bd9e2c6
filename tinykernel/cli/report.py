"""Measure the memory of a model, check that it fits, and write a report page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.evaluation import print_notes
from tinykernel.cli.common.output import fail_if_any, print_json, print_table, size
from tinykernel.cli.common.rows import ModelFile, open_model, rows_to_judge
from tinykernel.codegen.targets import TARGETS
from tinykernel.files import write_bytes_atomically

if TYPE_CHECKING:
    from tinykernel.measure.report import Report
    from tinykernel.reporting import ReportPage

_COLUMNS = ("target", "flash", "RAM", "stack", "fits", "source")


def report_command(
    ctx: typer.Context,
    model: Path = args.MODEL,
    target: list[str] = args.TARGETS,
    budget: Any = args.BUDGET,
    html: Path | None = args.option("FILE", "write a page to share"),
    compiler: str = args.option("NAME", "auto, gcc, zig, or none to estimate", value="auto"),
    data: str | None = args.option("DATA", "for the page: rows to evaluate the model on"),
    clock: str | None = args.option("HZ", "for the page: clocks, e.g. 16MHz,48MHz"),
    markdown: bool = args.flag("--markdown", "print the result as Markdown, for a merge request"),
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Measure flash, RAM and stack, and check that they fit.

    Ends with status 1 if they do not fit. With a compiler, flash is what the model adds to an empty
    linked program; without one it is an estimate, and the report says so. Target and budget are by
    default those of the training, else cortex-m4 and no budget.

    --html writes a page to share: the model to try, its training, accuracy on DATA, memory, time,
    inputs and proved ranges.
    """
    from tinykernel.measure.report import report

    if html is not None:
        args.check_output_file(html, (".html", ".htm"), [model])
    if markdown and as_json:
        raise args.misuse("--markdown", "not with --json; give one of them")
    for name, value in (("--data", data), ("--clock", clock)):
        if value is not None and html is None:
            raise args.misuse(name, "needs --html")
    opened = open_model(model)
    names, several = args.expand_targets(
        target or [opened.target or "cortex-m4"],
        [t.name for t in TARGETS.values() if t.family != "host"],
    )
    with showing_progress(quiet):
        if html is not None:
            page = page_of(opened, names, ctx.params)
            reports = list(page.memory)
            write_bytes_atomically(html, page.to_html().encode("utf-8"))
        else:
            reports = [
                report(opened.model, name, budget or opened.budget_for(name), compiler=compiler)
                for name in names
            ]
    if html is not None and not quiet:
        typer.echo(f"wrote the page to {html}", err=True)
    if as_json:
        dicts = [result.to_dict() for result in reports]
        print_json(dicts if several else dicts[0])
    elif markdown:
        typer.echo(_markdown(model.stem, reports))
    elif not quiet:
        print_report(reports)
    fail_if_any(_too_large(result) for result in reports if not result.fits)


def _too_large(result: Report) -> str:
    """Say what does not fit, and what to do."""
    only_budget = len(result.problems) == len(result.over_budget)
    advice = "give a larger budget" if only_budget else "choose a larger chip"
    problems = "; ".join(result.problems)
    return f"{result.target}: {problems}; {advice}, or train with a smaller --budget"


def page_of(file: ModelFile, names: list[str], options: dict[str, Any]) -> ReportPage:
    """Make the page, with the accuracy on the rows of --data."""
    from tinykernel.reporting import report_page

    more = {name: options[name] for name in ("compiler", "clock")}
    if options["data"] is not None:
        judged = rows_to_judge(file, options["data"])
        rows = judged.rows
        more |= {"data": (rows.X, judged.y), "groups": rows.group, "train": judged.train}
        more |= {"rows": "; ".join((f"{rows.part} of {rows.source}", *rows.notes))}
        more |= {"class_weight": judged.class_weight}
    return report_page(file.path, names, options["budget"], **more)


def print_report(reports: list[Report]) -> None:
    """Print one target in full, or several in one line each."""
    if len(reports) == 1:
        _print_one(reports[0])
    else:
        print_table(_COLUMNS, _rows(reports), right=_COLUMNS[1:4])


def _rows(reports: list[Report]) -> list[tuple[str, ...]]:
    """Return the cells of `_COLUMNS` for each target."""
    return [
        (
            result.target,
            *map(size, (result.flash, result.ram, result.stack)),
            "yes" if result.fits else "no",
            result.compiler or result.source,
        )
        for result in reports
    ]


def _markdown(name: str, reports: list[Report]) -> str:
    """Return a table of the targets, what does not fit, and what is to know."""
    rows = [_COLUMNS, ("---", *["--:"] * 3, "---", "---"), *_rows(reports)]
    table = [f"| {' | '.join(row)} |" for row in rows]
    remarks = dict.fromkeys(
        f"- {text}"
        for result in reports
        for text in (*(f"**{result.target}: {each}**" for each in result.problems), *result.notes)
    )
    return "\n".join([f"### {name}", "", *table, *[""] * bool(remarks), *remarks])


def _print_one(result: Report) -> None:
    source = f"linked with {result.compiler}" if result.compiler else "estimate, no compiler used"
    typer.echo(f"{result.target}, {source}")
    rows = []
    for memory, parts in result.parts.items():
        name, total = ("flash", result.flash) if memory == "flash" else ("RAM", result.ram)
        rows.append((name, "", str(total)))
        rows += [("", part, str(n_bytes)) for part, n_bytes in parts.items() if n_bytes]
    print_table(("memory", "part", "bytes"), rows, right=("bytes",))
    if result.stream is not None:
        state, scratch, ram = (result.stream[name] for name in ("state", "scratch", "ram"))
        limit = None if result.limits is None else result.limits.ram
        least = result.chip_ram if limit is None else min(limit, result.chip_ram)
        remark = ""
        if result.ram <= least < ram:  # whole windows fit, but a stream does not
            remark = f", {size(ram)} of RAM in all, more than {size(least)}"
        typer.echo(
            f"a stream takes {state} bytes of state and {scratch} of scratch instead of "
            f"{result.scratch}{remark}"
        )
    print_notes(result.notes)
    limits = result.limits
    if limits is not None and limits.beside_flash:
        if result.instructions is not None:
            time = "" if result.seconds is None else f", {1e3 * result.seconds:.3g} ms"
            typer.echo(f"about {result.instructions} instructions an inference{time} (estimate)")
        if result.fits:
            typer.echo(f"within the budget of {limits}")
    elif result.budget is not None and result.flash <= result.budget:
        left = size(result.budget - result.flash)
        typer.echo(f"fits the budget of {size(result.budget)}, {left} left")
