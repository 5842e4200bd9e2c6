"""Commands that talk to a board at a port, real or emulated."""

from __future__ import annotations

import contextlib
import csv
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from tinykernel.base import reading as parsing
from tinykernel.base.errors import DataError, ModelError
from tinykernel.base.text import count
from tinykernel.face import arguments as args
from tinykernel.face.rows import ModelFile, open_model

if TYPE_CHECKING:
    from tinykernel.model.integer import IntegerModel
    from tinykernel.run.checking import Decisions
    from tinykernel.run.emulator import EmulatedBoard
    from tinykernel.run.recording import Recorder


def emulate_command(
    model: Path | None = args.argument("MODEL", "model: .tkm or .pkl", value=None),
    recording: str | None = args.argument(
        "RECORDING", "samples to push in real time, for 'monitor'", value=None
    ),
    target: str = args.option(
        "--target -t TARGET",
        "processor to emulate, or host to run the program on this computer",
        value="host",
    ),
    sensor: str | None = args.option(
        "still|shaking|turning", "instead of MODEL: print x, y and z of a movement at 100 Hz"
    ),
) -> None:
    """Run the program of a board in an emulator, until Ctrl-C.

    The first line is the port; give it to other commands with --port. With RECORDING, such as a
    .wav, the board takes its samples again and again, from the moment on when 'monitor' opens the
    port, which shows decisions or events.
    """
    if (model is None) == (sensor is None) or (recording is not None and model is None):
        raise args.misuse("MODEL", "give either MODEL or --sensor")
    if recording == "-":
        raise args.misuse("RECORDING", "is read again and again; give a file")
    from tinykernel.model.file import load
    from tinykernel.model.pipelines import as_integer_model
    from tinykernel.run.emulator import emulated_board, emulated_sensor
    from tinykernel.run.link import ending_as_ctrl_c

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
    from tinykernel.data.sources import reading_again
    from tinykernel.data.streams import pieces
    from tinykernel.run.emulator import emulated_board, stream_into

    reading = reading_again(file.origin, file.model)
    if reading is None or not file.model.hop:
        raise ModelError(f"{file.path}: a recording needs a model of signals, trained with --hop")

    channels = file.model.input.channels + file.model.n_numbers
    stream = partial(pieces, recording, reading, channels)
    rate = next(stream()).rate
    if rate is None:
        raise DataError(f"{recording}: has no sampling rate; give one with times or a rate")
    with contextlib.ExitStack() as stack:
        board = stack.enter_context(emulated_board(file.model, target))
        sensor = stream_into(board, file.model, lambda: (each.X for each in stream()), rate)
        yield stack.enter_context(sensor)


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
    from tinykernel.run.checking import Decisions
    from tinykernel.run.link import Link, ending_as_ctrl_c, find_port

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
    from tinykernel.model.answers import Values

    answers = model.answers
    return list(map(str, answers.names if isinstance(answers, Values) else model.classes))


def record_command(
    label: str = args.option("WORD", "label of the recordings", ...),
    output: Path = args.option(
        "--output -o DIR", "folder of the recordings", value=Path("recordings")
    ),
    port: str | None = args.PORT,
    baud: int = args.BAUD,
    form: str = args.option(
        "--format FORMAT", "text: one line per sample; s16le: binary packets", value="text"
    ),
    group: str | None = args.option("NAME", "person or machine, written as column `group`"),
    rate: float | None = args.number_option("HZ", "sampling rate", 0.001, default="measured"),
    seconds: float | None = args.number_option(
        "SECONDS", "length of a recording", 0.001, default="60"
    ),
    count: int | None = args.number_option("N", "number of recordings", 1, default="1"),
    window: str | None = args.option("TIME", "with --count: length of each recording, e.g. 1s"),
    quiet: bool = args.QUIET,
) -> None:
    """Record the samples that a sketch prints, to train on.

    The sketch prints one line per sample: numbers separated by commas, spaces, tabs or semicolons,
    with or without names. --seconds, or --count and --window, set how much is recorded; Ctrl-C ends
    a recording earlier.
    """
    from tinykernel.run.link import ending_as_ctrl_c, find_port
    from tinykernel.run.recording import FORMATS, Recorder, check_label, sensor_at
    from tinykernel.run.samples import FASTEST

    check_label(label)
    if form not in FORMATS:
        raise args.misuse("--format", f"choose {' or '.join(FORMATS)}")
    if form == "s16le" and rate is not None and not (rate % 1 == 0 and rate <= FASTEST):
        raise args.misuse("--rate", f"with --format s16le give a whole number from 1 to {FASTEST}")
    if window is not None and (count is None or seconds is not None):
        raise args.misuse("--window", "needs --count, and excludes --seconds")
    length = parsing.seconds(window) if window is not None else seconds or 60.0
    with ending_as_ctrl_c(), sensor_at(find_port(port), baud, form) as sensor:
        recorder = Recorder(sensor, output, group, rate)
        try:
            for _ in range(count or 1):
                recorder.record(label, length)
        finally:
            if not quiet and recorder.paths:
                _print_result(recorder)


def _print_result(recorder: Recorder) -> None:
    """Print the files and channels of recordings, and what was lost."""
    sensor = recorder.sensor
    for path in recorder.paths:
        typer.echo(str(path))
    channels = ", ".join(
        f"{name} {low:g} to {high:g}"
        for name, (low, high) in zip(sensor.names, sensor.ranges, strict=True)
    )
    speed = f"{sensor.rate:.4g} Hz" if sensor.rate else "an unknown rate"
    typer.echo(f"{count(len(sensor.names), 'channel')} at {speed}: {channels}", err=True)
    for note in recorder.warnings():
        typer.echo(f"warning: {note}", err=True)
