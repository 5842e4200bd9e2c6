"""What was changed in a project since its export, and which model it holds."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import numpy as np
import pytest

import tinykernel
from tests.cli.tools import QUICK, blobs, failed, run
from tinykernel.codegen.plan import FORMAT
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
    assert said["contract"] == FORMAT
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


def _with_manifest(folder, **changes):
    """Write digests of the files that are there, and other changes, into the manifest."""
    said = json.loads((folder / MANIFEST).read_text())
    found = ((name, folder / name) for name in said["files"] if (folder / name).is_file())
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found}
    said["files"] = {name: digests.get(name, old) for name, old in said["files"].items()}
    (folder / MANIFEST).write_text(json.dumps(said | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tool": "tinykernel 0.0.1"}, "another version"),
        ({"name": 3}, "does not name"),
        ({"name": "decoy"}, ""),
        ({"options": None}, "does not name"),
        ({"options": {"format": "no"}}, "unknown project format"),
        ({"options": {"format": "library", "vectors": "x"}}, "does not name"),
        ({"options": {"format": "blob"}}, ""),
        ({"as_data": True}, ""),
    ],
)
def test_a_manifest_that_named_another_tool_or_a_decoy_passed_changed_c(
    work, project, tmp_path, changes, said
):
    """What cannot be generated again does not pass; "not compared" once counted as good."""
    folder = shutil.copytree(project, tmp_path / "p")
    file = folder / "src" / "gesture.c"
    file.write_text(file.read_text().replace("tk_biases[3] = {\n    ", "tk_biases[3] = {\n    1"))
    _with_manifest(folder, **changes)
    found = _audit(folder, work / "gesture.tkm", status=1)
    assert said in found["not_compared"]
    assert bool(found["not_compared"]) == bool(said)
    assert said or "src/gesture.c" in found["added"] + (found["not_generated"] or [])


@pytest.mark.parametrize("name", ["platformio.ini", "lib/gesture/src/tk_words.h", "src/main.cpp"])
def test_extra_scripts_and_a_changed_runtime_passed(work, tmp_path, name):
    """With MODEL every file of the project is generated again, not the tables alone."""
    folder = tmp_path / "p"
    run("export", work / "gesture.tkm", "--target", "esp32", "-o", folder, "-q")
    _audit(folder, work / "gesture.tkm", status=0)
    with (folder / name).open("a") as file:
        file.write("extra_scripts = pre:x.py\n" if name.endswith("ini") else "/* */\n")
    _with_manifest(folder)
    assert _audit(folder, status=0)["changed"] == []
    assert _audit(folder, work / "gesture.tkm", status=1)["not_generated"] == [name]


def test_files_in_a_cache_folder_were_not_seen(work, tmp_path):
    """Only the compiled scripts of the export are skipped, and each is named as not covered."""
    folder = tmp_path / "p"
    run("export", work / "gesture.tkm", "--target", "esp32", "-o", folder, "-q")
    for name in ("test/__pycache__/test_custom_runner.cpython-311.pyc", ".pio/x.o"):
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(b"")
    found = _audit(folder, work / "gesture.tkm", status=0)
    assert sum("a build or an editor" in text for text in found["not_covered"]) == 2
    (folder / "src" / "__pycache__").mkdir()
    (folder / "src" / "__pycache__" / "more.c").write_text("int x;")
    found = _audit(folder, work / "gesture.tkm", status=1)
    assert found["added"] == ["src/__pycache__/more.c"]


@pytest.mark.parametrize("kind", ["fifo", "zero", "long"])
def test_an_audit_waited_for_a_fifo_and_read_endless_files(work, project, tmp_path, kind):
    """What is no plain file, or longer than any export's, is not opened."""
    folder = shutil.copytree(project, tmp_path / "p")
    for name in ("src/gesture.c", "examples/SelfTest/gesture_vectors.h"):
        file = folder / name
        file.unlink()
        if kind == "fifo":
            os.mkfifo(file)
        elif kind == "zero":
            file.symlink_to("/dev/zero")
        else:
            with file.open("wb") as stream:
                stream.truncate(1 << 40)
    found = _audit(folder, work / "gesture.tkm", status=1)
    assert found["changed"] == found["not_generated"]
    assert len(found["changed"]) == 2


@pytest.mark.parametrize(
    "options",
    [
        ("--format", "single"),
        ("--format", "blob"),
        (
            "--format",
            "library",
            "--set",
            "as_data=true",
            "--set",
            "ci=github",
            "--set",
            "ci_budget=30KB",
        ),
        ("--target", "cortex-m4", "--set", "framework=cmsis"),
        ("--target", "host"),
    ],
)
def test_every_export_is_generated_again(work, tmp_path, options):
    """Format, target, framework, workflow: the manifest names what the project was made with."""
    data = () if "blob" in options else ("--data", work / "data.npz")
    folder = tmp_path / "p"
    done = run("export", work / "gesture.tkm", *options, *data, "-o", folder, "-q")
    assert done.exit_code == 0, done.output
    found = _audit(folder, work / "gesture.tkm", status=0)
    assert found["not_generated"] == []
    for vectors in folder.rglob("*_vectors.h"):
        assert any("which rows" in text for text in found["not_covered"])
        head, table = vectors.read_text().split("_vector_scores", 1)
        vectors.write_text(
            head + "_vector_scores" + table.replace("{\n        ", "{\n        1", 1)
        )
        _with_manifest(folder)
        assert _audit(folder, work / "gesture.tkm", status=1)["not_generated"]


def test_a_folder_that_is_no_export(tmp_path):
    """One line says so, and a manifest whose list of files is damaged is none."""
    for content in (None, '{"format": "tinykernel-export", "files": 3}'):
        if content:
            (tmp_path / MANIFEST).write_text(content)
        assert "no export of tinykernel" in failed("audit", tmp_path)
