"""Encoders, imputers and column transformers before a converted model, and splits by categories."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import tinykernel
from tests.refusals import refused
from tinykernel.base.errors import TinykernelError
from tinykernel.conversion.ensemble import bounds_of
from tinykernel.conversion.models import change_of, convert

pytestmark = pytest.mark.usefixtures("page")

RNG = np.random.default_rng(0)
N = 1500
X = np.stack(
    [RNG.integers(0, 7, N), RNG.normal(size=N), RNG.integers(0, 12, N) * 1.5, RNG.normal(size=N)], 1
).astype(np.float32)
Y = ((X[:, 0] % 2 == 0) ^ (X[:, 1] > 0) ^ (X[:, 2] % 2 == 0)) * 1 + (X[:, 0] == 3)
GAPS = np.where(RNG.random(X.shape) < 0.05, np.float32(np.nan), X)
ROWS = X[RNG.integers(0, N, 20000)]
ROWS[:, [1, 3]] += RNG.normal(size=(20000, 2))
WILD = ROWS.copy()
WILD[::3, 0] = 5 * RNG.normal(size=len(ROWS[::3]))
WILD[::5, 2] = RNG.integers(-3, 20, len(ROWS[::5]))
WILD[RNG.random(WILD.shape) < 0.05] = np.nan
ONE_HOT = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
STEPS = {
    "one-hot": (make_column_transformer((OneHotEncoder(drop="first"), [2, 0])), X, ROWS),
    "unknown": (make_column_transformer((ONE_HOT, [0]), remainder="passthrough"), X, ROWS),
    "ordinal, scaled": (
        make_column_transformer((OrdinalEncoder(), [0, 2]), (StandardScaler(), [3, 1])),
        X,
        ROWS,
    ),
    "selected, which refuses gaps": (
        make_column_transformer(
            (SelectKBest(k=1), [1, 3]), (StandardScaler(), [0]), remainder="passthrough"
        ),
        X,
        ROWS,
    ),
    "gaps": (
        make_column_transformer(
            (make_pipeline(SimpleImputer(strategy="most_frequent"), ONE_HOT), [2, 0]),
            (make_pipeline(SimpleImputer(), StandardScaler()), [1]),
        ),
        GAPS,
        WILD,
    ),
}


@pytest.mark.parametrize("target", ["host", "cortex-m0plus"])
@pytest.mark.parametrize("name", STEPS)
def test_no_row_has_another_label_behind_encoders(name, target, require_platforms):
    """Values between and beyond categories, and missing ones, go where the pipeline sends them."""
    require_platforms(target)
    steps, rows, others = STEPS[name]
    forest = RandomForestClassifier(5, max_depth=6, random_state=0)
    model = make_pipeline(steps, forest).fit(rows, Y)
    converted = convert(model)
    assert np.array_equal(converted.predict(others), model.predict(others))
    assert tinykernel.verify(converted, others[:300], target=target).differences == 0


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16"])
@pytest.mark.parametrize(
    ("gap", "options", "behind"),
    [
        (0, {}, ()),
        (0, {"add_indicator": True}, (StandardScaler(),)),
        (3, {"strategy": "constant", "fill_value": np.uint8(6)}, (ONE_HOT,)),
        (-1, {"keep_empty_features": True}, (SimpleImputer(missing_values=4),)),
        (np.nan, {"add_indicator": True, "strategy": "median"}, ()),
    ],
)
def test_numbers_that_stand_for_missing_values_are_filled(gap, options, behind, dtype):
    """A column that lacks all is dropped; the number is a hole in the order of its input."""
    rows = RNG.integers(0, 9, (600, 4)).astype(dtype)
    y = (rows[:, 0] + rows[:, 1] > 7) ^ (rows[:, 2] == gap)
    if dtype == "float32":
        rows[RNG.random(rows.shape) < 0.2] = gap
    rows[:, 3] = gap if dtype == "float32" or gap in (0, 3) else 2
    forest = RandomForestClassifier(4, max_depth=6, random_state=0)
    model = make_pipeline(SimpleImputer(missing_values=gap, **options), *behind, forest)
    model.fit(rows, y)
    others = rows.copy()
    if dtype == "float32":
        others[::2] += RNG.normal(size=others[::2].shape)
    with warnings.catch_warnings():  # of columns that are dropped
        warnings.simplefilter("ignore")
        expected = model.predict(others)
    assert np.array_equal(convert(model, rows).predict(others), expected)


@pytest.mark.parametrize(
    "steps",
    [
        SimpleImputer(missing_values=0.1),
        (StandardScaler(), SimpleImputer(missing_values=1)),
        PolynomialFeatures(),
        KBinsDiscretizer(),
        FunctionTransformer(np.abs),
        KNNImputer(),
    ],
)
def test_steps_that_cannot_be_folded_are_named(steps):
    """Rather than read without what makes their answers other ones."""
    steps = steps if isinstance(steps, tuple) else (steps,)
    model = make_pipeline(*steps, RandomForestClassifier(2)).fit(np.abs(X), Y)
    refused(TinykernelError, convert, model)


def test_columns_by_name_take_frames_and_arrays():
    """With a budget as well; another order or number of columns is refused by one line."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    steps = make_column_transformer((OneHotEncoder(), ["a", "c"]), remainder=StandardScaler())
    model = make_pipeline(steps, RandomForestClassifier(2, max_depth=4)).fit(frame, Y)
    for rows in frame, X:
        assert np.array_equal(convert(model, rows).predict(X), model.predict(frame))
        assert convert(model, rows, budget="2KB", max_change=1).feature_names == tuple("abcd")
    refused(TinykernelError, convert, model, frame[list("dcba")])
    refused(TinykernelError, convert, model, X[:, 1:])


@pytest.mark.parametrize("rows", [X, GAPS], ids=["whole", "gaps"])
def test_sets_of_categories_of_histograms_are_exact(rows):
    """Unknown and missing categories as well."""
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features=[2, 0], random_state=0)
    model.fit(rows, Y)
    assert np.array_equal(convert(model).predict(WILD), model.predict(WILD))


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("one_hot", [1, 100])
def test_sets_of_categories_of_boosters_are_exact(library, one_hot, require_tool):
    """Sets of categories and single ones; fractions and unknown numbers as in the library."""
    module, others = require_tool(library), WILD
    options = {"n_estimators": 6, "n_jobs": 1, "max_cat_to_onehot": one_hot}
    if library == "lightgbm":
        model = module.LGBMClassifier(**options, verbose=-1, min_data_per_group=5, cat_smooth=1)
        model.fit(GAPS, Y, categorical_feature=[0, 2])
    else:  # refuses unknown categories
        types, others = ["c", "q", "c", "q"], ROWS
        model = module.XGBClassifier(**options, enable_categorical=True, feature_types=types)
        model.fit(np.floor(X), Y)
        others = np.floor(ROWS)
    assert np.array_equal(convert(model).predict(others), model.predict(others))


def test_two_categories_are_a_line():
    """Weights take them; of more, or scaled before, and of text, one line says why not."""
    rows = np.where(X > 1, 2, 0).astype(np.float32)
    rows[:, 1] = X[:, 1]
    steps = make_column_transformer((OneHotEncoder(), [0, 2]), (StandardScaler(), [1]))
    model = make_pipeline(steps, LogisticRegression()).fit(rows, Y > 1)
    assert change_of(model, convert(model, rows), rows).share < 0.005
    filled = make_pipeline(SimpleImputer(), LogisticRegression()).fit(GAPS, Y > 1)
    assert change_of(filled, convert(filled, X), X).share < 0.005
    zeros = make_pipeline(SimpleImputer(missing_values=0), LogisticRegression()).fit(X, Y > 1)
    refused(TinykernelError, convert, filled, GAPS)
    refused(TinykernelError, convert, zeros, X)
    for first, last in [
        (ONE_HOT, LogisticRegression(max_iter=500)),
        (make_pipeline(StandardScaler(), ONE_HOT), RandomForestClassifier(2)),
    ]:
        model = make_pipeline(first, last).fit(X[:, [0, 2]], Y)
        refused(TinykernelError, convert, model, X[:, [0, 2]])
    text = make_pipeline(OrdinalEncoder(), RandomForestClassifier(2)).fit(X[:, :1].astype(str), Y)
    refused(TinykernelError, convert, text)


def test_a_mean_is_no_category_of_integers():
    """An imputer's mean of 1.5 is a category of its own, which rows of bytes cannot hold."""
    rows = np.repeat([0, 1, 2], 40).astype(np.uint8)[:, None]
    steps = SimpleImputer(missing_values=0), ONE_HOT, DecisionTreeClassifier()
    model = make_pipeline(*steps).fit(rows, rows[:, 0] == 0)
    assert np.array_equal(convert(model, rows).predict(rows), model.predict(rows))


@settings(max_examples=50)
@given(st.sets(st.integers(0, 40), min_size=1))
def test_bounds_send_categories_left(categories):
    """A number is at or above an odd number of the ends exactly if it is one of the categories."""
    bounds = bounds_of(np.array(sorted(categories)))
    for number in range(-2, 44):
        assert (sum(end <= number for end in bounds) % 2 == 1) == (number in categories)
