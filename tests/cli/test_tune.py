"""tinykernel tune: a whole session, --pick, a kill in the middle, and wrong usage."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.cli.tools import failed, json_of, process, run, sets, table_with_groups
from tinykernel import load
from tinykernel.modelfile import about

# At 4 KB the linear part of 5 inputs is all that competes with a few components.
OPTIONS = (
    *("-t", "cortex-m0plus"),
    *sets("sizes=3KB,4KB", "effort=quick", "folds=2", "epochs=2"),
)


@pytest.fixture(scope="module")
def tuned(work, tmp_path_factory):
    """A folder with best.tkm, curve.csv, its journal, and what the command printed as JSON."""
    folder = tmp_path_factory.mktemp("tune")
    files = ("-o", folder / "best.tkm", "--set", f"curve={folder / 'curve.csv'}")
    shown = json_of("tune", work / "data.npz", *OPTIONS, *files, "-q")
    (folder / "out.json").write_text(json.dumps(shown))
    return folder


def test_the_recommended_model_is_written(work, tuned):
    """The model keeps to its size, remembers the curve, and verifies; CSV and JSON agree."""
    shown = json.loads((tuned / "out.json").read_text())
    assert shown.keys() >= {"best", "front", "points", "recommendation", "test"}
    assert shown["best"]["flash"] <= shown["best"]["budget"]
    memory = about(tuned / "best.tkm")
    assert memory["budget"] == memory["tune"]["recommended"] == shown["best"]["budget"]
    assert len(memory["tune"]["curve"]) == 2
    lines = (tuned / "curve.csv").read_text().splitlines()
    assert lines[0].startswith("budget,accuracy,standard_error,")
    assert [line.split(",")[0] for line in lines[1:]] == ["3072", "4096"]
    assert shown["test"]["rows"] == 30
    assert json_of("verify", tuned / "best.tkm", work / "data.npz")["differences"] == 0


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
    command = ("tune", work / "data.npz", *OPTIONS)
    for asked, expected in (("3KB", 3072), ("100KB", 4096)):
        file = tuned / f"{asked}.tkm"
        result = run(*command, "-o", file, "--pick", asked)
        assert result.exit_code == 0, result.output
        assert about(file)["budget"] == expected
        assert "standard error" in result.stdout
    message = failed(*command, "-o", tuned / "x.tkm", "--pick", "1KB", "-q")
    assert "there are 3 KB, 4 KB" in message
    assert not (tuned / "x.tkm").exists()


@pytest.mark.slow
def test_killed_and_started_again(work, tuned, tmp_path):
    """After SIGKILL what was finished stays, and the end is that of an undisturbed run."""
    output = tmp_path / "best.tkm"
    command = ("tune", work / "data.npz", *OPTIONS, "-o", output, "-q", "--set", "n_jobs=1")
    child, deadline = process(*command), time.monotonic() + 300
    while not list(tmp_path.glob("data.tune/trial-*")):
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("data.tune/trial-*")}
    assert len(before) < 6
    assert not output.exists()
    assert run(*command).exit_code == 0
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert len(list(tmp_path.glob("data.tune/trial-*"))) == 6
    assert output.read_bytes() == (tuned / "best.tkm").read_bytes()


def test_groups_of_a_table(tmp_path):
    """--groups holds whole groups out; the settings of train for tables are there."""
    table = table_with_groups(tmp_path)
    given = ("--groups", "who", "--set", "drop=a", "-o", tmp_path / "m.tkm", "-q")
    result = run("tune", table, *OPTIONS, *given)
    assert result.exit_code == 0, result.output
    assert load(tmp_path / "m.tkm").n_features == 4
    trial = json.loads((tmp_path / "t.tune" / "trial-3072-0.json").read_text().splitlines()[0])
    assert sum(rows for rows, _ in trial["groups"]) == sum(map(sum, trial["confusion"]))


def test_a_short_time_says_so(work, tmp_path):
    """Where no size was finished in time there is one line, and what is finished is kept."""
    given = ("--max-time", "0.001s", "-q", "--set", "n_jobs=1", "-o", tmp_path / "m.tkm")
    message = failed("tune", work / "data.npz", *OPTIONS, *given)
    assert "the time was up before any size had a model" in message
    assert [path.name for path in tmp_path.iterdir()] == ["data.tune"]


@pytest.mark.parametrize(
    ("options", "expected", "status"),
    [
        (("-o", "m.pkl"), "must end in .tkm", 1),
        (("--pick", "4KB"), "needs -o MODEL", 2),
        (("--max-time", "soon"), "write a time", 2),
        (("--set", "sizes=many"), "is not a size", 2),
        (("--set", "curve=a.txt"), "must end in .csv or .svg or .png", 1),
        (("--set", "n_components=64"), "is not an option of this command", 2),
        (("-t", "host"), "no flash", 1),
        (("--set", "backend=dask"), "the address of a Dask scheduler", 1),
        (("--set", "max_error=1%"), "is not an option of this command", 2),
    ],
)
def test_wrong_usage(work, tmp_path, monkeypatch, options, expected, status):
    """Wrong options are one line before anything is trained or written."""
    monkeypatch.chdir(tmp_path)
    assert expected in failed("tune", work / "data.npz", "-q", *options, status=status)
    assert list(tmp_path.iterdir()) == []
