"""Runs that are killed, and full disks: the old state or the new one, and nothing beside it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.cli.tools import QUICK, ROOT, run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the runs are forked")
_COMMANDS = ["single", "platformio", "train", "report", "calibrate", "predict", "proof", "tune"]


@pytest.fixture(scope="module")
def found(work, tmp_path_factory):
    """Return what was found of each command."""
    folder = tmp_path_factory.mktemp("killed")
    for name in ("data.npz", "gesture.tkm"):
        shutil.copy(work / name, folder / name)
    trained = run("train", folder / "data.npz", "-o", folder / "other.tkm", "--seed", 1, *QUICK)
    assert trained.exit_code == 0, trained.output
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.killing", str(folder), "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["command"] for row in rows] == _COMMANDS
    return rows


def test_killed_at_any_moment_the_old_or_the_new_stands(found):
    """Every command that writes, ended at random moments, in a file and between files."""
    for row in found:
        assert row["strange"] == [], row
        assert -signal.SIGKILL in row["ended"], row
        assert -signal.SIGXFSZ in row["ended"], row


def test_the_next_run_clears_up_after_killed_ones(found):
    """Temporary files and folders of runs that were killed do not stay."""
    for row in found:
        assert row["left"] == [], row
        assert row["ended"][-1] == 0, row


def test_full_disk_keeps_what_there_was_and_says_so(found):
    """Where a file cannot be written to its end the old one stays, with one line that says why."""
    for row in found:
        assert row["full"] == 1, row
        assert len(row["said"].splitlines()) == 1, row
        assert "cannot be written (File too large)" in row["said"], row
