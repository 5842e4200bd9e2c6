"""tinykernel tune: a whole session, --pick, a kill in the middle, and wrong usage."""

from __future__ import annotations

import json
import os
import signal
import time

import numpy as np
import pytest

from tests.cli.tools import failed, process, run, table_with_groups
from tinykernel import load
from tinykernel.modelfile import about

# At 4 KB the linear part of 5 inputs is all that competes with a few components.
SIZES = ("--set", "sizes=3KB,4KB", "--set", "effort=quick", "-t", "cortex-m0plus")
OPTIONS = (*SIZES, "--set", "folds=2", "--set", "epochs=2")


@pytest.fixture(scope="module")
def tuned(work, tmp_path_factory):
    """A folder with best.tkm, curve.csv, its journal, and what the command printed as JSON."""
    folder = tmp_path_factory.mktemp("tune")
    result = run(
        "tune",
        work / "data.npz",
        *OPTIONS,
        "-o",
        folder / "best.tkm",
        "--set",
        f"csv={folder / 'curve.csv'}",
        "--json",
        "-q",
    )
    assert result.exit_code == 0, result.output
    (folder / "out.json").write_text(result.stdout)
    return folder


def test_the_recommended_model_is_written(work, tuned):
    """The model keeps to its size, remembers the curve, and verifies; CSV and JSON agree."""
    found = json.loads((tuned / "out.json").read_text())
    assert found.keys() >= {"best", "front", "points", "recommendation", "test"}
    assert found["best"]["budget"] in (3072, 4096)
    assert found["best"]["flash"] <= found["best"]["budget"]
    said = about(tuned / "best.tkm")
    assert said["budget"] == said["tune"]["recommended"] == found["best"]["budget"]
    assert len(said["tune"]["curve"]) == 2
    lines = (tuned / "curve.csv").read_text().splitlines()
    assert lines[0].startswith("budget,accuracy,standard_error,")
    assert [line.split(",")[0] for line in lines[1:]] == ["3072", "4096"]
    assert found["test"]["rows"] == 30
    verified = run("verify", tuned / "best.tkm", work / "data.npz", "-t", "host", "-q")
    assert verified.exit_code == 0
    shown = run("inspect", tuned / "best.tkm")
    assert "recommended" in shown.stdout


def test_the_page_of_a_tuned_model_shows_its_curve(work, tuned, require_tool):
    """report --html draws accuracy against size; not of a model that was not tuned."""
    require_tool("matplotlib")
    for model, shown in ((tuned / "best.tkm", True), (work / "gesture.tkm", False)):
        page = tuned / "page.html"
        made = run("report", model, "-t", "cortex-m0plus", "--compiler", "none", "--html", page)
        assert made.exit_code == 0, made.output
        assert ("Models that were compared when this one was chosen" in page.read_text()) == shown


def test_pick_trains_nothing(work, tuned, monkeypatch):
    """--pick writes another size from the journal; a size that is not there is one line."""

    def never(*_):
        raise AssertionError

    monkeypatch.setattr("tinykernel.tuning.run.run_trial", never)
    for asked, expected in (("3KB", 3072), ("100KB", 4096)):
        file = tuned / f"{asked}.tkm"
        result = run("tune", work / "data.npz", *OPTIONS, "-o", file, "--pick", asked)
        assert result.exit_code == 0, result.output
        assert about(file)["budget"] == expected
        assert "standard error" in result.stdout
    message = failed(
        "tune", work / "data.npz", *OPTIONS, "-o", tuned / "x.tkm", "--pick", "1KB", "-q"
    )
    assert "there are 3 KB, 4 KB" in message
    assert not (tuned / "x.tkm").exists()


def kill_when(child, reached):
    """Send SIGKILL to a command as soon as it is so far."""
    deadline = time.monotonic() + 300
    while not reached():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()


@pytest.mark.slow
def test_killed_and_started_again(work, tuned, tmp_path):
    """After SIGKILL what was finished stays, and the end is that of an undisturbed run."""
    command = (
        "tune",
        work / "data.npz",
        *OPTIONS,
        "-o",
        tmp_path / "best.tkm",
        "-q",
        "--set",
        "jobs=1",
    )
    kill_when(process(*command), lambda: bool(list(tmp_path.glob("data.tune/trial-*"))))
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("data.tune/trial-*")}
    assert len(before) < 6
    assert not (tmp_path / "best.tkm").exists()
    assert run(*command).exit_code == 0
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert len(list(tmp_path.glob("data.tune/trial-*"))) == 6
    assert (tmp_path / "best.tkm").read_bytes() == (tuned / "best.tkm").read_bytes()


@pytest.mark.slow
def test_killed_on_a_dask_cluster_and_started_again(work, tmp_path, require_tool):
    """Two worker processes, SIGKILL in the middle, and the same bytes as threads without it."""
    distributed = require_tool("distributed")
    options = ("tune", work / "data.npz", *SIZES, "--set", "folds=2", "--set", "epochs=40", "-q")
    command = (*options, "-o", tmp_path / "best.tkm", "--set", f"csv={tmp_path / 'curve.csv'}")
    kept = tmp_path / "data.tune"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        command += ("--set", "backend=dask", "--set", f"scheduler={cluster.scheduler_address}")
        child = process(*command)
        # The first trial runs before the others, and not on the cluster.
        kill_when(child, lambda: len(list(kept.glob("trial-*"))) >= 2)
        before = {file: file.read_bytes() for file in kept.glob("trial-*")}
        assert 2 <= len(before) < 6
        assert not (tmp_path / "best.tkm").exists()
        assert run(*command).exit_code == 0
    assert {file: file.read_bytes() for file in before} == before
    assert len(list(kept.glob("trial-*"))) == 6
    other = ("-o", tmp_path / "other.tkm", "--set", f"csv={tmp_path / 'other.csv'}")
    assert run(*options, *other, "--set", f"journal={tmp_path / 'j'}").exit_code == 0
    assert (tmp_path / "best.tkm").read_bytes() == (tmp_path / "other.tkm").read_bytes()
    assert (tmp_path / "curve.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()


def test_groups_of_a_table(tmp_path):
    """--groups holds whole groups out; the settings of train for tables are there."""
    table = table_with_groups(tmp_path)
    result = run(
        "tune",
        table,
        *OPTIONS,
        "--groups",
        "who",
        "--set",
        "drop=a",
        "--set",
        f"journal={tmp_path / 'j'}",
        "-o",
        tmp_path / "m.tkm",
        "-q",
    )
    assert result.exit_code == 0, result.output
    assert load(tmp_path / "m.tkm").n_features == 4
    trial = json.loads((tmp_path / "j" / "trial-3072-0.json").read_text().splitlines()[0])
    assert sum(rows for rows, _ in trial["groups"]) == sum(map(sum, trial["confusion"]))


def test_labels_at_random_are_not_found_on_the_test_rows(tmp_path):
    """Nothing of the test rows leaks into the search: a coin's labels are found by chance."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 4)).astype(np.float32), rng.integers(0, 2, 1500)
    np.savez(tmp_path / "coin.npz", X=X, y=y)
    found = run("tune", tmp_path / "coin.npz", *OPTIONS, "-o", tmp_path / "m.tkm", "--json", "-q")
    test = json.loads(found.stdout)["test"]
    assert test["rows"] == 300
    assert abs(test["accuracy"] - 0.5) < 3 * 0.5 / 300**0.5


def test_a_short_time_says_so(work, tmp_path):
    """Where no size was finished in time there is one line, and what is finished is kept."""
    command = (
        "tune",
        work / "data.npz",
        *OPTIONS,
        "--max-time",
        "0.001s",
        "-q",
        "--set",
        "jobs=1",
        "-o",
        tmp_path / "m.tkm",
    )
    message = failed(*command)
    assert "the time was up before any size had a model" in message
    assert [path.name for path in tmp_path.iterdir()] == ["data.tune"]


@pytest.mark.parametrize(
    ("options", "expected", "status"),
    [
        (("-o", "m.pkl"), "must end in .tkm", 1),
        (("--pick", "4KB"), "needs -o MODEL", 2),
        (("--max-time", "soon"), "write a time", 2),
        (("--set", "sizes=many"), "is not a size", 2),
        (("--set", "csv=a.txt"), "must end in .csv", 1),
        (("--set", "plot=a.gif"), "must end in .svg or .png", 1),
        (("--set", "n_components=64"), "has no use here", 2),
        (("-t", "host"), "no flash", 1),
        (("--set", "backend=dask"), "address of a scheduler", 1),
        (("--set", "regularization=1"), "only for method paper", 2),
    ],
)
def test_wrong_usage(work, tmp_path, monkeypatch, require_tool, options, expected, status):
    """Wrong options are one line before anything is trained or written."""
    monkeypatch.chdir(tmp_path)
    if "dask" in options:
        require_tool("distributed")
    assert expected in failed("tune", work / "data.npz", "-q", *options, status=status)
    assert list(tmp_path.iterdir()) == []
