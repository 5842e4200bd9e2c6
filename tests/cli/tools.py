"""What the tests of the command line share: running it, and small data to run it on."""

import json
import math
import os
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from typer.testing import CliRunner, Result

from tests.refusals import SAID
from tinykernel.face import app
from tinykernel.face import output as bars

ROOT = Path(__file__).resolve().parents[2]

# Tests that run in the background ignore Ctrl-C, and so would their children.
_START = """\
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("tinykernel", run_name="__main__", alter_sys=True)
"""

QUICK = ("--set", "n_components=64", "--set", "epochs=20", "--effort", "quick", "--quiet")


# A runner of click before 8.2 mixes what is printed with errors, unless it is told not to.
_APART: dict[str, Any] = dict.fromkeys({"mix_stderr"} & {*signature(CliRunner).parameters}, False)


def run(*arguments: object) -> Result:
    """Run the command line in this process."""
    return CliRunner(**_APART).invoke(app, [str(argument) for argument in arguments])


def succeeded(*arguments: object) -> Result:
    """Run a command that must succeed."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def json_of(*arguments: object) -> Any:
    """Run a command that must succeed with --json, and return what it prints."""
    return json.loads(succeeded(*arguments, "--json").stdout)


def sets(*assignments: str) -> tuple[str, ...]:
    """Return ``--set`` before each NAME=VALUE."""
    return tuple(word for assignment in assignments for word in ("--set", assignment))


def failed(*arguments: object, status: int = 1) -> str:
    """Return the one line on stderr of a command that must fail and print nothing else."""
    with patch.object(bars, "_SECONDS_OF_A_PHASE", math.inf):  # of slow computers
        result = run(*arguments)
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    SAID.append(lines[0])
    return lines[0]


def process(*arguments: object, **variables: str) -> subprocess.Popen[str]:
    """Start the command line as a process of its own, with some environment variables."""
    return subprocess.Popen(
        [sys.executable, "-c", _START, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )


def blobs(rows: int, seed: int, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Make rows of 5 features around one centre a class."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    return (rng.normal(size=(rows, 5)) + 2 * np.eye(5)[y]).astype(np.float32), y


def bare(folder: Path) -> Path:
    """Write rows without labels."""
    np.savez(folder / "bare.npz", X=blobs(6, 3)[0])
    return folder / "bare.npz"


def table_with_groups(folder: Path, rows: int = 60) -> Path:
    """Write a table whose column `who` names one of ten people."""
    X, y = blobs(rows, 2)
    lines = [
        f"{','.join(map(str, row))},{label},person{i * 10 // rows}"
        for i, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True))
    ]
    (folder / "t.csv").write_text("a,b,c,d,e,label,who\n" + "\n".join(lines) + "\n")
    return folder / "t.csv"


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an .npz file."""
    with np.load(path) as archive:
        return dict(archive)
