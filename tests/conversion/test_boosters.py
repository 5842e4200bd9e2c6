"""Boosted trees of LightGBM, XGBoost and CatBoost after conversion."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import tinykernel
from tests.refusals import refused
from tinykernel.base.errors import ConvertError, DataError
from tinykernel.conversion.catboost import SavedModel
from tinykernel.conversion.models import change_of, convert

pytestmark = pytest.mark.usefixtures("page")

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


FEW = {"n_estimators": 20, "n_jobs": 1}
LINKS = {
    "LGBMRegressor": [{"objective": name, **FEW} for name in ("poisson", "gamma", "tweedie")],
    "XGBRegressor": [
        {"objective": name, **FEW}
        for name in ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox")
    ],
    "CatBoostRegressor": [
        {"loss_function": name, "iterations": 20, "verbose": False, "allow_writing_files": False}
        for name in ("Poisson", "Tweedie:variance_power=1.5")
    ],
    "HistGradientBoostingRegressor": [
        {"loss": name, "max_iter": 20} for name in ("poisson", "gamma")
    ],
    "PoissonRegressor": [{}],
    "GammaRegressor": [{}],
    "TweedieRegressor": [{"power": 1.5}],
}
LIBRARIES = {"LGBM": "lightgbm", "XGBR": "xgboost", "CatB": "catboost", "Hist": "sklearn.ensemble"}


@pytest.mark.parametrize(("name", "options"), [(n, o) for n, each in LINKS.items() for o in each])
def test_counts_are_powers_within_the_bound(name, options, require_tool):
    """Exp of a sum has a relative error below 2^-15 and half a unit; C computes the same."""
    library = LIBRARIES.get(name[:4], "sklearn.linear_model")
    module = import_module(library) if library[:2] == "sk" else require_tool(library)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    y = rng.poisson(np.exp(0.9 * X[:, 0] + 0.3 * X[:, 1] + 1)) + 1
    model = getattr(module, name)(**options).fit(X, y)
    converted = convert(model, X)
    rows = (X + 0.2 * rng.normal(size=X.shape)).astype(np.float32)
    expected, values, top = model.predict(rows), converted.predict(rows), 2.0**31 - 1
    inside = expected < top * converted.answers.unit
    sums = 2.0**-15 if "Linear" not in repr(converted).title() else 1e-3  # inputs are rounded
    bound = sums * np.abs(expected) + 2e-6 * np.abs(expected) + converted.answers.unit
    assert (np.abs(values - expected) <= bound)[inside].all()
    assert inside.mean() > 0.98
    if name in ("LGBMRegressor", "GammaRegressor"):
        assert tinykernel.verify(converted, rows[:200]).differences == 0


def test_roots_are_squared(fresh):
    """`reg_sqrt` learns signed roots; the values are squares of the sums."""
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    model = fresh("lightgbm", "Regressor", reg_sqrt=True).fit(X, (y - 150) * 1e3)
    converted = convert(model, X)
    expected = model.predict(X)
    assert expected.min() < 0 < expected.max()
    assert np.abs(converted.predict(X) - expected).max() < 1e-6 * np.abs(expected).max()
    assert tinykernel.verify(converted, X).differences == 0


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
def test_leaves_of_several_outputs_are_vectors(kind, fresh):
    """`multi_output_tree` of XGBoost has one tree for all values or classes."""
    X, y = load_wine(return_X_y=True)
    X = X.astype(np.float32)
    X[::7, 3] = np.nan
    model = fresh("xgboost", kind, multi_strategy="multi_output_tree", tree_method="hist")
    model.fit(X, np.stack([y, X[:, 0]], axis=1) if kind == "Regressor" else y)
    converted, expected = convert(model, X), model.predict(X)
    if kind == "Regressor":
        assert np.abs(converted.predict(X) - expected).max() < 1e-3 * np.abs(expected).max()
    else:
        assert np.array_equal(converted.predict(X), expected)
    assert tinykernel.verify(converted, X[:50]).differences == 0


def test_a_link_needs_rows_where_leaves_reach_far(fresh):
    """Values of X say where a power of 2 ends, or the largest sum of few leaves does."""
    X, y = load_diabetes(return_X_y=True)
    far = fresh("lightgbm", "Regressor", objective="poisson", learning_rate=1).fit(X, y**6)
    refused(DataError, convert, far)
    near = fresh("lightgbm", "Regressor", objective="poisson", n_estimators=10).fit(X, y)
    expected, converted = near.predict(X), convert(near)
    assert np.abs(converted.predict(X) / expected - 1).max() < 2.0**-14


@pytest.mark.parametrize(("library", "options"), [("lightgbm", {"linear_tree": True})])
def test_other_boosters_are_refused(library, options, fresh):
    """An objective whose answers are no sums, and boosters without trees."""
    X, y = load_diabetes(return_X_y=True)
    model = fresh(library, "Regressor", **options).fit(X, y)
    refused(ConvertError, convert, model)


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
    refused(ConvertError, SavedModel, text.replace("MultiClass", "RMSEWithUncertainty"))
    refused(ConvertError, convert, SavedModel(text.replace("FloatFeature", "OneHotFeature", 1)))
