"""Watch the decisions of a board."""

from __future__ import annotations

import contextlib
import csv
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.rows import open_model
from tinykernel.text import count

if TYPE_CHECKING:
    from tinykernel.board.checking import Decisions
    from tinykernel.model import IntegerModel


def monitor_command(
    model: Path = args.MODEL,
    port: str | None = args.PORT,
    baud: int = args.BAUD,
    log: Path | None = args.option("FILE", "write each decision to a .csv file"),
    decisions: int | None = args.number_option("N", "stop after N decisions", 1),
) -> None:
    """Show the decisions of a board live, or its events, until Ctrl-C.

    The board runs a sketch that prints m-results-[...] for each decision.
    """
    from tinykernel.board.checking import Decisions
    from tinykernel.board.endings import ending_as_ctrl_c
    from tinykernel.board.link import Link, find_port

    if log is not None:
        args.check_output_file(log, (".csv",), inputs=[model])
    integer = open_model(model).model
    with contextlib.ExitStack() as stack:
        stack.enter_context(ending_as_ctrl_c())
        link = stack.enter_context(Link(find_port(port), baud))
        file = None if log is None else stack.enter_context(log.open("w", newline=""))
        typer.echo(f"waiting for decisions at {link.port}, until Ctrl-C", err=True)
        _watch(integer, Decisions(link, integer), file, decisions)


def _watch(model: IntegerModel, source: Decisions, log: TextIO | None, most: int | None) -> None:
    """Show, write and count decisions."""
    counts = dict.fromkeys(map(str, model.classes), 0)
    writer = None if log is None else csv.writer(log, lineterminator="\n")
    if writer is not None:
        scores = (f"score_{name}" for name in _names(model))
        events = ["event"] * (model.events is not None)
        writer.writerow(["seconds", "label", *events, "confidence", *scores])
    number, seconds = 0, 0.0
    with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as stack:
        stack.callback(lambda: _print_sums(number, seconds, counts, source.damaged))
        for number, decision in enumerate(source, 1):
            label = "refused" if decision.label is None else str(decision.label)
            event = "" if decision.event is None else str(decision.event)
            shown = label if model.events is None else event
            if shown and not model.is_regressor:
                counts[shown] = counts.get(shown, 0) + 1
            seconds = decision.seconds
            if writer is not None and log is not None:
                confidence = "" if decision.confidence is None else decision.confidence
                labels = [label, *[event] * (model.events is not None)]
                writer.writerow([f"{seconds:.3f}", *labels, confidence, *decision.scores])
                log.flush()
            sure = "" if decision.confidence is None else f" ({decision.confidence}/256)"
            if shown:
                typer.echo(f"{seconds:8.2f} s  {shown}{sure}")
            if number == most:
                break


def _print_sums(number: int, seconds: float, counts: dict[str, int], damaged: int) -> None:
    """Print how many decisions there were, of each label, and what was left out."""
    typer.echo(f"{count(number, 'decision')}, {60 * number / max(1e-9, seconds):.1f} a minute")
    if counts:
        typer.echo(", ".join(f"{name}: {times}" for name, times in counts.items()))
    if damaged:
        typer.echo(f"warning: {count(damaged, 'damaged line')} left out", err=True)


def _names(model: IntegerModel) -> list[str]:
    from tinykernel.model.answers.values import Values

    answers = model.answers
    return list(map(str, answers.names if isinstance(answers, Values) else model.classes))
