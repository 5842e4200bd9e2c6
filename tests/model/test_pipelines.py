"""Pipelines with their steps folded in, and how a model shows itself and refuses columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder, StandardScaler

import tinykernel
from tests.convolutions import dense_model
from tests.refusals import refused
from tinykernel import TernaryKernelClassifier, quantize
from tinykernel.base.errors import ConvertError, ModelError, ShapeError
from tinykernel.model.pipelines import fold

pytestmark = pytest.mark.usefixtures("page")

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)
NAMES = ["sl", "sw", "pl", "pw"]
QUICK = {"n_components": 64, "epochs": 10, "effort": "quick", "random_state": 0}


def pipeline(*steps):
    return make_pipeline(*steps, TernaryKernelClassifier(**QUICK))


@pytest.mark.parametrize(
    "steps",
    [
        (StandardScaler(),),
        (MinMaxScaler((-1, 3)),),
        (StandardScaler(with_mean=False), MinMaxScaler()),
        (SelectKBest(k=3), StandardScaler()),
        (SimpleImputer(), StandardScaler()),
        (StandardScaler(), SelectKBest(k=2), "passthrough"),
        (ColumnTransformer([("b", MinMaxScaler(), [3, 0]), ("a", "passthrough", [2])]),),
        (
            ColumnTransformer(
                [("s", make_pipeline(StandardScaler(), MinMaxScaler()), slice(0, 2))],
                remainder="passthrough",
            ),
            StandardScaler(with_std=False),
        ),
    ],
    ids=str,
)
def test_folded(steps):
    """The model of raw columns gives each level that the pipeline gives, or where rounding puts the
    value on the other side of a limit the next one, and the same labels."""
    whole = pipeline(*steps).fit(X, Y)
    model, inner = quantize(whole), whole[-1].quantize()
    columns = (
        range(4) if model.feature_names is None else [int(name[1:]) for name in model.feature_names]
    )
    raw = np.ascontiguousarray(X[:, list(columns)])
    ours, theirs = model.quantize_inputs(raw), inner.quantize_inputs(whole[:-1].transform(X))
    step = np.abs(ours.astype(int) - theirs)
    assert step.max() <= 1
    assert np.mean(step > 0) < 0.05  # tenths of a centimetre often lie on a limit
    same = ~step.any(axis=1)
    assert np.array_equal(model.scores(raw)[same], inner.scores(whole[:-1].transform(X))[same])
    assert np.mean(model.predict(raw) == inner.predict(whole[:-1].transform(X))) > 0.98
    if len(steps) == 3:  # folding changes numbers only: the C of one stands for all
        assert tinykernel.verify(model, raw[:20]).ok


def test_numbers_that_encode_themselves_are_folded():
    """An encoder of evenly spaced numbers is a scaling; gaps are filled before the firmware."""
    halves = np.clip(np.rint(2 * X), 2, 8) / 2
    halves[:28] = np.resize(np.arange(2, 9) / 2, (4, 28)).T
    whole = pipeline(OrdinalEncoder()).fit(halves, Y)
    assert np.array_equal(quantize(whole).predict(halves), whole.predict(halves))
    uneven = pipeline(OrdinalEncoder()).fit(1e-10 * halves**2, Y)
    refused(ConvertError, quantize, uneven)
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    for options in unknown, {"max_categories": 3}:  # codes that are no line
        other = pipeline(OrdinalEncoder(**options)).fit(halves, Y)
        refused(ConvertError, quantize, other)
    filled = pipeline(SimpleImputer(strategy="median")).fit(np.where(X > 6.5, np.nan, X), Y)
    assert np.array_equal(quantize(filled).predict(X), filled.predict(X))


def test_steps_that_cannot_be_folded():
    """Any other step is refused by name, inside a ColumnTransformer, too."""
    for step, word in (
        (PCA(2), "the step 'pca' (PCA) cannot be folded"),
        (MinMaxScaler(clip=True), "(MinMaxScaler with clip=True)"),
        (SimpleImputer(add_indicator=True), "(SimpleImputer) cannot be folded"),
        (SimpleImputer(missing_values=5.0), "(SimpleImputer) cannot be folded"),
        (OrdinalEncoder(), "(OrdinalEncoder) cannot be folded; leave it out: columns of text"),
        (
            ColumnTransformer([("reduce", PCA(1), [0, 1])], remainder="passthrough"),
            "part 'reduce' (PCA)",
        ),
    ):
        assert word in refused(ConvertError, quantize, pipeline(step).fit(X, Y))
    refused(ModelError, quantize, make_pipeline(StandardScaler(), PCA(2)).fit(X))
    # Of layers, whose levels stand before the scale, steps have no place in it.
    layers = dense_model(1, (4,), n=X.shape[1], raw_dtype="float32")
    refused(ConvertError, fold, make_pipeline(StandardScaler(), "passthrough").fit(X), layers)


def test_names_and_columns(tmp_path):
    """A folded model names its columns, also of a saved file, and refuses a table in another order
    or with others; integers stay integers where columns are only selected."""
    frame = pd.DataFrame(X, columns=NAMES)
    whole = pipeline(StandardScaler(), SelectKBest(k=2)).fit(frame, Y)
    tinykernel.save(quantize(whole), tmp_path / "m.tkm")
    model = tinykernel.load(tmp_path / "m.tkm")
    assert model.feature_names == ("pl", "pw")
    assert model.score(frame[["pl", "pw"]], Y) == np.mean(model.predict(X[:, 2:]) == Y)
    for wrong in (frame[["pw", "pl"]], frame[["pl", "sl"]], frame):
        for use in (model.predict, model.quantize_inputs, model.as_raw):
            refused(ShapeError, use, wrong)
    counts = (10 * X).astype(np.uint8)
    assert quantize(pipeline(SelectKBest(k=2)).fit(counts, Y)).raw_dtype == "uint8"


def test_a_model_shows_itself():
    """A model is one line in a shell or a notebook, whatever its size."""
    model = quantize(TernaryKernelClassifier(**QUICK).fit(X, np.array(["<a>", "b", "c"])[Y]))
    assert "\n" not in repr(model)
    assert len(repr(model)) < 200
    assert model.fingerprint()[:16] in repr(model)
    refused(ShapeError, model.score, X, Y[:3])
