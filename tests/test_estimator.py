"""The scikit-learn face: its conventions, edge cases, and what the model promises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tinykernel import TernaryKernelClassifier, TinykernelError, progress
from tinykernel.model import IntegerModel

ARRAYS = ("input_offset", "input_scale", "sign", "diagonal", "row_scale", "start", "width",
          "weights", "output_scale", "output_offset")  # fmt: skip


def small(**parameters):
    """Make a classifier of the method "paper" that trains in milliseconds."""
    quick = {"method": "paper", "n_components": 64, "sigma": 2.0, "regularization": 0.1}
    return TernaryKernelClassifier(**quick | {"random_state": 0} | parameters)


def equal_machines(first, second):
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ARRAYS)


@parametrize_with_checks(
    [
        small(sigma=None, regularization=None, max_iter=5),
        small(scaler="standard", coefficients="binary", loss="logistic"),
        TernaryKernelClassifier(n_components=64, epochs=30, search=False, random_state=0),
    ]
)
def test_check_estimator(estimator, check):
    """Protects every convention of scikit-learn: all methods, with and without a search."""
    check(estimator)


def test_paper_learns_digits():
    """Protects the whole path of "paper": choosing sigma and lambda, then training."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = TernaryKernelClassifier(method="paper", n_components=512, random_state=0)
    model.fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.96
    assert set(model.cv_results_) == {"sigma", "regularization", "score"}
    assert model.sigma_ in model.cv_results_["sigma"]
    assert model.regularization_ in model.cv_results_["regularization"]
    assert model.machine_.raw_dtype == "float32"
    assert 1 <= model.n_iter_ <= 20


def test_quantize_is_cached_and_not_pickled():
    """Protects quantize(): one object until the next fit, close to the floats, not pickled."""
    X, y = load_iris(return_X_y=True)
    model = small().fit(X, y)
    integer = model.quantize()
    assert isinstance(integer, IntegerModel)
    assert model.quantize() is integer
    data = pickle.dumps(model)
    assert b"_quantized" not in data
    copy = pickle.loads(data)
    assert np.array_equal(copy.predict(X), model.predict(X))
    assert np.mean(integer.predict(X) == model.predict(X)) > 0.95
    assert model.fit(X, y).quantize() is not integer


def test_works_in_pipeline_grid_search_and_clone():
    """Protects composition with scikit-learn."""
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), small())
    search = GridSearchCV(pipeline, {"ternarykernelclassifier__sigma": [0.5, 1.0]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.85
    copy = clone(search.best_estimator_)[-1]
    assert not hasattr(copy, "machine_")
    assert copy.get_params()["n_components"] == 64


def test_chosen_splits():
    """Protects grouped data: the parts that the user chose are used, and only their rows."""
    X, y = load_iris(return_X_y=True)
    groups = np.arange(150) % 5
    splits = list(GroupKFold(5).split(X, y, groups))
    first = small(sigma=None, cv=splits).fit(X, y)
    second = small(sigma=None, cv=GroupKFold(5)).fit
    with pytest.raises(ValueError, match="groups"):
        second(X, y)
    by_splitter = small(sigma=None, cv=StratifiedKFold(3)).fit(X, y)
    scores = first.cv_results_["score"]
    assert scores.size == by_splitter.cv_results_["score"].size >= 6
    assert np.allclose(scores * 150, np.round(scores * 150))
    assert scores.max() > 0.9


def test_string_labels_and_decisions():
    """Protects labels that are text, and the shapes of decisions for two and more classes."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = small().fit(X, names)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.machine_.classes == ("setosa", "versicolor", "virginica")
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, names) > 0.9
    two = small().fit(X[:100], names[:100])
    decisions = two.decision_function(X[:100])
    assert decisions.shape == (100,)
    assert np.array_equal(two.predict(X[:100]) == "versicolor", decisions > 0)
    assert two.machine_.weights.shape[0] == 1


def test_sample_and_class_weights_matter():
    """Protects both kinds of weights: they move the boundary the way they should."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, (400, 2)), rng.normal(1.2, 1, (40, 2))]
    y = np.r_[np.zeros(400), np.ones(40)]
    plain = small().fit(X, y)
    balanced = small(class_weight="balanced").fit(X, y)
    by_dict = small(class_weight={0.0: 0.55, 1.0: 5.5}).fit(X, y)
    by_row = small().fit(X, y, sample_weight=np.where(y == 1, 5.5, 0.55))
    recall = [np.mean(m.predict(X[400:]) == 1) for m in (plain, balanced, by_dict, by_row)]
    assert recall[1] > recall[0] + 0.2
    assert recall[1] == recall[2] == recall[3]


def test_order_and_repetition_of_rows_do_not_matter():
    """Protects the canonical training set: shuffled or repeated rows give the same machine."""
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = small(sigma=None, regularization=None).fit(X, y)
    order = np.random.default_rng(0).permutation(200)
    other = clone(model).fit(X[order], y[order])
    assert equal_machines(model.machine_, other.machine_)
    weighted = clone(model).fit(X, y, sample_weight=np.full(200, 2.0))
    repeated = clone(model).fit(np.r_[X, X], np.r_[y, y])
    assert equal_machines(weighted.machine_, repeated.machine_)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_threads_and_seed(n_classes):
    """Protects reproducibility: threads change nothing, the seed changes everything."""
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    first, second, other = (
        small(sigma=None, regularization=None, n_jobs=jobs, random_state=seed, cv=2).fit(X, y)
        for jobs, seed in ((1, 0), (2, 0), (2, 1))
    )
    assert equal_machines(first.machine_, second.machine_)
    assert first.sigma_ == second.sigma_
    assert not np.array_equal(first.machine_.sign, other.machine_.sign)


@pytest.mark.parametrize(
    ("dtype", "raw"),
    [
        ("float64", "float32"), ("float32", "float32"), ("float16", "float32"),
        ("int8", "int8"), ("uint8", "uint8"), ("int16", "int16"), ("uint16", "uint16"),
        ("int32", "int32"), ("int64", "int32"), ("uint32", "int32"), ("bool", "uint8"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["C", "F"])
def test_input_types(dtype, raw, order):
    """Protects the raw input type of the firmware, whatever layout the array has."""
    X, y = load_digits(n_class=3, return_X_y=True)
    X = np.asarray(X > 7 if dtype == "bool" else X, dtype=dtype, order=order)
    model = small(sigma=5.0).fit(X, y)
    assert model.machine_.raw_dtype == raw
    assert model.score(X, y) > 0.9
    assert np.array_equal(model.predict(np.ascontiguousarray(X[:50])), model.predict(X)[:50])


def test_data_frames(require_tool):
    """Protects pandas users: column names are kept and checked, small integers stay small."""
    pandas = require_tool("pandas")
    X, y = load_iris(return_X_y=True)
    frame = pandas.DataFrame((10 * X).astype("uint8"), columns=list("abcd"))
    model = small().fit(frame, pandas.Series(y).map({0: "x", 1: "y", 2: "z"}))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.machine_.raw_dtype == "uint8"
    assert model.predict(frame)[0] == "x"
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("dcba")])


@pytest.mark.parametrize("n_features", [1, 2, 31, 32, 33, 100, 1000, 2048])
def test_numbers_of_features(n_features):
    """Protects padding: 1 to 2048 features, p smaller and larger than d."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, n_features))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] *= 3 * np.sqrt(n_features)
    model = small(sigma=None, regularization=None, scaler_scope="global", cv=2).fit(X, y)
    assert model.machine_.dimension >= n_features
    assert model.machine_.weights[:, 64:].any() == False  # noqa: E712
    assert model.score(X, y) > 0.8


def test_two_rows_a_class():
    """Protects the smallest sets: cross-validation has next to nothing to leave out."""
    X, y = np.array([[0.0], [0.1], [1.0], [1.1]]), np.array([0, 0, 1, 1])
    model = small(sigma=None, regularization=None).fit(X, y)
    assert model.predict(X).tolist() == [0, 0, 1, 1]


def test_one_row_a_class():
    """Protects sets that cannot be split: sigma and lambda take middling values."""
    model = small(sigma=None, regularization=None).fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    assert model.predict([[0.0], [1.0], [2.0]]).tolist() == ["a", "b", "c"]
    assert model.cv_results_ == {}


@pytest.mark.parametrize("scope", ["feature", "global"])
@pytest.mark.parametrize("scaler", ["minmax", "standard"])
def test_constant_features(scaler, scope):
    """Protects constant columns: some, and all of them."""
    X, y = load_iris(return_X_y=True)
    X[:, 3] = 7.0
    parameters = {"scaler": scaler, "scaler_scope": scope, "sigma": None, "regularization": None}
    model = small(**parameters).fit(X, y)
    assert model.score(X, y) > 0.85
    if scope == "feature":
        assert model.machine_.input_scale[3] == 0
    constant = small(**parameters).fit(np.ones((30, 2)), y[40:70])
    assert set(constant.predict(np.ones((5, 2)))) == {1}
    assert not constant.machine_.input_scale.any()


def test_hundred_classes():
    """Protects many classes with few rows each."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(100, 16))
    y = np.repeat(np.arange(100), 6)
    X = centres[y] + 0.1 * rng.normal(size=(600, 16))
    model = small(n_components=128, sigma=None, cv=2, max_iter=5).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.machine_.weights.shape[0] == 100


def test_input_bits():
    """Protects the choice of 8 or 16 bits: fine structure below 8 bits needs 16."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (500, 1))
    X[0] = 400.0
    y = (X[:, 0] > 0.5).astype(int)
    assert small(sigma=0.002).fit(X, y).machine_.input_bits == 16
    assert small(sigma=0.002, input_bits=8).fit(X, y).machine_.input_bits == 8
    iris = load_iris(return_X_y=True)
    assert small().fit(*iris).machine_.input_bits == 8


@pytest.mark.parametrize(
    "options",
    [
        {"diagonal": "gaussian", "row_scale": "chi", "permutation": "stored"},
        {"permutation": "identity"},
        {"coefficients": "binary"},
        {"penalty": "l1", "regularization": 0.001},
        {"loss": "hinge"},
        {"init": "random"},
        {"init": "svm_sign", "intercept": False},
    ],
)
def test_options(options):
    """Protects every option: it trains, and it shows in the machine."""
    X, y = load_iris(return_X_y=True)
    model = small(**options).fit(X, y)
    assert model.score(X, y) > 0.9
    machine = model.machine_
    assert machine.diagonal_kind == options.get("diagonal", "sign")
    assert machine.permutation.kind == options.get("permutation", "orbit")
    if options.get("coefficients") == "binary":
        assert np.all(machine.weights[:, :64] != 0)
    if options.get("intercept") is False:
        assert not machine.output_offset.any()


def test_predictions_are_those_of_the_machine_features():
    """Protects the link of training to the machine: both compute the same features."""
    X, y = load_iris(return_X_y=True)
    model = small().fit(X, y)
    machine = model.machine_
    signs = 2.0 * machine.features(X.astype(np.float32)) - 1.0
    expected = signs @ machine.weights.T * machine.output_scale + machine.output_offset
    assert np.allclose(model.decision_function(X), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"n_components": 65537}, "n_components must be at most 65536"),
        ({"n_components": {"compact": 64}}, "has no layouts"),
        ({"epochs": 3}, 'epochs: only for method "learned"'),
        ({"n_components": 0}, "n_components must be a whole number"),
        ({"n_components": 2.5}, "n_components must be a whole number"),
        ({"sigma": -1.0}, "sigma must be a positive number"),
        ({"regularization": np.nan}, "regularization must be a positive number"),
        ({"loss": "cubic"}, "loss must be one of"),
        ({"scaler": "none"}, "scaler must be one of"),
        ({"scaler_scope": "row"}, "scaler_scope must be one of"),
        ({"input_bits": 12}, "input_bits must be one of"),
        ({"cv": 1}, "cv must be a whole number"),
        ({"n_jobs": 0}, "n_jobs must be a whole number"),
        ({"class_weight": "heavy"}, "class_weight must be one of"),
        ({"class_weight": {9: 1.0}}, "9 is not a label"),
        # Each of these ended in a KeyError or TypeError, or was taken for something else.
        ({"penalty": "l3", "sigma": None}, "penalty must be one of"),
        ({"tol": "small"}, "tol must be a positive number"),
        ({"intercept": "no"}, "intercept must be one of"),
        ({"cv": np.int64(1)}, "cv must be a whole number"),
        ({"cv": 2.5}, "cv must be a whole number"),
    ],
)
def test_wrong_parameters(parameters, message):
    """Protects the user: one line that names the parameter and what it may be."""
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TinykernelError, match=message) as caught:
        small(**parameters).fit(X, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        ([[1.0], [2.0]], [1, 1], None, r"one class only \(1\)"),
        ([[1.0], [2.0]], [0, 1], [0.0, 0.0], "non-zero number|weights are 0"),
        ([[1.0], [2.0]], [0, 1], [1.0, -1.0], "Negative values"),
        ([[1], [2**40]], [0, 1], None, "row 1, column 0 is 1099511627776"),
        ([[1.0], [1e300]], [0, 1], None, "row 1, column 0"),
        ([[1.0], [np.nan]], [0, 1], None, "NaN"),
        ([[1.0], [np.inf]], [0, 1], None, "infinity"),
        ([[1.0], [2.0]], [0.5, 1.7], None, "Unknown label type"),
    ],
)
def test_wrong_data(X, y, weight, message):
    """Protects the user from data that cannot be learnt from or that firmware cannot hold."""
    with pytest.raises(ValueError, match=message):
        small().fit(X, y, sample_weight=weight)


def test_verbose_prints_and_an_observer_replaces_it(capsys):
    """Protects the progress: printed when asked for, handed to whoever observes instead."""
    X, y = load_iris(return_X_y=True)
    small(verbose=1, sigma=None).fit(X, y)
    assert "choosing sigma: 1/" in capsys.readouterr().out
    seen = []
    with progress.observing(seen.append):
        small(verbose=1).fit(X, y)
    assert {message.stage for message in seen} == {"learning the weights"}
    assert capsys.readouterr().out == ""


def test_interrupt_passes_through_cross_validation():
    """Protects Ctrl-C while sigma is chosen."""
    X, y = load_iris(return_X_y=True)

    def interrupt(message):
        raise KeyboardInterrupt

    with progress.observing(interrupt), pytest.raises(KeyboardInterrupt):
        small(sigma=None).fit(X, y)


def test_cv_as_a_numpy_integer_still_validates():
    """Protects cv=np.int64(3), which once switched cross-validation off without a word."""
    X, y = load_iris(return_X_y=True)
    plain, numpy = (small(sigma=None, cv=cv).fit(X, y) for cv in (3, np.int64(3)))
    assert numpy.cv_results_["score"].size == plain.cv_results_["score"].size > 0
    assert numpy.sigma_ == plain.sigma_


def test_failed_second_fit_does_not_mix_two_models():
    """Protects the labels: an interrupted fit left the new classes with the old machine."""
    X, y = load_iris(return_X_y=True)
    model = small(sigma=None).fit(X, np.array(["a", "b", "c"])[y])

    def interrupt(message):
        raise KeyboardInterrupt

    with progress.observing(interrupt), pytest.raises(KeyboardInterrupt):
        model.fit(X, np.array(["x", "y", "z"])[y])
    assert set(model.predict(X)) == {"a", "b", "c"}
