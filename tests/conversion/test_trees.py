"""Trees of scikit-learn after conversion: every row on the same side of every threshold."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import tinykernel
from tests.random_models import EXACT, exact_trees
from tests.refusals import refused
from tinykernel import report
from tinykernel.base.errors import BudgetError, ConvertError, DataError, OptionError
from tinykernel.conversion.columns import ModelColumns
from tinykernel.conversion.forests import ensemble_of
from tinykernel.conversion.models import convert
from tinykernel.conversion.trees import integer_model
from tinykernel.pieces.scale.spec import order_of
from tinykernel.pieces.trees.spec import Trees

pytestmark = pytest.mark.usefixtures("page")

N_ROWS = 20000
SETS = {"digits": load_digits, "cancer": load_breast_cancer, "wine": load_wine}
CLASSIFIERS = {
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(20, random_state=0),
    "shallow forest": RandomForestClassifier(20, max_depth=4, random_state=0),
    "extra trees": ExtraTreesClassifier(10, random_state=0),
    "boosted": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=8, random_state=0),
    "scaled": make_pipeline(StandardScaler(), RandomForestClassifier(8, random_state=0)),
    "selected": make_pipeline(
        SimpleImputer(), MinMaxScaler(), SelectKBest(k=9), DecisionTreeClassifier(random_state=0)
    ),
}
TAKES_NAN = ("tree", "forest", "shallow forest", "histograms", "selected")


def rows_around(X: np.ndarray[Any, Any], thresholds: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Draw rows that are near those of X, with values on and beside thresholds of any input."""
    rng = np.random.default_rng(0)
    rows = X[rng.integers(0, len(X), N_ROWS)] + 0.0
    rows = rows + rng.normal(size=rows.shape) * X.std(axis=0) * (rng.random(rows.shape) < 0.4)
    rows = rows.astype(np.float32)
    on = rng.random(rows.shape) < 0.1
    rows[on] = rng.choice(thresholds, int(on.sum()))
    beside = on & (rng.random(rows.shape) < 0.5)
    return np.where(beside, np.nextafter(rows, np.float32(np.inf)), rows)


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_no_row_of_floats_has_another_label(kind: str, data: str) -> None:
    """The promise of exactness, on values between, on and beside thresholds, and missing ones."""
    X, y = SETS[data](return_X_y=True)
    X = X.astype(np.float32)
    model = clone(CLASSIFIERS[kind]).fit(X, np.array([f"class {label}" for label in y]))
    converted = convert(model)
    trees = converted.find(Trees)
    bits = trees.threshold.astype(np.int64)
    values = np.where(bits < 0, 0x80000000 - bits, bits).astype(np.uint32).view(np.float32)
    rows = rows_around(X, values[np.isfinite(values)])
    if kind in TAKES_NAN:
        rows[np.random.default_rng(1).random(rows.shape) < 0.05] = np.nan
    assert np.array_equal(converted.predict(rows), model.predict(rows))


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("scaler", [None, StandardScaler()])
@pytest.mark.parametrize("kind", ["forest", "histograms"])
def test_no_row_of_doubles_crosses_a_threshold(kind: str, scaler: Any, rounded: bool) -> None:
    """Thresholds that are values of rows in float64 part these rows, though float32 rounds them."""
    X = np.random.default_rng(0).normal(20, 5, (900, 2))
    X = X.round(1) if rounded else X
    y = X.sum(axis=1) + 30 * (np.arange(900) % 9 == 0)
    last: Any = RandomForestRegressor(3, random_state=0)
    if kind == "histograms":
        last = HistGradientBoostingRegressor(max_iter=20)
    X[::9, 1] = np.nan  # some thresholds are infinite: only NaN goes right
    model = make_pipeline(scaler, last).fit(X, y)
    assert np.allclose(convert(model, X).predict(X), model.predict(X), rtol=0, atol=1e-4)


def test_hard_votes_take_less_flash_and_say_what_they_change() -> None:
    """Each tree names one class, the first of equal ones; soft votes stay within 0.8 of before."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.uint8)
    model = RandomForestClassifier(10, max_depth=6, random_state=0).fit(X, y)
    soft, hard = convert(model, X), convert(model, X, votes="hard", max_change=0.05)
    chosen = np.stack([tree.predict(X) for tree in model.estimators_]).astype(int)
    counts = np.stack([(chosen == label).sum(axis=0) for label in range(10)], axis=1)
    assert np.array_equal(hard.predict(X), counts.argmax(axis=1))
    assert np.array_equal(soft.predict(X), model.predict(X))
    flash = [report(each, compiler="none").flash for each in (soft, hard)]
    assert flash[0] < 0.8 * 10134
    assert flash[1] < 0.4 * flash[0]
    refused(ConvertError, convert, model, X, votes="hard", max_change=0.0, match="hard votes")
    refused(OptionError, convert, model, votes="hard", match="votes: .*X")
    boosted = HistGradientBoostingClassifier(max_iter=2).fit(X, y)
    refused(ConvertError, convert, boosted, X, votes="hard", match="shares of classes")


def test_small_trees_have_the_flash_of_estimates(require_toolchain: Any) -> None:
    """Within a tenth of what is linked, though compilers leave short tables out."""
    require_toolchain("cortex-m4", "gcc")
    for leaves in (2, 5, 21):
        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
        model = convert(tree.fit(*load_wine(return_X_y=True)))
        linked, estimated = (report(model, compiler=name).flash for name in ("gcc", "none"))
        assert abs(estimated - linked) < 0.1 * linked


def test_a_search_is_its_best_model() -> None:
    """A fitted GridSearchCV, also of tables with booleans, converts as its best estimator."""
    frame = pd.DataFrame({"on": [True, False] * 30, "n": range(60)})
    y = (frame["n"] > 30) ^ frame["on"]
    tree = DecisionTreeClassifier(random_state=0)
    search = GridSearchCV(tree, {"max_depth": [1, 4]}).fit(frame, y)
    assert np.array_equal(convert(search, frame).predict(frame), search.predict(frame))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32"])
def test_no_row_of_integers_has_another_label(dtype: str) -> None:
    """Of integers the thresholds are integers of their type, over its whole range."""
    rng = np.random.default_rng(0)
    ends = np.iinfo(dtype)
    X = rng.integers(ends.min, ends.max, (400, 5), dtype, endpoint=True)
    y = (X[:, 0] // 3 > X[:, 1] // 3) * 1 + (X[:, 2] > 9)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    converted = convert(model, X)
    rows = rng.integers(ends.min, ends.max, (N_ROWS, 5), dtype, endpoint=True)
    rows[::3] = X[rng.integers(0, 400, len(rows[::3]))]
    assert converted.raw_dtype == dtype
    assert np.array_equal(converted.predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=6, random_state=0),
        RandomForestRegressor(10, random_state=0),
        GradientBoostingRegressor(n_estimators=20, random_state=0),
        HistGradientBoostingRegressor(max_iter=20, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_values_differ_by_the_rounding_of_leaves(model: Any) -> None:
    """Values are within what 32 bits of fixed point can hold."""
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    model.fit(X, y)
    values = convert(model, X).predict(X)
    assert np.abs(values - model.predict(X)).max() < 1e-5 * np.abs(y).max()


def test_forests_of_several_values_have_vectors() -> None:
    """A forest of two outputs gives two values."""
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    both = RandomForestRegressor(5, max_depth=5, random_state=0).fit(X, np.stack([y, -2 * y], 1))
    assert np.abs(convert(both).predict(X) - both.predict(X)).max() < 0.1


def test_isolation_forests_send_gaps_as_they_learned() -> None:
    """Of rows with missing values, too; releases before 1.9 refuse these."""
    X = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    model = IsolationForest(n_estimators=20, contamination=0.1, random_state=0)
    if not model.__sklearn_tags__().input_tags.allow_nan:
        pytest.skip("scikit-learn before 1.9 refuses missing values")
    model.fit(X)
    assert np.array_equal(convert(model).predict(X), model.predict(X))


@settings(max_examples=60)
@given(st.lists(st.floats(width=32, allow_nan=True), min_size=2, max_size=30))
def test_integers_have_the_order_of_floats(values: list[float]) -> None:
    """Of any two floats the integers compare alike, equal zeros included; NaN is the least."""
    floats = np.array(values, dtype=np.float32)
    ordered = order_of(floats).astype(np.int64)
    with np.errstate(invalid="ignore"):
        above = floats[:, None] > floats
    gaps = np.isnan(floats)
    above |= ~gaps[:, None] & gaps
    assert np.array_equal(ordered[:, None] > ordered, above)


@settings(max_examples=60)
@given(st.lists(st.floats(-200, 200), min_size=1, max_size=8))
def test_the_last_value_to_the_left_is_found(limits: list[float]) -> None:
    """The bisection finds what trying every value of the type does."""
    columns = ModelColumns((), np.arange(1), 1, "int8", None)
    threshold = np.array(limits)
    found = columns.last_left(np.zeros(threshold.size, np.intp), lambda x: x <= threshold)
    every = np.arange(-128, 128)
    slow = [max([-129, *every[every <= limit].tolist()]) for limit in limits]
    assert found.tolist() == slow


@pytest.mark.parametrize("target", ["host", "cortex-m0plus", "cortex-m4f", "esp32c3", "atmega328p"])
@pytest.mark.parametrize("kind", EXACT)
def test_c_and_python_agree(kind: str, target: str, require_platforms: Any) -> None:
    """Wide nodes, vectors, missing values and raw values in order: no score differs on any core."""
    require_platforms(target)
    model = exact_trees(5, **EXACT[kind])
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 6)) * 10.0 ** rng.integers(-3, 6, (200, 6))
    if model.raw_dtype == "float32":
        rows[rng.random(rows.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e-42])
    else:
        rows = np.clip(rows, -(2**31), 2**31 - 1).astype(np.int32)
    assert tinykernel.verify(model, rows, target=target).differences == 0


def test_a_forest_is_exported_reported_and_saved_as_it_is(tmp_path: Any) -> None:
    """Functions that take a model take one of scikit-learn, too."""
    X, y = load_wine(return_X_y=True)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    tinykernel.save(forest, tmp_path / "forest.tkm")
    loaded = tinykernel.load(tmp_path / "forest.tkm")
    assert loaded == convert(forest)
    assert tinykernel.verify(forest, X, y).differences == 0
    refused(DataError, tinykernel.verify, forest, X, y + 3)
    assert not any("range" in line for line in tinykernel.evaluate(forest, X, y).cautions)
    files = tinykernel.export(forest, None, tmp_path / "c", format="library", vectors=X[:4])
    assert any(path.name == "model.c" for path in files)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(),
        StandardScaler(),
        DecisionTreeClassifier,
        DecisionTreeClassifier().fit([[0.0], [0.0]], [0, 1]),
        OneVsRestClassifier(GaussianNB()).fit([[0.0], [1.0]], [1, 1]),
        GridSearchCV(DecisionTreeClassifier(), {}),
    ],
)
def test_what_cannot_be_converted_is_named(model: Any) -> None:
    """One line says what is not supported."""
    refused(ConvertError, convert, model)


@pytest.mark.parametrize(
    ("model", "share"),
    [
        (RandomForestClassifier(12, max_depth=6, random_state=0), 0.3),
        (GradientBoostingClassifier(n_estimators=8, random_state=0), 0.3),
        (HistGradientBoostingClassifier(max_iter=4, random_state=0), 0.7),
        (LogisticRegression(max_iter=9000), 0.85),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_budget_takes_bits_and_then_trees(model, share, monkeypatch):
    """The model keeps to the budget and changes few labels; one that fits stays as it is."""
    monkeypatch.setattr("tinykernel.run.report.find_toolchain", lambda *_: None)  # by estimates
    X, y = load_digits(n_class=5, return_X_y=True)
    X, y = X[::2].astype(np.uint8), y[::2]
    whole = convert(model.fit(X, y), X)
    flash = report(whole).flash
    small = convert(model, X, budget=int(share * flash), max_change=0.1)
    assert report(small).flash <= share * flash
    assert convert(model, X, budget=flash).fingerprint() == whole.fingerprint()


@pytest.mark.parametrize("kind", [RandomForestRegressor, GradientBoostingRegressor])
def test_fewer_trees_have_the_mean_of_theirs(kind):
    """A forest of some of its trees predicts their mean; boosting is cut at a stage."""
    X, y = load_diabetes(return_X_y=True)
    model = kind(n_estimators=30, max_depth=4, random_state=0).fit(X, y)
    ensemble = ensemble_of(model).first(10)
    few = integer_model(ensemble, ModelColumns.of([], model, X.astype(np.float32)))
    if kind is RandomForestRegressor:
        expected = np.mean([tree.predict(X) for tree in model.estimators_[:10]], axis=0)
    else:
        expected = list(model.staged_predict(X))[9]
    np.testing.assert_allclose(few.predict(X.astype(np.float32)), expected, rtol=1e-3)


def test_a_budget_that_is_too_small_is_one_line(monkeypatch):
    """It says how much is too much; without rows nobody could say what a step costs."""
    monkeypatch.setattr("tinykernel.run.report.find_toolchain", lambda *_: None)  # by estimates
    X, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    with pytest.raises(BudgetError, match=r"flash is \d+ bytes, \d+ bytes more than the 900 of"):
        convert(forest, X, budget=900)
    refused(OptionError, convert, forest, budget="8KB")
