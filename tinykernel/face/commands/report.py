"""Measure the memory of a model, and count the instructions of an inference."""

from __future__ import annotations

import shlex
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.errors import ModelError, ToolError
from tinykernel.base.files import write_bytes_atomically
from tinykernel.base.text import size
from tinykernel.compile.compilers import zig_command
from tinykernel.compile.targets import TARGETS
from tinykernel.face import arguments as args
from tinykernel.face.evaluation import print_notes
from tinykernel.face.output import fail_if_any, print_json, print_table, showing_progress
from tinykernel.face.rows import ModelFile, open_model, rows_to_judge
from tinykernel.run.limits import parse_clock

if TYPE_CHECKING:
    from tinykernel.face.pages.page import ReportPage
    from tinykernel.run.bench import BenchResult
    from tinykernel.run.report import Report

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
    from tinykernel.run.report import report

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
    from tinykernel.face.pages.page import report_page

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


def bench_command(
    model: Path = args.MODEL,
    target: list[str] = args.TARGETS,
    clock: str | None = args.option("HZ", "also print the time at this clock, e.g. 80MHz"),
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Count the instructions of one inference, by stage.

    The count is exact and repeatable. A time is a range, because the emulator counts instructions,
    not cycles; verify --port measures it on a board. The default target is that of the training,
    else cortex-m4.
    """
    opened = open_model(model)
    asked = target or [opened.target or "cortex-m4"]
    names, several = args.expand_targets(asked, [t.name for t in TARGETS.values() if t.machines])
    if clock is not None:
        parse_clock(clock)
    from tinykernel.run.bench import bench

    rate = opened.origin.rate
    with showing_progress(quiet):
        results, too_small = args.each_that_fits(
            names, asked, lambda name: bench(opened.model, name, clock=clock, rate=rate)
        )
    if as_json:
        rows = [result.to_dict() for result in results]
        print_json(rows if several else rows[0])
    elif results and not quiet:
        print_bench(results)
    fail_if_any(too_small)


def print_bench(results: list[BenchResult]) -> None:
    """Print a line a target."""
    every = dict.fromkeys(stage for result in results for stage in result.stages)
    stages = [stage for stage in every if any(result.stages.get(stage) for result in results)]
    titles = ["kernels" if stage == "local" else stage for stage in stages]
    numbers = ("instructions", *titles)
    rows = [
        (
            result.target,
            str(result.instructions),
            *(str(result.stages.get(stage, "")) for stage in stages),
            _time(result),
        )
        for result in results
    ]
    print_table(("target", *numbers, "time"), rows, right=numbers)
    tools = (f"{result.compiler}, {result.emulator}, {result.core}" for result in results)
    for line in dict.fromkeys(tools):
        typer.echo(line)
    for result in results:
        typer.echo(f"{result.target}: {_constancy(result)}")
        if result.stream is not None:
            cost = result.stream
            event = f", its event {cost.event}" * bool(cost.event)
            typer.echo(
                f"{result.target}, stream: a sample takes {cost.push_mean:.0f} instructions, "
                f"{cost.push_worst} at most, and a decision {cost.decision}{event}"
                f"{_load(result)}"
            )
    for result in results:
        if result.note:
            typer.echo(f"{result.target}: {result.note}")
        if not result.exact:
            typer.echo(
                f"{result.target}: Unicorn counts slightly too few instructions in conditional "
                "blocks"
            )


def _time(result: BenchResult) -> str:
    if result.seconds is None:
        return ""
    low, high = (1e3 * seconds for seconds in result.seconds)
    cycles = "-".join(f"{value:g}" for value in result.cycles_per_instruction)
    return f"{low:.2f}-{high:.2f} ms at {cycles} cycles per instruction"


def _load(result: BenchResult) -> str:
    """Describe the processor load of a stream, where clock and rate are known."""
    if result.load is None or result.rate is None or result.clock is None:
        return ""
    low, high = result.load
    clock = f"{result.clock / 1e6:g} MHz"
    return f"; {low:.1%}-{high:.1%} of the processor at {result.rate:g} Hz and {clock}"


def _constancy(result: BenchResult) -> str:
    """Describe how much the time depends on the data."""
    if result.rows == 1:
        return f"{result.instructions} instructions, counted for one row"
    span = f"{result.fewest} to " if result.fewest < result.instructions else ""
    counts = f"{span}{result.instructions} instructions over {result.rows} different rows"
    if result.spread > 0.01:
        return f"{counts}; the time varies with the data by {result.spread:.1%}"
    return f"{counts}; the time hardly varies with the data"


# As images, so that one can draw on the page; one kind of model, since a choice would take longer.
_KIND = ("--set", "model=separable", "--set", "epochs=20")
_HOW = ("--image-shape", "8x8", "--budget", "8KB", "--effort", "quick", *_KIND)


def demo_command(
    ctx: typer.Context,
    output: Path = args.option("--output -o DIR", "folder for the project", value=Path("demo")),
    force: bool = args.FORCE,
    quiet: bool = args.QUIET,
) -> None:
    """Train on digits, export for a Cortex-M4, and verify.

    Uses the digits of scikit-learn, verifies every test row, reports the sizes, and writes a page
    to try the model in a browser.
    """
    force = args.check_output_folder(output, force=force)
    import numpy as np
    from sklearn.datasets import load_digits

    page = output.with_name(f"{output.name}.html")

    X, y = load_digits(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder:
        data, model = str(Path(folder, "digits.npz")), str(Path(folder, "digits.tkm"))
        np.savez(data, X=X.astype("uint8"), y=y)
        for command in (
            ("train", data, "-o", model, "--test", "0.25", *_HOW),
            ("export", model, "--data", data, "-o", str(output), *["--force"] * force),
            ("verify", model, data),
            ("report", model, "--html", str(page), "--data", data),
        ):
            if not quiet:
                typer.echo(f"\n$ tinykernel {shlex.join(command)}")
            root = ctx.find_root()
            arguments = [*command, *["-q"] * quiet]
            status = root.command.main(arguments, root.info_name, standalone_mode=False)
            if status:
                raise typer.Exit(status)
    if not quiet:
        typer.echo(f"\nNext: 'pio run' in {output} builds it, tinykernel flash {output} flashes it")
        typer.echo(f"Try it in a browser: {page}")


def try_command(
    model: Path = args.MODEL,
    data: str | None = args.option("--data DATA", "rows to step through"),
    output: Path | None = args.option(
        "--output -o FILE", "page to write", default="a temporary file"
    ),
    serve: bool = args.flag(
        "--serve",
        "serve the page on 127.0.0.1 until Ctrl-C: some browsers allow camera and "
        "microphone only there",
    ),
    quiet: bool = args.QUIET,
) -> None:
    """Open a page that runs the firmware of a model in a browser.

    Move the inputs of a table, draw an image, speak, or drop a file. The page is that of report
    --html, and proves itself by test vectors when it opens. It needs zig: pip install ziglang.
    """
    from tinykernel.face.pages.chip import serve_page

    if zig_command() is None:
        raise ToolError("zig is missing, which compiles for browsers: pip install ziglang")
    if output is not None:
        if serve:
            raise args.misuse("-o", "a page that is served is no file; leave it out")
        args.check_output_file(output, (".html", ".htm"), [model])
    file = open_model(model)
    with showing_progress(quiet):
        options = {"data": data, "compiler": "auto", "clock": None, "budget": None}
        report = page_of(file, [file.target or "cortex-m4"], options)
    if report.chip is None:
        raise ModelError(report.without_chip)
    page = report.to_html().encode("utf-8")
    if serve:
        # The port is free by chance, so that its address is said in any case.
        serve_page(page, lambda address: _open(address, False))
        return
    place = output or Path(tempfile.mkdtemp(prefix="tinykernel-"), f"{model.stem}.html")
    write_bytes_atomically(place, page)
    _open(place.absolute().as_uri(), quiet, str(place))


def _open(address: str, quiet: bool, place: str = "") -> None:
    if not quiet:
        typer.echo(place or f"{address}, until Ctrl-C")
    webbrowser.open(address)
