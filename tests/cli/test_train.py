"""tinykernel train: options, reproducibility, budgets, Ctrl-C, and no output after an error."""

import re
import signal
from unittest.mock import Mock

import numpy as np
import pytest

from tests.cli import tools
from tests.cli.tools import QUICK, blobs, failed, json_of, process, run, sets, succeeded
from tinykernel import Classifier, load


@pytest.fixture
def data(work):
    """The file with a test part and groups."""
    return work / "data.npz"


def test_train_prints_accuracy_with_its_split(work, tmp_path):
    """The accuracy is printed with its split and the file; --json prints it, and nothing else."""
    file, data = tmp_path / "m.pkl", tools.arrays(work / "data.npz")
    train = ("train", work / "data.npz", "-o", file, *QUICK)
    result = succeeded(*train[:-1])
    for text in ("120 training rows, 30 test rows", "m.pkl", " components of 5 inputs"):
        assert text in result.stdout
    assert re.search(r"\ntraining  \d+\.\d\d %\ntest      \d+\.\d\d %\n", result.stdout)
    found, model = json_of(*train), load(file)
    assert found["test_accuracy"] == model.score(data["X_test"], data["y_test"])
    assert found["train_accuracy"] == model.score(data["X_train"], data["y_train"])
    assert (found["train_rows"], found["test_rows"], found["classes"]) == (120, 30, 3)
    assert (found["bytes"], found["components"]) == (file.stat().st_size, 64)


@pytest.mark.parametrize("suffix", ["tkm", "pkl"])
def test_model_remembers_its_columns(tmp_path, suffix):
    """A model finds its columns by name, in any order, or says which is missing."""
    table, model = tools.table_with_groups(tmp_path), tmp_path / f"m.{suffix}"
    succeeded("train", table, "-o", model, *QUICK, "--set", "drop=who")
    scores = json_of("predict", model, table)["scores"]
    lines = [line.split(",") for line in table.read_text().splitlines()]
    swapped = [[cells[0], cells[2], cells[1], *cells[3:]] for cells in lines]
    table.write_text("\n".join(map(",".join, swapped)))
    assert json_of("predict", model, table)["scores"] == scores
    table.write_text(table.read_text().replace("a,c,", "a,x,", 1))
    for command in ("verify", "predict"):
        failed(command, model, table)
    failed("train", table, "--label", "LABLE", "-o", model)


def test_options_reach_the_estimator(data, tmp_path, monkeypatch):
    """Every option ends up as the parameter of that name; groups reach fit."""
    seen = []

    def look(self, X, y, sample_weight=None, **named):
        seen.append((X.shape, named, self.get_params()))
        raise KeyboardInterrupt

    monkeypatch.setattr(Classifier, "problem", look)
    model, table = tmp_path / "m.tkm", tools.table_with_groups(tmp_path)
    train, balanced = ("train", "-o", model, *QUICK[2:]), ("--class-weight", "balanced")
    more = (*balanced, *sets("n_components=64", "layout=windows", "sigma=2"), "--seed", 7)
    assert failed(*train, data, "--groups", "group_train", *more, status=130)
    given = (*QUICK[:2], "--groups", "who", "--validation", 0.1)
    assert failed(*train, table, *given, status=130)
    (shape, named, parameters), (shape2, named2, parameters2) = seen
    assert (shape, np.unique(named["groups"]).size) == ((120, 5), 6)
    assert (shape2, np.unique(named2["groups"]).size) == ((48, 5), 8)
    assert parameters2["validation_fraction"] == 0.1
    assert not model.exists()
    expected = {
        "n_components": 64,
        "layout": "windows",
        "epochs": 20,
        "effort": "quick",
        "class_weight": "balanced",
        "sigma": 2.0,
        "random_state": 7,
    }
    assert {name: parameters[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("function", "results"),
    [("judge_test_rows", KeyboardInterrupt), ("about_evaluation", [{}, KeyboardInterrupt])],
)
def test_the_model_is_saved_before_it_is_judged(data, tmp_path, monkeypatch, function, results):
    """Whatever fails after the training, the model is in its file, and the user is told."""
    monkeypatch.setattr(f"tinykernel.face.commands.train.{function}", Mock(side_effect=results))
    file = tmp_path / "m.tkm"
    result = run("train", data, "-o", file, *QUICK)
    assert result.exit_code == 130
    assert "holds the trained model" in " ".join(result.stderr.split())
    assert load(file).n_classes == 3


def test_an_interrupted_comparison_loses_nothing(data, tmp_path, monkeypatch):
    """The accuracy is printed and the model saved before simple models are trained."""
    file = tmp_path / "m.tkm"
    run("train", data, "-o", tmp_path / "whole.tkm", *QUICK[:-1])
    monkeypatch.setattr(
        "tinykernel.judge.models.label_baselines", Mock(side_effect=KeyboardInterrupt)
    )
    result = succeeded("train", data, "-o", file, *QUICK[:-1])
    assert "\naccuracy " in result.stdout
    assert f"saved     {file}\n" in result.stdout
    assert "not compared with simple models" in result.stderr
    assert load(file).fingerprint() == load(tmp_path / "whole.tkm").fingerprint()


def test_paper(data, tmp_path):
    """method=paper takes seed, components, sigma, and what Algorithm 1 minimises."""
    given = (*sets("method=paper", "sigma=1", "n_jobs=1", "n_components=64"), "--seed", 5, "-q")
    found = json_of("train", data, "-o", tmp_path / "m.pkl", *given)
    assert (found["layout"], found["components"]) == (None, 64)
    assert load(tmp_path / "m.pkl").random_state == 5
    options = ("lambda=0.02", "paper_loss=hinge", "penalty=l1", "binary=true")
    json_of("train", data, "-o", tmp_path / "b.pkl", *given, *sets(*options))
    model = load(tmp_path / "b.pkl")
    assert (model.regularization, model.loss, model.penalty) == (0.02, "hinge", "l1")
    assert model.binary is True


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_model(tmp_path):
    """Ctrl-C after an epoch ends the training, writes the model and says so in one line."""
    X, y = blobs(6000, 0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    options = (*sets("n_components=512", "epochs=5000"), "--effort", "quick")
    running = process("train", tmp_path / "data.npz", "-o", tmp_path / "m.tkm", *options)
    first = next(line for line in running.stderr if " s left" in line)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert first.startswith("training: ")
    assert "loss" in first
    assert running.returncode == 0
    assert "m.tkm" in out
    assert "Traceback" not in err
    assert "interrupted" in err.splitlines()[-1]
    assert load(tmp_path / "m.tkm").n_classes == 3
