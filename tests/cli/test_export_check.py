"""`export --check`: an export against what a model generates."""

import json
import os
import shutil

import pytest

import tinykernel
from tests.cli.tools import failed, json_of, run, succeeded
from tinykernel.base.files import MANIFEST
from tinykernel.compile.plan import FORMAT


@pytest.fixture(scope="module")
def project(work, tmp_path_factory):
    """Return a library of the model; tests work on copies."""
    folder = tmp_path_factory.mktemp("check") / "gesture"
    succeeded("export", work / "gesture.tkm", "--format", "library", "-o", folder, "-q")
    return folder


def _check(model, *paths, status, options=()):
    checks = [word for path in paths for word in ("--check", path)]
    result = run("export", model, *checks, *options, "--json")
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


def test_manifest_says_where_an_export_comes_from(work, project):
    """Tool, formats, model, training rows, split and accuracy stand in it."""
    manifest = json.loads((project / MANIFEST).read_text())
    assert manifest["tool"] == f"tinykernel {tinykernel.__version__}"
    assert (manifest["name"], manifest["contract"]) == ("gesture", FORMAT)
    shown = json_of("inspect", work / "gesture.tkm")
    assert manifest["model"] == shown["fingerprint"]
    training = manifest["training"]
    assert training["training_rows"].keys() == {"rows", "sha256"}
    assert set(training["accuracy"]) == {"train_accuracy", "test_accuracy"}
    assert training["split"]
    assert "sizes" not in training  # estimates of the training; `report` links and measures
    # What the caller provides is exact; the stack is that of a compiler.
    sizes = json_of("report", work / "gesture.tkm", "--target", "cortex-m4", "--compiler", "none")
    assert manifest["memory"]["scratch"] == sizes["parts"]["ram"]["scratch"]


def test_two_trainings_looked_alike_to_a_package_manager(work, project, tmp_path):
    """A version of its own stands in header, packages and manifest, and --check repeats it."""
    folder, model = tmp_path / "gesture", work / "gesture.tkm"
    given = ("export", model, "--format", "library", "-o", folder, "-q", "--set")
    failed(*given, "version=1.4")
    succeeded(*given, "version=1.4.0-rc.1")
    assert '#define GESTURE_VERSION "1.4.0-rc.1"' in (folder / "src" / "gesture.h").read_text()
    assert json.loads((folder / "library.json").read_text())["version"] == "1.4.0-rc.1"
    assert "version=1.4.0-rc.1\n" in (folder / "library.properties").read_text()
    assert "(gesture VERSION 1.4.0 " in (folder / "CMakeLists.txt").read_text()
    assert json.loads((folder / MANIFEST).read_text())["options"]["version"] == "1.4.0-rc.1"
    assert _check(model, folder, status=0)["changed"] == []
    without = json.loads((project / MANIFEST).read_text())
    for copy, version in (
        (folder, "1.4.0-rc.1"),
        (project, f"{tinykernel.__version__}+{without['model'][:8]}"),
    ):
        assert f'version: "{version}"' in (copy / "idf_component.yml").read_text()


@pytest.mark.parametrize("kind", ["changed", "missing", "extra", "link", "fifo", "long"])
def test_every_difference_is_named(work, project, tmp_path, kind):
    """A file that was edited, deleted, left over or replaced is named; none but files is opened."""
    folder = shutil.copytree(project, tmp_path / "p")
    file = folder / "src" / "gesture.c"
    if kind == "extra":
        file = folder / "src" / "earlier.c"
        file.write_text("int x;")
        manifest = json.loads((folder / MANIFEST).read_text())
        manifest["files"]["src/earlier.c"] = ""
        (folder / MANIFEST).write_text(json.dumps(manifest))
    elif kind == "changed":
        file.write_text(file.read_text().replace("0x", "0X", 1))
    else:
        file.rename(tmp_path / "elsewhere.c")
    if kind == "link":
        file.symlink_to(tmp_path / "elsewhere.c")
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "long":
        with file.open("wb") as stream:
            stream.truncate(1 << 40)
    report = _check(work / "gesture.tkm", folder, status=1)
    named = {name: report[name] for name in ("changed", "missing", "extra") if report[name]}
    assert named == {kind if kind in report else "changed": [f"src/{file.name}"]}
    shown = run("export", work / "gesture.tkm", "--check", folder).stdout
    assert f"src/{file.name}" in shown


def test_a_part_of_an_export_can_be_checked(work, project, tmp_path, monkeypatch):
    """Changes elsewhere, and files of builds and users, do not matter."""
    folder = shutil.copytree(project, tmp_path / "p")
    (folder / "README.md").write_text("mine")
    (folder / "src" / "mine.c").write_text("int x;")
    report = _check(work / "gesture.tkm", folder / "src", folder / "LICENSE", status=0)
    assert report["changed"] == report["missing"] == report["extra"] == []
    monkeypatch.chdir(folder / "src")
    assert _check(work / "gesture.tkm", "gesture.c", status=0)["files"] == 1
    assert _check(work / "gesture.tkm", "..", status=1)["changed"] == ["README.md"]


@pytest.mark.parametrize(
    "options",
    [
        ("--format", "single"),
        ("--format", "library", "--set", "ci=github"),
        ("--target", "cortex-m4", "--set", "framework=cmsis"),
        ("--target", "host", "--name", "other"),
    ],
)
def test_every_export_is_rendered_again(work, tmp_path, options):
    """Name, target, framework and workflow are those of the manifest; rows come from --data."""
    data, folder = ("--data", work / "data.npz"), tmp_path / "p"
    hint = "hint: if the export was made with --data, give the same rows"
    done = succeeded("export", work / "gesture.tkm", *options, *data, "-o", folder, "-q")
    report = _check(work / "gesture.tkm", folder, options=data, status=0)
    has = "single" not in options
    assert report["files"] == len(json.loads((folder / MANIFEST).read_text())["files"])
    done = run("export", work / "gesture.tkm", "--check", folder)
    assert (done.exit_code, hint in done.stdout) == (int(has), has)


@pytest.mark.parametrize(
    "changes", [{"name": 3}, {"options": None}, {"options": {"format": "library", "vectors": "x"}}]
)
def test_a_damaged_manifest_is_refused(work, project, tmp_path, changes):
    """A manifest that lists no options of an export gives one line."""
    folder = shutil.copytree(project, tmp_path / "p")
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | changes))
    failed("export", work / "gesture.tkm", "--check", folder)
