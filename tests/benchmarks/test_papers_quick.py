"""The command that re-runs the tables of the papers works from end to end."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.__main__ import PAPERS, main


@pytest.fixture
def folder(digits, tmp_path) -> Path:
    """Return a folder with data of the name, types and keys of the benchmark data."""
    parts = digits._asdict()
    for name in ("X_train", "X_test"):
        parts[name] = (parts[name] / 8 - 1).astype(np.float32)
    np.savez(tmp_path / "usps.npz", **parts)
    return tmp_path


@pytest.mark.slow
def test_all_pages_in_quick_mode(folder, tmp_path, require_tool, monkeypatch, capsys) -> None:
    """Every page comes out with its figures and numbers, and a second run measures nothing."""
    require_tool("matplotlib")
    out = tmp_path / "pages"
    command = ["papers", "all", "--quick", "--data", str(folder), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    assert main() == 0
    assert "s of processor time" in capsys.readouterr().out
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
    assert len(list(out.glob("*.png"))) == 1
    assert main() == 0
    assert "processor time" not in capsys.readouterr().out


@pytest.mark.parametrize(("name", "folder"), [("all", "missing"), ("005", "")])
def test_wrong_arguments(tmp_path, monkeypatch, capsys, name, folder) -> None:
    """A folder that is not there, or a page that is not there, is one line."""
    data = str(tmp_path / folder)
    monkeypatch.setattr(sys, "argv", ["papers", name, "--data", data])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err.splitlines()[-1]
