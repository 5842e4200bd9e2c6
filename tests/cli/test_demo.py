"""The whole way on digits."""

from __future__ import annotations

import json

import pytest

from tests.cli.tools import failed, run
from tinykernel import TinykernelError
from tinykernel.files import manifest, replace_folder_atomically


def test_demo_keeps_what_is_not_its_own(tmp_path, monkeypatch):
    """demo replaces an earlier demo, but no other folder, and none that somebody worked on."""
    folder, files = tmp_path / "demo", {"include/digits.h": b""}
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    assert "not even --force" in failed("demo", "-o", folder, "-q", "--force")
    assert (folder / "mine.txt").read_text() == "mine"

    def stop(*_: object, **__: object) -> None:
        raise TinykernelError("began")

    monkeypatch.setattr("tinykernel.budget.train", stop)
    (folder / "mine.txt").unlink()
    replace_folder_atomically(folder, files | {"manifest.json": manifest(files)})
    (folder / ".pio").mkdir()
    (folder / ".pio" / "built.o").write_text("")
    assert "began" in failed("demo", "-o", folder, "-q")
    (folder / "include" / "digits.h").write_text("edited")
    assert "add --force" in failed("demo", "-o", folder, "-q")
    assert "began" in failed("demo", "-o", folder, "-q", "--force")
    (folder / "include" / "digits.h").write_bytes(b"")
    (folder / "mine.txt").write_text("mine")
    assert "add --force" in failed("demo", "-o", folder, "-q")


@pytest.mark.slow
def test_demo(tmp_path):
    """demo goes the whole way on digits: trains, exports, verifies all test rows, reports."""
    folder = tmp_path / "digits"
    result = run("demo", "-o", folder, "--json", "-q")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["train"]["train_rows"], found["train"]["test_rows"]) == (1347, 450)
    assert (found["verify"]["scores"], found["verify"]["differences"]) == (4500, 0)
    assert found["verify"]["accuracy"] > 0.95
    assert abs(found["train"]["test_accuracy_float"] - found["verify"]["accuracy"]) <= 0.004
    assert found["report"]["target"] == "cortex-m4"
    assert found["report"]["fits"] is True
    assert (folder / "platformio.ini").is_file()
