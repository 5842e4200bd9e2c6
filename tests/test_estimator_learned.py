"""The method "learned" behind the classifier: formats, groups, validation, teachers, Ctrl-C."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from tinykernel import TernaryKernelClassifier, TinykernelError, load, progress, save


@pytest.fixture(scope="module")
def rows():
    """600 digits as bytes, and 200 others."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.uint8)
    return X[:600], y[:600], X[600:800], y[600:800]


def quick(**parameters):
    """Make a classifier that trains in a fraction of a second."""
    chosen = {"n_components": 128, "epochs": 6, "search": False, "random_state": 0}
    return TernaryKernelClassifier(**chosen | parameters)


def weights(model):
    return model.machine_.weights.tobytes() + model.machine_.diagonal.tobytes()


def test_it_is_the_default_and_learns(rows):
    """Protects the default method: learned, and as accurate in integers as in floats."""
    X, y, X_test, y_test = rows
    assert TernaryKernelClassifier().method == "learned"
    model = quick(n_components=512, epochs=30).fit(X, y)
    assert model.score(X_test, y_test) > 0.85
    integer = np.mean(model.quantize().predict(X_test) == y_test)
    assert abs(model.score(X_test, y_test) - integer) <= 0.01
    assert (model.layout_, model.n_components_, model.n_iter_) == ("compact", 512, 30)
    assert model.history_["loss"].shape == (30,)
    assert model.history_["loss"][-1] < model.history_["loss"][0] / 4
    assert not model.interrupted_


def test_formats_to_choose_from(rows, tmp_path):
    """Protects a mapping of formats: one is chosen, with its number, and it can be saved."""
    X, y, _, _ = rows
    capacity = {"compact": 96, "phases": 64}
    model = quick(n_components=capacity, epochs=2).fit(X[:200], y[:200])
    assert model.n_components_ == capacity[model.layout_]
    assert model.cv_results_["log_loss"].size >= 2
    save(model, tmp_path / "m.pkl")
    again = load(tmp_path / "m.pkl")
    assert again.n_components == capacity
    assert again.quantize() == model.quantize()
    one = quick(n_components=capacity, layout="phases", epochs=2).fit(X[:200], y[:200])
    assert (one.layout_, one.n_components_) == ("phases", 64)
    assert clone(one).get_params()["n_components"] == capacity


def test_groups_stay_together_and_apart(rows, monkeypatch):
    """Protects groups: they follow their rows, and equal rows of two groups are not merged."""
    X, y, _, _ = rows
    X, y = np.r_[X[:100], X[:100]], np.r_[y[:100], y[:100]]
    groups = np.repeat(["ann", "ben"], 100)
    seen = {}

    def look(X, codes, **named):
        seen.update(named, X=X, codes=codes)
        raise KeyboardInterrupt

    monkeypatch.setattr("tinykernel.training.learned.fit_joint", look)
    with pytest.raises(KeyboardInterrupt):
        quick().fit(X, y, groups=groups)
    assert len(seen["X"]) == 200
    given = {(*row, code, group) for row, code, group in zip(
        X.tolist(), y.tolist(), (groups == "ben").tolist(), strict=True)}  # fmt: skip
    got = {(*row, code, group) for row, code, group in zip(
        seen["X"].tolist(), seen["codes"].tolist(), seen["groups"].tolist(), strict=True)
    }  # fmt: skip
    assert given == {(*t[:-2], np.unique(y)[t[-2]], bool(t[-1])) for t in got}


@pytest.mark.parametrize("method", ["learned", "paper"])
def test_groups_are_used_in_the_search(rows, method):
    """Protects groups for both methods: a search with them is another search."""
    X, y, _, _ = rows
    search = {"search": True} if method == "learned" else {"epochs": None}
    model = quick(method=method, n_components=64, **search)
    first = clone(model).fit(X[:200], y[:200])
    second = clone(model).fit(X[:200], y[:200], groups=np.arange(200) // 40)
    name = "log_loss" if method == "learned" else "score"
    assert not np.array_equal(first.cv_results_[name], second.cv_results_[name])


def test_a_share_of_the_rows_chooses_the_epoch(rows):
    """validation_fraction keeps rows aside, the same ones for the same rows in another order."""
    X, y, *_ = rows
    first = quick(epochs=40, patience=2, validation_fraction=0.2).fit(X, y)
    assert len(first.history_["accuracy"]) == first.n_iter_
    order = np.random.default_rng(0).permutation(len(y))
    second = quick(epochs=40, patience=2, validation_fraction=0.2).fit(X[order], y[order])
    np.testing.assert_array_equal(first.machine_.weights, second.machine_.weights)
    with pytest.raises(TinykernelError, match="validation_fraction must be"):
        quick(validation_fraction=0.7).fit(X, y)


def test_validation_rows_choose_the_epoch(rows):
    """Protects the best state: patience ends training, and the best epoch is the result."""
    X, y, X_test, y_test = rows
    model = quick(epochs=60, patience=3).fit(X, y, validation=(X_test, y_test))
    scores = model.history_["accuracy"]
    assert model.n_iter_ == scores.size < 60
    assert scores.size - 1 - np.flatnonzero(scores == scores.max())[-1] == 3
    integer = np.mean(model.quantize().predict(X_test) == y_test)
    assert integer == pytest.approx(scores.max(), abs=0.01)
    assert not model.interrupted_


def test_a_teacher_changes_the_targets(rows):
    """Protects soft labels: a classifier and its probabilities give the same model; 0 share none"""
    X, y, _, _ = rows
    teacher = LogisticRegression(max_iter=500).fit(X, y)
    by_model = quick().fit(X, y, teacher=teacher)
    by_array = quick().fit(X, y, teacher=teacher.predict_proba(X))
    assert weights(by_model) == weights(by_array)
    plain = quick().fit(X, y)
    assert weights(plain) != weights(by_model)
    assert weights(plain) == weights(quick(teacher_share=0.0).fit(X, y, teacher=teacher))
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = quick().fit(X[order], y[order], teacher=teacher.predict_proba(X)[order])
    assert weights(shuffled) == weights(by_model)
    margins = quick().fit(X, y, teacher=LinearSVC(max_iter=200).fit(X / 16.0, y))
    assert margins.score(X, y) > 0.5


def test_augmentation(rows):
    """Protects augment: moving images and the noise given change the model."""
    X, y, _, _ = rows
    plain, moved, noisy = (
        quick(augment=augment, image_shape=(8, 8)).fit(X, y)
        for augment in (None, {"shift": 1}, {"noise": 0.6})
    )
    assert len({weights(plain), weights(moved), weights(noisy)}) == 3


def test_order_and_repetition_do_not_matter(rows):
    """Protects the canonical training set of "learned", too."""
    X, y, _, _ = rows
    X, y = X[:150], y[:150]
    order = np.random.default_rng(0).permutation(150)
    assert weights(quick().fit(X, y)) == weights(quick().fit(X[order], y[order]))
    double = quick().fit(np.r_[X, X], np.r_[y, y])
    assert weights(double) == weights(quick().fit(X, y, sample_weight=np.full(150, 2.0)))


def test_threads_do_not_change_the_file(rows, tmp_path):
    """Protects reproducibility: 1 and 2 threads give the same .tkm, byte for byte."""
    X, y, _, _ = rows
    for jobs in (1, 2):
        model = quick(n_components={"compact": 96, "phases": 64}, epochs=4, n_jobs=jobs)
        save(model.fit(X[:200], y[:200]).quantize(), tmp_path / f"{jobs}.tkm")
    assert (tmp_path / "1.tkm").read_bytes() == (tmp_path / "2.tkm").read_bytes()


def interrupting(stage, done):
    """Return an observer that plays Ctrl-C once."""
    waiting = [True]

    def observe(message):
        if message.stage == stage and message.done == done and waiting:
            waiting.clear()
            raise KeyboardInterrupt

    return observe


def test_interrupt_keeps_the_best_model(rows):
    """Protects Ctrl-C: after an epoch the model is there, with a warning that says so."""
    X, y, X_test, y_test = rows
    model = quick(epochs=20)
    with (
        progress.observing(interrupting("training", 8)),
        pytest.warns(ConvergenceWarning, match="interrupted after 8 epochs"),
    ):
        model.fit(X, y)
    assert model.interrupted_
    assert model.n_iter_ == 8
    assert model.quantize().predict(X_test).shape == y_test.shape
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not model.fit(X, y).interrupted_


def test_interrupt_before_there_is_a_model(rows, monkeypatch):
    """Protects Ctrl-C in the first epoch: nothing to keep, so it ends the fit."""
    X, y, _, _ = rows

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tinykernel.training.learner.JointLearner._epoch", interrupt)
    model = quick()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "machine_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": {}}, "an empty mapping; its layouts are compact"),
        ({"n_components": {"small": 64}}, "'small'; its layouts are compact"),
        ({"n_components": {"compact": 0}}, r"n_components\['compact'\] must be a whole number"),
        ({"n_components": {"compact": 70000}}, "must be at most 65536"),
        ({"n_components": {"compact": 64}, "layout": "phases"}, "leave layout out"),
        ({"layout": "tiny"}, "layout must be one of"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"patience": 2}, "patience: give rows to watch"),
        ({"search": "no"}, "search must be one of"),
        ({"augment": "shift"}, "augment: give a mapping"),
        ({"augment": {"turn": 1}}, "'turn' is not known"),
        ({"augment": {"shift": 1.5}, "image_shape": (8, 8)}, "shift must be a whole number"),
        ({"augment": {"noise": -1}}, "noise must be a number from 0"),
        ({"augment": {"shift": 1}}, "shift needs the image_shape"),
        ({"image_shape": (8, 9)}, "8 x 9 makes 72 pixels, but rows have 64"),
        ({"augment": {"shift": 9}, "image_shape": (8, 8)}, "out of sight; give at most 4"),
        ({"image_shape": 64}, r"give \(height, width\)"),
        ({"teacher_share": 2}, "teacher_share must be a number from 0 to 1"),
    ],
)
def test_wrong_parameters(rows, parameters, message):
    """Protects the user: one line that names the parameter and what it may be."""
    with pytest.raises(TinykernelError, match=message) as caught:
        quick(**parameters).fit(rows[0][:50], rows[1][:50])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": np.zeros(50)}, "all rows are in one group"),
        ({"groups": np.zeros(49)}, "for each of the 50 rows"),
        ({"validation": np.zeros((3, 64))}, "give a pair"),
        ({"validation": (np.zeros((2, 64), int), [0, 77])}, "label 77 is not in the training"),
        ({"validation": (np.full((2, 64), 0.5), [0, 1])}, "not whole numbers"),
        ({"validation": (np.full((2, 64), 300), [0, 1])}, "validation: X: row 0, column 0 is 300"),
        ({"teacher": np.ones((50, 3))}, r"shape \(50, 3\)"),
        ({"teacher": np.full((50, 10), -1.0)}, "negative or NaN"),
        ({"teacher": "svm"}, "give a fitted classifier"),
        ({"teacher": LogisticRegression}, "not its class"),
    ],
)
def test_wrong_data(rows, given, message):
    """Protects the user from groups, validation rows and teachers that do not fit to the rows."""
    with pytest.raises(TinykernelError, match=message):
        quick().fit(rows[0][:50], rows[1][:50], **given)


def test_a_teacher_that_does_not_know_a_class(rows):
    """Protects the columns: a teacher of fewer classes is refused, of more is cut."""
    X, y, _, _ = rows
    with pytest.raises(TinykernelError, match="does not know the class"):
        quick().fit(X, y, teacher=LogisticRegression(max_iter=500).fit(X[y < 5], y[y < 5]))
    few = y < 3
    teacher = LogisticRegression(max_iter=500).fit(X, y)
    assert quick().fit(X[few], y[few], teacher=teacher).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("given", [{"validation": (1, 2)}, {"teacher": 1}])
def test_paper_has_neither(rows, given):
    """Protects the user from arguments that would have no effect."""
    with pytest.raises(TinykernelError, match='only for method "learned"'):
        TernaryKernelClassifier(method="paper").fit(rows[0], rows[1], **given)
