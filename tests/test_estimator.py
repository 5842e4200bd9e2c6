"""The classifier: scikit-learn's conventions, what it promises, and what it refuses."""

import dataclasses
import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.refusals import refused
from tinykernel import (
    Classifier,
    NoveltyDetector,
    Regressor,
    TernaryKernelClassifier,
    TernaryKernelRegressor,
    load,
    quantize,
    save,
    train,
)
from tinykernel.base.errors import ShapeError
from tinykernel.learn.options import RegressorOptions, TrainerOptions
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.papers.classifier import PaperClassifier
from tinykernel.pieces.components.spec import Components


def quick(kind=TernaryKernelClassifier, **parameters):
    """Make a classifier, or another estimator, that trains in a fraction of a second."""
    chosen = {"n_components": 128, "epochs": 6, "effort": "quick", "random_state": 0}
    return kind(**chosen | parameters)


# One of the paper's method that trains in milliseconds.
paper = partial(PaperClassifier, n_components=64, regularization=0.1, random_state=0)


of_both = pytest.mark.parametrize("make", [quick, paper])


@pytest.fixture(scope="module")
def rows():
    """600 digits as bytes, and 200 others."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.uint8)
    return X[:600], y[:600], X[600:800], y[600:800]


# Every kind of model of a table competes, with few trials and no size to be found.
_ALL_KINDS = {"target": "host", "effort": "0.1/1/1", "epochs": 2, "random_state": 0}


@parametrize_with_checks(
    [quick(n_components=64, epochs=12), quick(TernaryKernelRegressor, epochs=3), NoveltyDetector()]
)
def test_check_estimator(estimator, check):
    """Protects every convention of scikit-learn."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([Classifier(**_ALL_KINDS), Regressor(**_ALL_KINDS)])
def test_check_estimator_of_all_kinds(estimator, check):
    """The default choice of a kind keeps every convention, too."""
    check(estimator)


@pytest.mark.parametrize(
    ("options", "estimator", "machine"),
    [
        (TrainerOptions, Classifier, TernaryKernelClassifier),
        (RegressorOptions, Regressor, TernaryKernelRegressor),
    ],
)
def test_every_option_is_documented_and_a_parameter(options, estimator, machine):
    """Protects the one list of options: parameters, docstring and defaults follow from it."""
    names = {field.name for field in dataclasses.fields(options)}
    assert names <= estimator().get_params().keys()
    assert all(f"\n{name} : " in estimator.__doc__ for name in names)
    assert machine().get_params().keys() < estimator().get_params().keys()
    own = machine().get_params().keys() & {"class_weight", "loss"}
    assert own == {"class_weight" if estimator is Classifier else "loss"}


def test_train_takes_every_option(rows):
    """Protects rare options: they are parameters of the estimator, as all others."""
    X, y, _, _ = rows
    short = {"n_components": 64, "epochs": 1, "effort": "quick", "random_state": 0}
    assert train(X[:200], y[:200], code="small", **short).classifier.code == "small"


def test_learns_and_tells_how(rows):
    """Protects the whole path: it learns, and says what the firmware says."""
    X, y, X_test, y_test = rows
    model = quick(n_components=512, epochs=30).fit(X, y)
    assert model.score(X_test, y_test) > 0.85
    assert np.array_equal(model.predict(X_test), model.quantize().predict(X_test))
    assert (model.layout_, model.n_components_, model.n_iter_) == ("full", 512, 30)
    assert model.history_["loss"].shape == (30,)
    assert model.history_["loss"][-1] < model.history_["loss"][0] / 4
    assert not model.interrupted_


def test_groups_follow_their_rows(rows, monkeypatch):
    """Protects groups: equal rows of two groups are not merged, and the search is another one."""
    X, y, _, _ = rows
    X, y = np.r_[X[:100], X[:100]], np.r_[y[:100], y[:100]]
    groups = np.repeat(["ann", "ben"], 100)
    seen = []

    def look(problem, kinds):
        seen.append(problem.data)
        raise KeyboardInterrupt

    monkeypatch.setattr("tinykernel.kinds.estimators.machines.select", look)
    with pytest.raises(KeyboardInterrupt):
        quick().fit(X, y, groups=groups)
    (data,) = seen
    given = {(*row, label, name == "ben") for *row, label, name in np.c_[X, y, groups].tolist()}
    got = {
        (*map(str, row), str(np.unique(y)[code]), bool(group))
        for row, code, group in zip(data.X, data.codes, data.groups, strict=True)
    }
    assert len(data.X) == 200
    assert given == got


def test_inputs_of_unequal_shapes_are_one_line():
    """NumPy raised its own error, whether to fit, to predict or to verify."""
    X, y = load_iris(return_X_y=True)
    model = TernaryKernelClassifier(effort="quick", n_components=64).fit(X, y)
    ragged = [[1, 2, 3, 4], [1, 2, 3]]
    for call in (model.predict, quantize(model).predict, lambda X: clone(model).fit(X, [0, 1])):
        refused(ShapeError, call, ragged)
    refused(ShapeError, quantize(model).scores, [np.ones((3, 2)), np.ones((2, 2))])


def test_a_share_of_the_rows_chooses_the_epoch(rows):
    """validation_fraction keeps rows aside, the same ones for the same rows in another order."""
    X, y, *_ = rows
    first = quick(epochs=5, validation_fraction=0.2).fit(X, y)
    assert len(first.history_["accuracy"]) == first.n_iter_
    order = np.random.default_rng(0).permutation(len(y))
    second = quick(epochs=5, validation_fraction=0.2).fit(X[order], y[order])
    assert first.machine_ == second.machine_


@of_both
def test_quantize_is_cached_and_not_pickled(make):
    """Protects quantize(): one object until the next fit, which predicts, not pickled."""
    X, y = load_iris(return_X_y=True)
    model = make().fit(X, y)
    integer = model.quantize()
    assert isinstance(integer, IntegerModel)
    assert as_integer_model(model) is model.quantize() is integer
    data = pickle.dumps(model)
    assert b"_quantized" not in data
    copy = pickle.loads(data)
    assert copy.quantize() == integer
    assert np.array_equal(copy.predict(X), model.predict(X))
    assert np.array_equal(integer.predict(X), model.predict(X))
    assert model.fit(X, y).quantize() is not integer


@pytest.mark.parametrize(
    ("dtype", "raw", "order"),
    [
        *(("float64", "float32", "C"), ("float32", "float32", "F"), ("float16", "float32", "C")),
        *(("int8", "int8", "C"), ("uint8", "uint8", "F"), ("int16", "int16", "F")),
        *(("uint16", "uint16", "C"), ("int64", "int32", "F"), ("uint32", "int32", "C")),
        ("bool", "uint8", "F"),
    ],
)
def test_input_types(dtype, raw, order):
    """Protects the raw input type of the firmware, whatever layout the array has."""
    X, y = load_digits(n_class=3, return_X_y=True)
    X = np.asarray(X > 7 if dtype == "bool" else X, dtype=dtype, order=order)
    model = quick().fit(X, y)
    assert model.machine_.raw_dtype == raw
    assert model.score(X, y) > 0.8
    assert np.array_equal(model.predict(np.ascontiguousarray(X[:50])), model.predict(X)[:50])


def test_weights_of_rows_and_classes_matter():
    """Protects both kinds of weights: they move the boundary the same way."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, (400, 2)), rng.normal(1.2, 1, (40, 2))]
    y = np.r_[np.zeros(400), np.ones(40)]
    plain = quick().fit(X, y)
    balanced = quick(class_weight="balanced").fit(X, y)
    by_dict = quick(class_weight={0.0: 0.55, 1.0: 5.5}).fit(X, y)
    weight = np.where(y == 1, 5.5, 0.55)
    others = quick().fit(X, y, sample_weight=weight), paper().fit(X, y)
    models = plain, balanced, by_dict, *others, paper().fit(X, y, sample_weight=weight)
    recall = [np.mean(model.predict(X[400:]) == 1) for model in models]
    assert recall[1] > recall[0] + 0.2
    assert recall[1] == recall[2] == recall[3]
    assert recall[5] > recall[4] + 0.2


@pytest.mark.parametrize("n_features", [1, 33, 100, 2048])
def test_numbers_of_inputs(n_features):
    """Protects padding: 1 to 2048 inputs, p smaller and larger than d, and not more than that."""
    X = np.random.default_rng(0).normal(size=(120, n_features))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] *= 3 * np.sqrt(n_features)
    moved = X + y[:, None]
    learned, drawn = quick(n_components=64, epochs=20).fit(X, y), paper().fit(moved, y)
    for model in (learned, drawn):
        assert model.machine_.find(Components).row_kept.sum() <= 64
    assert n_features > 1 or learned.score(X, y) > 0.8
    assert n_features > 100 or drawn.score(moved, y) > 0.8


@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_smallest_sets(effort):
    """Protects sets of which nothing, or next to nothing, can be held out."""
    X, y = np.arange(6.0)[:, None], np.array(list("aabbcc"))
    for rows in (slice(None), slice(None, None, 2)):
        model = quick(n_components=32, epochs=2, effort=effort).fit(X[rows], y[rows])
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert paper().fit(X[rows], y[rows]).predict(X[rows]).tolist() == y[rows].tolist()
    assert not model.trials_


def test_probabilities_are_those_of_the_log_loss():
    """They are those of the softmax, or of the logistic function, that the training uses."""
    X, y = load_digits(return_X_y=True)
    for labels in (y, y > 4):
        model = quick(n_components=128).fit(X[:900], labels[:900])
        chance, f = model.predict_proba(X[900:]), model.decision_function(X[900:])
        logits = np.column_stack([0 * f, f]) if f.ndim == 1 else f
        expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(chance, expected, atol=1e-9)
        codes = np.unique(labels, return_inverse=True)[1][900:]
        assert log_loss(codes, chance) < 0.5


def test_calibrated_probabilities(tmp_path):
    """calibrate corrects predict_proba; this survives a file, and ends with the next fit."""
    X, y = load_digits(return_X_y=True)
    model = quick(n_components=64).fit(X[:600], y[:600])
    plain = model.quantize()
    usual = model.predict_proba(X[:20])
    assert np.array_equal(usual.argmax(axis=1), model.predict(X[:20]))
    found = model.calibrate(X[600:], y[600:], max_error=0.3)
    chance = model.predict_proba(X[:20])
    assert np.array_equal(chance.argmax(axis=1), model.predict(X[:20]))
    assert model.quantize().decision is found.model.decision
    assert plain.decision is None
    save(model, tmp_path / "m.pkl")
    again = load(tmp_path / "m.pkl")
    assert np.array_equal(again.predict_proba(X[:20]), chance)
    assert again.quantize() == model.quantize() != plain
    assert not hasattr(clone(model), "decision_")
    assert np.array_equal(model.fit(X[:600], y[:600]).predict_proba(X[:20]), usual)
    assert model.quantize() == plain
