"""Ranges of inputs: rows in another unit, and columns that lose their digits."""

import numpy as np
import pytest

from tests.cli.tools import QUICK, json_of, run, succeeded
from tinykernel import Classifier, evaluate
from tinykernel.data.columns import lost_digits
from tinykernel.data.origin import Origin
from tinykernel.judge.ranges import outside

RNG = np.random.default_rng(0)


def rows(low: float, high: float, n: int = 60) -> np.ndarray:
    return RNG.uniform(low, high, (n, 3))


@pytest.fixture(scope="module")
def classifier():
    X = rows(-1, 1, 300)
    model = Classifier(n_components=32, effort="quick", epochs=2, random_state=0)
    return model.fit(X, X[:, 0] > X[:, 1])


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (rows(-1, 1), ""),
        (rows(-1.2, 1.2), ""),
        (rows(300, 700), "input 0 (100 % of the values; 3"),
        (np.c_[rows(-1, 1)[:, :2], RNG.uniform(-90, 90, 60)], "range: input 2 ("),
        (rows(-1, 1) / 1000, "all inputs keep to 0.5 % of their training range"),
        (rows(-1, 1) * 0, ""),
        (np.r_[rows(-1, 1), rows(50, 90, 2)], ""),
        (rows(-1, 1)[:0], ""),
    ],
)
def test_rows_in_another_unit_are_named(classifier, X, said):
    """Raw counts for a model of -1 to 1 saturate every input; a little drift or noise is usual."""
    lines = outside(classifier.quantize(), X)
    assert [said in line for line in lines] == [True] * bool(said)
    if len(X):
        assert evaluate(classifier, X, X[:, 0] > X[:, 1]).cautions == lines


def test_an_input_that_was_constant_has_no_range(classifier):
    """Where inputs share a scale, a constant one may lie outside it and means nothing."""
    X = np.c_[rows(-1, 1, 300), np.full(300, 1e6)]
    model = Classifier(n_components=32, effort="quick", epochs=2, random_state=0)
    assert outside(model.fit(X, X[:, 0] > 0).quantize(), X) == ()


def test_channels_of_windows_have_their_names():
    """Of a signal each channel has one range, over all samples of a window."""
    X = RNG.normal(size=(80, 64, 2))
    X[::2, :, 0] *= 3
    model = Classifier(n_kernels=20, effort="quick", random_state=0)
    integer = model.fit(X, np.arange(80) % 2).quantize()
    assert outside(integer, X) == ()
    X[:, :, 1] += 200
    names = Origin.read({"recordings": {"channels": ["ax", "ay"]}})
    (line,) = outside(integer, X.reshape(80, -1), names)
    assert "ay" in line


def test_commands_name_inputs_outside_the_range(tmp_path):
    """predict, evaluate, verify and export --data say it once each, beside their results."""
    for name, (low, high) in {"a.csv": (-1, 1), "counts.csv": (300, 700)}.items():
        X = rows(low, high, 100)
        lines = [f"{a:.3f},{b:.3f},{c:.3f},{'uv'[int(a > b)]}" for a, b, c in X]
        (tmp_path / name).write_text("\n".join(["a,b,c,label", *lines]))
    model, data = tmp_path / "m.tkm", tmp_path / "counts.csv"
    succeeded("train", tmp_path / "a.csv", "-o", model, *QUICK)
    for command in ("predict", "evaluate", "verify"):
        assert run(command, model, data).output.count("another unit or scaling?") == 1, command
        assert "another unit" not in run(command, model, tmp_path / "a.csv").output
    assert "another unit" in json_of("predict", model, data)["notes"][0]
    how = ("--format", "single", "-o", tmp_path / "c")
    assert "another unit" in succeeded("export", model, "--data", data, *how).output


def test_columns_that_lose_their_digits_are_named():
    """A pressure in mPa has one value left; usual floats and counts keep all."""
    X = np.c_[101_325_000 + RNG.uniform(-2, 2, 400), RNG.random(400), 1e6 + np.arange(400.0)]
    (line,) = lost_digits(X, ["mpa", "w", "n"])
    assert line.startswith("column 'mpa': its 400 different values become ")
    assert "subtract a number near 101325000" in line
    assert lost_digits(X.astype(np.float32), ["mpa", "w", "n"]) == ()


def test_baselines_get_the_digits_of_the_model():
    """A linear model is judged in the 32 bits that the firmware has, too."""
    X = 101_325_000 + RNG.choice([-1, 1], (200, 1)) + np.c_[RNG.normal(size=200)] / 9
    X, y = np.c_[X, RNG.normal(size=200)], (X[:, 0] > 101_325_000).astype(int)
    model = Classifier(n_components=32, effort="quick", epochs=2, random_state=0)
    judged = evaluate(model.fit(X, y), X, y, train=(X, y))
    assert judged.baselines["linear"].figures["accuracy"] < 0.8
