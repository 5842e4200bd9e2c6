"""Text of somebody else, wherever it is shown."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.tools import blobs, run, succeeded
from tests.random_models import random_model
from tinykernel import save
from tinykernel.compile.projects import exported_files
from tinykernel.model.answers import Labels

LABELS = ("a\u202evil\u2066", "\x1b[31mred`b`", "new\nline\u200b\x9b|x")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """Return a folder with a model and data whose labels turn, colour and hide text."""
    folder = tmp_path_factory.mktemp("hostile")
    model = random_model(11, n_features=5, n_classes=3, raw_dtype="float32")
    names = tuple(f"{label}{i}" for i, label in enumerate((*LABELS, "x", "y")))
    save(replace(model, answers=Labels(LABELS), feature_names=names), folder / "m.tkm")
    X, y = blobs(30, 1)
    np.savez(folder / "d.npz", X=X, y=np.array(LABELS)[y])
    return folder


def test_labels_steered_the_terminal(hostile) -> None:
    """No command sends a control character or a mark of direction; JSON has the very labels."""
    for command in (["inspect"], ["predict", "d.npz"], ["evaluate", "d.npz"]):
        given = [command[0], hostile / "m.tkm", *(hostile / name for name in command[1:])]
        found = succeeded(*given)
        assert "a\\u202evil\\u2066" in found.output
        assert all(map(str.isprintable, found.output.split("\n"))), command
        found = run(*given, "--json")
        assert all(map(str.isprintable, found.output.split("\n"))), command
        assert "`" in found.output
        assert LABELS[0] in json.dumps(json.loads(found.stdout), ensure_ascii=False)
    found = run("predict", hostile / "m.tkm", hostile / "missing\x1b[31m\u202e.npz")
    assert found.exit_code == 1
    assert all(map(str.isprintable, found.output.split("\n")))


def test_labels_do_not_steer_files_that_people_read(hostile) -> None:
    """README and C of an export, and the page of a report, hold them as visible text."""
    model = replace(random_model(1, n_features=5, n_classes=3), answers=Labels(LABELS))
    files = exported_files(model, None, name="m", format="library")
    files |= exported_files(model, "cortex-m4", name="m")
    page = hostile / "page.html"
    given = ("--compiler", "none", "-t", "cortex-m4", "--html", page)
    succeeded("report", hostile / "m.tkm", *given)
    files["page.html"] = page.read_bytes()
    for name, data in files.items():
        text = data.decode("utf-8").replace("\t", " ")
        if not name.endswith((".svg", ".json")):
            assert all(map(str.isprintable, text.split("\n"))), name
    assert b"1 is `\\x1b[31mred'b'`, 2 is `new\\nline" in files["README.md"]
