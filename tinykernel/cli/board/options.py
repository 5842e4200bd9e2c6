"""Options that the commands about boards share."""

from __future__ import annotations

from typing import Annotated

from tinykernel.cli.common.arguments import flag, option

PortOption = Annotated[
    str | None,
    option(
        "PORT",
        "serial port of a board, e.g. /dev/ttyACM0, COM3 or socket://127.0.0.1:4000  "
        "[default: the only board]",
    ),
]
BaudOption = Annotated[int, option("BAUD", "speed of the serial port", min=50, max=20_000_000)]
OnPortOption = Annotated[
    str | None,
    option(
        "PORT",
        "serial port of a board that runs the export, e.g. /dev/ttyACM0; auto finds the only one",
    ),
]
SaveOption = Annotated[
    bool, flag("--save", text="with --port: store the measurement in MODEL, for report")
]
