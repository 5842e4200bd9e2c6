"""tinykernel train with the learned method: budget, groups, validation, Ctrl-C, reproducibility."""

from __future__ import annotations

import json
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cli_tools import (
    QUICK_LEARNED,
    blobs,
    failed,
    process,
    run,
    table_with_groups,
)
from tinykernel import load
from tinykernel.cli import training as module
from tinykernel.data.load import load_data


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A file with a test part, groups and images of 1 x 5 pixels."""
    (X, y), (X_test, y_test) = blobs(120, 0), blobs(30, 1)
    file = tmp_path_factory.mktemp("learned") / "data.npz"
    arrays = {"X_train": X, "y_train": y, "X_test": X_test, "y_test": y_test}
    np.savez(file, group_train=np.arange(120) // 20, **arrays)
    return file


def test_budget(data, tmp_path):
    """With a budget the linked program fits, uses it, and the report is printed with the model."""
    file = tmp_path / "m.tkm"
    quick = ("--no-search", "--layout", "phases", "--epochs", 2)
    result = run("train", data, "-o", file, "--budget", "3KB", "--json", *quick)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert 0.85 * 3072 < found["flash"] <= found["budget"] == 3072
    assert found["report"]["fits"] is True
    assert (found["method"], found["layout"]) == ("learned", "phases")
    report = json.loads(run("report", file, "-t", "cortex-m4", "--json").stdout)
    assert report["flash"] == found["flash"]


def test_a_model_over_the_budget_is_trained_again_with_less(data, tmp_path, monkeypatch):
    """Where the size was misjudged, the result still fits."""
    monkeypatch.setattr(
        "tinykernel.measure.capacity.capacity", lambda *_, **__: {"phases": 640, "compact": 32}
    )
    found = json.loads(
        run("train", data, "-o", tmp_path / "m.tkm", "--budget", "3KB", "--json", "--quiet",
            "--no-search", "--epochs", 2, "--layout", "phases").stdout
    )  # fmt: skip
    assert 2500 < found["flash"] <= 3072
    assert found["components"] < 640


def _always_over(monkeypatch):
    """Measure every trained model as 100 bytes over its budget; return the components trained."""
    real_fit, rounds = module._fit, []

    def fit(dataset, given, extra, quiet):
        rounds.append(given["n_components"])
        return real_fit(dataset, given, extra, quiet)

    def measured(integer, target, budget):
        return SimpleNamespace(flash=budget + 100, target=target, source="linked")

    monkeypatch.setattr(module, "_fit", fit)
    monkeypatch.setattr(module, "_measured", measured)
    return rounds


@pytest.mark.parametrize("method", ["learned", "paper"])
def test_a_budget_that_is_never_met_ends(data, tmp_path, monkeypatch, method):
    """With 32 components there is nothing left to save: one line, and no endless loop."""
    rounds = _always_over(monkeypatch)
    monkeypatch.setattr("tinykernel.measure.capacity.capacity", lambda *_, **__: {"compact": 64})
    monkeypatch.setattr("tinykernel.measure.capacity.paper_components_within", lambda *_, **__: 64)
    options = {
        "learned": ("--no-search", "--epochs", 1),
        "paper": ("--method", "paper", "--sigma", 1, "--lambda", 0.1, "--max-iter", 1),
    }
    message = failed(
        "train", data, "-o", tmp_path / "m.tkm", "--budget", "3KB", "-q", *options[method]
    )
    assert "100 over the budget of 3072" in message
    assert "give a larger --budget" in message
    assert rounds[1:] == [32]
    assert not list(tmp_path.iterdir())


def test_ctrl_c_is_not_answered_by_another_training(data, tmp_path, monkeypatch):
    """A model over the budget whose training was interrupted is not trained again."""
    rounds = _always_over(monkeypatch)
    counted = module._fit

    def interrupted(*arguments):
        estimator = counted(*arguments)
        estimator.interrupted_ = True
        return estimator

    monkeypatch.setattr(module, "_fit", interrupted)
    monkeypatch.setattr("tinykernel.measure.capacity.capacity", lambda *_, **__: {"compact": 640})
    message = failed("train", data, "-o", tmp_path / "m.tkm", "--budget", "3KB", *QUICK_LEARNED[2:])
    assert "training was interrupted" in message
    assert "over the budget of 3072" in message
    assert len(rounds) == 1
    assert not list(tmp_path.iterdir())


def test_a_second_training_does_not_search_again(data, tmp_path, monkeypatch):
    """Format, sigma and noise of the first training are kept; what else is varied stays."""
    from tinykernel.training import learned

    real, results = learned.fit_joint, []

    def spied(*arguments, **named):
        results.append(real(*arguments, **named))
        return results[-1]

    monkeypatch.setattr(learned, "fit_joint", spied)
    monkeypatch.setattr(
        "tinykernel.measure.capacity.capacity", lambda *_, **__: {"phases": 640, "compact": 2560}
    )
    file = tmp_path / "m.pkl"
    result = run(
        "train", data, "-o", file, "--budget", "3KB", "--quiet", "--epochs", 2,
        "--augment", "shift:1", "--image-shape", "1x5",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    first, last = results[0], results[-1]
    assert len(results) >= 2
    assert first.trials
    assert not last.trials
    assert last.options.layout == first.options.layout
    assert last.options.noise == first.options.noise
    assert last.sigma == pytest.approx(first.sigma)
    assert last.options.n_components < first.options.n_components
    assert load(file).augment == {"shift": 1, "noise": first.options.noise}


def test_components_beyond_the_budget_are_refused_before_training(data, tmp_path, monkeypatch):
    """-p with a budget is checked on an untrained model: nobody waits to learn that it is over."""
    monkeypatch.setattr("tinykernel.training.learned.fit_joint", None)
    for options in ((), ("--layout", "windows")):
        message = failed(
            "train", data, "-o", tmp_path / "m.tkm", "-p", 32768, "--budget", "3KB", *options
        )
        assert "a model of 32768 components needs at least" in message
        assert "use fewer --n-components" in message
    assert not list(tmp_path.iterdir())


def test_default_budget(data, tmp_path, monkeypatch):
    """Without --budget and --n-components it is 30 KB; for the host there is none."""
    seen = {}

    def stop(*_, **named):
        seen.update(named)
        raise KeyboardInterrupt

    monkeypatch.setattr("tinykernel.cli.train.train_model", stop)
    for options, expected in [((), 30720), (("-p", 64), None), (("-t", "host"), None)]:
        assert run("train", data, "-o", tmp_path / "m.tkm", *options).exit_code == 130
        assert seen["budget"] == expected


def test_a_budget_that_is_not_used_up_says_why(data, tmp_path, monkeypatch):
    """A large budget is not filled without end, and the command says so."""
    monkeypatch.setattr("tinykernel.measure.capacity.MOST_CHOSEN", 64)
    options = ("--budget", "1MB", "--epochs", 2, "--no-search")
    result = run("train", data, "-o", tmp_path / "m.tkm", *options)
    assert result.exit_code == 0, result.output
    assert "64 components are the most that are chosen" in " ".join(result.stdout.split())
    small = run("train", data, "-o", tmp_path / "m.tkm", *options, "-p", 32)
    assert "the most that are chosen" not in small.stdout


def test_same_bytes_with_one_and_two_threads(data, tmp_path):
    """The same seed gives the same .tkm with 1 and 2 threads, search and all."""
    for jobs in (1, 2):
        run(
            "train", data, "-o", tmp_path / f"{jobs}.tkm", "-p", 64, "--epochs", 3, "-j", jobs, "-q"
        )
    first = (tmp_path / "1.tkm").read_bytes()
    assert first == (tmp_path / "2.tkm").read_bytes()
    run("train", data, "-o", tmp_path / "3.tkm", *QUICK_LEARNED, "--seed", 1)
    assert first != (tmp_path / "3.tkm").read_bytes()


def test_options_reach_the_estimator(data, tmp_path):
    """Every option of the method ends up as the parameter of that name."""
    file = tmp_path / "m.pkl"
    result = run(
        "train", data, "-o", file, *QUICK_LEARNED, "--groups", "group_train", "--validation", data,
        "--patience", 2, "--augment", "shift:1", "--augment", "noise", "--image-shape", "1x5",
        "--class-weight", "balanced", "--layout", "windows", "--sigma", 2, "--seed", 7,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = load(file).get_params()
    expected = {
        "method": "learned", "n_components": 64, "epochs": 6, "search": False, "patience": 2,
        "augment": {"shift": 1, "noise": 0.3}, "image_shape": (1, 5), "layout": "windows",
        "class_weight": "balanced", "sigma": 2.0, "random_state": 7,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert load(file).history_["accuracy"].size >= 3


def test_no_search_makes_no_trials(data, tmp_path):
    """--no-search with a budget once made short trainings all the same, to choose the layout."""
    file = tmp_path / "m.pkl"
    result = run("train", data, "-o", file, "--budget", "4KB", "--no-search", "--epochs", 1)
    assert result.exit_code == 0, result.stderr
    assert load(file).layout_ == "compact"
    assert not load(file).cv_results_


def test_validation_can_be_a_share(data, tmp_path):
    """--validation 0.2 keeps some of the training rows aside."""
    file = tmp_path / "m.pkl"
    result = run("train", data, "-o", file, *QUICK_LEARNED, "--validation", 0.2, "--patience", 3)
    assert result.exit_code == 0, result.stderr
    assert load(file).history_["accuracy"].size == load(file).n_iter_


def test_groups_and_validation_are_used(data, tmp_path, monkeypatch):
    """--groups and --validation reach fit, from .npz and from a column of a table."""
    seen = []

    def look(X, codes, **named):
        seen.append((X.shape, named))
        raise KeyboardInterrupt

    monkeypatch.setattr("tinykernel.training.learned.fit_joint", look)
    run("train", data, "-o", tmp_path / "m.tkm", "--groups", "group_train", *QUICK_LEARNED)
    table_with_groups(tmp_path)
    run(
        "train", tmp_path / "t.csv", "-o", tmp_path / "m.tkm", "--groups", "who", *QUICK_LEARNED,
        "--validation", tmp_path / "t.csv",
    )  # fmt: skip
    (shape, named), (shape2, named2) = seen
    assert (shape, np.unique(named["groups"]).size) == ((120, 5), 6)
    assert named["validation"] is None
    assert (shape2, np.unique(named2["groups"]).size) == ((48, 5), 8)
    assert named2["validation"][0].shape == (60, 5)
    assert not (tmp_path / "m.tkm").exists()


def test_whole_groups_are_kept_aside(tmp_path):
    """A file without a test part is split by whole groups, repeatably."""
    X, y = blobs(100, 0)
    np.savez(tmp_path / "d.npz", X=X, y=y, who=np.arange(100) // 5)
    split = load_data(tmp_path / "d.npz", groups="who")
    whole = {tuple(row): i // 5 for i, row in enumerate(X.tolist())}
    groups = [
        {whole[tuple(row)] for row in part.tolist()} for part in (split.X_train, split.X_test)
    ]
    assert not groups[0] & groups[1]
    assert 10 <= len(split.X_test) <= 30
    assert "whole groups kept aside" in split.split
    assert np.array_equal(split.X_test, load_data(tmp_path / "d.npz", groups="who").X_test)


@pytest.mark.parametrize(
    ("options", "expected", "status"),
    [
        (("--lambda", 1), "--regularization: only for --method paper", 2),
        (("--method", "paper", "--epochs", 2), "--epochs: only for --method learned", 2),
        (("--patience", 2), "needs --validation", 2),
        (("--validation", "0.7"), "--validation: '0.7': write a share above 0 and below 0.5", 2),
        (("--validation", "nan"), "--validation: 'nan': write a share", 2),
        (
            ("--method", "paper", "--validation", "0.1"),
            "--validation: only for --method learned",
            2,
        ),
        (("--method", "paper", "--validation", "f.npz"), "--validation: only for", 2),
        (("--seed", "99999999999"), "4294967295", 2),
        (("--budget", "8KB", "-t", "host"), "--budget: host has no flash to measure", 2),
        (("--budget", "8KB", "--input-bits", "many"), "input_bits must be one of", 1),
        (("--augment", "turn:1"), "write shift:PIXELS, noise", 2),
        (("--augment", "noise:much"), "write shift:PIXELS, noise", 2),
        (("--augment", "shift:-1", "--image-shape", "1x5"), "shift must be a whole number", 1),
        (("--augment", "shift:1"), "needs the image_shape", 1),
        (("--image-shape", "28"), "write HEIGHTxWIDTH", 2),
        (("--image-shape", "2x2"), "makes 4 pixels, but rows have 5", 1),
        (("--groups", "nobody"), "has no array 'nobody'", 1),
        (("--layout", "tiny"), "layout", 1),
        (("-p", 65537), "at most 65536", 1),
        (("--class-weight", "heavy"), "class_weight must be one of", 1),
        (("--budget", "500"), "no model for this data fits", 1),
    ],
)
def test_bad_values(data, tmp_path, options, expected, status):
    """A bad value ends with one clear line and no file."""
    chosen = options if "--budget" in options else ("-p", 64, *options)
    message = failed("train", data, "-o", tmp_path / "m.tkm", "-q", *chosen, status=status)
    assert expected in " ".join(message.split())
    assert not list(tmp_path.iterdir())


def test_ctrl_c_keeps_the_best_model(tmp_path):
    """Ctrl-C after an epoch ends the training, writes the model and says so in one line."""
    X, y = blobs(6000, 0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    running = process(
        "train", tmp_path / "data.npz", "-o", tmp_path / "m.tkm", "-p", 512, "--no-search",
        "--epochs", 5000,
    )  # fmt: skip
    assert running.stderr is not None
    first = running.stderr.readline()
    assert first.startswith("training: "), first
    assert "loss" in first
    assert "s left" in first
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    assert "m.tkm" in out
    assert "training was interrupted after" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert np.mean(load(tmp_path / "m.tkm").predict(X) == y) > 0.7
