"""What a comparison of C with Python prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.common.output import percent, print_table
from tinykernel.text import count

if TYPE_CHECKING:
    from tinykernel.build.parity import VerifyResult


def verification_json(result: VerifyResult) -> dict[str, Any]:
    """Return the ``verify --json`` of a target."""
    first = result.first_difference
    names = ("target", "compiler", "rows", "scores", "hops", "events", "differences")
    return {
        **{name: getattr(result, name) for name in (*names, "accuracy")},
        "first_difference": None if first is None else str(first),
        **{name: getattr(result, name) or None for name in ("emulator", "core", "note")},
    }


def print_verification(results: list[VerifyResult], where: str) -> None:
    """Print a line a target; `where` describes the compared rows."""
    numbers = ("rows", "scores", "differences", "accuracy")
    rows = [
        (
            result.target,
            str(result.rows),
            str(result.scores),
            str(result.differences),
            percent(result.accuracy),
            ", ".join(tool for tool in (result.compiler, result.emulator, result.core) if tool),
        )
        for result in results
    ]
    print_table(("target", *numbers, "built and run with"), rows, right=numbers)
    for result in results:
        if result.note:
            typer.echo(f"{result.target}: {result.note}")
    for hops, events in sorted((each.hops, each.events) for each in results if each.hops)[:1]:
        more = f" and {count(events, 'event')}" * (events > 0)
        typer.echo(f"also compared: a stream of {count(hops, 'decision')}{more}")
    if all(result.ok for result in results):
        typer.echo(f"C and Python agree on every score ({where})")
