"""Put a project on a board with PlatformIO."""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tinykernel.base.errors import FileError, FormatError, ToolError
from tinykernel.base.files import is_file_of_export, read_manifest

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
