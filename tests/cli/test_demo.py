"""The whole way on digits."""

import re
from unittest.mock import Mock

from tests.cli.tools import failed, succeeded
from tinykernel import TinykernelError
from tinykernel.base.files import manifest, replace_folder_atomically


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
