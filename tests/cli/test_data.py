"""`data` shows what train would understand, before any training."""

import json

import numpy as np

from tests.cli.tools import failed, succeeded
from tests.data.test_loggers import logs


def shown(*arguments: object) -> dict:
    return json.loads(succeeded("data", *arguments, "--json").stdout)


def test_recordings_are_shown_as_train_reads_them(tmp_path):
    """Channels, rate, classes and windows of each part are those of the training."""
    folder = logs(tmp_path / "motion", "time_ms,x,y,z,\n", "{t},{x},{y},{z},\n")
    how = (folder, "--name", "{label}/{person}", "--window", "200ms")
    found = shown(*how, "--html", tmp_path / "page.html")
    assert (found["files"], found["channels"]) == (4, "3 channels: x, y, z")
    assert found["rate"].startswith("50 Hz, 98 % of the steps 20 to 20 ms")
    assert found["classes"]["walk"] == {
        "recordings": 2, "seconds": 2.4, "training windows": 11, "test windows": 11
    }  # fmt: skip
    assert any("column5" in note for note in found["notes"])
    assert (tmp_path / "page.html").read_text().count("<svg") == 2
    text = succeeded("data", *how).stdout
    assert "3 channels: x, y, z" in text
    assert "column5" in text


def test_what_train_would_refuse_is_a_caution(tmp_path):
    """Without a label the channels are shown, and what train says."""
    folder = logs(tmp_path / "motion", "time_ms,x,y,z\n")
    found = shown(folder)
    assert found["channels"] == "3 channels: x, y, z"
    assert "--name" in found["cautions"][0]
    assert "absent" in failed("data", tmp_path / "absent")


def test_tables_and_pictures_are_shown(tmp_path):
    """Rows of each class and part."""
    np.savez(tmp_path / "a.npz", X=np.arange(200.0).reshape(100, 2) % 17, y=np.arange(100) % 2)
    found = shown(tmp_path / "a.npz")
    assert found["classes"]["1"] == {"training rows": 40, "test rows": 10}
