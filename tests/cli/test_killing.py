"""Commands that cannot finish a file: what there was stays."""

from unittest.mock import Mock

import pytest

from tests.cli.tools import failed, sets, succeeded
from tinykernel.base import files

_EXPORT = ("export", "MODEL", "-o", "OUT/project", "--force", "-q")
_TRAIN = ("train", "DATA", "-o", "OUT/m.tkm", "--effort", "quick", "-q")


@pytest.mark.parametrize(
    "command",
    [
        (*_EXPORT, "--format", "single"),
        (*_EXPORT, "--target", "cortex-m4"),
        (*_TRAIN, *sets("n_components=64", "epochs=2")),
        ("report", "MODEL", "--html", "OUT/page.html", "-q", "--compiler", "none"),
        ("calibrate", "MODEL", "DATA", "-o", "OUT/c.tkm", "-q", "--coverage", "50%"),
        ("predict", "MODEL", "DATA", "-o", "OUT/rows.csv", "-q"),
        ("inspect", "MODEL", "--proof", "OUT/proof.json"),
    ],
    ids=lambda command: command[0],
)
def test_what_there_was_stays(work, tmp_path, monkeypatch, command):
    """A full disk gives one line and leaves the old files: every command writes by `files`."""
    places = {"MODEL": work / "gesture.tkm", "DATA": work / "data.npz"}
    typed = [places.get(word, word.replace("OUT", str(tmp_path))) for word in command]
    succeeded(*typed)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert before
    monkeypatch.setattr(
        files.os, "replace", Mock(side_effect=OSError(28, "No space left on device"))
    )
    failed(*typed)
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before
