"""Count the instructions of an inference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.output import fail_if_any, print_json, print_table
from tinykernel.cli.common.rows import open_model
from tinykernel.codegen.targets import TARGETS
from tinykernel.measure.limits import parse_clock

if TYPE_CHECKING:
    from tinykernel.measure.bench import BenchResult


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
    from tinykernel.data.ranges import rate_of
    from tinykernel.measure.bench import bench

    rate = rate_of(opened.about)
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
