"""Linear models of scikit-learn after conversion."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import LocalOutlierFactor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

import tinykernel
from tests.refusals import SAID, refused
from tinykernel.base.errors import ConvertError, TinykernelError
from tinykernel.conversion.models import change_of, convert

pytestmark = pytest.mark.usefixtures("page")

SETS = {"digits": load_digits, "cancer": load_breast_cancer, "wine": load_wine}
CLASSIFIERS = [
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
    make_pipeline(MinMaxScaler(), LinearSVC(random_state=0)),
    LinearDiscriminantAnalysis(),
    RidgeClassifier(),
    Perceptron(random_state=0),
]
TUNED = TunedThresholdClassifierCV(LogisticRegression())


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: str(model).split("(")[-2])
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_few_labels_change(model: Any, data: str, dtype: str) -> None:
    """Rounded weights change at most 0.5 % of the labels, and the C computes the same scores."""
    X, y = SETS[data](return_X_y=True)
    X = X.astype(dtype)
    fitted = clone(model).fit(X, np.array(["a", "b", *"cdefghij"])[y])
    converted = convert(fitted, X, max_change=1.0)
    assert change_of(fitted, converted, X).share <= 0.006
    assert converted.raw_dtype == dtype


@pytest.mark.parametrize(
    "model",
    [LinearRegression(), Ridge(), Lasso(0.1), make_pipeline(StandardScaler(), LinearSVR())],
    ids=lambda model: str(model).split("(")[0],
)
def test_values_change_little(model: Any) -> None:
    """One output takes no rounded weights: values are within 0.1 % of their deviation."""
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    model.fit(X, y)
    converted = convert(model, X)
    expected = model.predict(X)
    assert np.abs(converted.predict(X) - expected).max() < 1e-3 * max(expected.std(), 1)
    assert tinykernel.verify(converted, X).differences == 0


def test_classes_of_equal_variances_are_linear() -> None:
    """GaussianNB is converted if its variances are shared, else refused in words."""
    X, y = load_wine(return_X_y=True)
    model = GaussianNB().fit(X, y)
    refused(ConvertError, convert, model, X)
    model.var_[:] = model.var_.mean(axis=0)
    assert change_of(model, convert(model, X), X).share < 0.01


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (Ridge(), True),
        (TUNED, True),
        (LogisticRegression().fit([[0.0], [1.0]], [0, 1]), False),
        (SVC().fit([[0.0], [1.0]], [0, 1]), True),
        (Ridge().fit([[0.0], [1.0]], [0, 0]), True),
        (KMeans(2).fit([[0.0], [1.0]]), True),
        (DBSCAN().fit([[0.0], [1.0]]), True),
        (LocalOutlierFactor(1, novelty=True).fit([[0.0], [1.0]]), True),
        (RidgeClassifier().fit([[0.0], [1.0]], np.eye(3)[:2]), True),
        (MLPClassifier(2, max_iter=1).fit([[0.0], [1.0]], np.eye(3)[:2]), True),
    ],
)
def test_what_cannot_be_converted_is_named(model: Any, rows: bool) -> None:
    """One line says what is missing or not supported."""
    refused(TinykernelError, convert, model, np.array([[0.0], [1.0]]) if rows else None)


def test_sparse_weights_are_weights() -> None:
    """A model after `sparsify` is the one before it."""
    X, y = load_wine(return_X_y=True)
    model = LogisticRegression(max_iter=5000).fit(X, y)
    before = convert(model, X)
    assert convert(model.sparsify(), X).fingerprint() == before.fingerprint()


def test_a_change_that_is_too_large_is_refused() -> None:
    """`max_change` is compared with the share of other labels; the error says how many."""
    X, y = load_digits(return_X_y=True)
    model = Perceptron(random_state=0).fit(X, y)
    converted = convert(model, X, max_change=1.0)
    change = change_of(model, converted, X)
    assert change.differing == int(np.sum(model.predict(X) != converted.predict(X)))
    if change.differing:
        refused(ConvertError, convert, model, X, max_change=0.0)
    values = np.stack([1e6 * y, X[:, 20]], axis=1)  # each output counts, also a small one
    refused(ConvertError, convert, LinearRegression().fit(X, values), X, max_change=0.1)
    SAID.clear()  # how many labels change depends on the release of scikit-learn
