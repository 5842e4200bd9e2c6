"""tinykernel train with the learned method: budget, groups, validation, Ctrl-C, reproducibility."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest

from tests.cli_tools import QUICK, QUICK_LEARNED, blobs, failed, process, run
from tinykernel import load
from tinykernel.data import load_data


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
    quick = ("--no-search", "--storage", "phases", "--epochs", 2)
    result = run("train", data, "-o", file, "--budget", "3KB", "--json", *quick)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert 0.85 * 3072 < found["flash"] <= found["budget"] == 3072
    assert found["report"]["fits"] is True
    assert (found["method"], found["storage"]) == ("learned", "phases")
    report = json.loads(run("report", file, "-t", "cortex-m4", "--json").stdout)
    assert report["flash"] == found["flash"]


def test_a_model_over_the_budget_is_trained_again_with_less(data, tmp_path, monkeypatch):
    """Where the size was misjudged, the result still fits."""
    monkeypatch.setattr(
        "tinykernel.measure.capacity.capacity", lambda *_, **__: {"phases": 640, "compact": 32}
    )
    found = json.loads(
        run("train", data, "-o", tmp_path / "m.tkm", "--budget", "3KB", "--json", "--quiet",
            "--no-search", "--epochs", 2, "--storage", "phases").stdout
    )  # fmt: skip
    assert 2500 < found["flash"] <= 3072
    assert found["components"] < 640


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
        "--class-weight", "balanced", "--storage", "windows", "--sigma", 2, "--seed", 7,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = load(file).get_params()
    expected = {
        "method": "learned", "n_components": 64, "epochs": 6, "search": False, "patience": 2,
        "augment": {"shift": 1, "noise": 0.3}, "image_shape": (1, 5), "storage": "windows",
        "class_weight": "balanced", "sigma": 2.0, "random_state": 7,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert load(file).history_["accuracy"].size >= 3


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
    X, y = blobs(60, 2)
    rows = "".join(
        f"{','.join(map(str, row))},{label},person{i // 6}\n"
        for i, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True))
    )
    (tmp_path / "t.csv").write_text("a,b,c,d,e,label,who\n" + rows)
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
        (("--validation", "0.7"), "validation_fraction must be", 1),
        (("--augment", "turn:1"), "write shift:PIXELS, noise", 2),
        (("--augment", "noise:much"), "write shift:PIXELS, noise", 2),
        (("--augment", "shift:-1", "--image-shape", "1x5"), "shift must be a whole number", 1),
        (("--augment", "shift:1"), "needs the image_shape", 1),
        (("--image-shape", "28"), "write HEIGHTxWIDTH", 2),
        (("--image-shape", "2x2"), "makes 4 pixels, but rows have 5", 1),
        (("--groups", "nobody"), "has no array 'nobody'", 1),
        (("--storage", "tiny"), "storage", 1),
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


def test_paper_still_reports_validation_rows(data, tmp_path):
    """--method paper has no epochs: the rows of --validation are reported only."""
    file = tmp_path / "m.tkm"
    result = run("train", data, "-o", file, *QUICK, "--validation", data, "--json")
    assert json.loads(result.stdout)["validation"]["rows"] == 30
