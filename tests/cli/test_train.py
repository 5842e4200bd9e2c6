"""tinykernel train: options, reproducibility, budgets, Ctrl-C, and no output after an error."""

import re
import signal
from unittest.mock import Mock

import numpy as np
import pytest

from tests.cli import tools
from tests.cli.tools import QUICK, blobs, failed, json_of, process, run, sets, succeeded
from tinykernel import Classifier, load
from tinykernel.compile.targets import TARGETS


@pytest.fixture
def data(work):
    """The file with a test part and groups."""
    return work / "data.npz"


def test_train_prints_accuracy_with_its_split(work, tmp_path):
    """The accuracy is printed with its split and the file; --json prints it, and nothing else."""
    file, data = tmp_path / "m.pkl", tools.arrays(work / "data.npz")
    train = ("train", work / "data.npz", "-o", file, *QUICK)
    result = succeeded(*train[:-1])
    for text in ("120 training rows, 30 test rows", "m.pkl", "64"):
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
        assert "has no column called 'c'" in failed(command, model, table)
    said = failed("train", table, "--label", "LABLE", "-o", model)
    assert "has no column called 'LABLE'; did you mean 'label'? columns: " in said


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
    [("judged", KeyboardInterrupt), ("about_evaluation", [{}, KeyboardInterrupt])],
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
        "tinykernel.judge.baselines.label_baselines", Mock(side_effect=KeyboardInterrupt)
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


@pytest.mark.parametrize(
    ("options", "expected", "status"),
    [
        ("--set method=paper --class-weight balanced", "only for method learned", 2),
        ("--set method=x", "choose from learned, paper", 2),
        ("--set lambda=1", "only for method paper", 2),
        ("--set method=paper --set lambda=-1", "give a number of 0 or more", 2),
        ("--set method=paper --set paper_loss=exp", "choose from squared_hinge", 2),
        ("--set method=paper --validation 0.1", "--validation: only for method learned", 2),
        ("--validation 0.7", "--validation: '0.7': give a share above 0 and below 0.5", 2),
        ("--seed 99999999999", "4294967295", 2),
        ("--budget 8KB -t host", "--budget: host has no flash to measure", 2),
        ("--set n_components=64 --augment shift:1", "give --image-shape or --window-shape", 1),
        ("--image-shape 28", "write HEIGHTxWIDTH", 2),
        ("--set n_components=64 --image-shape 2x2", "--set n_components: only for components", 1),
        ("--budget 8KB --augment shift:1 --image-shape 2x2", "makes 4 values", 1),
        ("--set n_components=64 --groups nobody", "has no array 'nobody'", 1),
        ("--set layout=tiny", "is not a layout", 2),
        ("--class-weight heavy", "--class-weight: must be balanced, or weights of labels", 2),
        ("--image-shape 28x28", "makes 784 values, but rows have 5 inputs", 1),
        ("--window-shape 5", "write SAMPLESxCHANNELS", 2),
        ("--augment turn:1", "write KIND or KIND:AMOUNT", 2),
        ("--augment shift:0.5", "write KIND or KIND:AMOUNT", 2),
        ("--set short=pad", "only for recordings; give --window", 2),
        ("--hop 5", "only for recordings; give --window", 2),
        ("--set drop=a", "has no columns; leave out inputs and drop", 1),
        ("--window 1s --missing keep", "'keep': choose drop or error for recordings", 2),
        ("--window 1s --set input_type=int8", "not an option for recordings", 2),
    ],
)
def test_bad_values(data, tmp_path, options, expected, status):
    """A value that is bad, or does not fit to the data, ends with one clear line and no file."""
    given = ("-o", tmp_path / "m.tkm", "-q", *options.split())
    assert expected in " ".join(failed("train", data, *given, status=status).split())
    assert not list(tmp_path.iterdir())


def test_outputs_are_refused_before_training(work, tmp_path, monkeypatch):
    """An output that cannot be, an unknown target or parameter is refused before the long work."""
    monkeypatch.setattr(Classifier, "fit", None)
    data = work / "data.npz"
    for output, expected in [
        (tmp_path / "m.joblib", ".tkm or .pkl"),
        (tmp_path / "none" / "m.tkm", "its folder does not exist"),
        ("/proc/m.tkm", "cannot be written"),
    ]:
        assert expected in failed("train", data, "-o", output, *QUICK)
    message = failed("train", data, "-o", tmp_path / "m.tkm", "-t", "cortex-m99", *QUICK)
    assert all(name in message for name in TARGETS)
    X, y = blobs(60, 0)
    np.savez(tmp_path / "whole.npz", X=X, y=y)
    given = ("-o", tmp_path / "m.tkm", "--test", tools.bare(tmp_path), *QUICK)
    assert "has no labels; --test needs them" in failed("train", tmp_path / "whole.npz", *given)
    assert not list(tmp_path.glob("m.*"))


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
    assert "training was interrupted after" in err.splitlines()[-1]
    assert load(tmp_path / "m.tkm").n_classes == 3
