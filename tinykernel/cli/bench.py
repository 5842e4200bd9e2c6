"""The command that counts instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tinykernel.cli.common.holding import those_that_hold
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


def bench_command(
    model: ModelArgument,
    target: TargetsOption = [],  # noqa: B006
    clock: Annotated[
        str | None,
        typer.Option("--clock", metavar="HZ", help="also give a time at this clock, e.g. 80MHz"),
    ] = None,
    current: Annotated[
        str | None,
        typer.Option(
            "--current", metavar="A", help="also give an energy at this supply current, e.g. 8mA"
        ),
    ] = None,
    voltage: Annotated[
        str | None,
        typer.Option("--voltage", metavar="V", help="supply voltage of the energy, else 3.3V"),
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
    from tinykernel.errors import TinykernelError
    from tinykernel.measure.bench import bench, parse_current, parse_voltage
    from tinykernel.measure.limits import parse_clock
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    if clock is not None:
        parse_clock(clock)
    if voltage is not None:
        parse_voltage(voltage)
        if current is None:
            raise TinykernelError("a voltage is for an energy: give --current with --voltage")
    if current is not None:
        parse_current(current)
        if clock is None:
            raise TinykernelError("an energy needs a time: give --clock with --current")
    integer = as_integer_model(load(model))
    names = those_that_hold(integer, names, asked)
    results = [
        bench(integer, name, clock=clock, current=current, voltage=voltage or "3.3V")
        for name in names
    ]
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
        typer.echo(f"{result.target}: {_constancy(result)}")
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
    time = f"{low:.2f}-{high:.2f} ms at {cycles} cycles an instruction"
    if result.joules is None:
        return time
    least, most = (1e6 * joules for joules in result.joules)
    return f"{time}, {least:.3g}-{most:.3g} uJ at {result.current:g} A and {result.voltage:g} V"


def _constancy(result: BenchResult) -> str:
    """Say how far the time depends on the data, which real-time systems must know."""
    counts = (
        f"{result.fewest} to {result.instructions} instructions over {result.rows} different rows"
    )
    if result.spread > 0.01:
        return f"{counts}: the time depends on the data by {result.spread:.1%}"
    return f"{counts}: the time hardly depends on the data"
