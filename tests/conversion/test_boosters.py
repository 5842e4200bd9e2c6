"""Boosted trees of LightGBM, XGBoost and CatBoost after conversion."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import tinykernel
from tinykernel.base.errors import ConvertError
from tinykernel.conversion.catboost import SavedModel
from tinykernel.conversion.models import change_of, convert

SETS = {"cancer": load_breast_cancer, "wine": load_wine}


@pytest.fixture
def fresh(require_tool):
    """Return a function that returns a model that is not fitted."""

    def make(library, kind, **options):
        quiet = {"verbose": -1} if library == "lightgbm" else {}
        name = {"lightgbm": "LGBM", "xgboost": "XGB"}[library] + kind
        options = {"n_estimators": 10, "n_jobs": 1} | quiet | options
        return getattr(require_tool(library), name)(**options)

    return make


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_no_row_has_another_label(library, data, fresh):
    """Also rows with missing values and infinities, which each split sends where it learned."""
    X, y = SETS[data](return_X_y=True)
    rng = np.random.default_rng(0)
    X = X.astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = fresh(library, "Classifier").fit(X, y)
    rows = X[rng.integers(0, len(X), 20000)]
    rows = rows + (rng.normal(size=rows.shape) * np.nanstd(X, axis=0)).astype(np.float32)
    if library == "lightgbm":  # XGBoost refuses them
        rows[::50, 0] = np.inf
    rows[rng.random(rows.shape) < 0.1] = np.nan
    converted = convert(model)
    assert np.array_equal(converted.predict(rows), model.predict(rows))
    booster = model.booster_ if library == "lightgbm" else model.get_booster()
    assert change_of(booster, convert(booster), rows).differing == 0


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_values_differ_by_the_rounding_of_sums(library, fresh):
    """Values are those of sums in float32, or closer."""
    X, y = load_diabetes(return_X_y=True)
    model = fresh(library, "Regressor").fit(X.astype(np.float32), y)
    values = convert(model, X).predict(X.astype(np.float32))
    assert np.abs(values - model.predict(X.astype(np.float32))).max() < 1e-3


@pytest.mark.parametrize(
    ("library", "options", "message"),
    [
        ("lightgbm", {"objective": "poisson"}, "no sum of leaves"),
        ("xgboost", {"objective": "count:poisson"}, "no sum of leaves"),
        ("lightgbm", {"reg_sqrt": True}, "reg_sqrt makes squares"),
        ("lightgbm", {"linear_tree": True}, "leaves of linear_tree"),
        ("xgboost", {"booster": "gblinear"}, "boosters of the kind 'gblinear'"),
        ("xgboost", {"multi_strategy": "multi_output_tree"}, "trees of several outputs"),
    ],
)
def test_other_boosters_are_refused(library, options, message, fresh):
    """An objective whose answers are no sums, and boosters without trees."""
    X, y = load_diabetes(return_X_y=True)
    y = np.stack([y, -y], axis=1) if "multi_strategy" in options else y
    model = fresh(library, "Regressor", **options).fit(X, y)
    with pytest.raises(ConvertError, match=message):
        convert(model)


def test_a_file_of_catboost_is_converted_without_the_library():
    """`catboost.json` is a model of CatBoost 1.2.10 of rows with gaps, and labels it predicted."""
    text = Path(__file__).with_name("catboost.json").read_text(encoding="utf-8")
    model, predicted = SavedModel(text), json.loads(text)["model_info"]["predicted"]
    rows = np.array(predicted["rows"], dtype=np.float32)  # null is NaN
    assert model.predict(rows).tolist() == predicted["labels"]
    rng = np.random.default_rng(0)
    many = rows[rng.integers(0, len(rows), 20000)]
    many += rng.normal(size=many.shape).astype(np.float32)
    converted = convert(model)
    assert np.array_equal(converted.predict(many), model.predict(many))
    assert tinykernel.verify(converted, many[:200]).differences == 0
    with pytest.raises(ConvertError, match="the loss 'Poisson' of CatBoost"):
        SavedModel(text.replace("MultiClass", "Poisson"))
    with pytest.raises(ConvertError, match="of the type OneHotFeature"):
        convert(SavedModel(text.replace("FloatFeature", "OneHotFeature", 1)))
