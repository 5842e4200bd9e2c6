"""Record labelled samples from a sensor at a serial port."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.settings import parsing
from tinykernel.text import count

if TYPE_CHECKING:
    from tinykernel.board.recording import Recorder


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
    from tinykernel.board.endings import ending_as_ctrl_c
    from tinykernel.board.link import find_port
    from tinykernel.board.recording import FORMATS, Recorder, check_label, sensor_at
    from tinykernel.board.samples import FASTEST

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
