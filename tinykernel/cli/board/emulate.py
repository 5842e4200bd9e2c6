"""Run the program of an export on an emulated board, at a port of this computer."""

from __future__ import annotations

import signal
import time
from typing import Annotated

import typer

from tinykernel.cli.common.arguments import ModelArgument, complete_target


def _end(*_: object) -> None:
    """End as Ctrl-C does, so that the emulator ends, too."""
    raise KeyboardInterrupt


def emulate_command(
    model: ModelArgument,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "-t",
            metavar="TARGET",
            help="processor to emulate; host runs the program on this computer",
            autocompletion=complete_target,
        ),
    ] = "host",
) -> None:
    """Run the program that an export puts on a board, in an emulator, until Ctrl-C.

    The first line that it prints is the port, for --port of other commands.
    """
    from tinykernel.board.emulator import emulated_board
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _end)
    with emulated_board(as_integer_model(load(model)), target) as board:
        typer.echo(board.port)
        typer.echo(f"{board.name} answers there until Ctrl-C", err=True)
        while True:
            time.sleep(3600.0)
