"""Pegasos: gradient, ball, optimum, and the linear classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.svm import LinearSVC

from tinykernel.errors import TinykernelError
from tinykernel.papers.classifiers.one_vs_rest import hold_out
from tinykernel.papers.classifiers.pegasos import (
    PegasosClassifier,
    draw_batch,
    hinge_gradient,
    pegasos,
)
from tinykernel.papers.features.base import label_targets


def hinge_objective(W: Any, Z: Any, Y: Any, penalty: float) -> float:
    """``lambda/2 ||w||^2 + 1/n sum max(0, 1 - y w.z)``, summed over outputs (004 (5))."""
    return float(0.5 * penalty * np.sum(W * W) + np.maximum(1 - Y * (Z @ W), 0).sum() / len(Z))


@given(seed=st.integers(0, 2**31), penalty=st.floats(1e-4, 10), outputs=st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_gradient_agrees_with_finite_differences(seed: int, penalty: float, outputs: int) -> None:
    """(7) is the derivative of (5) for every weight, away from the bends of the hinge."""
    rng = np.random.default_rng(seed)
    W, Z = rng.normal(size=(4, outputs)), rng.normal(size=(9, 4))
    Y = rng.choice([-1.0, 1.0], (9, outputs))
    step = 1e-6
    if np.min(np.abs(1 - Y * (Z @ W))) < 10 * step * np.abs(Z).max():
        return
    numeric = np.empty_like(W)
    for index in np.ndindex(*W.shape):
        ends = []
        for sign in (1, -1):
            moved = W.copy()
            moved[index] += sign * step
            ends.append(hinge_objective(moved, Z, Y, penalty))
        numeric[index] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(hinge_gradient(W, Z, Y, penalty), numeric, atol=1e-6 * (1 + penalty))


@given(seed=st.integers(0, 2**31), penalty=st.floats(1e-4, 10), first=st.integers(1, 50))
@settings(max_examples=20, deadline=None)
def test_weights_stay_in_the_ball(seed: int, penalty: float, first: int) -> None:
    """After every step each output has ||w|| <= 1 / sqrt(lambda): the square root of line 1."""
    rng = np.random.default_rng(seed)
    Z, Y = 10 * rng.normal(size=(6, 3)), rng.choice([-1.0, 1.0], (6, 2))
    W = np.zeros((3, 2))
    for t in range(first, first + 5):
        W = pegasos(W, lambda: (Z, Y), penalty, 1, first=t)
        assert np.all(np.linalg.norm(W, axis=0) <= (1 + 1e-12) / np.sqrt(penalty))


def test_reaches_the_optimum() -> None:
    """The averaged weights come within 1 % of the objective of an exact solver."""
    X, y = make_blobs(300, n_features=4, centers=2, cluster_std=4.0, random_state=0)
    X = np.hstack([X / 10, np.ones((300, 1))])
    penalty = 0.01
    exact = LinearSVC(
        loss="hinge", C=1 / (penalty * 300), fit_intercept=False, tol=1e-8, max_iter=1_000_000
    ).fit(X, y)
    Y = label_targets(y, 2, np.float64)
    best = hinge_objective(exact.coef_.T, X, Y, penalty)
    ours = PegasosClassifier(
        regularization=penalty, max_iter=20000, batch_size=50, fit_intercept=False, random_state=0
    ).fit(X, y)
    assert best <= hinge_objective(ours.coef_.T, X, Y, penalty) < 1.01 * best


def test_first_step_forgets_the_start() -> None:
    """A run that starts to count at 1 ends where any other start ends; going on remembers."""
    Z, Y = np.array([[1.0, 2.0]]), np.array([[1.0]])
    here, there = np.zeros((2, 1)), np.full((2, 1), -0.5)
    runs = [pegasos(W, lambda: (Z, Y), 0.5, 1) for W in (here, there)]
    np.testing.assert_allclose(runs[0], runs[1])
    runs = [pegasos(W, lambda: (Z, Y), 0.5, 1, first=10) for W in (here, there)]
    assert not np.allclose(runs[0], runs[1])


@pytest.mark.parametrize("n_steps", [1, 2, 3, 8])
def test_average_of_the_second_half(n_steps: int) -> None:
    """The average is the plain mean of the weights after the later half of the steps."""
    rng = np.random.default_rng(0)
    Z, Y = rng.normal(size=(5, 2)), rng.choice([-1.0, 1.0], (5, 1))
    trail = [pegasos(np.zeros((2, 1)), lambda: (Z, Y), 0.1, n) for n in range(1, n_steps + 1)]
    average = pegasos(np.zeros((2, 1)), lambda: (Z, Y), 0.1, n_steps, average=True)
    np.testing.assert_allclose(average, np.mean(trail[n_steps // 2 :], axis=0))


def test_keeps_float32_and_seed() -> None:
    """float32 rows give float32 weights; the seed decides everything."""
    X, y = make_blobs(2000, centers=3, random_state=0)
    X = X.astype(np.float32) / 10
    first, second = (PegasosClassifier(max_iter=50, random_state=3).fit(X, y) for _ in range(2))
    assert first.coef_.dtype == first.decision_function(X).dtype == np.float32
    np.testing.assert_array_equal(first.coef_, second.coef_)
    other = PegasosClassifier(max_iter=50, random_state=4).fit(X, y)
    assert not np.array_equal(first.coef_, other.coef_)


@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    fraction=st.floats(0.01, 0.99),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=50, deadline=None)
def test_hold_out_by_class(counts: list[int], fraction: float, seed: int) -> None:
    """Both parts together are all rows, and each class keeps a row and gives its share."""
    codes = np.repeat(np.arange(len(counts)), counts)
    kept, held = hold_out(codes, fraction, np.random.RandomState(seed))
    assert sorted([*kept, *held]) == list(range(codes.size))
    for code, count in enumerate(counts):
        given_up = int((codes[held] == code).sum())
        assert given_up == min(round(fraction * count), count - 1)


def test_batches() -> None:
    """Small sets are taken whole, large ones sampled with replacement."""
    rng = np.random.RandomState(0)
    assert draw_batch(500, 500, rng) == slice(None)
    rows = draw_batch(501, 500, rng)
    assert isinstance(rows, np.ndarray)
    assert rows.shape == (500,)
    assert rows.max() < 501


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regularization": 0}, "regularization"),
        ({"max_iter": 0}, "max_iter"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"fit_intercept": 2}, "fit_intercept"),
    ],
)
def test_refuses_bad_parameters(options: dict[str, Any], message: str) -> None:
    """A wrong parameter is one line that names it."""
    with pytest.raises(TinykernelError, match=message):
        PegasosClassifier(**options).fit([[0.0], [1.0]], [0, 1])


def test_overflow_is_an_error() -> None:
    """Features that make the weights overflow give a message, not weights of NaN."""
    X = np.array([[1e37], [-1e37]], dtype=np.float32)
    with pytest.raises(TinykernelError, match="overflowed"):
        PegasosClassifier().fit(X, [0, 1])
