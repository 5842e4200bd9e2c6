"""Put a project on a board with PlatformIO."""

from __future__ import annotations

import configparser
import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tinykernel.errors import TinykernelError
from tinykernel.files import is_export, is_file_of_export

_NO_BOARD = re.compile(
    r"specify .?upload_port|could not open port|no device found|no (st-?link|board|probe)s? "
    r"(detected|found|connected)|unable to find|open failed|no dfu capable|failed to connect|"
    r"no such file or directory: '/dev/tty|could not find .*(port|device|adapter)",
    re.IGNORECASE,
)
# PlatformIO waits without end for a package registry that does not answer.
_SECONDS = 1800
_NO_NETWORK = re.compile(r"internet connection|HTTPClientError|ConnectionError", re.IGNORECASE)


def upload(
    folder: Path, *, environment: str | None = None, port: str | None = None, trust: bool = False
) -> None:
    """Run ``pio run -t upload`` in a project that export wrote; its output goes to stderr."""
    # `environment` is one of its ``platformio.ini``, by default all. `trust` allows a project that
    # was not written by export, or changed since.
    _check_project(folder, environment)
    if not trust:  # PlatformIO's files are code: it could run somebody else's programs
        advice = "read its platformio.ini, and add --trust if you would run its programs"
        if not is_export(folder):
            raise TinykernelError(
                f"{folder}: no manifest of 'tinykernel export' in it, and a build runs what the "
                f"folder says; {advice}"
            )
        if not is_file_of_export(folder, "platformio.ini"):
            raise TinykernelError(
                f"{folder}: platformio.ini was changed since the export; {advice}"
            )
    command = [*_platformio(), "run", "--target", "upload", "--project-dir", str(folder)]
    command += ["--environment", environment] if environment else []
    command += ["--upload-port", port] if port else []
    status, output, late = _run(command)
    if late:
        raise TinykernelError(
            f"{folder}: PlatformIO was stopped after {_SECONDS} seconds; it may be waiting for "
            "its package registry (try 'pio run' in the folder)"
        )
    if status == 0:
        return
    if _NO_BOARD.search(output):
        raise TinykernelError(
            f"{folder}: no board answered; connect it by USB, check the cable and --port "
            "('pio device list' shows the ports)"
        )
    if _NO_NETWORK.search(output):
        raise TinykernelError(
            f"{folder}: PlatformIO could not download the packages of this board; it needs the "
            "internet once"
        )
    raise TinykernelError(f"{folder}: 'pio run -t upload' failed with status {status}, see above")


def _check_project(folder: Path, environment: str | None) -> None:
    file = folder / "platformio.ini"
    if not folder.is_dir():
        raise TinykernelError(
            f"{folder}: no such folder; make it with 'tinykernel export MODEL --target TARGET'"
        )
    if not file.is_file():
        raise TinykernelError(
            f"{folder}: has no platformio.ini; give a folder that 'tinykernel export' wrote"
        )
    ini = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        ini.read_string(file.read_text(encoding="utf-8"))
    except (configparser.Error, UnicodeDecodeError, OSError):
        raise TinykernelError(f"{file}: cannot be read") from None
    names = [name[4:] for name in ini.sections() if name.startswith("env:")]
    if environment is not None and environment not in names:
        known = ", ".join(names) or "none"
        raise TinykernelError(f"{file}: no environment {environment!r}; it has {known}")
    chosen = [environment] if environment else names
    if chosen and all(ini[f"env:{name}"].get("platform", "") == "native" for name in chosen):
        raise TinykernelError(
            f"{folder}: is a project for this computer, there is no board to flash; "
            "run it with 'pio run -t exec'"
        )


def _platformio() -> list[str]:
    """Return how PlatformIO is started."""
    program = shutil.which("pio") or shutil.which("platformio")
    if program:
        return [program]
    if importlib.util.find_spec("platformio") is not None:
        return [sys.executable, "-m", "platformio"]
    raise TinykernelError("flashing needs PlatformIO; install it with: pip install platformio")


def _run(command: list[str]) -> tuple[int, str, bool]:
    """Run a command, show its output as it comes, and return it with the status."""
    lines: list[str] = []
    late = threading.Event()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )

    def stop() -> None:
        # The whole group: PlatformIO starts compilers and uploaders that would live on.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def stop_late() -> None:
        late.set()
        stop()

    timer = threading.Timer(_SECONDS, stop_late)
    timer.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            sys.stderr.write(line)
        return process.wait(), "".join(lines), late.is_set()
    finally:
        timer.cancel()
        if process.poll() is None:
            stop()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
