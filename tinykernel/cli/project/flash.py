"""Put an exported project on a board."""

from pathlib import Path

from tinykernel.cli.common.arguments import argument, flag, option


def flash_command(
    folder: Path = argument("DIR", "the exported project"),
    environment: str | None = option(
        "--environment -e NAME", "environment of platformio.ini", default="all"
    ),
    port: str | None = option("PORT", "serial port, if several boards are connected"),
    trust: bool = flag("--trust", "build a folder that was not exported or was changed"),
) -> None:
    """Build an exported project and flash the board.

    Runs `pio run -t upload`. A build can run any program that the folder names. So the folder must
    be an export of tinykernel with an unchanged platformio.ini, unless --trust is given.
    """
    from tinykernel.build.upload import upload

    upload(folder, environment=environment, port=port, trust=trust)
