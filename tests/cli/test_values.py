"""--task numbers: every command on values, and what is refused in one line."""

import numpy as np
import pytest

from tests.cli.tools import QUICK, failed, json_of, run, succeeded
from tinykernel import load


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """A folder with a table of hours left, and a regressor trained on it."""
    folder = tmp_path_factory.mktemp("values")
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3)).astype(np.float32)
    y = 100 + 30 * X[:, 0] - 10 * X[:, 1] * X[:, 2] + rng.normal(size=300)
    lines = [",".join(f"{v:.4f}" for v in (*row, hours)) for row, hours in zip(X, y, strict=True)]
    (folder / "wear.csv").write_text("\n".join(["rms,peak,temp,hours", *lines]) + "\n")
    given = ("--label", "hours", "--task", "numbers", *QUICK)
    succeeded("train", folder / "wear.csv", "-o", folder / "wear.tkm", *given)
    return folder


def test_every_command_speaks_of_values(values, tmp_path):
    """Values and RMSE are printed, never classes or accuracies; thresholds are refused."""
    model, data = values / "wear.tkm", values / "wear.csv"
    found = json_of("evaluate", model, data)
    assert found["rows"] == 60
    assert found["rmse"] < found["baselines"]["mean"]["rmse"] / 2
    assert found["interval"][0] < found["rmse"] < found["interval"][1]
    shown = run("evaluate", model, data)
    assert "RMSE" in shown.stdout
    assert "accuracy" not in shown.stdout
    predicted = json_of("predict", model, data)
    assert predicted["outputs"] == ["hours"]
    integer = load(model)
    fixed = np.array(predicted["scores"]) / 2**integer.answers.shift
    np.testing.assert_array_equal(fixed, predicted["values"])
    table = tmp_path / "p.csv"
    succeeded("predict", model, data, "-o", table, "--quiet")
    assert table.read_text().splitlines()[0] == "row,hours"
    inspected = json_of("inspect", model)
    assert inspected["scale_shift"] == integer.answers.shift
    verified = json_of("verify", model, data)
    assert (verified["rows"], verified["differences"], verified["accuracy"]) == (60, 0, None)
    assert verified["evaluation"]["r2"] > 0.5
    given = (model, data, "-o", tmp_path / "c.tkm", "--max-error", "1%")
    failed("calibrate", *given)
