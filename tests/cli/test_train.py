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
from tinykernel.cli.common.rows import in_batches
from tinykernel.cli.common.summary import _why_left
from tinykernel.codegen.targets import TARGETS
from tinykernel.data.load import load_data


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
    from tinykernel import load

    file = tmp_path / "m.pkl"
    result = run("train", work / "data.npz", "-o", file, "--json", *QUICK)
    found = json.loads(result.stdout)
    model = load(file)
    data = tools.arrays(work / "data.npz")
    assert found["test_accuracy"] == model.score(data["X_test"], data["y_test"])
    integer = model.quantize()
    assert found["train_accuracy"] == np.mean(integer.predict(data["X_train"]) == data["y_train"])
    assert (found["train_rows"], found["test_rows"], found["classes"]) == (120, 30, 3)
    assert found["bytes"] == file.stat().st_size
    assert found["components"] == 64


@pytest.mark.parametrize("suffix", ["tkm", "pkl"])
def test_model_remembers_its_columns(tmp_path, suffix):
    """A model finds its columns by name, in any order, or says which is missing."""
    X, y = blobs(60, 0)
    table, model = tmp_path / "a.csv", tmp_path / f"m.{suffix}"
    lines = [f"{','.join(map(str, row))},{label}" for row, label in zip(X.tolist(), y, strict=True)]
    table.write_text("\n".join(["a,b,c,d,e,label", *lines]))
    assert run("train", table, "-o", model, *QUICK).exit_code == 0
    assert run("verify", model, table, "--target", "host").exit_code == 0
    scores = json_of("predict", model, table)["scores"]
    swapped = [[*row[:1], row[2], row[1], *row[3:]] for row in (x.split(",") for x in lines)]
    table.write_text("\n".join(["a,c,b,d,e,label", *map(",".join, swapped)]))
    assert json_of("predict", model, table)["scores"] == scores
    table.write_text("\n".join(["a,x,b,d,e,label", *lines]))
    for command in (("verify", model, table), ("predict", model, table)):
        assert "has no column called 'c'" in failed(*command)


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
    small = run("train", data, "-o", tmp_path / "m.tkm", *options, "--set", "n_components=32")
    assert "the most that are chosen" not in small.stdout


def test_same_bytes_with_one_and_two_threads(data, tmp_path):
    """The same seed gives the same .tkm with 1 and 2 threads, search and all."""
    for jobs in (1, 2):
        run(
            "train",
            data,
            "-o",
            tmp_path / f"{jobs}.tkm",
            *sets("n_components=64", "epochs=3", f"n_jobs={jobs}"),
            "-q",
        )
    first = (tmp_path / "1.tkm").read_bytes()
    assert first == (tmp_path / "2.tkm").read_bytes()
    run("train", data, "-o", tmp_path / "3.tkm", *QUICK, "--seed", 1)
    assert first != (tmp_path / "3.tkm").read_bytes()


def test_options_reach_the_estimator(data, tmp_path):
    """Every option of the method ends up as the parameter of that name."""
    file = tmp_path / "m.pkl"
    result = run(
        "train",
        data,
        "-o",
        file,
        *QUICK,
        "--groups",
        "group_train",
        "--validation",
        data,
        "--class-weight",
        "balanced",
        *sets("n_components=windows:64", "sigma=2"),
        "--seed",
        7,
    )
    assert result.exit_code == 0, result.stderr
    found = load(file).get_params()
    found |= found["options"]
    expected = {
        "n_components": {"windows": 64},
        "epochs": 20,
        "effort": "quick",
        "class_weight": "balanced",
        "sigma": 2.0,
        "random_state": 7,
    }
    assert {name: found[name] for name in expected} == expected
    assert load(file).history_["accuracy"].size >= 3


def test_groups_and_validation_are_used(data, tmp_path, monkeypatch):
    """--groups and --validation reach fit, from .npz and from a column of a table."""
    seen = []

    def look(self, X, y, sample_weight=None, **named):
        seen.append((X.shape, named))
        raise KeyboardInterrupt

    monkeypatch.setattr(TernaryKernelClassifier, "fit", look)
    run("train", data, "-o", tmp_path / "m.tkm", "--groups", "group_train", *QUICK)
    tools.table_with_groups(tmp_path)
    run(
        "train",
        tmp_path / "t.csv",
        "-o",
        tmp_path / "m.tkm",
        "--groups",
        "who",
        *QUICK,
        "--validation",
        tmp_path / "t.csv",
    )
    (shape, named), (shape2, named2) = seen
    assert (shape, np.unique(named["groups"]).size) == ((120, 5), 6)
    assert "validation" not in named
    assert (shape2, np.unique(named2["groups"]).size) == ((48, 5), 8)
    assert named2["validation"][0].shape == (60, 5)
    assert not (tmp_path / "m.tkm").exists()


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


def test_rows_are_predicted_in_batches():
    """Memory does not grow with the number of rows; the result is that of all at once."""
    seen = []
    rows = np.arange(10000)
    found = in_batches(lambda part: seen.append(part.size) or 2 * part, rows)
    assert np.array_equal(found, 2 * rows)
    assert max(seen) <= 4096


@pytest.mark.parametrize("options", [(), ("--budget", "4KB")])
def test_paper(data, tmp_path, options):
    """method=paper takes seed, components and sigma, and a budget."""
    options = options or ("--set", "n_components=64")
    result = run(
        "train",
        data,
        "-o",
        tmp_path / "m.pkl",
        *sets("method=paper", "sigma=1"),
        "--seed",
        5,
        "--set",
        "n_jobs=1",
        "--json",
        "-q",
        *options,
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["sigma"], found["layout"]) == (1.0, None)
    assert found["regularization"] > 0
    assert found["components"] == 64 or 3500 < found["flash"] <= 4096
    assert load(tmp_path / "m.pkl").random_state == 5


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
        (("--set", "method=paper", "--class-weight", "balanced"), "only for method learned", 2),
        (("--set", "method=x"), "choose from learned, paper", 2),
        (
            sets("method=paper", "epochs=2"),
            "--set epochs: only for method learned",
            2,
        ),
        (("--validation", "0.7"), "--validation: '0.7': write a share above 0 and below 0.5", 2),
        (("--validation", "nan"), "--validation: 'nan': write a share", 2),
        (
            ("--set", "method=paper", "--validation", "0.1"),
            "--validation: only for method learned",
            2,
        ),
        (("--set", "method=paper", "--validation", "f.npz"), "no such file", 2),
        (("--seed", "99999999999"), "4294967295", 2),
        (("--budget", "8KB", "-t", "host"), "--budget: host has no flash to measure", 2),
        (("--budget", "8KB", "--set", "code=many"), "--set code: must be one of", 2),
        (("--augment", "turn:1"), "write KIND or KIND:AMOUNT", 2),
        (("--augment", "shift:-1"), "write KIND or KIND:AMOUNT", 2),
        (("--augment", "shift:1"), "give --image-shape or --window-shape", 1),
        (("--image-shape", "28"), "write HEIGHTxWIDTH", 2),
        (
            ("--image-shape", "2x2"),
            "--set n_components: only for tables; signals and images have --set n_kernels",
            1,
        ),
        (("--budget", "8KB", "--augment", "shift:1", "--image-shape", "2x2"), "makes 4 values", 1),
        (("--groups", "nobody"), "has no array 'nobody'", 1),
        (("--set", "n_components=tiny:4"), "its layouts are", 2),
        (("--class-weight", "heavy"), "--class-weight: must be balanced, or weights of labels", 2),
        (("--budget", "500"), "no model for this data fits", 1),
    ],
)
def test_bad_values(data, tmp_path, options, expected, status):
    """A bad value ends with one clear line and no file."""
    chosen = options if "--budget" in options else ("--set", "n_components=64", *options)
    message = failed("train", data, "-o", tmp_path / "m.tkm", "-q", *chosen, status=status)
    assert expected in " ".join(message.split())
    assert not list(tmp_path.iterdir())


def test_a_shape_that_rows_cannot_have_is_refused_at_once(data, tmp_path, monkeypatch):
    """Before anything is sought or trained, and by the name of the option."""

    def never(*_):
        raise AssertionError

    monkeypatch.setattr("tinykernel.budget.fitting.sizes_that_fit", never)
    for option in ("--image-shape", "--window-shape"):
        command = ("train", data, "-o", tmp_path / "m.tkm", "-q", option, "2x2")
        said = f"error: {option}: 2 x 2 makes 4 values, but rows have 5 inputs"
        assert failed(*command).startswith(said)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ax,label\n1,a\n2\n", "row 2 (line 3): has 1 values, the header has 2"),
        ("ax,label\n1,a\ninf,b\n2,a\n1,b\n", "column 'ax' is infinite"),
        ("ax,label\n1,a\n2,a\n", "one class only"),
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


def test_ctrl_c_while_training_leaves_no_file(tmp_path):
    """Ctrl-C ends training with one line, status 130, and nothing written."""
    X, y = blobs(4000, 0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    running = process(
        "train",
        tmp_path / "data.npz",
        "-o",
        tmp_path / "m.tkm",
        *sets("n_components=4096", "method=paper"),
    )
    assert running.stderr is not None
    assert any(line.startswith("choosing") for line in running.stderr)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in err
    assert [file.name for file in tmp_path.iterdir()] == ["data.npz"]


def test_ctrl_c_keeps_the_best_model(tmp_path):
    """Ctrl-C after an epoch ends the training, writes the model and says so in one line."""
    X, y = blobs(6000, 0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    running = process(
        "train",
        tmp_path / "data.npz",
        "-o",
        tmp_path / "m.tkm",
        "--set",
        "n_components=512",
        "--effort",
        "quick",
        "--set",
        "epochs=5000",
    )
    assert running.stderr is not None
    first = next(line for line in running.stderr if " s left" in line)
    assert first.startswith("training: "), first
    assert "loss" in first
    assert "s left" in first
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    assert "m.tkm" in out
    assert "training was interrupted after" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert load(tmp_path / "m.tkm").n_classes == 3


def test_the_hint_of_more_kernels_came_where_they_were_given() -> None:
    """The hint that n_kernels takes more than 512 was printed beside n_kernels=1500."""
    found = {"kernels": 1500, "components": 0, "local": "signal", "hop": 0, "size_given": True}
    found["model_kind"] = "1500 kernels"
    assert _why_left(found) == ""
    assert "--set n_kernels=N takes more" in _why_left(found | {"size_given": False})


def test_channels_that_are_not_more_were_not_explained() -> None:
    """A budget with room for more, whose number is that of a limit of work, said nothing."""
    found = {"kernels": None, "channels": 55, "components": 0, "local": "image", "most_chosen": 55}
    words = _why_left(found | {"size_given": False})
    assert words == " (55 channels are the most that are chosen; --set n_kernels=N takes more)"
    assert _why_left(found | {"size_given": False, "most_chosen": 56}) == ""
