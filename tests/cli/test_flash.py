"""Putting a project on a board."""

import os
import stat
from pathlib import Path

import pytest

from tests.cli.tools import failed, run, succeeded
from tinykernel.base.files import MANIFEST, manifest

pytestmark = pytest.mark.usefixtures("page")


def fake_pio(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program called pio first on the PATH."""
    program = folder / "bin" / "pio"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    write_ini(folder, "[env:board]\nplatform = ststm32\n")
    return folder


def write_ini(folder: Path, text: str) -> None:
    """Write what an export writes, as far as flash looks at it."""
    (folder / "platformio.ini").write_text(text)
    (folder / MANIFEST).write_bytes(manifest({"platformio.ini": text.encode()}))


def test_flash_runs_only_what_an_export_says(project, tmp_path, monkeypatch):
    """A platformio.ini can run programs: flash wants an export that nobody changed, or --trust."""
    fake_pio(tmp_path, monkeypatch, f"echo called > {tmp_path}/called")
    for change in ("[env:board]\nplatform = symlink://evil\n", None):
        if change is None:
            (project / MANIFEST).unlink()
        else:
            (project / "platformio.ini").write_text(change)
        failed("flash", project)
        assert not (tmp_path / "called").exists()
    succeeded("flash", project, "--trust")
    assert (tmp_path / "called").exists()


def test_flash_runs_upload_in_the_project(project, tmp_path, monkeypatch, capfd):
    """flash hands folder, environment and port to pio and keeps stdout free."""
    fake_pio(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/called; echo uploading')
    result = succeeded("flash", project, "-e", "board", "--port", "/dev/ttyACM0")
    expected = f"run --target upload --project-dir {project} --environment board"
    assert (tmp_path / "called").read_text() == f"{expected} --upload-port /dev/ttyACM0\n"
    assert result.stdout == ""
    assert "uploading" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 1", "no board answered"),
        ("echo 'main.c: error: nonsense'; exit 3", "failed with status 3"),
        ("sleep 30", "stopped after 1 seconds"),
    ],
)
def test_flash_that_fails(project, tmp_path, monkeypatch, script, expected):
    """A failed build and a hanging build each say so, and what to look at."""
    fake_pio(tmp_path, monkeypatch, script)
    if "sleep" in script:
        monkeypatch.setattr("tinykernel.run.link._SECONDS", 1)
    result = run("flash", project)
    assert result.exit_code == 1
    assert expected in result.stderr.splitlines()[-1]
