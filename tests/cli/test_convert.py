"""`tinykernel convert`: model files of other libraries."""

import importlib

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import tinykernel
from tests.cli.tools import failed, run, succeeded
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
    assert (tinykernel.load(tmp_path / "w.tkm").predict(X) == model.predict(X)).all()


def test_a_linear_model_and_a_budget_take_rows(tmp_path, require_tool):
    """With --data a linear model of a file is converted, and a forest made smaller."""
    require_tool("skops")
    skops = importlib.import_module("skops.io")
    X, y = load_wine(return_X_y=True)
    np.savez(tmp_path / "wine.npz", X=X, y=y)
    model, output = tmp_path / "m.skops", tmp_path / "m.tkm"
    line = ("convert", model, "-o", output, "--data", tmp_path / "wine.npz")
    skops.dump(LogisticRegression(max_iter=5000).fit(X, y), model)
    assert "0 of 178 rows have another label" in succeeded(*line).stdout
    skops.dump(RandomForestClassifier(40, random_state=0).fit(X, y), model)
    output.unlink()
    succeeded(*line, "--budget", "3KB", "--max-change", "0.2")
    assert report(tinykernel.load(output), budget="3KB").fits
    output.unlink()
    succeeded(*line, "--budget", "3KB", "--max-change", "0.2", "--target", "cortex-m0plus")
    assert report(tinykernel.load(output), "cortex-m0plus", budget="3KB").fits


def test_a_table_of_rows_may_have_labels_and_gaps(tmp_path, require_tool):
    """Its inputs are those of the model; missing values stay, and text is refused."""
    lightgbm = require_tool("lightgbm")
    rng = np.random.default_rng(0)
    X, names = rng.normal(size=(200, 2)).round(2), ["a", "b"]
    model = lightgbm.LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1)
    frame = importlib.import_module("pandas").DataFrame(X, columns=names)
    model = model.fit(frame, X[:, 0] > 0)
    model.booster_.save_model(str(tmp_path / "m.txt"))
    frame.loc[3, "a"] = np.nan
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.assign(kind="x").to_csv(tmp_path / "labelled.csv", index=False)
    line = ("convert", tmp_path / "m.txt", "-o", tmp_path / "m.tkm", "--data")
    for file in ("rows.csv", "labelled.csv"):
        assert "0 of 200 rows" in succeeded(*line, tmp_path / file).stdout
        (tmp_path / "m.tkm").unlink()
    frame.assign(a="x").to_csv(tmp_path / "text.csv", index=False)
    failed(*line, tmp_path / "text.csv")


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_rows_with_gaps_are_taken_by_all_commands_if_the_model_takes_them(suffix, tmp_path):
    """Empty cells stay NaN, also in the self-test; a model of weights refuses them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    y, whole = (X[:, 0] > 0).astype(int), X.copy()
    X[rng.random(X.shape) < 0.2] = np.nan
    model, rows, line = tmp_path / "m.tkm", tmp_path / f"rows.{suffix}", tmp_path / "line.tkm"
    tinykernel.save(tinykernel.convert(RandomForestClassifier(5, random_state=0).fit(X, y)), model)
    tinykernel.save(tinykernel.convert(LogisticRegression().fit(whole, y), whole), line)
    if suffix == "npz":
        np.savez(rows, X=X, y=y)
    else:
        cells = [
            [*("" if np.isnan(v) else repr(float(v)) for v in x), str(k)]
            for x, k in zip(X, y, strict=True)
        ]
        rows.write_text("\n".join(map(",".join, [["a", "b", "label"], *cells])))
    for command in (
        ("predict", model, rows),
        ("evaluate", model, rows),
        ("export", model, "--target", "host", "--data", rows, "-o", tmp_path / "c"),
    ):
        succeeded(*command)
    assert " NAN" in next(tmp_path.glob("c/**/m_vectors.h")).read_text()
    failed("predict", line, rows)


def test_categories_of_text_are_those_of_the_booster(tmp_path, require_tool):
    """Rows of a file get the codes of the booster, for convert and for predict."""
    lightgbm, pandas = require_tool("lightgbm"), require_tool("pandas")
    rng = np.random.default_rng(0)
    mode = np.array(["red", "green", "blue"])[rng.integers(0, 3, 200)]
    frame = pandas.DataFrame({"v": rng.normal(size=200).round(2), "mode": mode})
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1, min_child_samples=5)
    model = model.fit(frame.astype({"mode": "category"}), mode == "green")
    model.booster_.save_model(str(tmp_path / "m.txt"))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    line = ("convert", tmp_path / "m.txt", "-o", tmp_path / "m.tkm")
    assert "0 of 200 rows" in succeeded(*line, "--data", tmp_path / "rows.csv").stdout
    succeeded("predict", tmp_path / "m.tkm", tmp_path / "rows.csv")
    loaded = tinykernel.load(tmp_path / "m.tkm")
    assert np.array_equal(loaded.predict(frame) == 1, mode == "green")
    assert tinykernel.export(loaded, "host", tmp_path / "p", vectors=frame[:8])  # refused text


def test_a_damaged_file_of_trees_is_one_line(tmp_path, require_tool):
    """LightGBM would end the process where it reads trees in threads, or read fewer trees."""
    model = require_tool("lightgbm").LGBMClassifier(n_estimators=9, n_jobs=2, verbose=-1)
    X, y = load_wine(return_X_y=True)
    text, path = model.fit(X, y).booster_.model_to_string(), tmp_path / "m.txt"
    place = text.index("Tree=7")
    for damaged, message in (
        (text[: len(text) // 2], "its trees have no end"),
        (text[:place] + text[place + 40 :], "7 of 27 trees are left"),
        (text[: place + 300] + text[place + 340 :], ""),
    ):
        path.write_text(damaged)
        line = run("convert", path, "-o", tmp_path / "m.tkm").stderr.splitlines()[-1]
        assert "m.txt: lightgbm could not read it: " in line
        assert message in line
