"""The classifier: scikit-learn's conventions, what it promises, and what it refuses."""

import dataclasses
import pickle
import warnings
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.refusals import refused_for
from tinykernel import (
    Classifier,
    Regressor,
    TernaryKernelClassifier,
    TernaryKernelRegressor,
    load,
    save,
    train,
)
from tinykernel.base import progress
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.recipe import RegressorOptions
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.papers.classifier import PaperClassifier
from tinykernel.pieces.components.spec import Components


def quick(**parameters):
    """Make a classifier that trains in a fraction of a second."""
    chosen = {"n_components": 128, "epochs": 6, "effort": "quick", "random_state": 0}
    return TernaryKernelClassifier(**chosen | parameters)


def paper(**parameters):
    """Make a classifier of the paper's method that trains in milliseconds."""
    chosen = {"n_components": 64, "regularization": 0.1, "random_state": 0}
    return PaperClassifier(**chosen | parameters)


of_both = pytest.mark.parametrize("make", [quick, paper])


@pytest.fixture(scope="module")
def rows():
    """600 digits as bytes, and 200 others."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.uint8)
    return X[:600], y[:600], X[600:800], y[600:800]


@parametrize_with_checks([quick(n_components=64, epochs=30)])
def test_check_estimator(estimator, check):
    """Protects every convention of scikit-learn."""
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
    assert all(f"\n    {name} : " in estimator.__doc__ for name in names)
    assert machine().get_params().keys() < estimator().get_params().keys()
    own = machine().get_params().keys() & {"class_weight", "loss"}
    assert own == {"class_weight" if estimator is Classifier else "loss"}


def test_a_wrong_name_is_answered_with_the_right_one():
    """``n_component=3`` is answered with the name that is meant."""
    with pytest.raises(TypeError, match="did you mean n_components"):
        TernaryKernelClassifier(n_component=3)
    with pytest.raises(TypeError, match=r"^TernaryKernelClassifier: give parameters by name"):
        TernaryKernelClassifier(3)
    with pytest.raises(ValueError, match="Invalid parameter 'cell'"):
        TernaryKernelClassifier().set_params(cell=3)


def test_train_takes_every_option(rows):
    """Protects rare options: they are parameters of the estimator, as all others."""
    X, y, _, _ = rows
    short = {"n_components": 64, "epochs": 1, "effort": "quick", "random_state": 0}
    assert train(X[:200], y[:200], code="small", **short).classifier.code == "small"
    with pytest.raises(TypeError, match="cell is not a parameter; did you mean cells"):
        train(X, y, cell=3)


def test_learns_and_tells_how(rows):
    """Protects the whole path: it learns, and says what the firmware says."""
    X, y, X_test, y_test = rows
    model = quick(n_components=512, epochs=30).fit(X, y)
    assert model.score(X_test, y_test) > 0.85
    assert np.array_equal(model.predict(X_test), model.quantize().predict(X_test))
    assert (model.layout_, model.n_components_, model.n_iter_) == ("compact", 512, 30)
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

    monkeypatch.setattr("tinykernel.kinds.selection.select", look)
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


def test_a_share_of_the_rows_chooses_the_epoch(rows):
    """validation_fraction keeps rows aside, the same ones for the same rows in another order."""
    X, y, *_ = rows
    first = quick(epochs=5, validation_fraction=0.2).fit(X, y)
    assert len(first.history_["accuracy"]) == first.n_iter_
    order = np.random.default_rng(0).permutation(len(y))
    second = quick(epochs=5, validation_fraction=0.2).fit(X[order], y[order])
    assert first.machine_ == second.machine_


@of_both
def test_threads_and_seed(rows, make):
    """Protects reproducibility: threads change nothing, the seed changes everything."""
    X, y, _, _ = rows
    first, second, other = (
        make(n_components=96, n_jobs=jobs, random_state=seed).fit(X, y).quantize()
        for jobs, seed in ((1, 0), (2, 0), (2, 1))
    )
    assert first == second != other


def interrupting(stage, done):
    """Return an observer that plays Ctrl-C once."""
    waiting = [True]

    def observe(message):
        if message.stage == stage and message.done == done and waiting:
            waiting.clear()
            raise KeyboardInterrupt

    return observe


def test_ctrl_c_keeps_the_best_model(rows):
    """Protects Ctrl-C: after an epoch the model is there, with a warning that says so."""
    X, y, X_test, y_test = rows
    model = quick(epochs=8)
    with (
        progress.observing(interrupting("training", 3)),
        pytest.warns(ConvergenceWarning, match="interrupted after 3 epochs"),
    ):
        model.fit(X, y)
    assert model.interrupted_
    assert model.n_iter_ == 3
    assert model.quantize().predict(X_test).shape == y_test.shape
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not model.fit(X, y).interrupted_


def test_ctrl_c_before_there_is_a_model(rows, monkeypatch):
    """Protects Ctrl-C in the first epoch: it ends the fit, and an older model stays whole."""
    X, y, _, _ = rows
    few = y < 3
    model = quick().fit(X[few], np.array(["a", "b", "c"])[y[few]])
    monkeypatch.setattr(
        "tinykernel.learn.components.learner.Learner.epoch", Mock(side_effect=KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[few], np.array(["x", "y", "z"])[y[few]])
    assert set(model.predict(X)) == {"a", "b", "c"}


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


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": {"compact": 64}}, "the layout by layout"),
        ({"layout": "small"}, "is not a layout; give compact"),
        ({"n_components": 70000}, "must be at most 65536"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"effort": "no"}, "effort: 'no'; give normal, quick, or"),
        ({"augment": "shift"}, "augment: give a mapping"),
        ({"augment": {"turn": 1}}, "'turn' is not known"),
        ({"augment": {"shift": 1.5}, "image_shape": (8, 8)}, "shift must be a whole number"),
        ({"augment": {"noise": 1}}, "noise is not for rows"),
        ({"augment": {"shift": 1}}, "give image_shape or window_shape"),
        (
            {"augment": {"shift": 1}, "image_shape": (8, 9)},
            "8 x 9 makes 72 values, but rows have 64",
        ),
        ({"augment": {"shift": 9}, "image_shape": (8, 8)}, "give at most 4"),
        ({"augment": {"shift": 33}, "window_shape": (64, 1)}, "give at most 32"),
        ({"augment": {"shift": 1}, "image_shape": 64}, r"give \(height, width\)"),
        ({"validation_fraction": 0.7}, "validation_fraction must be a number above 0"),
        ({"n_components": 2.5}, "n_components must be a whole number"),
        ({"sigma": -1.0}, "sigma must be a positive number"),
        ({"n_jobs": 0}, "n_jobs must be a whole number"),
        ({"class_weight": "heavy"}, "class_weight must be balanced, or weights"),
        ({"class_weight": {99: 1.0}}, "99 is not a label"),
    ],
)
def test_wrong_parameters(rows, parameters, message):
    """Protects the user: one line that names the parameter and what it may be."""
    model = Classifier(**{"effort": "quick", "random_state": 0} | parameters)
    refused_for(message, model.fit, rows[0][:50], rows[1][:50])


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        ({"window_shape": (5, 2)}, (40, 9), "window_shape: 5 x 2 makes 10 values"),
        ({"window_shape": (8, 2)}, (40, 16), "windows of 8 samples are too short"),
        ({"image_shape": (2, 8)}, (40, 16), "image_shape: images of 2 x 8; give 4 to 192 rows"),
        ({"image_shape": (4, 4), "window_shape": (8, 2)}, (40, 16), "give one of them"),
        ({"augment": {"affine": 1}}, (40, 16), "affine is not for rows"),
        ({"augment": {"flip": 2}, "image_shape": (4, 4)}, (40, 16), "flip.*from 0 to 1"),
        ({"augment": {"rotate": 0.1}}, (40, 16, 4), "rotate turns three channels at a time"),
        ({"n_kernels": 4}, (40, 16), "n_kernels: give signals"),
        ({"sigma": 2.0}, (40, 32, 2), "sigma: only for components"),
        ({"epochs": 9, "model": "kernels"}, (40, 32, 2), "epochs: not an option of signals"),
        ({"sigma": 2.0, "image_shape": (4, 4)}, (40, 16), "sigma: only for components"),
        ({"model": "linear", "sigma": 0.2}, (40, 16), "sigma: only for components"),
        ({"hop": 4}, (40, 16), "hop: give signals"),
        ({"spectrum": "on"}, (40, 16), "spectrum: give signals"),
        ({"model": "linear", "linear": "off"}, (40, 16), "opposite of model=linear"),
        (
            {"image_shape": (4, 4), "n_components": 64},
            (40, 16),
            "n_components: only for components",
        ),
        ({"n_components": 0}, (40, 16), 'give model="linear"'),
        ({"n_channels": 4}, (40, 16), "only for convolutions"),
        ({"model": "kernels"}, (40, 16), "kernels is not for tables; give components"),
        ({"model": "trees", "image_shape": (4, 4)}, (40, 16), "give chains, separable"),
        ({"window_shape": (8, 2)}, (40, 9, 2), "but"),
        ({"image_shape": (4, 256), "n_channels": 2}, (40, 1024), "give 4 to 192 rows"),
        ({"n_kernels": 4, "image_shape": (4, 4)}, (40, 16), "n_kernels: give signals"),
        ({"model": "chains"}, (8, 16), "chains is not for tables"),
        ({"model": "chains", "image_shape": (3, 32)}, (8, 96), "give 4 to 96 rows"),
        ({"model": "chains", "image_shape": (8, 8, 4)}, (8, 256), "take one"),
        ({"n_channels": 257, "image_shape": (16, 16)}, (8, 256), "give at most 256"),
        ({"model": "separable"}, (8, 3, 20, 1), "give 4 to 192 rows and columns"),
        ({"model": "separable"}, (8, 12, 12, 17), "take up to 16"),
        ({"window_shape": (64, 1), "beside": 1}, (60, 66), "64 values and 1 beside, but rows"),
        ({"image_shape": (11, 6), "beside": 2}, (60, 66), "beside: give signals"),
        ({"beside": 2}, (60, 66), "beside: give signals"),
    ],
)
def test_options_that_do_not_fit_the_rows(options, shape, message):
    """Protects that no option is ignored and every shape is checked."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 200, shape).astype(np.uint8), np.arange(shape[0]) % 2
    refused_for(message, Classifier(**options).fit, X, y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": np.zeros(49)}, "for each of the 50 rows"),
        ({"validation": np.zeros((3, 64))}, "give a pair"),
        ({"validation": (np.zeros((2, 64), int), [0, 77])}, "label 77 is not in the training"),
        ({"validation": (np.full((2, 64), 0.5), [0, 1])}, "not whole numbers"),
        ({"validation": (np.full((2, 64), 300), [0, 1])}, "validation: X: row 0, column 0 is 300"),
    ],
)
def test_what_does_not_fit_to_the_rows(rows, given, message):
    """Protects the user from groups and validation rows that do not fit to the rows."""
    refused_for(message, quick().fit, rows[0][:50], rows[1][:50], **given)


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        ([[1.0], [2.0]], [1, 1], None, r"one class only \(1\)"),
        ([[1.0], [2.0]], [0, 1], [0.0, 0.0], "non-zero number|weights are 0"),
        ([[1.0], [2.0]], [0, 1], [1.0, -1.0], "Negative values"),
        ([[1], [2**40]], [0, 1], None, "row 1, column 0 is 1099511627776"),
        ([[1.0], [1e300]], [0, 1], None, "row 1, column 0"),
        ([[1.0], [np.inf]], [0, 1], None, "infinity"),
        ([[1.0], [2.0]], [0.5, 1.7], None, 'Unknown label type: .* task="numbers"'),
        (
            np.eye(21),
            2 * np.arange(21),
            None,
            'y: 21 different numbers, .* task="numbers", or a Regr',
        ),
        ([[1.0], [2.0]], np.array(["a", None]), None, "1 of 2 labels are missing"),
    ],
)
def test_wrong_data(X, y, weight, message):
    """Protects the user from data that cannot be learnt from or that firmware cannot hold."""
    with pytest.raises(ValueError, match=message):
        quick().fit(X, y, sample_weight=weight)
