"""What was changed in a project since its export, and which model it holds."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pytest

import tinykernel
from tests.cli.tools import QUICK, blobs, failed, run
from tinykernel.files import MANIFEST


@pytest.fixture(scope="module")
def project(work, tmp_path_factory):
    """Return a library of the model; tests work on copies."""
    folder = tmp_path_factory.mktemp("audit") / "gesture"
    result = run("export", work / "gesture.tkm", "--format", "library", "-o", folder, "-q")
    assert result.exit_code == 0, result.output
    return folder


def _audit(*arguments, status):
    result = run("audit", *arguments, "--json")
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


def test_manifest_says_where_an_export_comes_from(work, project):
    """Tool, formats, model, training rows, split, accuracy and measured sizes stand in it."""
    said = json.loads((project / MANIFEST).read_text())
    assert said["tool"] == f"tinykernel {tinykernel.__version__}"
    assert said["name"] == "gesture"
    assert said["contract"] == 2
    assert (
        said["model"]
        == json.loads(run("inspect", work / "gesture.tkm", "--json").stdout)["fingerprint"]
    )
    training = said["training"]
    assert training["training_rows"]["rows"] == 120
    assert len(training["training_rows"]["sha256"]) == 64
    assert "digests" not in training["training_rows"]
    assert set(training["accuracy"]) == {"train_accuracy", "test_accuracy"}
    assert training["split"]
    header = (project / "src" / "gesture.h").read_text()
    assert f"GESTURE_FINGERPRINT 0x{said['model'][:8]}u" in header


def test_untouched_export_passes(work, project):
    """The export belongs to its model, and what a build makes does not matter."""
    (project / "build").mkdir()
    (project / "build" / "x.o").write_bytes(b"1")
    found = _audit(project, work / "gesture.tkm", status=0)
    assert found["passes"]
    assert found["is_of_model"]
    assert found["not_generated"] == []
    assert found["changed"] == found["missing"] == found["added"] == []
    text = run("audit", project).stdout
    assert "as it was exported" in text
    shutil.rmtree(project / "build")


@pytest.mark.parametrize("what", ["changed", "missing", "added", "link"])
def test_every_change_is_found(project, tmp_path, what):
    """A file that was edited, deleted, added or replaced by a link is named, with status 1."""
    folder = shutil.copytree(project, tmp_path / "p")
    file = folder / "src" / "gesture.c"
    if what == "changed":
        file.write_text(file.read_text().replace("0x", "0X", 1))
    elif what == "missing":
        file.unlink()
    elif what == "added":
        file = folder / "src" / "more.c"
        file.write_text("int x;")
    else:
        file.rename(tmp_path / "elsewhere.c")
        file.symlink_to(tmp_path / "elsewhere.c")
    found = _audit(folder, status=1)
    assert not found["passes"]
    assert found["changed" if what == "link" else what] == [f"src/{file.name}"]
    assert ("added" if what == "added" else "src/gesture.c") in run("audit", folder).stdout
    _audit(folder, "--allow-added", status=0 if what == "added" else 1)


def test_changed_manifest_hides_nothing_from_the_model(work, project, tmp_path):
    """Who changes a table and its hash in the manifest is found out by the model."""
    folder = shutil.copytree(project, tmp_path / "p")
    file = folder / "src" / "gesture.c"
    file.write_text(file.read_text().replace("tk_biases[3] = {\n    ", "tk_biases[3] = {\n    1"))
    said = json.loads((folder / MANIFEST).read_text())
    said["files"]["src/gesture.c"] = hashlib.sha256(file.read_bytes()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(said))
    assert _audit(folder, status=0)["changed"] == []
    found = _audit(folder, work / "gesture.tkm", status=1)
    assert found["not_generated"] == ["src/gesture.c"]


def test_project_of_another_model_is_told(project, tmp_path):
    """The fingerprint decides, not the name of the file."""
    X, y = blobs(60, 5)
    np.savez(tmp_path / "d.npz", X=X, y=y)
    run("train", tmp_path / "d.npz", "-o", tmp_path / "gesture.tkm", *QUICK)
    found = _audit(project, tmp_path / "gesture.tkm", status=1)
    assert found["is_of_model"] is False
    assert "src/gesture.c" in found["not_generated"]
    assert found["changed"] == []


def test_a_folder_that_is_no_export(tmp_path):
    """One line says so, and a manifest whose list of files is damaged is none."""
    for content in (None, '{"format": "tinykernel-export", "files": 3}'):
        if content:
            (tmp_path / MANIFEST).write_text(content)
        assert "no export of tinykernel" in failed("audit", tmp_path)
