"""Options that the commands about boards share."""

from __future__ import annotations

from typing import Annotated

import typer

from tinykernel.cli.common.arguments import flag

PANEL = "Board (with --port)"

PortOption = Annotated[
    str | None,
    typer.Option(
        "--port",
        metavar="PORT",
        help="serial port of a board, e.g. /dev/ttyACM0, COM3 or socket://127.0.0.1:4000; "
        "needed where not a single board is connected",
        show_default=False,
    ),
]
BaudOption = Annotated[
    int, typer.Option("--baud", min=50, max=20_000_000, help="speed of the serial port")
]
OnPortOption = Annotated[
    str | None,
    typer.Option(
        "--port",
        metavar="PORT",
        help="a board that runs the export, e.g. /dev/ttyACM0, in place of an emulator; auto for "
        "the only one",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
SaveOption = Annotated[
    bool, flag("--save", text="keep what was measured in MODEL, for report (with --port)")
]
