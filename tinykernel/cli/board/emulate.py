"""Run the program of an export on an emulated board, at a local port."""

import contextlib
import time
from pathlib import Path
from typing import Annotated

import typer

from tinykernel.cli.common.arguments import argument, option


def emulate_command(
    model: Annotated[Path | None, argument("MODEL", "model: .tkm or .pkl")] = None,
    target: Annotated[
        str,
        option(
            "--target -t TARGET",
            "processor to emulate, or host to run the program on this computer",
        ),
    ] = "host",
    sensor: Annotated[
        str | None,
        option(
            "still|shaking|turning", "instead of MODEL: print x, y and z of a movement at 100 Hz"
        ),
    ] = None,
) -> None:
    """Run the program of a board in an emulator, until Ctrl-C.

    The first line is the port; give it to other commands with --port.
    """
    if (model is None) == (sensor is None):
        raise typer.BadParameter("give either MODEL or --sensor", param_hint="MODEL")
    from tinykernel.board.emulator import emulated_board, emulated_sensor
    from tinykernel.board.endings import ending_as_ctrl_c
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    if model is None:
        running = emulated_sensor(str(sensor))
    else:
        running = emulated_board(as_integer_model(load(model)), target)
    # So the emulator ends, too.
    with ending_as_ctrl_c(), running as board, contextlib.suppress(KeyboardInterrupt):
        typer.echo(board.port)
        note = f"; {board.note}" * bool(board.note)
        typer.echo(f"{board.name}, until Ctrl-C{note}", err=True)
        while True:
            time.sleep(3600.0)
