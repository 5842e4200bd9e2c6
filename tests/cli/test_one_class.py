"""train --task novelty, and the commands on what it writes."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.tools import blobs, failed, json_of, succeeded
from tinykernel import load
from tinykernel.model.file import about


@pytest.fixture(scope="module")
def normal(tmp_path_factory) -> Path:
    """Return a folder with normal rows, others, and a model."""
    folder = tmp_path_factory.mktemp("one")
    X, y = blobs(900, 3)
    np.savez(folder / "normal.npz", X=X[y == 0])
    np.savez(folder / "fresh.npz", X=blobs(900, 4)[0][y == 0])
    np.savez(folder / "all.npz", X=X, y=np.where(y == 0, "normal", "novel"))
    lines = [",".join(f"{value:.3f}" for value in row) for row in X[y == 0]]
    (folder / "normal.csv").write_text("a,b,c,d,e\n" + "\n".join(lines) + "\n")
    given = ("--task", "novelty", "--set", "false_alarms=10%", "-t", "host")
    found = json_of("train", folder / "normal.npz", *given, "-o", folder / "m.tkm")
    assert found["novelty"]["bound"] <= 0.1
    assert found["threshold"] == -int(load(folder / "m.tkm").readout.offset[0])
    return folder


def test_the_commands_work_on_it(normal, tmp_path) -> None:
    """verify, predict, evaluate, inspect and calibrate take a model of one class."""
    model = normal / "m.tkm"
    found = json_of("verify", model, normal / "all.npz")
    assert (found["differences"], 0 < found["accuracy"] < 1) == (0, True)  # by the rows held out
    labels = json_of("predict", model, normal / "all.npz")["labels"]
    assert set(labels) == {"normal", "novel"}
    succeeded("evaluate", model, normal / "all.npz")
    output = tmp_path / "again.tkm"
    succeeded("calibrate", model, normal / "fresh.npz", "--false-alarms", "2%", "-o", output)
    assert "at most 2 %" in about(output)["calibration"]["statement"]
    assert load(output).readout.offset[0] <= load(model).readout.offset[0]
    failed("calibrate", model, normal / "normal.npz", "--false-alarms", "2%", "-o", output)


def test_labels_of_machines_give_no_accuracy(normal, tmp_path) -> None:
    """Where labels are neither normal nor novel, rows are not judged."""
    X, y = blobs(90, 4)
    data, model = tmp_path / "d.npz", normal / "m.tkm"
    np.savez(data, X=X, y=y)
    failed("evaluate", model, data)
    found = json_of("verify", model, data)
    assert (found["accuracy"], found["evaluation"]) == (None, None)
    failed("report", model, "--html", tmp_path / "m.html", "--data", data, "-t", "cortex-m4")


def test_tables_have_names_and_a_budget(normal, tmp_path) -> None:
    """Columns are the inputs by name, and fewer prototypes keep to a budget."""
    output = tmp_path / "m.tkm"
    options = ("--task", "novelty", "--set", "false_alarms=10%", "-o", output)
    given = ("train", normal / "normal.csv", *options)
    whole = json_of(*given)
    assert load(output).feature_names == ("a", "b", "c", "d", "e")
    found = json_of(*given, "--budget", "620B")  # with a margin for compilers
    assert 0 < found["prototypes"] < whole["prototypes"]
    assert found["report"]["flash"] <= 620
    output.unlink()
    for budget in ("20B", "ram=20B"):  # a limit beside flash was once ignored
        failed(*given, "--budget", budget, "-q")
        assert not output.exists()
