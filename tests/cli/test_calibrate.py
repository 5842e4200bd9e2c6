"""tinykernel calibrate: what it prints and writes, and when it refuses."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.tools import QUICK, arrays, blobs, failed, json_of, run, succeeded
from tinykernel import load
from tinykernel.model.file import about, save


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    """Return rows that the model of the other tests has not seen."""
    X, y = blobs(600, 7)
    file = tmp_path_factory.mktemp("fresh") / "fresh.npz"
    np.savez(file, X=X, y=y)
    return file


def test_a_promise(work, fresh, tmp_path) -> None:
    """The model that is written refuses what it is unsure of, and the promise is in words."""
    output = tmp_path / "sure.tkm"
    result = succeeded("calibrate", work / "gesture.tkm", fresh, "--max-error", "10%", "-o", output)
    words = "with these 600 rows: error among answered at most 10 % with 95 % confidence"
    assert words in result.stdout
    model, rows = load(output), arrays(fresh)
    answers = model.decide(rows["X"])
    assert 0 < np.mean(answers < 0) < 0.9
    assert np.mean(answers[answers >= 0] != rows["y"][answers >= 0]) < 0.1
    assert about(output)["calibration"]["statement"] == words
    assert about(output)["training_rows"] == about(work / "gesture.tkm")["training_rows"]


def test_coverage(work, fresh, tmp_path) -> None:
    """--json prints one object with coverage, bound and thresholds; a .pkl may be calibrated."""
    given = (work / "gesture.pkl", fresh, "--coverage", "0.8", "-o", tmp_path / "m.pkl")
    found = json_of("calibrate", *given)
    assert found["coverage"] == pytest.approx(0.8, abs=0.02)
    assert found["thresholds"][0] > 0
    assert found["rows"] == 600


def test_false_alarms(work, fresh, tmp_path) -> None:
    """The threshold of novelty is written, printed and shown; too few rows write nothing."""
    output = tmp_path / "m.tkm"
    given = ("calibrate", work / "gesture.tkm", fresh, "-o", output, "--false-alarms")
    threshold = json_of(*given, "5%")["novelty"]["threshold"]
    assert json_of("inspect", output)["decision"]["novelty_threshold"] == threshold
    assert 0 < load(output).is_novel(arrays(fresh)["X"]).mean() < 0.05
    output.unlink()
    failed(*given, "0.1%")
    assert not output.exists()


def test_known_rows(work, fresh, tmp_path) -> None:
    """--known keeps prototypes of the training rows, by which far rows are novel; C agrees."""
    output, rows = tmp_path / "m.tkm", arrays(fresh)
    given = ("calibrate", work / "gesture.tkm", fresh, "-o", output, "--false-alarms", "5%")
    failed(*given, "--known", fresh)
    assert not output.exists()
    result = succeeded(*given, "--known", work / "data.npz")
    model = load(output)
    assert model.decision.prototypes.shape[1] == rows["X"].shape[1]
    assert model.is_novel(rows["X"]).mean() < 0.08
    far = rows["X"].copy()
    far[:, ::2] = rows["X"].max()
    far[:, 1::2] = rows["X"].min()
    assert model.is_novel(far).mean() > 0.9
    assert json_of("inspect", output)["decision"]["prototypes"] > 0
    result = run("verify", output, fresh, "--json")
    assert json.loads(result.stdout)["differences"] == 0


def test_a_model_that_exceeds_its_budget_by_calibration_is_named(work, fresh, tmp_path) -> None:
    """What decisions add to the code is compared with the budget of the training."""
    model = tmp_path / "tight.tkm"
    known = about(work / "gesture.tkm")
    save(load(work / "gesture.tkm"), model, known | {"target": "cortex-m4", "limits": "flash=100B"})
    given = ("calibrate", model, fresh, "--max-error", "10%", "-o", tmp_path / "m.tkm")
    (line,) = [one for one in json_of(*given)["remarks"] if "budget" in one]
    assert "more than the 100 of the budget; calibrate a model of a smaller --budget" in line


def test_predict_and_evaluate_of_a_calibrated_model(work, fresh, tmp_path) -> None:
    """Predict says what the firmware decides; evaluate warns of rows the promise was made with."""
    output, table = tmp_path / "sure.tkm", tmp_path / "rows.csv"
    run("calibrate", work / "gesture.tkm", fresh, "--max-error", "10%", "-o", output)
    X, model = arrays(fresh)["X"], load(output)
    wanted, confidence = model.decide(X), model.confidence(X).tolist()
    found = json_of("predict", output, fresh)
    assert [-1 if label is None else label for label in found["decisions"]] == wanted.tolist()
    assert found["confidence"] == confidence
    shown = run("predict", output, fresh, "-o", table).stdout
    assert "refused" in shown
    assert "answered" in shown
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["decision"] for row in rows] == [
        "refused" if label < 0 else str(label) for label in wanted
    ]
    assert [int(row["confidence"]) for row in rows] == confidence
    assert json_of("evaluate", output, fresh)["seen_in_calibration"] == 1
    plain = json_of("predict", work / "gesture.tkm", fresh)
    assert "decisions" not in plain


def test_some_duplicates_of_training_rows_are_allowed(tmp_path) -> None:
    """Rows that equal training rows are left out with a count."""
    X, y = blobs(600, 3)
    X = np.hstack([X, X[:, :3] ** 2]).astype(np.float32)
    X[400:420] = X[0]
    data, model = tmp_path / "d.npz", tmp_path / "m.tkm"
    np.savez(data, X=X, y=y)
    succeeded("train", data, "-o", model, *QUICK, "-q")
    said = succeeded("calibrate", model, data, "-o", tmp_path / "sure.tkm")
    assert re.search(r"left out: \d+ of 120 rows, which equal training rows", said.stdout)
