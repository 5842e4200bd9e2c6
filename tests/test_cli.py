"""The command line: what it prints, how it ends, and what it never leaves behind."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tinykernel.cli.options import check_output_file, check_output_folder
from tinykernel.cli.progress import PlainLines

from tests.cli_tools import ROOT, failed, process, run, trained
from tinykernel.codegen.targets import TARGETS
from tinykernel.errors import TinykernelError
from tinykernel.progress import Progress


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with data.npz and the model trained on it, in both formats."""
    return trained(tmp_path_factory.mktemp("cli"))


# ------------------------------------------------------------------------------- the small pieces


@pytest.mark.parametrize("text", ["", "KB", "30 bananas", "-1KB", "1,5KB", "0"])
def test_bad_sizes(text, tmp_path):
    """What is not a size is wrong usage: status 2 and one line."""
    assert "is not a size" in failed("report", tmp_path / "m.tkm", f"--budget={text}", status=2)


def test_plain_progress_is_sparse():
    """Without a terminal a line comes every few seconds and when a stage ends, none is lost."""
    now = [0.0]
    written: list[str] = []
    lines = PlainLines(written.append, clock=lambda: now[0])
    for step in range(1, 11):
        now[0] += 1
        lines(Progress("sweeps", step, 100, "objective 3"))
    lines(Progress("saving", 0, None))
    lines(Progress("saving", 1, 1))
    lines.finish()
    lines.finish()
    assert written == [
        "sweeps: 5/100 objective 3",
        "sweeps: 10/100 objective 3",
        "saving: 1/1",
    ]


def test_output_files_are_checked_without_touching_them(tmp_path):
    """A check before long work refuses what could not be written and leaves everything alone."""
    old = tmp_path / "old.tkm"
    old.write_bytes(b"old")
    check_output_file(old, (".tkm",))
    assert old.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["old.tkm"]
    for path, expected in [
        (tmp_path / "a.h5", "must end in .tkm"),
        (tmp_path / "none" / "a.tkm", "no folder"),
        (old / "a.tkm", "no folder"),
        (tmp_path, "must end in"),
        (Path("/proc/a.tkm"), "cannot be written"),
    ]:
        with pytest.raises(TinykernelError, match=expected):
            check_output_file(path, (".tkm",))


def test_output_folders_are_checked_without_touching_them(tmp_path):
    """The same for folders: a full one needs --force, a file in the way is refused."""
    check_output_folder(tmp_path / "a" / "b", force=False)
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(TinykernelError, match="--force"):
        check_output_folder(tmp_path, force=False)
    check_output_folder(tmp_path, force=True)
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(TinykernelError, match=r"is a file|cannot be read"):
            check_output_folder(path, force=True)
    with pytest.raises(TinykernelError, match="cannot be written"):
        check_output_folder(Path("/proc/a"), force=False)


def test_forced_output_folders_are_checked_before_the_long_work(tmp_path, monkeypatch):
    """--force -o . was refused only when everything had been trained; the check comes first."""
    (tmp_path / "precious").write_text("x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TinykernelError, match="more than an export"):
        check_output_folder(Path("."), force=True)


# ----------------------------------------------------------------------------- the root and targets


def test_version_and_help():
    """--version prints the version of pyproject.toml; every command has a help text."""
    from tinykernel import __version__

    assert run("--version").stdout == f"tinykernel {__version__}\n"
    root = run("--help")
    assert root.exit_code == 0
    for command in ("train", "export", "report", "verify", "predict", "inspect", "targets",
                    "flash", "demo"):  # fmt: skip
        assert command in root.stdout
        assert run(command, "--help").exit_code == 0


def test_wrong_usage_is_status_2():
    """Unknown commands and options and missing arguments are told from errors by the status."""
    assert "targets" in failed("target", status=2)
    assert "--foo" in failed("targets", "--foo", status=2)
    assert "DIR" in failed("flash", status=2)
    assert run().exit_code == 2


def test_targets():
    """All targets are listed, as a table and as a JSON array."""
    table = run("targets")
    assert table.exit_code == 0
    rows = json.loads(run("targets", "--json").stdout)
    assert [row["target"] for row in rows] == list(TARGETS)
    for name in TARGETS:
        assert name in table.stdout
    tools = json.loads(run("targets", "--tools", "--json").stdout)
    assert all(isinstance(row["compilers"], list) for row in tools)


def test_completion():
    """The completion script of the shell is printed, and targets complete."""
    finished = process("--show-completion", "bash")
    out, err = finished.communicate()
    assert "complete" in out, err
    from tinykernel.cli.options import _complete_target

    assert [name for name, _ in _complete_target("esp32")] == ["esp32", "esp32s3", "esp32c3"]


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["targets"]])
def test_answers_do_not_wait_for_the_heavy_modules(arguments):
    """Help, targets and completion import neither scikit-learn nor numba nor NumPy."""
    program = (
        "import sys; from tinykernel.cli import app\n"
        f"try: app({arguments})\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numpy', 'numba', 'sklearn', 'scipy') if m in sys.modules],"
        " file=sys.stderr)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert finished.stderr == "[]\n"


# ------------------------------------------------------------------------------------------ flash


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
    (folder / "platformio.ini").write_text("[env:board]\nplatform = ststm32\n")
    return folder


def test_flash_runs_upload_in_the_project(project, tmp_path, monkeypatch):
    """flash hands folder, environment and port to pio and keeps stdout free."""
    fake_pio(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/called; echo uploading')
    result = run("flash", project, "-e", "board", "--port", "/dev/ttyACM0")
    assert result.exit_code == 0
    assert (tmp_path / "called").read_text().split() == [
        "run", "--target", "upload", "--project-dir", str(project),
        "--environment", "board", "--upload-port", "/dev/ttyACM0",
    ]  # fmt: skip
    assert result.stdout == ""
    assert "uploading" in result.stderr


@pytest.mark.parametrize(
    ("script", "options", "expected"),
    [
        ("echo 'Error: Please specify `upload_port` for environment'; exit 1", [], "no board"),
        ("echo 'Error: libusb_open() failed: No ST-Link detected'; exit 1", [], "no board"),
        ("echo 'HTTPClientError: '; exit 1", [], "internet"),
        ("echo 'main.c: error: nonsense'; exit 3", [], "failed with status 3"),
        ("sleep 30", ["--timeout", "1"], "stopped after 1 seconds"),
    ],
)
def test_flash_that_fails(project, tmp_path, monkeypatch, script, options, expected):
    """A missing board, a missing network, a failed build and a hanging build each say so."""
    fake_pio(tmp_path, monkeypatch, script)
    started = time.monotonic()
    result = run("flash", project, *options)
    assert time.monotonic() - started < 20
    assert result.exit_code == 1
    assert expected in result.stderr.splitlines()[-1]


def test_flash_without_what_it_needs(project, tmp_path, monkeypatch):
    """A missing project, environment or PlatformIO is one line that says what to do."""
    assert "tinykernel export" in failed("flash", tmp_path / "none")
    assert "platformio.ini" in failed("flash", tmp_path)
    assert "it has board" in failed("flash", project, "-e", "other")
    (project / "platformio.ini").write_text("[env:host]\nplatform = native\n")
    assert "pio run -t exec" in failed("flash", project)
    (project / "platformio.ini").write_text("no ini")
    assert "cannot be read" in failed("flash", project)
    (project / "platformio.ini").write_text("[env:board]\nplatform = ststm32\n")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install platformio" in failed("flash", project)


# ------------------------------------------------------------------------------- the whole process


def test_exit_codes_of_the_process(work):
    """The process itself ends with the codes, without a traceback, with errors on stderr only."""
    for arguments, status in [
        (("targets",), 0),
        (("inspect", "none.tkm"), 1),
        (("inspect",), 2),
        (("report", work / "gesture.tkm", "--budget", "100"), 1),
    ]:
        finished = process(*arguments)
        _, err = finished.communicate(timeout=120)
        assert finished.returncode == status, err
        assert "Traceback" not in err
        assert len(err.splitlines()) == (0 if status == 0 else 1)


def test_reader_that_leaves_early(work):
    """A closed pipe on stdout ends the program without a traceback."""
    for arguments in (("targets",), ("predict", work / "gesture.tkm", work / "data.npz", "--json")):
        running = process(*arguments)
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        err = running.stderr.read()
        running.stderr.close()
        running.wait(timeout=120)
        assert err == ""
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tinykernel", "targets"]
        finished = subprocess.run(
            command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert finished.returncode == 1
    assert finished.stderr == "error: output: No space left on device\n"


def test_faults_of_the_program_keep_their_traceback(work, monkeypatch):
    """What is not the user's mistake is not dressed up as one; sklearn's ValueErrors are."""

    def fault(*_):
        raise ValueError("internal")

    monkeypatch.setattr("tinykernel.data.load.find_data", fault)
    result = run("predict", work / "gesture.tkm", work / "data.npz")
    assert isinstance(result.exception, ValueError)
    from sklearn.utils import check_array

    monkeypatch.setattr("tinykernel.data.load.find_data", lambda _: check_array([[np.nan]]))
    assert "NaN" in failed("predict", work / "gesture.tkm", work / "data.npz")
    monkeypatch.setenv("TINYKERNEL_DEBUG", "1")
    assert run("predict", work / "gesture.tkm", work / "data.npz").exception is not None
