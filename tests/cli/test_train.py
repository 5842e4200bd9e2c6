"""tinykernel train: options, reproducibility, budgets, Ctrl-C, and no output after an error."""

from __future__ import annotations

import json
import re
import signal

import numpy as np
import pytest

from tests.cli import tools
from tests.cli.tools import QUICK, blobs, failed, json_of, process, run, sets
from tinykernel import TernaryKernelClassifier, load
from tinykernel.cli.common.summary import _why_left
from tinykernel.codegen.targets import TARGETS


@pytest.fixture
def data(work):
    """The file with a test part and groups."""
    return work / "data.npz"


def test_train_prints_accuracy_with_its_split(work, tmp_path):
    """The accuracy is printed once with the split beside it, and the file."""
    result = run("train", work / "data.npz", "-o", tmp_path / "m.tkm", *QUICK[:-1], "-v")
    assert result.exit_code == 0
    for text in ("120 training rows, 30 test rows", "m.tkm", "64"):
        assert text in result.stdout
    assert re.search(r"\ntraining  \d+\.\d\d %\ntest      \d+\.\d\d %\n", result.stdout)
    assert result.stderr.splitlines()[-1].startswith("time: ")


def test_train_json(work, tmp_path):
    """--json prints one object on stdout with measured numbers and nothing else."""
    file, data = tmp_path / "m.pkl", tools.arrays(work / "data.npz")
    found = json_of("train", work / "data.npz", "-o", file, *QUICK)
    model = load(file)
    assert found["test_accuracy"] == model.score(data["X_test"], data["y_test"])
    assert found["train_accuracy"] == model.score(data["X_train"], data["y_train"])
    assert (found["train_rows"], found["test_rows"], found["classes"]) == (120, 30, 3)
    assert (found["bytes"], found["components"]) == (file.stat().st_size, 64)


@pytest.mark.parametrize("suffix", ["tkm", "pkl"])
def test_model_remembers_its_columns(tmp_path, suffix):
    """A model finds its columns by name, in any order, or says which is missing."""
    table, model = tools.table_with_groups(tmp_path), tmp_path / f"m.{suffix}"
    assert run("train", table, "-o", model, *QUICK, "--set", "drop=who").exit_code == 0
    scores = json_of("predict", model, table)["scores"]
    lines = [line.split(",") for line in table.read_text().splitlines()]
    swapped = [[cells[0], cells[2], cells[1], *cells[3:]] for cells in lines]
    table.write_text("\n".join(map(",".join, swapped)))
    assert json_of("predict", model, table)["scores"] == scores
    table.write_text(table.read_text().replace("a,c,", "a,x,", 1))
    for command in ("verify", "predict"):
        assert "has no column called 'c'" in failed(command, model, table)


def test_budget(data, tmp_path):
    """With a budget the linked program fits, uses it, and the report is printed with the model."""
    file = tmp_path / "m.tkm"
    quick = ("--effort", "quick", "--set", "epochs=2")
    result = run("train", data, "-o", file, "--budget", "3KB", "--json", *quick)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert 0.75 * 3072 < found["flash"] <= found["budget"] == 3072
    assert found["report"]["fits"] is True
    assert (found["method"], found["layout"]) == ("learned", "compact")
    report = json_of("report", file, "-t", "cortex-m4")
    assert report["flash"] == found["flash"]


def test_a_budget_that_is_not_used_up_says_why(data, tmp_path, monkeypatch):
    """A large budget is not filled without end, and the command says so."""
    monkeypatch.setattr("tinykernel.measure.capacity.MOST_CHOSEN", 64)
    options = ("--budget", "1MB", "--set", "epochs=2", "--effort", "quick")
    result = run("train", data, "-o", tmp_path / "m.tkm", *options)
    assert result.exit_code == 0, result.output
    assert "64 components are the most that are chosen" in " ".join(result.stdout.split())


def test_same_bytes_with_one_and_two_threads(data, tmp_path):
    """The same seed gives the same .tkm with 1 and 2 threads, search and all."""
    for jobs in (1, 2):
        options = sets("n_components=64", "epochs=3", f"n_jobs={jobs}")
        run("train", data, "-o", tmp_path / f"{jobs}.tkm", *options, "-q")
    assert (tmp_path / "1.tkm").read_bytes() == (tmp_path / "2.tkm").read_bytes()


def test_options_reach_the_estimator(data, tmp_path):
    """Every option of the method ends up as the parameter of that name."""
    given = ("--groups", "group_train", "--validation", data, "--class-weight", "balanced")
    more = (*sets("n_components=windows:64", "sigma=2"), "--seed", 7)
    result = run("train", data, "-o", tmp_path / "m.pkl", *QUICK[2:], *given, *more)
    assert result.exit_code == 0, result.stderr
    model = load(tmp_path / "m.pkl")
    parameters = model.get_params()
    parameters |= parameters["options"] or {}
    expected = {
        "n_components": {"windows": 64},
        "epochs": 20,
        "effort": "quick",
        "class_weight": "balanced",
        "sigma": 2.0,
        "random_state": 7,
    }
    assert {name: parameters[name] for name in expected} == expected
    assert model.history_["accuracy"].size >= 3


def test_groups_and_validation_are_used(data, tmp_path, monkeypatch):
    """--groups and --validation reach fit, from .npz and from a column of a table."""
    seen = []

    def look(self, X, y, sample_weight=None, **named):
        seen.append((X.shape, named))
        raise KeyboardInterrupt

    monkeypatch.setattr(TernaryKernelClassifier, "fit", look)
    model, table = tmp_path / "m.tkm", tools.table_with_groups(tmp_path)
    run("train", data, "-o", model, "--groups", "group_train", *QUICK)
    run("train", table, "-o", model, "--groups", "who", *QUICK, "--validation", table)
    (shape, named), (shape2, named2) = seen
    assert (shape, np.unique(named["groups"]).size) == ((120, 5), 6)
    assert "validation" not in named
    assert (shape2, np.unique(named2["groups"]).size) == ((48, 5), 8)
    assert named2["validation"][0].shape == (60, 5)
    assert not model.exists()


def test_the_model_is_saved_before_it_is_judged(data, tmp_path, monkeypatch):
    """Whatever fails after the training, the model is in its file, and the user is told."""

    def fault(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tinykernel.cli.common.summary.accuracies", fault)
    file = tmp_path / "m.tkm"
    result = run("train", data, "-o", file, *QUICK)
    assert result.exit_code == 130
    assert "holds the trained model" in " ".join(result.stderr.split())
    assert load(file).n_classes == 3


def test_paper(data, tmp_path):
    """method=paper takes seed, components and sigma, and says its lambda."""
    given = (*sets("method=paper", "sigma=1", "n_jobs=1", "n_components=64"), "--seed", 5, "-q")
    found = json_of("train", data, "-o", tmp_path / "m.pkl", *given)
    assert (found["sigma"], found["layout"], found["components"]) == (1.0, None, 64)
    assert found["regularization"] > 0
    assert load(tmp_path / "m.pkl").random_state == 5


@pytest.mark.parametrize(
    ("options", "expected", "status"),
    [
        ("--set method=paper --class-weight balanced", "only for method learned", 2),
        ("--set method=x", "choose from learned, paper", 2),
        ("--set method=paper --validation 0.1", "--validation: only for method learned", 2),
        ("--set method=paper --validation f.npz", "no such file", 2),
        ("--validation 0.7", "--validation: '0.7': write a share above 0 and below 0.5", 2),
        ("--validation nan", "--validation: 'nan': write a share", 2),
        ("--seed 99999999999", "4294967295", 2),
        ("--budget 8KB -t host", "--budget: host has no flash to measure", 2),
        ("--budget 8KB --set code=many", "--set code: must be one of", 2),
        ("--set n_components=64 --augment shift:1", "give --image-shape or --window-shape", 1),
        ("--image-shape 28", "write HEIGHTxWIDTH", 2),
        ("--set n_components=64 --image-shape 2x2", "--set n_components: only for tables", 1),
        ("--budget 8KB --augment shift:1 --image-shape 2x2", "makes 4 values", 1),
        ("--set n_components=64 --groups nobody", "has no array 'nobody'", 1),
        ("--set n_components=tiny:4", "its layouts are", 2),
        ("--class-weight heavy", "--class-weight: must be balanced, or weights of labels", 2),
    ],
)
def test_bad_values(data, tmp_path, options, expected, status):
    """A bad value ends with one clear line and no file."""
    given = ("-o", tmp_path / "m.tkm", "-q", *options.split())
    assert expected in " ".join(failed("train", data, *given, status=status).split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ax,ay\n1,2\n", "--label"),
        (None, "no such file"),
    ],
)
def test_bad_data_leave_nothing_behind(tmp_path, text, expected):
    """Bad data end training with one line, status 1 and no output."""
    data = tmp_path / "data.csv"
    if text is not None:
        data.write_text(text)
    before = sorted(tmp_path.iterdir())
    assert expected in failed("train", data, "-o", tmp_path / "m.tkm", *QUICK)
    assert sorted(tmp_path.iterdir()) == before


def test_outputs_are_refused_before_training(work, tmp_path, monkeypatch):
    """An output that cannot be, an unknown target or parameter is refused before the long work."""
    monkeypatch.setattr(TernaryKernelClassifier, "fit", None)
    data = work / "data.npz"
    for output, expected in [
        (tmp_path / "m.joblib", ".tkm or .pkl"),
        (tmp_path / "none" / "m.tkm", "no folder"),
        ("/proc/m.tkm", "cannot be written"),
    ]:
        assert expected in failed("train", data, "-o", output, *QUICK)
    message = failed("train", data, "-o", tmp_path / "m.tkm", "-t", "cortex-m99", *QUICK)
    assert all(name in message for name in TARGETS)
    assert "labels" in failed(
        "train", data, "-o", tmp_path / "m.tkm", "--validation", tools.bare(tmp_path), *QUICK
    )
    assert not list(tmp_path.glob("m.*"))


def interrupted(folder, rows, *options, when):
    """Interrupt a training as soon as a line on stderr has some text; status and what it says."""
    X, y = blobs(rows, 0)
    np.savez(folder / "data.npz", X=X, y=y)
    running = process("train", folder / "data.npz", "-o", folder / "m.tkm", *options)
    first = next(line for line in running.stderr if when in line)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert "Traceback" not in err
    return running.returncode, first, out, err.splitlines()[-1]


def test_ctrl_c_while_training_leaves_no_file(tmp_path):
    """Ctrl-C ends training with one line, status 130, and nothing written."""
    options = sets("n_components=4096", "method=paper")
    status, _, out, last = interrupted(tmp_path, 4000, *options, when="choosing")
    assert (status, out, last) == (130, "", "error: interrupted")
    assert [file.name for file in tmp_path.iterdir()] == ["data.npz"]


def test_ctrl_c_keeps_the_best_model(tmp_path):
    """Ctrl-C after an epoch ends the training, writes the model and says so in one line."""
    options = (*sets("n_components=512", "epochs=5000"), "--effort", "quick")
    status, first, out, last = interrupted(tmp_path, 6000, *options, when=" s left")
    assert first.startswith("training: ")
    assert "loss" in first
    assert status == 0
    assert "m.tkm" in out
    assert "training was interrupted after" in last
    assert load(tmp_path / "m.tkm").n_classes == 3


@pytest.mark.parametrize(
    ("facts", "hint"),
    [
        ({"kernels": 1500}, " (1024 kernels are the most that are chosen; --set n_kernels=N"),
        ({"kernels": 1500, "size_given": True}, ""),
        ({"kernels": None, "channels": 55, "local": "image", "most_chosen": 55}, " (55 channels"),
        ({"kernels": None, "channels": 55, "local": "image", "most_chosen": 56}, ""),
    ],
)
def test_a_budget_that_is_left_over_is_explained(facts, hint):
    """The hint names the most that is chosen, and stays away where a number was given."""
    result = {"components": 0, "local": "signal", "hop": 0, "size_given": False, "model_kind": ""}
    assert _why_left(result | facts).startswith(hint)
    assert bool(_why_left(result | facts)) == bool(hint)
