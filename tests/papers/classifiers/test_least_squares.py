"""Least squares in closed form, and the exact kernel SVM: against scikit-learn and each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from tinykernel.errors import TinykernelError
from tinykernel.papers.classifiers.kernel_svm import KernelSVC
from tinykernel.papers.classifiers.least_squares import (
    FourierLeastSquaresClassifier,
    KernelLeastSquaresClassifier,
    LeastSquaresClassifier,
)
from tinykernel.papers.features.base import label_targets
from tinykernel.papers.features.fastfood import Fastfood
from tinykernel.papers.features.kernels import KERNELS, exponential_kernel


def rings(n: int, n_classes: int = 2, seed: int = 0, dtype: type = np.float64) -> tuple[Any, Any]:
    """Rows whose class is their distance from the origin."""
    X = np.random.default_rng(seed).normal(size=(n, 2)).astype(dtype)
    cuts = np.quantile(np.linalg.norm(X, axis=1), np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.digitize(np.linalg.norm(X, axis=1), cuts)


@given(seed=st.integers(0, 2**31), n_classes=st.integers(2, 4), penalty=st.floats(1e-3, 1e3))
@settings(max_examples=20, deadline=None)
def test_linear_closed_form(seed: int, n_classes: int, penalty: float) -> None:
    """W is (X' X + lambda I)^-1 X' Y with the 1 in front of every row, intercept penalised."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4)) + 1
    y = np.arange(30) % n_classes
    model = LeastSquaresClassifier(regularization=penalty).fit(X, y)
    augmented = np.hstack([np.ones((30, 1)), X])
    Y = label_targets(y, n_classes, np.float64)
    ridge = Ridge(alpha=penalty, fit_intercept=False, solver="svd").fit(augmented, Y)
    expected = np.atleast_2d(ridge.coef_)
    np.testing.assert_allclose(model.intercept_, expected[:, 0], atol=1e-9)
    np.testing.assert_allclose(model.coef_, expected[:, 1:], atol=1e-9)


def test_one_output_is_the_two_of_003() -> None:
    """For two classes 003 solves for [1, -1] and [-1, 1]: the same labels as our one output."""
    X, y = rings(100)
    augmented = np.hstack([np.ones((100, 1)), X])
    Y = np.where(y[:, None] == [0, 1], 1.0, -1.0)
    W = np.linalg.solve(augmented.T @ augmented + 1e-3 * np.eye(3), augmented.T @ Y)
    np.testing.assert_array_equal(
        LeastSquaresClassifier(regularization=1e-3).fit(X, y).predict(X),
        (augmented @ W).argmax(axis=1),
    )


@pytest.mark.parametrize(
    ("kernel", "n_classes"), tuple(zip(sorted(KERNELS), (2, 3, 2, 3), strict=True))
)
def test_kernel_closed_form(kernel: str, n_classes: int) -> None:
    """alpha is (K + lambda I)^-1 y for every kernel: scikit-learn's KernelRidge."""
    X, y = rings(80, n_classes)
    function = KERNELS[kernel]
    model = KernelLeastSquaresClassifier(kernel=kernel, sigma=0.7, regularization=0.01).fit(X, y)
    ridge = KernelRidge(alpha=0.01, kernel="precomputed").fit(
        function(X, sigma=0.7), label_targets(y, n_classes, np.float64)
    )
    np.testing.assert_allclose(model.dual_coef_, ridge.dual_coef_, atol=1e-9)
    new, _ = rings(30, seed=1)
    values = function(new, X, sigma=0.7) @ ridge.dual_coef_
    np.testing.assert_allclose(
        model.decision_function(new), values[:, 0] if n_classes == 2 else values, atol=1e-9
    )


def test_fourier_closed_form() -> None:
    """w is (Z' Z + lambda I)^-1 Z' y of its features, added up over parts of the rows."""
    X, y = rings(5000)
    model = FourierLeastSquaresClassifier(
        n_components=40, sigma=1.0, regularization=0.1, random_state=0
    ).fit(X, y)
    Z = model.features_.transform(X)
    w = np.linalg.solve(Z.T @ Z + 0.1 * np.eye(40), Z.T @ label_targets(y, 2, np.float64))
    np.testing.assert_allclose(model.coef_, w.T, atol=1e-9)


def test_fourier_becomes_kernel() -> None:
    """With many features the decision values are those of kernel least squares (003)."""
    X, y = rings(150)
    options = {"sigma": 1.0, "regularization": 1.0}
    exact = KernelLeastSquaresClassifier(**options).fit(X, y).decision_function(X)
    errors = []
    for p in (100, 3000):
        model = FourierLeastSquaresClassifier(n_components=p, random_state=0, **options)
        errors.append(np.sqrt(np.mean((model.fit(X, y).decision_function(X) - exact) ** 2)))
    assert errors[1] < 0.06
    assert errors[1] < errors[0] / 3


def test_exponential_kernel_is_matern() -> None:
    """The kernel that 003 calls Laplacian is the one of Fastfood's matern12."""
    X = np.random.default_rng(0).normal(size=(10, 4))
    Z = Fastfood(n_components=65536, kernel="matern12", sigma=2.0, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, exponential_kernel(X, sigma=2.0), atol=0.03)


@pytest.mark.parametrize(
    ("kernel", "n_classes"), tuple(zip(("linear", *sorted(KERNELS)), (2, 3, 3, 2, 3), strict=True))
)
def test_kernel_svm_is_scikit_learns(kernel: str, n_classes: int) -> None:
    """KernelSVC is SVC on the kernel matrix."""
    X, y = rings(120, n_classes)
    K = X @ X.T if kernel == "linear" else KERNELS[kernel](X, sigma=0.9)
    ours = KernelSVC(kernel=kernel, sigma=0.9, C=3.0).fit(X, y)
    theirs = SVC(kernel="precomputed", C=3.0).fit(K, y)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(K), atol=2e-2, rtol=1e-2
    )
    vectors = ours.svc_.support_.size
    assert ours.memory_bits == 32 * (
        vectors * (2 + n_classes - 1) + n_classes * (n_classes - 1) // 2
    )


@pytest.mark.parametrize(
    "model",
    [
        LeastSquaresClassifier(),
        KernelLeastSquaresClassifier(sigma=1.0),
        FourierLeastSquaresClassifier(sigma=1.0, random_state=0),
    ],
)
def test_keeps_float32(model: Any) -> None:
    """float32 rows give float32 decision values, close to those in float64."""
    X, y = rings(200)
    exact = model.fit(X, y).decision_function(X)
    single = model.fit(X.astype(np.float32), y).decision_function(X.astype(np.float32))
    assert single.dtype == np.float32
    assert np.mean((single > 0) == (exact > 0)) > 0.98


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (LeastSquaresClassifier, {"regularization": 0}),
        (KernelLeastSquaresClassifier, {"regularization": -1}),
        (KernelLeastSquaresClassifier, {"kernel": "poly"}),
        (KernelLeastSquaresClassifier, {"sigma": 0}),
        (FourierLeastSquaresClassifier, {"regularization": 0}),
        (FourierLeastSquaresClassifier, {"n_components": 0}),
        (FourierLeastSquaresClassifier, {"kernel": "poly"}),
        (KernelSVC, {"kernel": "poly"}),
        (KernelSVC, {"C": 0}),
        (KernelSVC, {"sigma": "wide"}),
    ],
)
def test_refuses_bad_parameters(cls: type, options: dict[str, Any]) -> None:
    """A wrong parameter is one line that names it."""
    X, y = rings(10)
    with pytest.raises(TinykernelError, match=next(iter(options))):
        cls(**options).fit(X, y)


def test_singular_equations_are_an_error() -> None:
    """Equations that cannot be solved give a message that says what to do."""
    X = np.repeat(1e6 * np.arange(1.0, 3.0)[:, None], 3, axis=1)
    with pytest.raises(TinykernelError, match="singular"):
        LeastSquaresClassifier(regularization=1e-300).fit(X, [0, 1])
