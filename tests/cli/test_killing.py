"""Commands that end in the middle of a file, and full disks: what there was stays."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import ROOT, sets
from tinykernel.cli import app

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the runs are forked")
#: No file of a run can grow beyond this number of bytes.
_LIMIT = 400


def commands(folder: Path) -> dict[str, list[str]]:
    """Return commands that write into FOLDER/out."""
    model, data, out = str(folder / "gesture.tkm"), str(folder / "data.npz"), str(folder / "out")
    export = ["export", model, "-o", f"{out}/project", "--force", "-q"]
    train = ["train", data, "-o", f"{out}/m.tkm", "--effort", "quick", "-q"]
    return {
        "single": [*export, "--format", "single"],
        "platformio": [*export, "--target", "cortex-m4"],
        "train": [*train, *sets("n_components=64", "epochs=2")],
        "report": ["report", model, "--html", f"{out}/page.html", "-q", "--target", "cortex-m0"],
        "calibrate": ["calibrate", model, data, "-o", f"{out}/c.tkm", "-q", "--coverage", "50%"],
        "predict": ["predict", model, data, "-o", f"{out}/rows.csv", "-q"],
        "proof": ["inspect", model, "--proof", f"{out}/proof.json"],
    }


def state(out: Path) -> dict[str, str]:
    """Return the content of every file that has its name."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes().hex()
        for path in out.rglob("*")
        if path.is_file() and ".tmp" not in str(path.relative_to(out))
    }


def ended(command: list[str], said: Path, action: signal.Handlers) -> int:
    """Run a command for which the disk is full, and return its status."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with said.open("w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    signal.signal(signal.SIGXFSZ, action)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT, _LIMIT))
    status = 70
    try:
        status = int(app(command, standalone_mode=False) or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(folder: Path) -> None:
    """Run each command to its end, in the middle of a file, and on a full disk; write rows.json."""
    rows = []
    for name, command in commands(folder).items():
        out, said = folder / "out", folder / "said.txt"
        out.mkdir()
        app(command, standalone_mode=False)
        before = state(out)
        row: dict[str, Any] = {"command": name, "before": len(before)}
        row["killed"] = ended(command, said, signal.SIG_DFL)
        row["same"] = state(out) == before
        row["full"], row["text"] = ended(command, said, signal.SIG_IGN), said.read_text()
        row["same"] = row["same"] and state(out) == before
        rows.append(row)
        shutil.rmtree(out)
    (folder / "rows.json").write_text(json.dumps(rows))


def test_what_there_was_stays(work, tmp_path):
    """A run killed in a file leaves the old files; a full disk gives one line, too."""
    for name in ("data.npz", "gesture.tkm"):
        shutil.copy(work / name, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.test_killing", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["command"] for row in rows] == list(commands(tmp_path))
    for row in rows:
        assert row["before"], row
        assert row["same"], row
        assert row["killed"] == -signal.SIGXFSZ, row
        assert row["full"] == 1, row
        assert len(row["text"].splitlines()) == 1, row
        assert "cannot be written (File too large)" in row["text"], row


if __name__ == "__main__":
    main(Path(sys.argv[1]))
