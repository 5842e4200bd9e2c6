"""A serial line, the commands that a board answers, and putting a project on a board."""

import contextlib
import importlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tinykernel.base.errors import BoardError, FileError, FormatError, TinykernelError, ToolError
from tinykernel.base.files import is_file_of_export, read_manifest
from tinykernel.base.text import join


@contextmanager
def ending_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end a command as Ctrl-C does, and Ctrl-C one behind &."""
    # A shell lets a command that it starts with & ignore Ctrl-C.
    known = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
    endings = [ending for ending in known if ending is not None]
    before = [signal.signal(ending, signal.default_int_handler) for ending in endings]
    try:
        yield
    finally:
        for ending, handler in zip(endings, before, strict=True):
            signal.signal(ending, signal.SIG_DFL if handler is None else handler)


#: What boards of the exports, MLPerf Tiny's devices and most sketches talk at.
BAUD = 115200
#: What lists the serial ports.
LIST_PORTS = "'python -m serial.tools.list_ports'"
_WAIT = 0.05  # seconds that a read waits for the first byte
_MOST = 1 << 16  # bytes that a read takes at once
_LONGEST = 1 << 16  # bytes of a line
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def _serial(module: str) -> Any:
    """Import a module of pyserial, for which the type checker has no stubs."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ToolError(
            "a serial port needs pyserial; install it with: pip install 'tinykernel-mcu[boards]'"
        ) from None


def find_port(port: str | None) -> str:
    """Return `port`, or where it is None or "auto" that of the only USB device."""
    if port not in (None, "auto"):
        return port
    ports = _serial("serial.tools.list_ports").comports()
    boards = sorted(str(row.device) for row in ports if row.vid is not None)
    if len(boards) == 1:
        return boards[0]
    if boards:
        raise BoardError(f"several boards are connected: {join(boards)}; choose one with --port")
    raise BoardError(
        f"no board is connected by USB; connect one, or give --port ({LIST_PORTS} lists them)"
    )


class Link:
    """An open serial port; errors of opening it, or of a lost board, are a TinykernelError.

    `port` is a device such as ``/dev/ttyACM0`` or ``COM3``, or a URL of pyserial. A USB device
    ignores `baud`.
    """

    def __init__(self, port: str, baud: int = BAUD) -> None:
        self.port, self.baud = port, baud
        serial = _serial("serial")
        self._failures = (OSError, serial.SerialException)
        self._waiting = bytearray()
        # Two programs at one port would get half of the lines each.
        exclusive = {} if "://" in port else {"exclusive": True}
        try:
            self._device = serial.serial_for_url(port, baudrate=baud, timeout=_WAIT, **exclusive)
        except (*self._failures, ValueError, OverflowError) as error:
            number = getattr(error, "errno", None)  # pyserial's own texts repeat the port
            reason = os.strerror(number) if number else str(error).partition(":")[0]
            raise BoardError(
                f"{port}: cannot be opened ({reason}); choose a port that {LIST_PORTS} lists, and "
                "close other programs that use it"
            ) from None

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        """Close the port."""
        self._device.close()

    def write(self, text: str) -> None:
        """Send a text in ASCII."""
        try:
            self._device.write(text.encode("ascii"))
        except self._failures:
            raise self._gone_error() from None

    def read(self) -> bytes:
        """Return what has arrived; waits a moment where nothing has."""
        if self._waiting:
            data, self._waiting = bytes(self._waiting), bytearray()
            return data
        try:
            return bytes(self._device.read(min(max(1, self._device.in_waiting), _MOST)))
        except self._failures:
            raise self._gone_error() from None

    def line(self, seconds: float) -> str | None:
        """Return the next line without its end; None where none ends within the time."""
        # Of a line that is too long there is only the end; control characters are for terminals.
        limit = time.monotonic() + seconds
        while b"\n" not in self._waiting:
            if time.monotonic() > limit:
                return None
            waiting, self._waiting = self._waiting, bytearray()
            self._waiting = waiting[-_LONGEST:] + self.read()
        line, _, rest = bytes(self._waiting).partition(b"\n")
        self._waiting = bytearray(rest)
        return _CONTROL.sub("\ufffd", line.decode("ascii", "replace").strip())

    def drain(self) -> None:
        """Drop what arrives, until nothing has come for 0.1 seconds; for three at most."""
        last = begun = time.monotonic()
        while time.monotonic() < min(last + 0.1, begun + 3.0):
            if self.read():
                last = time.monotonic()

    def _gone_error(self) -> TinykernelError:
        return BoardError(f"{self.port}: the board was disconnected; check its cable")


#: Bytes a command.
MOST_BYTES = 31
_ANSWER = 30.0  # seconds that an answer may take, and the self-test after a reset
_MOST_LINES = 1000  # of an answer
_SHOWN = 80  # characters of a text or a line of the board
_RESULTS = re.compile(r"m-results-\[(-?\d{1,10}(?:,-?\d{1,10})*)\]")


def results_of(line: str) -> list[int] | None:
    """Return the numbers of a line ``m-results-[-3,12]``, none of a damaged one, else None."""
    if "-results-" not in line:
        return None
    match = _RESULTS.fullmatch(line)
    return [] if match is None else [int(text) for text in match[1].split(",")]


class ConnectedBoard:
    """A board that answers commands on a link; the constructor waits until it does.

    `program` are the first words of its profile, "tinykernel 0.1.0", `target` that of the export,
    empty where the program is not one of tinykernel, `model` the begin of the fingerprint.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._greet()
        self.name, profile = self._text(self.ask("name"), "m-name-dut-"), self.ask("profile")
        parts = self._text(profile, "m-profile-").split()
        self.program, self.target = " ".join(parts[:2]), parts[2] if len(parts) > 2 else ""
        self.model = self._text(profile, "m-model-")

    def _greet(self) -> None:
        """End the command that an earlier connection may have begun, and wait for the answer."""
        limit = time.monotonic() + _ANSWER
        while time.monotonic() < limit:
            self.link.write("%")
            for line in self._lines(1.0):
                if line == "m-ready":
                    self.link.drain()
                    return
        raise self._error(
            f"no answer in {_ANSWER:.0f} seconds at {self.link.baud} baud; flash an export, and "
            "close other programs that use the port"
        )

    def _error(self, problem: str) -> TinykernelError:
        return BoardError(f"{self.link.port}: {problem}")

    def _lines(self, seconds: float) -> Iterator[str]:
        """Yield the lines that come within a time, however many they are."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            line = self.link.line(left)
            if line is not None:
                yield line

    def ask(self, command: str) -> list[str]:
        """Send a command and return the lines of its answer, without ``m-ready``."""
        self.link.write(f"{command}%")
        lines, word = list[str](), command.split()[0]
        for line in self._lines(_ANSWER):
            if line == "m-ready":
                break
            if len(lines) == _MOST_LINES:
                raise self._error(
                    f"{_MOST_LINES} lines without an end answer {word!r}; does another program "
                    "print there?"
                )
            lines.append(line)
        else:
            raise self._error(
                f"no answer to {word!r} in {_ANSWER:.0f} seconds; was the board reset?"
            )
        for line in lines:
            if line.startswith("e-["):
                raise self._error(f"the board refuses {word!r}: {line[3:-1][:_SHOWN]}")
        return lines

    def send(self, data: bytes) -> list[str]:
        """Load bytes, a few a command; return what the board answers."""
        lines = []
        for at in range(0, len(data), MOST_BYTES):
            lines += self.ask(f"db {data[at : at + MOST_BYTES].hex()}")
        return lines

    def load(self, row: bytes) -> None:
        """Load one input: its values as they lie in the memory of the board."""
        self.ask(f"db load {len(row)}")
        if "m-load-done" not in self.send(row):
            raise self._error("the board lost bytes of an input")

    def infer(self) -> tuple[list[int], int]:
        """Run the loaded input; return the results and the microseconds."""
        lines = self.ask("infer 1 0")
        laps = [self._number(line) for line in lines if line.startswith("m-lap-us-")]
        if len(laps) != 2:
            raise self._error("an answer without two time stamps")
        return self.results(lines)[0], (laps[1] - laps[0]) % 2**32

    def results(self, lines: list[str]) -> list[list[int]]:
        """Return the results of each decision in an answer; at least one."""
        results = [row for row in map(results_of, lines) if row is not None]
        if not results:
            raise self._error("an answer without results")
        return results

    def number(self, command: str) -> int:
        """Return the answer to ``cycles`` or ``stack``."""
        for line in self.ask(command):
            if line.startswith(f"m-{command}-"):
                return self._number(line)
        raise self._error(f"{command!r} was answered by no number")

    def _number(self, line: str) -> int:
        """Return the number at the end of a line."""
        digits = line.rpartition("-")[2]
        if not re.fullmatch(r"\d{1,10}", digits) or int(digits) >= 2**32:
            raise self._error(f"{line[:_SHOWN]!r} has no number of 32 bits; check the cable")
        return int(digits)

    def _text(self, lines: list[str], begin: str) -> str:
        """Return the text in the brackets of a line, or its begin."""
        for line in lines:
            if line.startswith(f"{begin}[") and line.endswith("]"):
                return line[len(begin) + 1 : -1][:_SHOWN]
        raise self._error(f"an answer without {begin}[...]: another program answers there")


# PlatformIO waits without end for a package registry that does not answer.
_SECONDS = 1800


def upload(
    folder: Path, *, environment: str | None = None, port: str | None = None, trust: bool = False
) -> None:
    """Run ``pio run -t upload`` in a project that export wrote; its output goes to stderr."""
    # `environment` is one of its ``platformio.ini``, by default all. `trust` allows a project that
    # was not written by export, or changed since.
    if not folder.is_dir():
        raise FileError(
            f"{folder}: no such folder; make it with 'tinykernel export MODEL --target TARGET'"
        )
    if not (folder / "platformio.ini").is_file():
        raise FormatError(
            f"{folder}: has no platformio.ini; give a folder that 'tinykernel export' wrote"
        )
    if not trust:  # PlatformIO runs code in the files of a project
        advice = "read its platformio.ini, then add --trust"
        if read_manifest(folder) is None:
            raise FormatError(
                f"{folder}: not an export of tinykernel, and its build could run any program; "
                f"{advice}"
            )
        if not is_file_of_export(folder, "platformio.ini"):
            raise FormatError(f"{folder}: platformio.ini was changed since the export; {advice}")
    command = [*_platformio(), "run", "--target", "upload", "--project-dir", str(folder)]
    command += ["--environment", environment] if environment else []
    command += ["--upload-port", port] if port else []
    try:
        status = _run(command)
    except subprocess.TimeoutExpired:
        raise ToolError(
            f"{folder}: PlatformIO was stopped after {_SECONDS} seconds; run 'pio run' in the "
            "folder to see whether it waits for its package registry"
        ) from None
    if status != 0:
        raise ToolError(
            f"{folder}: 'pio run -t upload' failed with status {status} (see above); if no board "
            "answered, check its cable and --port; if a package is missing, connect to the "
            "internet"
        )


def _platformio() -> list[str]:
    program = shutil.which("pio") or shutil.which("platformio")
    if program:
        return [program]
    if importlib.util.find_spec("platformio") is not None:
        return [sys.executable, "-m", "platformio"]
    raise ToolError("flashing needs PlatformIO; install it with: pip install platformio")


def _run(command: list[str]) -> int:
    """Run a command, whose output goes to stderr, and return its status."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
    try:
        return process.wait(_SECONDS)
    finally:
        if process.poll() is None:
            # Kill the whole group, as PlatformIO starts compilers and uploaders.
            with contextlib.suppress(ProcessLookupError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:  # Windows
                    process.kill()
            process.wait()
