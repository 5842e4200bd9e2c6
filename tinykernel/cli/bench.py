"""The command that counts instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tinykernel.cli.common.options import (
    JsonOption,
    ModelArgument,
    QuietOption,
    TargetsOption,
    expand_targets,
)
from tinykernel.cli.common.output import print_json, print_table
from tinykernel.cli.common.remembered import remembered

if TYPE_CHECKING:
    from tinykernel.measure.bench import BenchResult

__all__ = ["bench_command"]


def bench_command(
    model: ModelArgument,
    target: TargetsOption = [],  # noqa: B006
    clock: Annotated[
        str | None,
        typer.Option("--clock", metavar="HZ", help="also give a time at this clock, e.g. 80MHz"),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Count the instructions of one inference, by stage, in an emulator.

    The count is exact and does not depend on how busy this computer is. A time is a range, because
    an emulator counts instructions and not cycles. The target is that of the training unless
    given, else cortex-m4.
    """
    from tinykernel.codegen.targets import TARGETS

    asked = target or [remembered(model).target or "cortex-m4"]
    names, several = expand_targets(asked, [t.name for t in TARGETS.values() if t.machines])
    from tinykernel.measure.bench import bench, parse_clock
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    if clock is not None:
        parse_clock(clock)
    integer = as_integer_model(load(model))
    results = [bench(integer, name, clock=clock) for name in names]
    if as_json:
        found = [result.to_dict() for result in results]
        print_json(found if several else found[0])
    elif not quiet:
        print_bench(results)


def print_bench(results: list[BenchResult]) -> None:
    """Print one line a target.

    Parameters
    ----------
    results : list of BenchResult
    """
    stages = list(dict.fromkeys(stage for result in results for stage in result.stages))
    print_table(
        ("target", "instructions", "a component", *stages, "time"),
        (
            (
                result.target,
                str(result.instructions),
                f"{result.instructions / result.components:.1f}" if result.components else "",
                *(str(result.stages.get(stage, "")) for stage in stages),
                _time(result),
            )
            for result in results
        ),
        right=("instructions", "a component", *stages),
    )
    for title in dict.fromkeys(
        f"{result.compiler}, {result.emulator}, {result.core}" for result in results
    ):
        typer.echo(title)
    for result in results:
        if result.stream is not None:
            cost = result.stream
            typer.echo(
                f"{result.target}, stream: a sample takes {cost.push_mean:.0f} instructions, "
                f"{cost.push_worst} at most, and a decision {cost.decision}"
            )
    for result in results:
        if result.note:
            typer.echo(f"{result.target}: {result.note}")
        if not result.exact:
            typer.echo(f"{result.target}: Unicorn counts a little low around conditional blocks")


def _time(result: BenchResult) -> str:
    if result.seconds is None:
        return ""
    low, high = (1e3 * seconds for seconds in result.seconds)
    cycles = "-".join(f"{value:g}" for value in result.cycles_per_instruction)
    return f"{low:.2f}-{high:.2f} ms at {cycles} cycles an instruction"
