"""List serial ports."""

from __future__ import annotations

import typer

from tinykernel.cli.common.arguments import JsonOption
from tinykernel.cli.common.output import print_json, print_table


def ports_command(as_json: JsonOption = False) -> None:
    """List the serial ports, boards with USB first."""
    from tinykernel.board.link import list_ports

    ports = list_ports()
    if as_json:
        print_json([{"port": row.name, "board": row.board, "usb": row.usb} for row in ports])
    elif ports:
        print_table(("port", "board", "USB"), ((row.name, row.board, row.usb) for row in ports))
    else:
        typer.echo("no serial port; connect a board, or try 'tinykernel emulate'")
