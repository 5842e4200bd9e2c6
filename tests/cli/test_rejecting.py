"""train --set max_error: rows held out, and a model that says when it does not know."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cli.tools import QUICK, blobs, failed, json_of, run
from tinykernel import load
from tinykernel.measure import report as measure_report
from tinykernel.modelfile import about


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Return 1000 rows of 50 people, in one file without a test part."""
    X, y = blobs(1000, 5)
    file = tmp_path_factory.mktemp("people") / "people.npz"
    np.savez(file, X=X, y=y, group=np.arange(1000) // 20)
    return file


def test_train_calibrates_on_rows_kept_aside(data, tmp_path) -> None:
    """The model refuses, its file says what was promised, and evaluate judges other rows."""
    output = tmp_path / "m.pkl"
    result = run("train", data, "-o", output, "--set", "max_error=15%", *QUICK, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["train_rows"] == 640
    assert found["calibration"]["rows"] == 160
    assert found["calibration"]["bound"] <= 0.15
    assert about(output)["calibration"]["statement"] == found["calibration"]["statement"]
    model = load(output)
    assert model.predict_proba(np.load(data)["X"][:4]).shape == (4, 3)
    assert model.quantize().decision.rejects
    judged = json_of("evaluate", output, data)
    assert judged["rows"] == 200
    assert judged["seen_in_training"] == 0
    assert 0.3 < judged["decisions"]["coverage"] < 1
    assert judged["decisions"]["error"] < 1 - judged["accuracy"]
    shown = run("inspect", output).stdout
    assert "least margin" in shown
    assert found["calibration"]["statement"] in shown
    assert "error rate of the surest" in run("evaluate", output, data).stdout


def test_whole_groups_are_kept_aside(data, tmp_path) -> None:
    """With groups the promise is for new groups, and too few rows are refused before training."""
    given = ("--set", "max_error=0.3", "--groups", "group", *QUICK)
    promise = json_of("train", data, "-o", tmp_path / "m.tkm", *given)["calibration"]
    assert (promise["groups"], promise["rows"]) == (8, 160)
    line = failed("train", data, "-o", tmp_path / "n.tkm", "--set", "max_error=1%", *QUICK)
    assert "160 held-out rows cannot promise" in line
    assert "more than 299" in line
    assert not (tmp_path / "n.tkm").exists()


def test_decisions_over_the_budget_ended_well(data, tmp_path, monkeypatch) -> None:
    """A model whose decisions are over the budget was saved with status 0: no file, one line."""
    linked = SimpleNamespace(over_budget=("flash is 1 B more",))
    monkeypatch.setattr(measure_report, "report", lambda *given: linked)
    given = ("--set", "max_error=15%", *QUICK, "--budget", "8KB")
    line = failed("train", data, "-o", tmp_path / "m.tkm", *given)
    assert line == "error: the trained model: flash is 1 B more; give a larger budget"
    assert not (tmp_path / "m.tkm").exists()
