"""Print the curve that a model file remembers of its tuning."""

from __future__ import annotations

import typer

from tinykernel.cli.common.output import percent, print_table, size

_COLUMNS = ("budget", "flash", "held out", "standard error", "")


def print_curve(said: object) -> None:
    """Print accuracy against size; nothing where the file says nothing that can be read.

    Parameters
    ----------
    said : object
        What the file says of a tuning: ``curve`` is a list of budget, flash, accuracy, its
        standard error; ``recommended`` one of the budgets.
    """
    points = said.get("curve") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(points, list) or not points:
        return
    if not all(isinstance(row, list) and len(row) == 4 for row in points):
        return
    if not all(type(value) in (int, float) for row in points for value in row):
        return
    typer.echo(f"\nTuned, {said.get('score')} on rows held out:")
    rows = [
        (
            size(budget),
            str(flash),
            percent(share),
            percent(error),
            "recommended" if budget == said.get("recommended") else "",
        )
        for budget, flash, share, error in points
    ]
    print_table(_COLUMNS, rows, right=_COLUMNS[:4])
