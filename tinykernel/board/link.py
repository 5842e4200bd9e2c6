"""A serial line: lines and bytes from a board, and text to it."""

from __future__ import annotations

import importlib
import os
import time
from dataclasses import dataclass
from typing import Any

from tinykernel.errors import TinykernelError
from tinykernel.text import listed

#: What boards of the exports, MLPerf Tiny's devices and most sketches talk at.
BAUD = 115200
_WAIT = 0.05  # seconds that a read waits for the first byte
_MOST = 1 << 16  # bytes that a read takes at once


def _serial(module: str) -> Any:
    """Import a module of pyserial, for which the type checker has no stubs."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise TinykernelError(
            "a serial port needs pyserial; install it with: pip install 'tinykernel[flash]'"
        ) from None


@dataclass(frozen=True)
class Port:
    """A serial port of this computer."""

    name: str  # as `Link` opens it.
    board: str  # what its USB device calls itself, or a description; may be empty.
    usb: str  # "2341:0043", vendor and product; empty where it is no USB device.


def list_ports() -> list[Port]:
    """List the serial ports that a board may be at: USB devices first."""
    tools = _serial("serial.tools.list_ports")
    ports = []
    for row in tools.comports():
        usb = "" if row.vid is None else f"{row.vid:04x}:{row.pid or 0:04x}"
        board = row.product or (row.description if row.description != "n/a" else "")
        ports.append(Port(str(row.device), str(board or ""), usb))
    return sorted(ports, key=lambda port: (not port.usb, port.name))


def find_port(port: str | None) -> str:
    """Return `port`, or where it is None or "auto" that of the only USB device."""
    if port not in (None, "auto"):
        return port
    boards = [row.name for row in list_ports() if row.usb]
    if len(boards) == 1:
        return boards[0]
    if boards:
        raise TinykernelError(f"several boards are connected: give --port {listed(boards)}")
    raise TinykernelError(
        "no board is connected by USB: connect one, or give --port; 'tinykernel ports' lists ports"
    )


class Link:
    """An open serial port; errors of opening it, or of a lost board, are a TinykernelError.

    `port` is a device such as ``/dev/ttyACM0`` or ``COM3``, or a URL of pyserial. A USB device
    ignores `baud`. Within `patience`, in seconds, a missing port may appear.
    """

    def __init__(self, port: str, baud: int = BAUD, patience: float = 0.0) -> None:
        self.port, self.baud = port, baud
        serial = _serial("serial")
        self._failures = (OSError, serial.SerialException)
        self._waiting = bytearray()
        # Two programs at one port would get half of the lines each.
        exclusive = {} if "://" in port else {"exclusive": True}
        limit = time.monotonic() + patience
        while True:
            try:
                self._device = serial.serial_for_url(
                    port, baudrate=baud, timeout=_WAIT, **exclusive
                )
                return
            except (*self._failures, ValueError, OverflowError) as error:
                if time.monotonic() < limit:
                    time.sleep(0.1)
                    continue
                number = getattr(error, "errno", None)  # pyserial's own texts repeat the port
                reason = os.strerror(number) if number else str(error).partition(":")[0]
                raise TinykernelError(
                    f"{port}: cannot be opened ({reason}); 'tinykernel ports' lists the ports, "
                    "and another program may hold it"
                ) from None

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the port."""
        self._device.close()

    def write(self, text: str) -> None:
        """Send a text in ASCII."""
        try:
            self._device.write(text.encode("ascii"))
        except self._failures:
            raise self._gone() from None

    def read(self) -> bytes:
        """Return what has arrived; waits a moment where nothing has."""
        if self._waiting:
            data, self._waiting = bytes(self._waiting), bytearray()
            return data
        try:
            return bytes(self._device.read(min(max(1, self._device.in_waiting), _MOST)))
        except self._failures:
            raise self._gone() from None

    def line(self, seconds: float) -> str | None:
        """Return the next line without its end; None where none ends within the time."""
        limit = time.monotonic() + seconds
        while b"\n" not in self._waiting:
            if time.monotonic() > limit:
                return None
            waiting, self._waiting = self._waiting, bytearray()
            self._waiting = waiting + self.read()
        line, _, rest = bytes(self._waiting).partition(b"\n")
        self._waiting = bytearray(rest)
        return line.decode("ascii", "replace").strip()

    def drain(self) -> None:
        """Drop what arrives, until nothing has come for 0.1 seconds; for three at most."""
        last = begun = time.monotonic()
        while time.monotonic() < min(last + 0.1, begun + 3.0):
            if self.read():
                last = time.monotonic()

    def _gone(self) -> TinykernelError:
        return TinykernelError(f"{self.port}: the board was disconnected; check its cable")
