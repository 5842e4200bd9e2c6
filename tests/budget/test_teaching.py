"""Learning from a teacher: who labels which rows, with which weights."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, OneClassSVM

import tinykernel
from tests.refusals import refused
from tinykernel.base.errors import TinykernelError
from tinykernel.kinds.train.teaching import soft_labels

pytestmark = pytest.mark.usefixtures("page")

X, Y = load_iris(return_X_y=True)
Y = np.array(["a", "b", "c"])[Y]


class Labels:
    """A teacher that has only `predict`, and cannot be trained."""

    def __init__(self, answer):
        self.answer = answer

    def predict(self, rows):
        return np.full(len(rows), self.answer)


def test_no_row_is_labelled_by_a_teacher_that_saw_it():
    """One that remembers its rows gives noise back out of fold, not the labels that it learned."""
    rng = np.random.default_rng(0)
    noise, labels = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    memory = KNeighborsClassifier(1).fit(noise, labels)
    taught = soft_labels(memory, noise, labels)
    assert memory.score(noise, labels) == 1
    assert np.mean(taught.answers == labels) < 0.65


def test_weights_of_a_row_are_half_the_label_and_half_the_teacher():
    """They add up to that of the row, and the rows of one origin are one group."""
    weight = np.linspace(0.5, 2, len(X))
    taught = soft_labels(LogisticRegression(max_iter=500), X, Y, weight=weight)
    total = np.bincount(taught.rows, weights=taught.weight)
    assert np.abs(total - weight).max() < 0.04 * weight.max()
    right = np.bincount(taught.rows, weights=taught.weight * (taught.y == Y[taught.rows]))
    assert (right >= 0.49 * weight).all()
    assert np.array_equal(taught.groups, taught.rows)
    assert len(taught.rows) > len(X)


def test_fresh_rows_are_labelled_by_the_teacher_alone():
    """One that cannot be cloned labels no others; groups of fresh rows are new ones."""
    taught = soft_labels(Labels("b"), X, Y, X_more=X[:7], groups=np.arange(len(X)) % 3)
    assert np.array_equal(taught.y[: len(X)], Y)
    assert np.array_equal(taught.y[len(X) :], ["b"] * 7)
    assert len(np.unique(taught.groups)) == 3 + 7
    refused(TinykernelError, soft_labels, Labels("b"), X, Y)
    refused(
        TinykernelError, soft_labels, LogisticRegression().fit(X[:2], ["a", "z"]), X, Y, X_more=X
    )


@pytest.mark.slow
def test_train_learns_from_an_svm_and_says_how_often_they_agree():
    """Decisions without probabilities are enough; values learn values."""
    options = {"effort": "quick", "epochs": 15, "random_state": 0}
    found = tinykernel.train(X, Y, budget="4KB", teacher=SVC(), X_more=X[::9], **options)
    assert found.agreement > 0.9
    rows, values = load_diabetes(return_X_y=True)
    ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=5)
    found = tinykernel.train(rows, values, teacher=ridge, task="numbers", **options)
    assert 0.3 < found.agreement < 1
    with pytest.raises(TinykernelError):
        tinykernel.train(X, Y, X_more=X)


@pytest.mark.parametrize(
    ("teacher", "change"),
    [
        (SVC, {}),
        (Ridge(), {}),
        (SVC(), {"y": np.arange(149) % 3}),
        (SVC(), {"weight": np.ones(3)}),
        (SVC(), {"groups": np.ones(3)}),
        (Ridge(), {"y": np.repeat(["a", "b"], 75)}),
        (make_pipeline(KMeans(3)), {}),
        (GaussianMixture(3), {}),
        (OneClassSVM(), {}),
    ],
)
def test_what_cannot_teach_is_refused(teacher, change):
    """One line each, before anything is trained."""
    X, y = load_iris(return_X_y=True)
    refused(TinykernelError, soft_labels, teacher, **{"X": X, "y": y} | change)


def test_decisions_of_pairs_are_not_those_of_classes():
    """Of three classes there are as many pairs; floats as labels are no values."""
    X, y = load_iris(return_X_y=True)
    taught = soft_labels(SVC(decision_function_shape="ovo"), X, y.astype(float))
    assert np.mean(taught.answers == y) > 0.9
    assert taught.agreement(taught.answers) == 1
    assert taught.agreement(np.zeros(150)) == np.mean(taught.answers == 0)
