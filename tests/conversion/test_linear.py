"""Linear models of scikit-learn after conversion."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
)
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import LocalOutlierFactor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

import tinykernel
from tests.refusals import SAID, refused
from tinykernel.base.errors import ConvertError, TinykernelError
from tinykernel.conversion.models import change_of, convert
from tinykernel.pieces.squares.spec import Squares

pytestmark = pytest.mark.usefixtures("page")

SETS = {"digits": load_digits, "cancer": load_breast_cancer, "wine": load_wine}
CLASSIFIERS = [
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(MinMaxScaler(), LinearSVC(random_state=0)),
    Perceptron(random_state=0),
]
TUNED = TunedThresholdClassifierCV(LogisticRegression())


@pytest.mark.parametrize(
    ("data", "dtype"),
    [("digits", "int16"), ("cancer", "float32"), ("wine", "float32"), ("wine", "int16")],
)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: str(model).split("(")[-2])
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
    """A GaussianNB whose variances are shared has no squares, which take more flash."""
    X, y = load_wine(return_X_y=True)
    model = GaussianNB().fit(X, y)
    model.var_[:] = model.var_.mean(axis=0)
    converted = convert(model, X)
    assert converted.find(Squares) is None
    assert change_of(model, converted, X).share < 0.01


def normal_rows(seed: int, dtype: str, n_classes: int) -> tuple[Any, Any, Any]:
    """Return rows of normal distributions that lie in each other, their classes, and new rows."""
    rng, n = np.random.default_rng(seed), 2 + seed % 7
    turns = rng.normal(size=(n_classes, n, n)) * np.exp(rng.normal(size=(n_classes, 1, n)))
    y, middles = rng.integers(0, n_classes, 1500), 2 * rng.normal(size=(n_classes, n))
    X = np.einsum("nij,nj->ni", turns[y], rng.normal(size=(len(y), n))) + middles[y]
    X *= 9000 / np.abs(X).max(axis=0) if dtype == "int16" else np.exp(rng.normal(size=n) + 3)
    return X.astype(dtype)[:500], y[:500], X.astype(dtype)[500:]


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        GaussianNB(var_smoothing=0.1, priors=[0.7, 0.1, 0.2]),
        QuadraticDiscriminantAnalysis(tol=0),
        make_pipeline(StandardScaler(), PCA(2), QuadraticDiscriminantAnalysis(reg_param=0.1)),
    ],
    ids=["bayes", "priors", "quadratic", "few columns"],
)
def test_sums_of_squares_are_probabilities(model: Any, dtype: str) -> None:
    """Logarithms of probabilities are within 0.2, and 1 of 1,000 labels at most changes."""
    for seed in range(8):
        X, y, rows = normal_rows(seed, dtype, 2 + seed % 2 if "priors=[" not in str(model) else 3)
        names = np.array(["off", "on", "x"])[y]
        fitted = clone(model).fit(X, names)
        converted = convert(fitted, X)
        assert np.mean(converted.predict(rows) != fitted.predict(rows)) <= 0.001
        inside = rows[np.all((rows >= X.min(axis=0)) & (rows <= X.max(axis=0)), axis=1)]
        expected = fitted.predict_log_proba(inside)
        scores = converted.scores(inside) * converted.decision_scale
        scores = scores / 2 if expected.shape[1] == 2 else scores  # which has both signs
        gaps = scores - expected
        gaps -= np.take_along_axis(gaps, expected.argmax(axis=1)[:, None], axis=1)
        assert np.abs(gaps[expected > -20]).max() < 0.2
    assert tinykernel.verify(converted, rows).differences == 0


def test_a_threshold_of_normal_distributions_is_one_of_their_sum() -> None:
    """Thresholds and calibrations move the sum of squares, whose unit is a logarithm."""
    X, y, rows = normal_rows(3, "int16", 2)
    for model in (
        FixedThresholdClassifier(GaussianNB(), threshold=0.9, response_method="predict_proba"),
        CalibratedClassifierCV(QuadraticDiscriminantAnalysis(), ensemble=False),
    ):
        fitted = model.fit(X, y)
        assert np.mean(convert(fitted, X).predict(rows) != fitted.predict(rows)) <= 0.001


def test_narrow_classes_of_digits_have_few_other_labels() -> None:
    """Pixels that are constant in a class end at 724 deviations; labels of new rows stay."""
    X, y = load_digits(return_X_y=True)
    fitted = GaussianNB().fit(X[:1200], y[:1200])
    converted = convert(fitted, X[:1200].astype(np.uint8))
    assert change_of(fitted, converted, X[1200:]).share < 0.02


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GaussianNB(), "not fitted"),
        (GaussianNB(var_smoothing=0), "var_smoothing"),
        (GaussianNB(var_smoothing=1e-30), "narrower"),
        (GaussianNB(priors=[0, 1]), "priors"),
        (QuadraticDiscriminantAnalysis(priors=[1, 0]), "priors"),
    ],
)
def test_normal_distributions_without_width_are_refused(model: Any, message: str) -> None:
    """One line names the option that gives each class a width, and a share."""
    X, y, _ = normal_rows(1, "int16", 2)
    X[y == 0, 0] = 1 if hasattr(model, "var_smoothing") else X[y == 0, 0]
    with np.errstate(divide="ignore"):
        model = model if message == "not fitted" else model.fit(X, y)
    refused(ConvertError, convert, model, X, match=message)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (Ridge(), True),
        (TUNED, True),
        (LogisticRegression().fit([[0.0], [1.0]], [0, 1]), False),
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
    X = StandardScaler().fit_transform(X)  # else its solver takes 17 s
    model = LogisticRegression().fit(X, y)
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
