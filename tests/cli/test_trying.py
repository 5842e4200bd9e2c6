"""`tinykernel try`, a page that runs the firmware, and `demo`, the whole way on digits."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from unittest.mock import Mock

import pytest

from tests.cli.tools import failed, process, succeeded
from tests.random_models import random_model
from tests.sessions import ROOT, blocks, page_differences
from tinykernel import TinykernelError, save
from tinykernel.base.files import manifest, replace_folder_atomically


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Return the file of a model; no browser opens."""
    monkeypatch.setenv("BROWSER", "true")
    save(random_model(1, n_features=4), tmp_path / "gesture.tkm")
    return tmp_path / "gesture.tkm"


def test_serve_answers_this_computer_alone(model, require_tool) -> None:
    """The page is there at 127.0.0.1; under another name it is not; Ctrl-C ends it well."""
    require_tool("zig")
    with process("try", model, "--serve", "-q", PYTHONUNBUFFERED="1") as served:
        address = served.stdout.readline().split(",")[0]
        with urllib.request.urlopen(address, timeout=20) as page:
            assert b"WebAssembly" in page.read()
        for path, host, status in (("", "evil.example", 403), ("x", "localhost", 404)):
            port = address.rstrip("/").rpartition(":")[2]
            request = urllib.request.Request(address + path, headers={"Host": f"{host}:{port}"})
            with pytest.raises(urllib.error.HTTPError) as refusal:
                urllib.request.urlopen(request, timeout=20)
            assert refusal.value.code == status
            refusal.value.close()
        served.send_signal(signal.SIGINT)
        assert served.wait(20) == 0


def test_without_zig_one_line_says_what_to_install(model, monkeypatch) -> None:
    """No page is written that cannot run the model."""
    monkeypatch.setattr("tinykernel.face.commands.report.zig_command", lambda: None)
    failed("try", model, "-o", model.with_suffix(".html"))
    assert not model.with_suffix(".html").exists()


@pytest.mark.slow
def test_the_session_in_the_documentation(tmp_path, monkeypatch, require_tool) -> None:
    """Who follows docs/try.md sees what it shows."""
    for tool in ("zig", "node"):
        require_tool(tool)
    monkeypatch.setenv("BROWSER", "true")
    page = ROOT / "docs" / "try.md"
    subprocess.run([sys.executable, "-c", blocks(page, "python")[0].text], cwd=tmp_path, check=True)
    wrong = page_differences(page, tmp_path)
    assert not wrong, "\n".join(wrong)
    assert os.path.getsize(tmp_path / "digits.html") < 400 * 1024


def test_demo_keeps_what_is_not_its_own(tmp_path, monkeypatch):
    """demo replaces an earlier demo, but no other folder, and none that somebody worked on."""
    folder, files = tmp_path / "demo", {"include/digits.h": b""}
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    failed("demo", "-o", folder, "-q", "--force")
    assert (folder / "mine.txt").read_text() == "mine"
    monkeypatch.setattr(
        "tinykernel.kinds.train.fitting.train", Mock(side_effect=TinykernelError("began"))
    )
    (folder / "mine.txt").unlink()
    replace_folder_atomically(folder, files | {"manifest.json": manifest(files)})
    (folder / ".pio").mkdir()
    (folder / ".pio" / "built.o").write_text("")
    failed("demo", "-o", folder, "-q")
    (folder / "include" / "digits.h").write_text("edited")
    failed("demo", "-o", folder, "-q")
    failed("demo", "-o", folder, "-q", "--force")
    (folder / "include" / "digits.h").write_bytes(b"")
    (folder / "mine.txt").write_text("mine")
    failed("demo", "-o", folder, "-q")


@pytest.mark.slow
def test_demo(tmp_path):
    """demo goes the whole way on digits: trains, exports, verifies all test rows, reports."""
    folder = tmp_path / "digits"
    result = succeeded("demo", "-o", folder)
    said = " ".join(result.stdout.split())
    assert "1347 training rows, 450 test rows" in said
    assert re.search(r"\bhost 450 4500 0 9[5-9]", said)
    assert float(re.search(r" test ([\d.]+) %", said)[1]) > 95
    assert "cortex-m4, " in said
    assert (folder / "platformio.ini").is_file()
