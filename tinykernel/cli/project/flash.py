"""Put an exported project on a board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinykernel.cli.board.verify import verify_on_port
from tinykernel.cli.common.arguments import option


def flash_command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="the exported project", show_default=False)
    ],
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment", "-e", help="an environment of platformio.ini, all by default"
        ),
    ] = None,
    port: Annotated[str | None, typer.Option("--port", help="where the board is, if several")] = (
        None
    ),
    trust: Annotated[
        bool,
        typer.Option("--trust", metavar="", help="also run a folder that export did not write"),
    ] = False,
    verify: Annotated[
        Path | None,
        option("--verify", "MODEL", "then compare the board with this model, see verify"),
    ] = None,
    data: Annotated[
        str | None, option("--data", "DATA", "rows for --verify; else rows made from the model")
    ] = None,
) -> None:
    """Build an exported project and put it on the connected board (pio run -t upload).

    A build runs what the folder says. So the folder must be an export of tinykernel whose
    platformio.ini is as it was written, unless --trust is given.
    """
    from tinykernel.build.upload import upload

    if data is not None and verify is None:
        raise typer.BadParameter("goes with --verify", param_hint="--data")
    upload(folder, environment=environment, port=port, trust=trust)
    if verify is not None:
        verify_on_port(verify, data, port or "auto", "200", as_json=False, quiet=None)
