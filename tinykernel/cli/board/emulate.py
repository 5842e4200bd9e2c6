"""Run the program of an export on an emulated board, at a local port."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tinykernel.cli.common.arguments import argument, misuse, option
from tinykernel.cli.common.rows import ModelFile, open_model
from tinykernel.errors import DataError, ModelError

if TYPE_CHECKING:
    from tinykernel.board.emulator import EmulatedBoard


def emulate_command(
    model: Path | None = argument("MODEL", "model: .tkm or .pkl", value=None),
    recording: str | None = argument(
        "RECORDING", "samples to push in real time, for 'monitor'", value=None
    ),
    target: str = option(
        "--target -t TARGET",
        "processor to emulate, or host to run the program on this computer",
        value="host",
    ),
    sensor: str | None = option(
        "still|shaking|turning", "instead of MODEL: print x, y and z of a movement at 100 Hz"
    ),
) -> None:
    """Run the program of a board in an emulator, until Ctrl-C.

    The first line is the port; give it to other commands with --port. With RECORDING, such as a
    .wav, the board takes its samples again and again, from the moment on when 'monitor' opens the
    port, which shows decisions or events.
    """
    if (model is None) == (sensor is None) or (recording is not None and model is None):
        raise misuse("MODEL", "give either MODEL or --sensor")
    if recording == "-":
        raise misuse("RECORDING", "is read again and again; give a file")
    from tinykernel.board.emulator import emulated_board, emulated_sensor
    from tinykernel.board.endings import ending_as_ctrl_c
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    if model is None:
        running = emulated_sensor(str(sensor))
    elif recording is None:
        running = emulated_board(as_integer_model(load(model)), target)
    else:
        running = _playing(open_model(model), target, recording)
    # So the emulator ends, too.
    with ending_as_ctrl_c(), running as board, contextlib.suppress(KeyboardInterrupt):
        typer.echo(board.port)
        note = f"; {board.note}" * bool(board.note)
        typer.echo(f"{board.name}, until Ctrl-C{note}", err=True)
        while True:
            time.sleep(3600.0)


@contextlib.contextmanager
def _playing(file: ModelFile, target: str, recording: str) -> Iterator[EmulatedBoard]:
    """Run a board whose sensor is a recording."""
    from tinykernel.board.emulator import emulated_board
    from tinykernel.board.playing import streamed
    from tinykernel.data.recordings.streams import pieces
    from tinykernel.data.signals import remembered

    reading = remembered(file.about, file.model)
    if reading is None or not file.model.hop:
        raise ModelError(f"{file.path}: a recording needs a model of signals, trained with --hop")

    channels = file.model.input.channels + file.model.n_numbers
    stream = partial(pieces, recording, reading, channels)
    rate = next(stream()).track.rate
    if rate is None:
        raise DataError(f"{recording}: has no sampling rate; give one with times or a rate")
    with contextlib.ExitStack() as stack:
        board = stack.enter_context(emulated_board(file.model, target))
        sensor = streamed(board, file.model, lambda: (each.track.X for each in stream()), rate)
        yield stack.enter_context(sensor)
