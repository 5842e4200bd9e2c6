"""Compact maps: gradients against finite differences, and what learning gains."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import train_test_split

from tinykernel.papers import compact

_STEP = 1e-6


def differences(function, at):
    """Return the gradient of a function of an array, by differences."""
    slow = np.empty_like(at)
    for index in np.ndindex(at.shape):
        moved = [at.copy() for _ in range(2)]
        for copy, sign in zip(moved, (1, -1), strict=True):
            copy[index] += sign * _STEP
        slow[index] = (function(moved[0]) - function(moved[1])) / (2 * _STEP)
    return slow


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(1, 6), st.integers(1, 5), st.integers(1, 3))
def test_gradients_are_those_of_5_and_10(seed, n, k, n_outputs) -> None:
    """(7), (9) and (11) of 004 are the derivatives of (5) and (10)."""
    rng = np.random.default_rng(seed)
    Y = rng.choice([-1.0, 1.0], (n, n_outputs))
    W, angles = rng.normal(size=(k + 1, n_outputs)), rng.normal(size=(n, k))
    K = rbf_kernel(rng.normal(size=(n, 2)))

    def features(angles):
        return np.hstack([np.sqrt(2 / k) * np.cos(angles), np.ones((n, 1))])

    def hinge(W, angles):
        return sum(
            max(0, 1 - Y[i, j] * features(angles)[i] @ W[:, j]) / n
            for i in range(n)
            for j in range(n_outputs)
        )

    def error(angles):
        Z = features(angles)[:, :k]
        return np.mean((K - Z @ Z.T) ** 2)

    by_weights = differences(lambda W: hinge(W, angles) + 0.05 * np.sum(W**2), W)
    np.testing.assert_allclose(
        compact.hinge_gradient(W, features(angles), Y, 0.1), by_weights, atol=1e-5
    )
    by_angles = differences(lambda angles: hinge(W, angles), angles)
    np.testing.assert_allclose(compact.map_slopes(W, angles, Y), by_angles, atol=1e-5)
    np.testing.assert_allclose(
        compact.kernel_slopes(K, angles), differences(error, angles), atol=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("projection", ["dense", "circulant"])
def test_learned_maps_beat_random_ones(projection) -> None:
    """The claim of 004: few learned features do what takes many random ones."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=700, random_state=0, stratify=y)
    how = {"n_components": 16, "projection": projection, "sigma": 30.0, "random_state": 0}
    random, learned = (compact.CompactMapClassifier(n_turns=T, **how).fit(X, y) for T in (0, 10))
    assert learned.score(X_test, y_test) > random.score(X_test, y_test) + 0.1
    assert learned.score(X_test, y_test) > 0.85


@pytest.mark.parametrize(
    ("kernel", "matrix"),
    [
        ("gaussian", lambda X: rbf_kernel(X, gamma=0.02)),
        ("laplacian", lambda X: laplacian_kernel(X, gamma=0.2)),
    ],
)
def test_a_learned_kernel_is_nearer_than_a_random_one(kernel, matrix) -> None:
    """Section 5: the error (10) falls on training rows, and on rows like them."""
    X = np.random.default_rng(0).normal(size=(400, 4))
    K = matrix(X[200:])
    errors = []
    for steps in (0, 200):
        map = compact.CompactKernelMap(
            n_components=16, sigma=5.0, kernel=kernel, n_steps=steps, random_state=0
        )
        Z = map.fit(X[:200]).transform(X[200:])
        errors.append(np.mean((K - Z @ Z.T) ** 2))
    assert errors[1] < 0.5 * errors[0]
