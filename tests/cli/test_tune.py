"""tinykernel tune: a whole session, --pick, and wrong usage."""

import csv
import json
from unittest.mock import Mock

import pytest

from tests.cli.tools import failed, json_of, run, sets, succeeded
from tinykernel.model.file import about

OPTIONS = ("-t", "cortex-m0plus", *sets("sizes=3KB,4KB", "folds=2", "model=linear", "epochs=2"))


@pytest.fixture(scope="module")
def tuned(work, tmp_path_factory):
    """A folder with best.tkm, its journal, and what the command printed as JSON."""
    folder = tmp_path_factory.mktemp("tune")
    shown = json_of("tune", work / "data.npz", *OPTIONS, "-o", folder / "best.tkm", "-q")
    (folder / "out.json").write_text(json.dumps(shown))
    return folder


@pytest.mark.slow
def test_the_recommended_model_is_written(work, tuned):
    """The model keeps to its size, remembers its budget, and verifies."""
    shown = json.loads((tuned / "out.json").read_text())
    assert shown.keys() >= {"best", "front", "points", "recommendation", "test"}
    assert shown["best"]["flash"] <= shown["best"]["budget"]
    memory = about(tuned / "best.tkm")
    assert memory["budget"] == shown["best"]["budget"]
    assert [point["budget"] for point in shown["points"]] == [3072, 4096]
    assert shown["test"]["rows"] == 30
    assert json_of("verify", tuned / "best.tkm", work / "data.npz")["differences"] == 0


def test_pick_trains_nothing(work, tuned, monkeypatch):
    """--pick writes another size from the journal; a size that is not there is one line."""
    monkeypatch.setattr("tinykernel.kinds.tune.curve.run_trial", Mock(side_effect=AssertionError))
    command = ("tune", work / "data.npz", *OPTIONS)
    for asked, expected in (("3KB", 3072), ("100KB", 4096)):
        file = tuned / f"{asked}.tkm"
        result = succeeded(*command, "-o", file, "--pick", asked)
        assert about(file)["budget"] == expected
        assert bool(result.stderr) == (asked == "100KB")
    failed(*command, "-o", tuned / "x.tkm", "--pick", "1KB", "-q")
    assert not (tuned / "x.tkm").exists()


def test_pick_wanted_all_options_of_the_first_call(work, tuned):
    """--pick repeats the options of the journal; one that differs is named with both values."""
    command = ("tune", work / "data.npz", "-o", tuned / "again.tkm", "--pick", "3KB", "-q")
    assert run(*command).output == ""
    assert about(tuned / "again.tkm")["budget"] == 3072
    assert run(*command, *OPTIONS).output == ""
    for other in (sets("epochs=3"), ("--label", "y_train", *sets("epochs=3"))):
        failed(*command, *other)


def test_the_curve_as_table_and_picture(work, tuned, require_tool):
    """--curve writes the points that --json has, one a line, or draws them."""
    require_tool("matplotlib")
    command = ("tune", work / "data.npz", "-o", tuned / "again.tkm", "--pick", "3KB", "-q")
    for name in ("curve.csv", "curve.png"):
        assert run(*command, "--curve", tuned / name).output == ""
    with (tuned / "curve.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    points = json.loads((tuned / "out.json").read_text())["points"]
    for row, point in zip(rows, points, strict=True):
        assert row["folds"].split() == [str(share) for share in point.pop("folds")]
        assert {name: row[name] for name in point} == {
            name: "" if value is None else str(value) for name, value in point.items()
        }
    assert (tuned / "curve.png").read_bytes().startswith(b"\x89PNG")
    failed(*command, "--curve", tuned / "curve.svg")
