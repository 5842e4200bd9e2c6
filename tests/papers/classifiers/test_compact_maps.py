"""Compact nonlinear maps and circulant ones: gradients, what is learned, contracts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinykernel.errors import TinykernelError
from tinykernel.papers.classifiers.compact_maps import (
    CirculantMapClassifier,
    CirculantProjection,
    CompactMapClassifier,
    DenseProjection,
)
from tinykernel.papers.classifiers.learned_maps import Projection, map_gradient
from tinykernel.papers.classifiers.pegasos import with_constant
from tinykernel.papers.features.base import find_sigma

CLASSES = (CompactMapClassifier, CirculantMapClassifier)
QUICK = {"n_components": 16, "max_iter": 12, "n_weight_steps": 20, "n_map_steps": 20}


def quadrants(n: int, seed: int = 0, dtype: type = np.float64) -> tuple[Any, Any]:
    """Rows whose class is the product of the signs of two features."""
    X = np.random.default_rng(seed).normal(size=(n, 3)).astype(dtype)
    return X, X[:, 0] * X[:, 1] > 0


def projection_of(kind: str, d: int, k: int, rng: np.random.Generator) -> Projection:
    """Draw a projection of d features to k angles."""
    offset = rng.uniform(0, 2 * np.pi, k)
    if kind == "dense":
        return DenseProjection(rng.normal(size=(d, k)), offset)
    return CirculantProjection(rng.normal(size=(-(-k // d), d)), offset)


def map_objective(projection: Projection, W: Any, X: Any, Y: Any) -> float:
    """The mean hinge loss of the outputs, as a function of the map (004 (8))."""
    Z = with_constant(projection.features(X), W.shape[0] > projection.offset.size)
    return float(np.maximum(1 - Y * (Z @ W), 0).sum() / len(Z))


@pytest.mark.parametrize("kind", ["dense", "circulant"])
@given(
    seed=st.integers(0, 2**31),
    d=st.integers(1, 6),
    k=st.integers(1, 14),
    outputs=st.integers(1, 3),
    intercept=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_gradient_agrees_with_finite_differences(
    kind: str, seed: int, d: int, k: int, outputs: int, intercept: bool
) -> None:
    """(9) and (17), k < d and k > d, are the derivatives of (8) by every parameter."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(7, d)), rng.choice([-1.0, 1.0], (7, outputs))
    W = rng.normal(size=(k + intercept, outputs))
    projection = projection_of(kind, d, k, rng)
    step = 1e-6
    margins = Y * (with_constant(projection.features(X), intercept) @ W)
    if np.min(np.abs(1 - margins)) < 1e-4:
        return
    gradient = map_gradient(projection, W, X, Y)
    for parameter, got in zip(("matrix", "offset"), gradient, strict=True):
        values = getattr(projection, parameter)
        numeric = np.empty_like(values)
        for index in np.ndindex(*values.shape):
            kept = values[index]
            values[index] = kept + step
            above = map_objective(projection, W, X, Y)
            values[index] = kept - step
            numeric[index] = (above - map_objective(projection, W, X, Y)) / (2 * step)
            values[index] = kept
        np.testing.assert_allclose(got, numeric, atol=1e-6)


@given(seed=st.integers(0, 2**31), d=st.integers(1, 7), k=st.integers(1, 20))
@settings(max_examples=25, deadline=None)
def test_circulant_projection_is_its_matrix(seed: int, d: int, k: int) -> None:
    """The FFT computes the product with the stacked matrices of (12), cut after k rows."""
    rng = np.random.default_rng(seed)
    projection = projection_of("circulant", d, k, rng)
    blocks = [
        [[vector[(i - j) % d] for j in range(d)] for i in range(d)] for vector in projection.matrix
    ]
    X = rng.normal(size=(3, d))
    dense = np.concatenate(blocks)[:k]
    np.testing.assert_allclose(projection.project(X), X @ dense.T, atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "circulant"])
def test_steps_are_limited(kind: str) -> None:
    """However large the gradient, no phase of a row of unit length turns further than the limit."""
    rng = np.random.default_rng(0)
    projection = projection_of(kind, 5, 12, rng)
    before = projection.copy()
    huge = (1e9 * rng.normal(size=projection.matrix.shape), 1e9 * rng.normal(size=12))
    projection.step(huge, 1.0, 0.05)
    X = rng.normal(size=(20, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    turned = np.abs(projection.project(X) - before.project(X))
    assert 0 < turned.max() <= 0.05 * (1 + 1e-9)
    assert np.abs(projection.offset - before.offset).max() == pytest.approx(0.05)


@pytest.mark.parametrize("cls", CLASSES)
def test_learning_the_map_pays(cls: type) -> None:
    """A learned map of 8 features beats a random one of the same start by far."""
    X, y = quadrants(1500)
    X_test, y_test = quadrants(1000, seed=1)
    options = {"n_components": 8, "max_iter": 25, "random_state": 0}
    random = cls(n_map_steps=0, **options).fit(X, y).score(X_test, y_test)
    learned = cls(**options).fit(X, y).score(X_test, y_test)
    assert learned > 0.9
    assert learned > random + 0.05


@pytest.mark.parametrize("cls", CLASSES)
def test_attributes_are_the_decision(cls: type) -> None:
    """The fitted attributes, in the units of the rows, reproduce the decision by the formulas."""
    X, _ = quadrants(200)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = cls(sigma=2.0, random_state=0, **QUICK).fit(X, y)
    if cls is CompactMapClassifier:
        R = model.weights_.T
    else:
        d = X.shape[1]
        index = (np.arange(d)[:, None] - np.arange(d)) % d
        R = np.concatenate([r[index] for r in model.vectors_])[:16] * model.sign_
    Z = np.sqrt(2 / 16) * np.cos(X @ R.T + model.offset_)
    np.testing.assert_allclose(model.transform(X), Z, atol=1e-10)
    values = Z @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-9)
    assert np.all((model.offset_ >= 0) & (model.offset_ < 2 * np.pi))


@pytest.mark.parametrize("cls", CLASSES)
def test_keeps_float32_and_seed(cls: type) -> None:
    """float32 rows give float32 parameters; the seed decides everything; rows are not changed."""
    X, y = quadrants(700, dtype=np.float32)
    before = X.copy()
    first, second = (cls(random_state=5, **QUICK).fit(X, y) for _ in range(2))
    for name in ("coef_", "intercept_", "offset_"):
        assert getattr(first, name).dtype == np.float32
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.decision_function(X).dtype == np.float32
    np.testing.assert_array_equal(X, before)


def test_early_stopping_keeps_the_best() -> None:
    """Training ends when the held-out rows gain nothing, and the best turn is what is kept."""
    X, y = quadrants(600)
    y = y ^ (np.random.default_rng(0).uniform(size=600) < 0.2)
    model = CompactMapClassifier(
        n_components=64, max_iter=60, n_iter_no_change=3, random_state=0
    ).fit(X, y)
    scores = model.validation_scores_
    assert len(scores) == model.n_iter_ < 60
    assert np.argmax(scores) == len(scores) - 4
    full = CompactMapClassifier(early_stopping=False, random_state=0, **QUICK).fit(X, y)
    assert full.n_iter_ == QUICK["max_iter"]
    assert full.validation_scores_ == []


def test_starts_from_random_features() -> None:
    """Without map steps Theta is normal with deviation 1 / sigma, the spectrum of the kernel."""
    X, y = quadrants(100)
    model = CompactMapClassifier(
        n_components=4000, sigma=2.0, n_map_steps=0, max_iter=1, n_weight_steps=1, random_state=0
    ).fit(X, y)
    assert model.weights_.std() == pytest.approx(0.5, rel=0.03)
    near = CompactMapClassifier(random_state=0, **QUICK).fit(X, y)
    assert near.sigma_ == find_sigma("neighbour", X, np.random.RandomState(0))


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 0},
        {"sigma": -1.0},
        {"regularization": 0.0},
        {"max_iter": 0},
        {"n_weight_steps": 0},
        {"n_map_steps": -1},
        {"batch_size": 0},
        {"learning_rate": np.inf},
        {"max_turn": 0},
        {"fit_intercept": "no"},
        {"early_stopping": "no"},
        {"n_iter_no_change": 0},
    ],
)
def test_refuses_bad_parameters(options: dict[str, Any]) -> None:
    """A wrong parameter is one line that names it."""
    X, y = quadrants(20)
    with pytest.raises(TinykernelError, match=next(iter(options))):
        CompactMapClassifier(**options).fit(X, y)


@pytest.mark.slow
def test_usps_needs_few_features(data_folder: Any) -> None:
    """004, section 7.1: 8 learned features reach about 90 % on USPS, far above 64 random ones."""
    with np.load(data_folder / "usps.npz") as data:
        X, y, X_test, y_test = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    options = {"sigma": 12.0, "max_iter": 10, "batch_size": 200, "random_state": 0}
    learned = CompactMapClassifier(n_components=8, **options).fit(X, y)
    random = CompactMapClassifier(n_components=64, n_map_steps=0, **options)
    assert learned.score(X_test, y_test) > 0.86
    assert learned.score(X_test, y_test) > random.fit(X, y).score(X_test, y_test) + 0.02
