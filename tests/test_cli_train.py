"""tinykernel train and demo: options, reproducibility, budgets, and no output after an error."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest

from tests.cli_tools import QUICK, QUICK_LEARNED, arrays, bare, blobs, failed, process, run, trained
from tinykernel.cli.demo import _digest
from tinykernel.codegen.targets import TARGETS
from tinykernel.errors import TinykernelError
from tinykernel.files import MANIFEST, manifest


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with data.npz and the model trained on it, in both formats."""
    return trained(tmp_path_factory.mktemp("cli"))


def test_train_prints_accuracy_with_its_split(work, tmp_path):
    """The accuracy of floats and integers is printed with the split beside it, and the file."""
    result = run("train", work / "data.npz", "-o", tmp_path / "m.tkm", *QUICK[:-1])
    assert result.exit_code == 0
    for text in ("120 training rows, 30 test rows", "in floats", "in integers", "m.tkm", "64"):
        assert text in result.stdout
    assert "learning the weights" in result.stderr


def test_train_json(work, tmp_path):
    """--json prints one object on stdout with measured numbers and nothing else."""
    from tinykernel import load

    file = tmp_path / "m.pkl"
    result = run("train", work / "data.npz", "-o", file, "--json", *QUICK)
    found = json.loads(result.stdout)
    model = load(file)
    data = arrays(work / "data.npz")
    assert found["test_accuracy_float"] == model.score(data["X_test"], data["y_test"])
    integer = model.quantize()
    assert found["train_accuracy"] == np.mean(integer.predict(data["X_train"]) == data["y_train"])
    assert (found["train_rows"], found["test_rows"], found["classes"]) == (120, 30, 3)
    assert found["bytes"] == file.stat().st_size
    assert found["components"] == 64


def test_train_is_reproducible(work, tmp_path):
    """The same data and seed give the same bytes; another seed another model."""
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run("train", work / "data.npz", "-o", tmp_path / f"{name}.tkm", "--seed", seed, *QUICK)
    a, b, c = ((tmp_path / f"{name}.tkm").read_bytes() for name in "abc")
    assert a == b == (work / "gesture.tkm").read_bytes()
    assert a != c


@pytest.mark.parametrize("suffix", ["tkm", "pkl"])
def test_model_remembers_its_columns(tmp_path, suffix):
    """A model from a table refuses a table with swapped columns, and its C names the inputs."""
    X, y = blobs(60, 0)
    table, model = tmp_path / "a.csv", tmp_path / f"m.{suffix}"
    lines = [f"{','.join(map(str, row))},{label}" for row, label in zip(X.tolist(), y, strict=True)]
    table.write_text("\n".join(["a,b,c,d,e,label", *lines]))
    assert run("train", table, "-o", model, *QUICK).exit_code == 0
    assert run("verify", model, "--data", table, "--target", "host").exit_code == 0
    table.write_text("\n".join(["a,c,b,d,e,label", *lines]))
    for command in (("verify", model, "--data", table), ("predict", model, table)):
        assert "feature 2 is 'c' where the model was trained with 'b'" in failed(*command)
    assert (
        run("export", model, "--target", "host", "-o", tmp_path / "out", "--quiet").exit_code == 0
    )
    headers = [path.read_text() for path in (tmp_path / "out").rglob("*.h")]
    assert any('1 "b", 2 "c"' in text for text in headers)


def test_train_options_reach_the_estimator(work, tmp_path):
    """Every option of the method ends up as the parameter of that name."""
    from tinykernel import load

    file = tmp_path / "m.pkl"
    result = run(
        "train", work / "data.npz", "-o", file, "--loss", "hinge",
        "--penalty", "l1", "--coefficients", "binary", "--scaler", "standard",
        "--scaler-scope", "global", "--input-bits", 16, "--class-weight", "balanced",
        "--seed", 5, "--jobs", 1, *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    expected = {
        "method": "paper", "loss": "hinge", "penalty": "l1", "coefficients": "binary",
        "scaler": "standard", "scaler_scope": "global", "input_bits": 16,
        "class_weight": "balanced", "random_state": 5, "n_components": 64, "sigma": 1.0,
        "regularization": 0.1, "max_iter": 3,
    }  # fmt: skip
    found = load(file).get_params()
    assert {name: found[name] for name in expected} == expected


def test_budget_decides_the_number_of_components(work, tmp_path):
    """With a budget and no -p the largest model that fits is trained, and it does fit."""
    quick = QUICK[2:]
    file = tmp_path / "m.tkm"
    result = run(
        "train", work / "data.npz", "-o", file, "--budget", "4KB", "-t", "cortex-m0", "--json",
        *quick,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["flash"] <= found["budget"] == 4096
    assert found["flash"] > 0.85 * 4096
    report = json.loads(run("report", file, "-t", "cortex-m0", "--json").stdout)
    assert report["flash"] == found["flash"]


def test_budget_that_cannot_be_met(work, tmp_path):
    """A budget that nothing meets, or the given -p does not, writes no model."""
    data, file = work / "data.npz", tmp_path / "m.tkm"
    assert "no model for this data fits" in failed(
        "train", data, "-o", file, "--budget", "300", *QUICK[2:]
    )
    assert "over the budget" in failed(
        "train", data, "-o", file, "--budget", "3KB", "-p", 2048, *QUICK[2:]
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ax,label\n1,a\nfast,b\n", "row 2 (line 3), column 'ax': 'fast' is not a number"),
        ("ax,label\n1,a\nnan,b\n2,a\n1,b\n", "row 2 (line 3), column 'ax' is NaN"),
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
    monkeypatch.setattr("tinykernel.papers.ternary.paper.fit_outputs", None)
    monkeypatch.setattr("tinykernel.training.learned.fit_joint", None)
    data = work / "data.npz"
    for output, expected in [
        (tmp_path / "m.joblib", ".tkm or .pkl"),
        (tmp_path / "none" / "m.tkm", "no folder"),
        ("/proc/m.tkm", "cannot be written"),
    ]:
        assert expected in failed("train", data, "-o", output, *QUICK)
    message = failed("train", data, "-o", tmp_path / "m.tkm", "-t", "cortex-m99", *QUICK)
    assert all(name in message for name in TARGETS)
    wrong = failed("train", data, "-o", tmp_path / "m.tkm", *QUICK, "--method", "x", status=2)
    assert "choose from learned, paper" in wrong
    assert "labels" in failed(
        "train", data, "-o", tmp_path / "m.tkm", "--validation", bare(tmp_path), *QUICK_LEARNED
    )
    assert not list(tmp_path.glob("m.*"))


def test_ctrl_c_while_training_leaves_no_file(tmp_path):
    """Ctrl-C ends training with one line, status 130, and nothing written."""
    X, y = blobs(4000, 0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    running = process(
        "train", tmp_path / "data.npz", "-o", tmp_path / "m.tkm", "-p", 4096, "--method", "paper"
    )
    assert running.stderr is not None
    first = running.stderr.readline()
    assert first.startswith("choosing"), first
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in err
    assert [file.name for file in tmp_path.iterdir()] == ["data.npz"]


# -------------------------------------------------------------------------------------------- demo


def test_demo_keeps_what_is_not_its_own(tmp_path, monkeypatch):
    """demo replaces an earlier demo, but no other folder, and none that somebody worked on."""
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "digits.h").write_text("")
    assert "--force" in failed("demo", "-o", tmp_path, "-q")
    assert (tmp_path / "mine.txt").read_text() == "mine"

    def stop(*_: object, **__: object) -> None:
        raise TinykernelError("began")

    monkeypatch.setattr("tinykernel.cli.demo.train_model", stop)
    (tmp_path / MANIFEST).write_bytes(manifest({}))
    (tmp_path / ".tinykernel-demo").write_text(_digest(tmp_path))
    (tmp_path / ".pio").mkdir()
    (tmp_path / ".pio" / "built.o").write_text("")
    assert "began" in failed("demo", "-o", tmp_path, "-q")
    (tmp_path / "include" / "digits.h").write_text("edited")
    assert "--force" in failed("demo", "-o", tmp_path, "-q")
    assert "began" in failed("demo", "-o", tmp_path, "-q", "--force")


@pytest.mark.slow
def test_demo(tmp_path):
    """demo goes the whole way on digits: trains, exports, verifies all test rows, reports."""
    folder = tmp_path / "digits"
    result = run("demo", "-o", folder, "--json", "-q")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["train"]["train_rows"], found["train"]["test_rows"]) == (1347, 450)
    assert (found["verify"]["scores"], found["verify"]["differences"]) == (4500, 0)
    assert found["verify"]["accuracy"] > 0.95
    assert abs(found["train"]["test_accuracy_float"] - found["verify"]["accuracy"]) <= 0.004
    assert found["report"]["target"] == "cortex-m4"
    assert found["report"]["fits"] is True
    assert (folder / "platformio.ini").is_file()
