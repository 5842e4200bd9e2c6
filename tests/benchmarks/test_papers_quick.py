"""The command that re-runs the tables of the papers works from end to end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from benchmarks.papers.__main__ import PAPERS, main
from tests.sessions import ROOT

FIGURES = 1


def write_stand_ins(folder: Path) -> None:
    """Write data of the same names, types and keys as the benchmark data, from scikit-learn."""
    digits, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(labels.size)
    digits, labels = digits[order], labels[order].astype(np.uint8)
    parts = {
        "X_train": (digits[:1300] / 8 - 1).astype(np.float32),
        "y_train": labels[:1300],
        "X_test": (digits[1300:] / 8 - 1).astype(np.float32),
        "y_test": labels[1300:],
    }
    np.savez(folder / "usps.npz", **parts)


@pytest.fixture
def folder(data_if_any: Path | None, tmp_path: Path) -> Path:
    """Return the benchmark data, or stand-ins where there is none: the test always runs."""
    if data_if_any is not None:
        return data_if_any
    stand_ins = tmp_path / "stand-ins"
    stand_ins.mkdir()
    write_stand_ins(stand_ins)
    return stand_ins


def run(data: Path, out: Path, *names: str) -> str:
    """Run the command in quick mode on one thread and return what it printed."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "benchmarks.papers", *names, "--quick"]
    done = subprocess.run(
        [*command, "--data", str(data), "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, **one},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_all_pages_in_quick_mode(
    folder: Path,
    tmp_path: Path,
    require_tool: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every page comes out with its figures and numbers, and a second run measures nothing."""
    require_tool("matplotlib")
    out = tmp_path / "pages"
    first = run(folder, out, "all")
    assert "s of processor time" in first
    for name in PAPERS:
        text = (out / f"{name}.md").read_text(encoding="utf-8")
        assert "Quick run" in text
        assert not re.search(r"\b(nan|inf)\b", text)
        links = re.findall(r"\]\((?!\.\.)([^)]+)\)", text)
        assert links
        assert all((out / link).exists() for link in links)
        numbers = json.loads((out / "numbers" / f"{name}.json").read_text(encoding="utf-8"))
        assert numbers
        assert all({"value", "seconds"} == set(entry) for entry in numbers.values())
    assert len(list(out.glob("*.png"))) == FIGURES
    again = ["all", "--quick", "--data", str(folder), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["papers", *again])
    assert main() == 0
    assert "processor time" not in capsys.readouterr().out


def test_wrong_arguments(tmp_path: Path) -> None:
    """A folder that is not there, or a page that is not there, is one line."""
    for names, data in ((("all",), tmp_path / "missing"), (("005",), tmp_path)):
        command = [sys.executable, "-m", "benchmarks.papers", *names, "--data", str(data)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 2
        assert "error:" in done.stderr.splitlines()[-1]
