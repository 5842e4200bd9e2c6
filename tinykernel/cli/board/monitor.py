"""Watch the decisions of a board."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.output import FAILED, fail, percent
from tinykernel.cli.common.rows import ModelFile, open_model
from tinykernel.errors import TinykernelError

if TYPE_CHECKING:
    from tinykernel.board.checking import LiveDecision
    from tinykernel.board.link import Link
    from tinykernel.decisions import Counters
    from tinykernel.model import IntegerModel


def monitor_command(
    model: args.ModelArgument,
    port: args.PortOption = None,
    baud: args.BaudOption = 115200,
    send: Annotated[
        str | None,
        args.option(
            "RECORDING", "recording to send to the board in real time, to compare with Python"
        ),
    ] = None,
    log: Annotated[Path | None, args.option("FILE", "write each decision to a .csv file")] = None,
    fast: Annotated[
        bool, args.flag("--fast", text="with --send: as fast as the serial line allows")
    ] = False,
    decisions: Annotated[int | None, args.number_option("N", "stop after N decisions", 1)] = None,
) -> None:
    """Show the decisions of a board live, until Ctrl-C.

    The board runs a sketch that prints m-results-[...] for each decision. With --send it runs the
    program of an export; monitor then stops at the end of the recording, with status 1 if a
    decision differs from Python's.
    """
    from tinykernel.board.link import Link, find_port

    if fast and send is None:
        raise typer.BadParameter("needs --send", param_hint="--fast")
    if log is not None:
        args.check_output_file(log, (".csv",), inputs=[model])
    opened = open_model(model)
    integer = opened.model
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(Link(find_port(port), baud))
        file = None if log is None else stack.enter_context(log.open("w", newline=""))
        source = _decisions(link, opened, send, fast=fast)
        if send is None:
            typer.echo(f"waiting for decisions at {link.port}, until Ctrl-C", err=True)
        expected = None if integer.is_regressor else opened.expected_counts()
        wrong = _watch(integer, source, file, decisions, expected)
    if wrong:
        fail(f"{wrong} decisions of the board differ from Python")
        raise typer.Exit(FAILED)


def _decisions(
    link: Link, opened: ModelFile, send: str | None, *, fast: bool
) -> Iterator[LiveDecision]:
    """Listen, or play a recording."""
    from tinykernel.board.checking import listen, play
    from tinykernel.board.link import ConnectedBoard
    from tinykernel.cli.common.rows import recordings_for

    if send is None:
        return listen(link, opened.model)
    cut = recordings_for(opened, send, mixed="majority")
    if cut is None:
        raise TinykernelError(f"{opened.path}: is not a model of signals, which --send needs")
    stretches = [stretch.X for stretch in cut.stretches]
    return play(ConnectedBoard(link), opened.model, stretches, None if fast else cut.rate)


def _watch(
    model: IntegerModel,
    source: Iterator[LiveDecision],
    log: TextIO | None,
    most: int | None,
    expected: Any,
) -> int:
    """Show and write decisions; return how many differ from Python."""
    from tinykernel.board.checking import count
    from tinykernel.decisions import Counters

    counters = None if model.is_regressor else Counters(model)
    writer = None if log is None else csv.writer(log, lineterminator="\n")
    names = [f"score_{name}" for name in _names(model)]
    if writer is not None:
        writer.writerow(["seconds", "label", "confidence", *names])
    number = wrong = 0
    with contextlib.suppress(KeyboardInterrupt):
        for number, decision in enumerate(source, 1):
            wrong += decision.right is False
            if counters is not None:
                count(model, counters, decision)
            if writer is not None and log is not None:
                label = "refused" if decision.label is None else decision.label
                confidence = "" if decision.confidence is None else decision.confidence
                row = [f"{decision.seconds:.3f}", label, confidence, *decision.scores]
                writer.writerow(row)
                log.flush()
            _print_line(decision)
            if number == most:
                break
    _print_result(number, wrong, decision if number else None, counters, expected)
    return wrong


def _names(model: IntegerModel) -> list[str]:
    from tinykernel.model.answers.values import Values

    answers = model.answers
    return list(map(str, answers.names if isinstance(answers, Values) else model.classes))


def _print_line(decision: LiveDecision) -> None:
    right = {None: "", True: "  same as Python", False: "  DIFFERS from Python"}[decision.right]
    label = "refused" if decision.label is None else str(decision.label)
    sure = "" if decision.confidence is None else f" ({decision.confidence}/256)"
    typer.echo(f"{decision.seconds:8.2f} s  {label}{sure}{right}")


def _print_result(
    number: int, wrong: int, last: LiveDecision | None, counters: Counters | None, expected: Any
) -> None:
    if last is None:
        typer.echo("the board made no decision")
        return
    compared = "" if last.right is None else f", {wrong} differ from Python"
    speed = f"{60 * number / max(1e-9, last.seconds):.1f} decisions a minute"
    unknown = "" if counters is None else f", refused {percent(counters.refusals / number)}"
    typer.echo(f"{number} decisions{compared}; {speed}{unknown}")
    if counters is None:
        return
    named = zip(counters.model.classes, counters.labels, strict=True)
    typer.echo(", ".join(f"{name}: {times}" for name, times in named))
    if expected is not None:
        from tinykernel.decisions import drift

        report = drift(counters, expected)
        # Saturated values were not counted.
        differs = [name for name in report.differs if name != "saturated"]
        verdict = "too few decisions to say" if not report.enough else ", ".join(differs) or "none"
        typer.echo(f"drift against held-out rows: {verdict}")
