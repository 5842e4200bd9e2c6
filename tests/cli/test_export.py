"""Projects that are written."""

import json

from tests.cli.tools import failed, run, succeeded
from tests.random_models import random_model
from tinykernel import save


def test_export(work, tmp_path):
    """export writes a project named after the model and says where."""
    folder = tmp_path / "out" / "project"
    result = succeeded("export", work / "gesture.tkm", "-t", "esp32", "-o", folder, "--json")
    found = json.loads(result.stdout)
    assert sorted(found["files"]) == sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    assert (folder / "lib" / "gesture" / "src" / "gesture.h").is_file()
    assert "esp32dev" in (folder / "platformio.ini").read_text()
    text = run("export", work / "gesture.tkm", "-t", "esp32", "-o", folder, "--force").stdout
    assert f"flash {folder}" in text


def test_export_to_a_chip_that_is_too_small_is_refused(tmp_path, monkeypatch):
    """The words are those of report, without and with a compiler; --force writes all the same."""
    monkeypatch.chdir(tmp_path)
    save(random_model(1, n_features=1000, raw_dtype="int16", diagonal_kind="sign"), "imu.tkm")
    for hidden in (False, True):
        if hidden:
            monkeypatch.setenv("PATH", str(tmp_path))
        message = failed("report", "imu.tkm", "-t", "atmega328p", "-q")
        words = message[message.index("RAM is") : message.index("choose a larger")]
        refused = failed("export", "imu.tkm", "-t", "atmega328p", "-o", tmp_path / "uno")
        assert words in refused
        assert not (tmp_path / "uno").exists()
    succeeded("export", "imu.tkm", "-t", "atmega328p", "-o", tmp_path / "uno", "-f")
    succeeded("export", "imu.tkm", "-t", "cortex-m4", "-o", tmp_path / "m4")


def test_export_where_it_belongs_by_default(work, tmp_path, monkeypatch):
    """Without -o the project stands in the current folder as NAME-TARGET."""
    monkeypatch.chdir(tmp_path)
    assert run("export", work / "gesture.tkm", "-t", "host", "-q").output == ""
    assert [path.name for path in tmp_path.iterdir()] == ["gesture-host"]
    succeeded("export", work / "gesture.tkm", "-t", "host", "--name", "tap")
    assert (tmp_path / "tap-host" / "lib" / "tap" / "src" / "tap.h").is_file()


def test_library_is_for_every_target(work, tmp_path, monkeypatch):
    """--format library and single take no processor, go to NAME, and say what comes next."""
    monkeypatch.chdir(tmp_path)
    succeeded("export", work / "gesture.tkm", "--format", "library")
    assert (tmp_path / "gesture" / "library.properties").is_file()
    assert json.loads((tmp_path / "gesture" / "manifest.json").read_text())["target"] is None
    succeeded("export", work / "gesture.tkm", "--format", "single", "-q")
    files = {path.name for path in (tmp_path / "gesture-single").iterdir()}
    assert files == {"gesture.h", "gesture.c", "gesture_field.h", "LICENSE", "manifest.json"}
