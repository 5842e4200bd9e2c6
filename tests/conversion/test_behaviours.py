"""What boosters do beside comparing: each row of the table in docs/convert.md has a test."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline

import tinykernel
from tests.refusals import refused
from tinykernel.base.errors import ConvertError, DataError, FormatError, ShapeError
from tinykernel.conversion.catboost import SavedModel
from tinykernel.conversion.ensemble import redirected
from tinykernel.conversion.models import change_of, convert

pytestmark = pytest.mark.usefixtures("page")

N_ROWS = 400
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N_ROWS, 4)).astype(np.float32)
SUM = X[:, 0] + X[:, 1] * X[:, 3]
LABELS = {2: (SUM > 0).astype(int), 3: np.digitize(SUM, [-0.5, 0.5])}
CODES = RNG.integers(0, 5, N_ROWS)
OF_CODES = (np.array([0, 2, 1, 3, -2])[CODES] + X[:, 0] > 0).astype(int)
CATEGORIES = {
    "numbers": CODES * 10.0 - 20,
    "whole": CODES * 10 - 20,
    "text": np.array(["red", "green", "blue", "a b", "x"])[CODES],
}


@pytest.fixture
def fresh(require_tool):
    """Return a function that makes a model that is not fitted, small and quiet."""

    def make(name, **options):
        library = {"L": "lightgbm", "X": "xgboost", "C": "catboost"}[name[0]]
        usual = {"n_estimators": 12, "n_jobs": 1}
        if library == "catboost":
            usual = {"iterations": 12, "verbose": False, "allow_writing_files": False}
        quiet = {"verbose": -1, "min_child_samples": 5} if library == "lightgbm" else {}
        return getattr(require_tool(library), name)(**usual | quiet | options)

    return make


def same(model, rows):
    """Check that a converted model answers what its original does, with and without X."""
    for converted in (convert(model), convert(model, rows)):
        assert change_of(model, converted, rows).share < 1e-5


def frame_of(kind):
    """Return a frame with categories, of which some are missing."""
    frame = pd.DataFrame({"v": X[:, 0], "mode": pd.Categorical(CATEGORIES[kind]), "w": X[:, 1]})
    frame.loc[::9, "mode"] = None
    return frame


@pytest.mark.parametrize("kind", ["XGBClassifier", "XGBRegressor"])
@pytest.mark.parametrize("value", [-9999.01, 0.0, 0.25, np.inf])
def test_a_value_for_missing_goes_where_nan_goes(kind, value, fresh):
    """`missing` is an attribute of the wrapper alone."""
    gaps = np.where(RNG.random(X.shape) < 0.25, np.float32(value), X)
    model = fresh(kind, missing=value).fit(gaps, LABELS[2])
    gaps[::7, 0] = np.nan
    same(model, gaps)


def test_a_filled_value_is_compared_in_float32(fresh):
    """A mean of 0.1 is the threshold, which is above it in float64, where missing= is a number."""
    rows = np.tile([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, -1, -1], 20).astype(np.int16)[:, None]
    model = make_pipeline(SimpleImputer(missing_values=-1), fresh("XGBClassifier", missing=-1.0))
    model.fit(rows, (rows[:, 0] != 0).astype(int))
    assert np.array_equal(convert(model, rows).predict(rows), model.predict(rows))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_of_dart_have_their_weights(n_classes, fresh):
    """XGBoost 3.3 stores them as gbtree with weights beside it, older ones as dart."""
    model = fresh("XGBClassifier", booster="dart", rate_drop=0.5).fit(X, LABELS[n_classes])
    same(model, X)


def test_the_threshold_of_catboost_is_an_offset(fresh, tmp_path):
    """`set_probability_threshold` is in the file, too; probabilities do not have it."""
    model = fresh("CatBoostClassifier").fit(X, LABELS[2])
    model.set_probability_threshold(0.2)
    same(model, X)
    model.save_model(str(tmp_path / "model.json"), format="json")
    saved = convert(tmp_path / "model.json")
    assert np.array_equal(saved.predict(X), model.predict(X))
    twice = FixedThresholdClassifier(FrozenEstimator(model), threshold=0.3)
    refused(ConvertError, convert, twice.fit(X, LABELS[2]))


@pytest.mark.parametrize("name", ["LGBMClassifier", "XGBClassifier"])
@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories_of_frames_are_compared_as_they_are(name, kind, fresh, tmp_path):
    """The table of codes is in the booster; of text, the model has a coding."""
    if name[0] == "X" and kind == "numbers":
        kind = "whole"
    frame = frame_of(kind)
    options = {"enable_categorical": True} if name[0] == "X" else {}
    model = fresh(name, **options).fit(frame, OF_CODES)
    same(model, frame)
    tinykernel.save(model, tmp_path / "model.tkm")
    loaded = tinykernel.load(tmp_path / "model.tkm")
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    if kind != "text":
        raw = frame.astype(np.float64).to_numpy()
        assert np.array_equal(convert(model, raw).predict(raw), model.predict(frame))
        return
    files = tinykernel.export(loaded, None, tmp_path / "c", format="library")
    header = next(path for path in files if path.name == "model.h").read_text(encoding="utf-8")
    assert all(f"MODE_{name} = " in header for name in ("BLUE", "GREEN", "RED"))
    refused(DataError, loaded.predict, frame.assign(mode="pink"))


def test_a_code_that_is_the_missing_value_is_refused(fresh):
    """XGBoost takes a code for missing, not a category."""
    options = {"enable_categorical": True, "missing": 0.0}
    model = fresh("XGBClassifier", **options).fit(frame_of("text"), OF_CODES)
    refused(ConvertError, convert, model)


@pytest.mark.parametrize("kind", CATEGORIES)
@pytest.mark.parametrize("options", [{}, {"zero_as_missing": True}, {"use_missing": False}])
def test_ordered_categories_are_compared_by_their_codes(kind, options, fresh):
    """LightGBM keeps the codes, but names no column: one alone has whole numbers that fit."""
    frame = frame_of(kind)
    frame.insert(
        2,
        "grade",
        frame["mode"]
        .cat.as_ordered()
        .cat.reorder_categories(list(frame["mode"].cat.categories[[2, 0, 1, 4, 3]])),
    )
    frame["place"] = np.arange(N_ROWS)
    model = fresh("LGBMClassifier", **options).fit(frame, OF_CODES)
    same(model, frame)
    frame["w"] = CODES
    model = fresh("LGBMClassifier", **options).fit(frame, OF_CODES)
    refused(ConvertError, convert, model)


def test_rows_of_integers_may_hold_codes(fresh):
    """Without a frame, codes are what the rows hold."""
    rows = np.stack([CODES, RNG.integers(0, 9, N_ROWS)], axis=1)
    same(fresh("LGBMClassifier").fit(rows, OF_CODES, categorical_feature=[0]), rows)
    options = {"feature_types": ["c", "q"], "enable_categorical": True}
    same(fresh("XGBClassifier", **options).fit(rows, OF_CODES), rows)


@pytest.mark.parametrize("options", [{}, {"zero_as_missing": True}, {"use_missing": False}])
def test_tiny_values_of_lightgbm_are_zeros(options, fresh):
    """Absolute values up to 1e-35 count as zero, a threshold between them for all or none."""
    rows = np.where(RNG.random(X.shape) < 0.3, np.float32(0), X)
    model = fresh("LGBMClassifier", **options).fit(rows, LABELS[2])
    tiny = np.float32(1e-35) * np.array([-2, -1, -0.5, 0, 0.5, 1, 1.5, np.nan], np.float32)
    rows = np.where(RNG.random(X.shape) < 0.5, RNG.choice(tiny, X.shape), rows)
    edges = np.nextafter(tiny, np.float32(np.inf))
    rows = np.where(RNG.random(X.shape) < 0.2, RNG.choice(edges, X.shape), rows)
    assert np.array_equal(convert(model).predict(rows), model.predict(rows))


@pytest.mark.parametrize("threshold", [1e-36, -1e-36, 0.0, -1e-35, 1e-35])
def test_a_tiny_threshold_of_lightgbm_parts_no_zeros(threshold, fresh, require_tool):
    """No training makes it, but a file can have it."""
    text = fresh("LGBMRegressor", n_estimators=1, num_leaves=2).fit(X, SUM).booster_
    text = text.model_to_string()
    line = next(line for line in text.splitlines() if line.startswith("threshold="))
    model = require_tool("lightgbm").Booster(
        model_str=text.replace(line, f"threshold={threshold!r}").replace("tree_sizes=", "sizes=")
    )
    tiny = np.float32([-2e-35, -1.0000001e-35, -1e-35, -1e-36, 0, 1e-36, 1e-35, 1.0000001e-35])
    rows = np.repeat(tiny[:, None], 4, axis=1)
    assert np.allclose(convert(model).predict(rows), model.predict(rows), rtol=1e-6)


def test_a_booster_that_was_stopped_early_predicts_by_all_rounds(fresh, tmp_path):
    """The wrapper and a file take the best part; of a file that is said."""
    options = {"n_estimators": 90, "early_stopping_rounds": 3, "eval_metric": "logloss"}
    model = fresh("XGBClassifier", **options)
    model.fit(X[:200], LABELS[2][:200], eval_set=[(X[200:], LABELS[2][200:])], verbose=False)
    booster = model.get_booster()
    assert model.best_iteration + 1 < booster.num_boosted_rounds()
    same(model, X)
    same(booster, X)
    assert convert(booster) != convert(model)
    booster.save_model(tmp_path / "model.ubj")
    rounds = f"the first {model.best_iteration + 1} of"
    with pytest.warns(UserWarning, match=rounds), pytest.warns(UserWarning, match="missing="):
        read = convert(tmp_path / "model.ubj", X)
    assert read == convert(model)


def of_custom(true, sums):
    """Return the derivatives of squared errors."""
    return sums - true, np.ones_like(sums)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(
            ("XGBRegressor", {"objective": name})
            for name in ("binary:logitraw", "rank:pairwise", "reg:squaredlogerror", of_custom)
        ),
        *(
            ("XGBClassifier", {"objective": name})
            for name in ("binary:logitraw", "reg:squarederror", "reg:logistic", of_custom)
        ),
        ("LGBMRegressor", {"objective": of_custom}),
        ("LGBMClassifier", {"objective": of_custom}),
        *(("LGBMClassifier", {"objective": name}) for name in ("cross_entropy", "regression")),
        *(
            ("CatBoostRegressor", {"loss_function": name})
            for name in ("Lq:q=3", "Expectile:alpha=0.2", "MultiQuantile:alpha=0.2,0.7")
        ),
        ("CatBoostClassifier", {"loss_function": "CrossEntropy"}),
        ("CatBoostClassifier", {"loss_function": "MultiClass"}),
    ],
)
def test_answers_that_are_sums_of_leaves_are_converted(name, options, fresh):
    """Without a link, whatever the objective of the training is called."""
    same(fresh(name, **options).fit(X, LABELS[2]), X)


def test_ranks_and_several_values_are_sums_of_leaves(fresh):
    """Rankers give one score a row; values of several outputs one each."""
    groups = np.repeat(np.arange(N_ROWS // 20), 20)
    same(fresh("XGBRanker").fit(X, LABELS[3], qid=groups), X)
    same(fresh("LGBMRanker").fit(X, LABELS[3], group=[20] * (N_ROWS // 20)), X)
    same(fresh("CatBoostRanker").fit(X, LABELS[3], group_id=groups), X)
    both = np.stack([SUM, -SUM], axis=1)
    same(fresh("CatBoostRegressor", loss_function="MultiRMSE").fit(X, both), X)
    same(fresh("XGBRegressor").fit(X, both), X)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("XGBRegressor", {"objective": "binary:logistic"}),
        ("XGBRegressor", {"objective": "binary:hinge"}),
        ("LGBMRegressor", {"objective": "cross_entropy"}),
        ("LGBMClassifier", {"objective": "cross_entropy_lambda"}),
        ("CatBoostRegressor", {"loss_function": "RMSEWithUncertainty"}),
    ],
)
def test_answers_behind_a_link_are_refused(name, options, fresh):
    """The sentence names the objective and says what to do."""
    model = fresh(name, **options).fit(X, LABELS[2])
    refused(ConvertError, convert, model)


def test_a_sum_that_stops_early_is_refused(fresh):
    """`pred_early_stop` is an option of the wrapper, which its predict obeys."""
    model = fresh("LGBMClassifier", pred_early_stop=True).fit(X, LABELS[2])
    refused(ConvertError, convert, model)


def test_catboost_from_a_pickle_or_a_file(fresh, tmp_path):
    """It then counts no inputs; one that is not fitted, and trees of other shapes, are refused."""
    model = fresh("CatBoostClassifier").fit(X, np.array(["a", "b"])[LABELS[2]])
    model.save_model(str(tmp_path / "model.cbm"))
    same(fresh("CatBoostClassifier").load_model(str(tmp_path / "model.cbm")), X)
    same(pickle.loads(pickle.dumps(model)), X)
    refused(ConvertError, convert, fresh("CatBoostClassifier"))
    other = fresh("CatBoostClassifier", grow_policy="Lossguide").fit(X, LABELS[2])
    refused(ConvertError, convert, other)


@pytest.mark.parametrize("name", ["LGBMClassifier", "XGBClassifier"])
def test_frames_of_text_that_are_no_categories_are_coded(name, fresh):
    """The libraries refuse these, and LightGBM replaces blanks in names."""
    frame = frame_of("text").rename(columns={"mode": "my mode"})
    options = {"enable_categorical": True} if name[0] == "X" else {}
    model = fresh(name, **options).fit(frame, OF_CODES)
    converted = convert(model, frame.astype({"my mode": object}))
    assert converted.feature_names == ("v", "my mode", "w")
    assert np.array_equal(converted.predict(frame), model.predict(frame))


@pytest.mark.filterwarnings("ignore:.*NaN is taken for the missing value")
@pytest.mark.parametrize("name", ["CatBoostClassifier", "XGBClassifier"])
def test_frames_with_another_order_of_columns_are_refused(name, fresh, tmp_path):
    """CatBoost takes columns by their names, and XGBoost refuses another order."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    other, model = frame[list("bacd")], fresh(name).fit(frame, LABELS[2])
    of_json = {"format": "json"} if name[0] == "C" else {}
    model.save_model(str(tmp_path / "model.json"), **of_json)
    for each in (getattr(model, "get_booster", lambda: model)(), tmp_path / "model.json"):
        refused(DataError, convert, each, other)
        refused(ShapeError, convert(each).predict, other)


def test_an_original_that_refuses_rows_is_one_line(fresh):
    """Errors of a library may be of any class, and have no text."""
    model = fresh("LGBMClassifier").fit(X, LABELS[2])

    def refuse(_):
        raise RuntimeError

    model.predict = refuse
    refused(DataError, convert, model, X)


def test_another_label_is_refused_with_its_reason(fresh):
    """Trees are exact: `max_change` is no way out, and the usual causes are named."""
    model = fresh("XGBClassifier").fit(X, LABELS[2])
    old, model.predict = model.predict, lambda rows: 1 - old(rows)
    message = refused(ConvertError, convert, model, X, max_change=1.0)
    assert "max_change" not in message
    assert all(cause in message for cause in ("missing", "categories", "order of columns"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:0"),
        ("a.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0"),
        ("a.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:0"),
        ("a.json", '{"name": "tree", "tree_info": []}'),
        ("a.json", '{"features_info": {}, "trees": []}'),
        ("a.json", '{"learner": '),
        ("a.json", "[]"),
    ],
)
def test_other_files_are_named(name, text, tmp_path):
    """What a file is, and where there is a way, what to do."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    refused(FormatError, convert, tmp_path / name)


def test_unknown_fields_are_refused(fresh):
    """A field that nobody reads may change what a model predicts."""
    with_field = {"oblivious_trees": [], "features_info": {}, "text_of_tomorrow": 1}
    refused(ConvertError, SavedModel, json.dumps(with_field))


def test_values_between_ends_go_to_one_side():
    """As a slow count of each value says."""
    for left in (False, True):
        for ends in ((), (2.0, 5.0), (-np.inf, 3.0), (1.0, 2.0, 4.0), (3.0,)):
            for low in range(6):
                new = redirected(ends, low, low + 2, left)
                for value in np.arange(-1, 9, 0.5):
                    was = np.searchsorted(ends, value, "right") % 2 == 1
                    now = np.searchsorted(new, value, "right") % 2 == 1
                    assert now == (left if low <= value < low + 2 else was)
