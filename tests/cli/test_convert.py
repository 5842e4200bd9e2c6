"""`tinykernel convert`: model files of other libraries."""

import importlib

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import tinykernel
from tests.cli.tools import run, succeeded
from tinykernel import report


@pytest.mark.parametrize(
    ("library", "name", "file"),
    [("lightgbm", "LGBMClassifier", "w.txt"), ("xgboost", "XGBClassifier", "w.ubj")],
)
def test_a_booster_becomes_a_model_file(library, name, file, tmp_path, require_tool):
    """The labels of the file are those of the model that was trained."""
    module = require_tool(library)
    X, y = load_wine(return_X_y=True)
    quiet = {"verbose": -1} if library == "lightgbm" else {}
    model = getattr(module, name)(n_estimators=5, n_jobs=1, **quiet).fit(X, y)
    booster = model.booster_ if library == "lightgbm" else model.get_booster()
    booster.save_model(str(tmp_path / file))
    succeeded("convert", tmp_path / file, "-o", tmp_path / "w.tkm")
    loaded = tinykernel.load(tmp_path / "w.tkm")
    assert (loaded.predict(X) == model.predict(X)).all()


def test_a_linear_model_and_a_budget_take_rows(tmp_path, require_tool):
    """With --data a linear model of a file is converted, and a forest made smaller."""
    require_tool("skops")
    skops = importlib.import_module("skops.io")
    X, y = load_wine(return_X_y=True)
    np.savez(tmp_path / "wine.npz", X=X, y=y)
    model, output = tmp_path / "m.skops", tmp_path / "m.tkm"
    line = ("convert", model, "-o", output, "--data", tmp_path / "wine.npz")
    skops.dump(LogisticRegression(max_iter=5000).fit(X, y), model)
    done = succeeded(*line)
    assert "0 of 178 rows have another label" in done.stdout
    skops.dump(RandomForestClassifier(40, random_state=0).fit(X, y), model)
    output.unlink()
    done = succeeded(*line, "--budget", "3KB", "--max-change", "0.2")
    assert report(tinykernel.load(output), budget="3KB").fits


@pytest.mark.parametrize(
    ("file", "message"),
    [("m.pkl", "joblib.load('m.pkl')"), ("m.h5", "not a file of"), ("m.txt", "no such file")],
)
def test_other_files_are_refused(file, message, tmp_path):
    """A pickle is not run: the error has the lines of Python that do it."""
    result = run("convert", tmp_path / file, "-o", tmp_path / "m.tkm")
    assert result.exit_code == 2 or result.exit_code == 1
    assert message in result.stderr
    assert not (tmp_path / "m.tkm").exists()
