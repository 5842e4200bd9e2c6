"""Frames of pandas: text, categories, gaps, and what the command makes of the same table."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tests.cli.tools import QUICK, succeeded
from tests.coding.test_codes import fruit
from tests.refusals import SAID, refused
from tinykernel import (
    Classifier,
    NoveltyDetector,
    TernaryKernelClassifier,
    TernaryKernelRegressor,
    calibrate,
    convert,
    evaluate,
    export,
    load,
    quantize,
    save,
    train,
    verify,
)
from tinykernel.base.coding import Coding
from tinykernel.base.errors import DataError, ShapeError, TinykernelError
from tinykernel.base.frames import coded_rows
from tinykernel.model.file import about

pytestmark = pytest.mark.usefixtures("page")

_QUICK = {"effort": "quick", "random_state": 0}
_SMALL = {"n_components": 64, "effort": "quick", "random_state": 0}


@pytest.fixture
def frame(tmp_path, require_tool):
    """Return the path of a table, and its inputs and labels as a frame."""
    pd = require_tool("pandas")
    path = fruit(tmp_path / "a.csv")
    table = pd.read_csv(path, na_values=["?"], keep_default_na=False)
    table["weight"] = pd.to_numeric(table["weight"])
    return path, table.drop(columns="label"), table["label"]


def test_a_frame_with_text_is_trained(frame, tmp_path):
    """train takes a frame as the command takes its file: the same numbers, the same model."""
    path, X, y = frame
    model = tmp_path / "m.tkm"
    how = ("--test", 0, *QUICK, "--seed", 0)
    succeeded("train", path, "-o", model, *how)
    found = train(X, y, target="host", epochs=20, **_SMALL)
    assert found.model.fingerprint() == load(model).fingerprint()
    assert Coding.read(found.classifier.coding_) == Coding.read(about(model)["coding"])
    save(found.classifier, tmp_path / "c.tkm")
    assert about(tmp_path / "c.tkm")["coding"] == about(model)["coding"]
    again = load(tmp_path / "c.tkm")
    assert np.array_equal(again.predict(X), found.classifier.predict(X))


def test_frames_of_polars_are_those_of_pandas(frame, require_tool):
    """Text, gaps and names of either are one coding, one model, and the same answers."""
    polars = require_tool("polars")
    _, X, y = frame
    other = polars.DataFrame(X.astype(object).where(X.notna(), None).to_dict("list"))
    first, second = (
        TernaryKernelClassifier(epochs=2, **_SMALL).fit(rows, y) for rows in (X, other)
    )
    assert second.quantize().fingerprint() == first.quantize().fingerprint()
    assert (second.coding_, list(second.feature_names_in_)) == (first.coding_, list(X.columns))
    assert np.array_equal(second.predict(other), first.predict(X))


def test_estimators_code_frames_and_remember_how(frame, tmp_path):
    """Categories and strings of any kind are one coding; new texts are one line."""
    _, X, y = frame
    plain = TernaryKernelClassifier(epochs=5, **_SMALL).fit(X, y)
    other = X.assign(colour=X["colour"].astype("category"), ripe=X["ripe"].astype("string"))
    other = other.assign(weight=other["weight"].astype("Float64"))
    same = TernaryKernelClassifier(epochs=5, **_SMALL).fit(other, y)
    assert same.quantize() == plain.quantize()
    assert plain.quantize().feature_names == ("colour", "ripe", "weight")
    # What takes an estimator takes its frames; an integer model knows no texts.
    assert verify(plain, X[:9], y[:9]).differences == 0
    assert evaluate(plain, X, y, train=(X, y)).accuracy == plain.score(X, y)
    assert calibrate(plain, X, y).rows == len(X)
    export(plain, None, tmp_path / "fruit", name="fruit", format="library", vectors=X[:4])
    assert "FRUIT_COLOUR_RED" in (tmp_path / "fruit" / "src" / "fruit.h").read_text()
    refused(ShapeError, plain.quantize().predict, X)
    assert np.array_equal(plain.predict(other[5:9]), same.predict(X[5:9]))
    with pytest.raises(ValueError, match="feature names"):
        plain.predict(X[X.columns[::-1]])
    refused(DataError, plain.predict, X.assign(colour="pink"))
    most = X["ripe"].mode()[0]
    given = plain.predict(X.assign(ripe=most))
    assert np.array_equal(plain.predict(X.assign(ripe=None)), given)
    values = np.arange(len(X)) % 7 + 0.5
    numbers = TernaryKernelRegressor(epochs=5, **_SMALL).fit(X, values)
    assert set(numbers.coding_["texts"]) == {"colour", "ripe"}
    names = X.assign(colour=[f"n{i}" for i in range(len(X))])
    refused(DataError, TernaryKernelClassifier(**_SMALL).fit, names, y)
    plain.fit(X[["ripe"]].eq("yes"), y)
    assert plain.coding_ == {"texts": {}, "gaps": {}, "usual": {"ripe": float(most == "yes")}}


def test_gaps_of_an_array_are_those_of_a_frame(require_tool, tmp_path):
    """NaN of rows becomes the same number, in the same model, and stays so in a file."""
    pd = require_tool("pandas")
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    X[::7, 0] = X[3::9, 1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    plain, named = (train(rows, y, model="linear", **_QUICK) for rows in (X, frame))
    assert plain.model.fingerprint() == named.model.fingerprint()
    assert list(plain.classifier.coding_["gaps"]) == ["0", "1"]
    called = train(X, y, model="linear", feature_names=["a", "b", "c"], **_QUICK)
    assert called.classifier.coding_ == named.classifier.coding_
    X[5, 2] = np.nan  # the median, as training had no gap there
    answers = named.classifier.decision_function(frame.assign(c=X[:, 2]))
    assert np.array_equal(plain.classifier.decision_function(X), answers)
    save(plain.classifier, tmp_path / "a.tkm")
    for rows in (X, frame.assign(c=X[:, 2])):  # a frame's columns are those of the array in order
        assert np.array_equal(load(tmp_path / "a.tkm").predict(rows), plain.predict(X))
    frame.assign(c=X[:, 2], label=y).to_csv(tmp_path / "a.csv", index=False)
    succeeded("predict", tmp_path / "a.tkm", tmp_path / "a.csv")  # refused the gaps
    assert verify(plain.classifier, X[:9], y[:9]).differences == 0


def test_gaps_of_lists_and_objects_are_those_of_an_array():
    """Judging compared C and Python on NaN where the rows of a fitted model were a list."""
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    X[::5, 0] = np.nan
    whole = train(X, y, model="linear", **_QUICK)
    absent = [[None if np.isnan(value) else value for value in row] for row in X.tolist()]
    masked = np.ma.masked_equal(np.nan_to_num(X, nan=-9), -9)  # was taken for -9
    for rows in (X.tolist(), X.astype(object), masked, absent):
        assert train(rows, y, model="linear", **_QUICK).model == whole.model
        assert np.array_equal(whole.classifier.predict(rows), whole.predict(X))
        assert evaluate(whole.classifier, rows, y).accuracy == whole.classifier.score(X, y)
    half = (X - 2**11).astype(np.float16)
    assert np.array_equal(coded_rows(half)[0], coded_rows(half.astype(np.float64))[0])


@pytest.mark.parametrize("is_frame", [True, False])
@pytest.mark.parametrize(
    "steps",
    [
        [SimpleImputer(), StandardScaler()],
        [StandardScaler(), make_pipeline(SimpleImputer(strategy="constant", fill_value=-1.0))],
        [ColumnTransformer([("fill", SimpleImputer(strategy="median"), [0, 1, 2])])],
        [StandardScaler()],
    ],
)
def test_gaps_of_a_pipeline_are_those_of_its_firmware(steps, is_frame, require_tool, tmp_path):
    """They went to the firmware as NaN: 90 % of the rows right, of which the Pipeline had 97."""
    X = np.random.default_rng(0).normal(size=(90, 3)) + [1, 2, 3]
    y = (X[:, 0] > 1).astype(int)
    gap = np.where(np.arange(3) == np.arange(90)[:, np.newaxis] % 9, np.nan, X)
    gap = require_tool("pandas").DataFrame(gap, columns=["a", "b", "c"]) if is_frame else gap
    whole = make_pipeline(*steps, Classifier(model="linear", **_QUICK)).fit(gap, y)
    save(whole, tmp_path / "m.tkm")
    for model in (quantize(whole), load(tmp_path / "m.tkm")):
        assert np.array_equal(model.predict(gap), whole.predict(gap))
    assert verify(whole, gap, y).differences == 0
    assert evaluate(whole, gap, y).accuracy == whole.score(gap, y)
    export(whole, "cortex-m4", tmp_path / "c", vectors=gap[:8])
    header = (tmp_path / "c/lib/model/src/model.h").read_text()
    assert ("MODEL_A_MISSING" in header) == is_frame


def test_gaps_that_neither_steps_nor_training_know_are_refused():
    """They were the least number of their column."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    whole = make_pipeline(StandardScaler(), Classifier(model="linear", **_QUICK)).fit(X, y)
    gap = np.where(X > 1, np.nan, X)
    for use in (quantize(whole).predict, lambda rows: verify(whole, rows)):
        refused(DataError, use, gap)
    for row in (X[0], X[0].tolist()):
        refused(DataError, whole[-1].predict, row)


def test_a_coding_is_that_of_the_training_rows(require_tool):
    """A model of numbers refuses text that comes later; for gaps it takes the median."""
    pd = require_tool("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = (X["a"] > 0).astype(int)
    classifier = TernaryKernelClassifier(**_SMALL).fit(X, y)
    median = np.sort(X["b"])[29]
    expected = classifier.decision_function(X.assign(b=median))
    assert np.array_equal(classifier.decision_function(X.assign(b=np.nan)), expected)
    gap = X.copy()
    gap.loc[3, "b"] = np.nan  # the first fold is tested on it, and learns from rows without gaps
    scores = cross_val_score(TernaryKernelClassifier(**_SMALL), gap, y, error_score="raise")
    assert np.isfinite(scores).all()
    for wrong in (X.assign(b="x"), X.iloc[0]):
        refused(DataError, classifier.predict, wrong)
    wrong = X.assign(b="x").to_numpy()
    for rows in (wrong, wrong.astype(str)):
        refused(DataError, TernaryKernelClassifier().fit, rows, y)
    refused(DataError, TernaryKernelRegressor().fit, X, ["a"] * 60)
    watch = NoveltyDetector().fit(X)  # has no coding, so that it takes numbers alone
    for wrong in (X.assign(b="x"), gap):
        refused(DataError, watch.predict, wrong)
    for wrong in (X.assign(c="x", b=pd.date_range("2020", periods=60)), X.assign(c="x", b=np.inf)):
        with pytest.raises(ValueError, match=r"dates|infinity"):
            classifier.fit(wrong, y)
        assert np.array_equal(classifier.decision_function(X.assign(b=np.nan)), expected)
    SAID.clear()  # it has words of scikit-learn


def numbered(pd, n=60):
    """Return a frame of three columns of numbers, and labels."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 3)), columns=["a", "b", "c"])
    return X, X["a"] > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X[["a", "b", "b"]],
        lambda X: X[:0],
        lambda X: X[[]],
        lambda X: X.assign(b=np.arange(60).astype("M8[s]")),
        lambda X: X.assign(b=1j),
        lambda X: X.assign(b=[[1, 2]] * 60),
        lambda X: X.assign(b=[np.arange(2)] * 60),
        lambda X: X.assign(b=[object()] * 60),
        lambda X: X.to_numpy() + 1j,
        lambda X: np.zeros((60, 3), "M8[s]"),
        lambda X: np.array([[1, [2], 3]] * 60, dtype=object),
    ],
)
def test_what_no_firmware_takes_is_one_line(change, require_tool, tmp_path):
    """Every estimator and function refuses such rows, at fit and later, and says which column."""
    X, y = numbered(require_tool("pandas"))
    wrong = change(X)
    refused(TinykernelError, TernaryKernelClassifier(**_SMALL).fit, wrong, y[: len(wrong)])
    fitted, watch = TernaryKernelClassifier(epochs=1, **_SMALL).fit(X, y), NoveltyDetector().fit(X)
    integer = fitted.quantize()
    calls = {
        "fit": lambda: NoveltyDetector().fit(wrong),
        "novelty": lambda: watch.predict(wrong),
        "predict": lambda: fitted.predict(wrong),
        "train": lambda: train(wrong, y[: len(wrong)], target="host", **_SMALL),
        "evaluate": lambda: evaluate(fitted, wrong, y[: len(wrong)]),
        "verify": lambda: verify(fitted, wrong),
        "calibrate": lambda: calibrate(fitted, wrong, y[: len(wrong)]),
        "evaluated": lambda: evaluate(integer, wrong, y[: len(wrong)]),
        "verified": lambda: verify(integer, wrong),
        "export": lambda: export(integer, None, tmp_path / "x", format="library", vectors=wrong),
    }
    for call in calls.values():
        with pytest.raises(TinykernelError) as found:
            call()
        assert "\n" not in str(found.value)
    assert not (tmp_path / "x").exists()


def test_names_of_any_type_keep_their_order(require_tool):
    """Numbers and levels as names of columns are refused in another order, as text is."""
    pd = require_tool("pandas")
    X, y = numbered(pd)
    levels = pd.MultiIndex.from_tuples([("u", "a"), ("u", "b"), ("v", "a")])
    for names in ([0, 1, 2], [3, 5, 7], levels, [0, "a", 1]):
        rows = X.set_axis(names, axis=1)
        other = rows.iloc[:, [2, 1, 0]]
        for fitted in (
            TernaryKernelClassifier(epochs=1, **_SMALL).fit(rows, y),
            NoveltyDetector().fit(rows),
        ):
            assert len(fitted.predict(rows)) == len(X)
            with pytest.raises(ValueError, match="order"):
                fitted.predict(other)
            refused(ShapeError, fitted.quantize().predict, other)
    plain = TernaryKernelClassifier(epochs=1, **_SMALL).fit(X, y)
    for model in (plain, plain.quantize()):
        refused(ShapeError, evaluate, model, X[["c", "b", "a"]], y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_ordered_category_keeps_its_order(require_tool, library):
    """Codes in the order of the alphabet or of counts would put "low" above "high"."""
    library_, sizes = require_tool(library), [" low", "mid", "high "]  # a blank was a ValueError
    cells = ["high ", " low", " low", None, "high ", "high "]
    if library == "pandas":
        column = library_.Categorical(cells, sizes, ordered=True)
    else:
        column = library_.Series(cells).cast(library_.Enum(sizes))
    X, coding = coded_rows(library_.DataFrame({"size": column, "one": [1.0] * 6}))
    assert coding.texts == {"size": ("low", "high")}
    assert np.asarray(X)[:, 0].tolist() == [1, 0, 0, coding.gaps["size"], 1, 1]


def test_labels_of_a_nullable_type_stay_whole(require_tool):
    """scikit-learn makes floats of an Int64, and predictions would be 0.0 and 1.0."""
    y = require_tool("pandas").Series([0, 1] * 20, dtype="Int64")
    X = np.c_[np.arange(40.0), np.arange(40) % 2]
    for labels in (y, y.to_frame("y")):
        assert TernaryKernelClassifier(**_SMALL, epochs=1).fit(X, labels).predict(X).dtype == int


def test_lazy_frames_and_tables_of_arrow_are_frames(require_tool):
    """A lazy frame ended in an AttributeError, and a 128-bit integer in an error of polars."""
    pl = require_tool("polars")
    frame = pl.DataFrame({"a": ["x", "y"] * 3, "b": pl.Series(range(6)).cast(pl.Int128)})
    rows, coding = coded_rows(frame)
    whole = frame.with_columns(frame["b"].cast(pl.Int64))
    for other in (frame.lazy(), require_tool("pyarrow").table(whole.to_dict(as_series=False))):
        again, its = coded_rows(other)
        assert np.array_equal(np.asarray(again), np.asarray(rows))
        assert its == coding


def test_models_and_convert_collect_lazy_frames(require_tool):
    """They said that a lazy frame had the shape ()."""
    X, y = numbered(require_tool("pandas"))
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    lazy = require_tool("polars").DataFrame(X.to_dict("list")).lazy()
    assert np.array_equal(convert(tree, lazy).predict(lazy), tree.predict(X))
