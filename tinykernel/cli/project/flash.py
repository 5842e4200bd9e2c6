"""Put an exported project on a board."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from tinykernel.cli.board.verify import verify_on_port
from tinykernel.cli.common.arguments import argument, flag, option
from tinykernel.errors import TinykernelError
from tinykernel.files import read_manifest


def flash_command(
    folder: Annotated[Path, argument("DIR", "the exported project")],
    environment: Annotated[
        str | None, option("--environment -e NAME", "environment of platformio.ini", default="all")
    ] = None,
    port: Annotated[
        str | None, option("PORT", "serial port, if several boards are connected")
    ] = None,
    trust: Annotated[
        bool, flag("--trust", text="build a folder that was not exported or was changed")
    ] = False,
    verify: Annotated[
        bool, flag("--verify", text="afterwards, compare the scores of the board with Python")
    ] = False,
    model: Annotated[
        Path | None, option("MODEL", "model for --verify", default="the .tkm next to DIR")
    ] = None,
    data: Annotated[str | None, option("DATA", "rows for --verify", default="generated")] = None,
) -> None:
    """Build an exported project and flash the board.

    Runs `pio run -t upload`. A build can run any program that the folder names. So the folder must
    be an export of tinykernel with an unchanged platformio.ini, unless --trust is given.
    """
    from tinykernel.build.upload import upload

    for name, value in (("--model", model), ("--data", data)):
        if value is not None and not verify:
            raise typer.BadParameter("needs --verify", param_hint=name)
    if verify and model is None:
        model = _exported_model(folder)
    upload(folder, environment=environment, port=port, trust=trust)
    if model is not None:
        verify_on_port(model, data, port or "auto", "200", as_json=False, quiet=False)


def _exported_model(folder: Path) -> Path:
    """Return the model file of an export, beside it or in the working folder."""
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    fingerprint = (read_manifest(folder) or {}).get("model")
    for place in (folder.resolve().parent, Path.cwd()):
        for path in sorted(place.glob("*.tkm")):
            with contextlib.suppress(TinykernelError):
                if as_integer_model(load(path)).fingerprint() == fingerprint:
                    return path
    raise TinykernelError(
        f"{folder}: the model of this export is not next to it; give it with --model"
    )
