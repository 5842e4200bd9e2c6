"""Circulant maps: against written-out matrices, finite differences and the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import circulant

from tinykernel.errors import TinykernelError
from tinykernel.papers.features import CirculantFeatures, gaussian_kernel
from tinykernel.papers.features.circulant import circulant_gradient, circulant_projection


@given(n=st.integers(1, 4), d=st.integers(1, 12), k=st.integers(1, 40), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_projection_is_the_stacked_matrices(n: int, d: int, k: int, seed: int) -> None:
    """For k below, at and above d the outputs are the first k rows of [circ(r_1); ...] x (12)."""
    rng = np.random.default_rng(seed)
    X, vectors = rng.standard_normal((n, d)), rng.standard_normal((-(-k // d), d))
    R = np.concatenate([circulant(r) for r in vectors])[:k]
    np.testing.assert_allclose(circulant_projection(X, vectors, k), X @ R.T, atol=1e-12)
    single = circulant_projection(X.astype(np.float32), vectors, k)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, X @ R.T, atol=1e-4)


@pytest.mark.parametrize("k", [3, 7, 17])
def test_gradient_equals_finite_differences(k: int) -> None:
    """The derivative of sum w cos(R x) by r, (16)-(17), for k < d, k = d and k > d."""
    rng = np.random.default_rng(k)
    d, m = 7, -(-k // 7)
    X, vectors, w = rng.standard_normal((5, d)), rng.standard_normal((m, d)), rng.normal(size=k)

    def loss(r: np.ndarray) -> float:
        return float((np.cos(circulant_projection(X, r, k)) @ w).sum())

    got = circulant_gradient(X, -w * np.sin(circulant_projection(X, vectors, k)), m)
    step = 1e-6
    for i in range(m):
        for j in range(d):
            shift = np.zeros_like(vectors)
            shift[i, j] = step
            slope = (loss(vectors + shift) - loss(vectors - shift)) / (2 * step)
            assert got[i, j] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize(("k", "d"), [(4, 10), (10, 10), (25, 10), (5, 1)])
def test_equals_the_formula(k: int, d: int) -> None:
    """z = sqrt(2/k) cos(R D x + b) of the fitted attributes."""
    X = np.random.default_rng(0).standard_normal((6, d))
    z = CirculantFeatures(n_components=k, sigma=2.0, random_state=0).fit(X)
    R = np.concatenate([circulant(r) for r in z.vectors_])[:k]
    expected = np.sqrt(2 / k) * np.cos((X * z.sign_) @ R.T + z.offset_)
    np.testing.assert_allclose(z.transform(X), expected, atol=1e-12)
    assert z.transform(X.astype(np.float32)).dtype == np.float32


def test_rows_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Working through the rows in blocks changes neither features nor gradient."""
    import tinykernel.papers.features.circulant as module

    rng = np.random.default_rng(1)
    X, gradient = rng.standard_normal((23, 6)), rng.standard_normal((23, 11))
    vectors = rng.standard_normal((2, 6))
    whole = circulant_projection(X, vectors, 11), circulant_gradient(X, gradient, 2)
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 4)
    np.testing.assert_allclose(circulant_projection(X, vectors, 11), whole[0], atol=1e-13)
    np.testing.assert_allclose(circulant_gradient(X, gradient, 2), whole[1], atol=1e-12)


def test_unbiased() -> None:
    """The mean over 300 draws is the kernel within 4 standard errors, for k < d and k > d."""
    X = np.random.default_rng(2).standard_normal((4, 9)) / 3
    for k in (5, 40):
        grams = []
        for seed in range(300):
            Z = CirculantFeatures(n_components=k, sigma=0.9, random_state=seed).fit_transform(X)
            grams.append(Z @ Z.T)
        error = np.std(grams, axis=0, ddof=1) / np.sqrt(300)
        assert np.all(np.abs(np.mean(grams, axis=0) - gaussian_kernel(X, sigma=0.9)) < 4 * error)


def test_gram_converges_at_the_root_of_k() -> None:
    """The error of the Gram matrix falls as k^(-1/2), to the Gaussian kernel."""
    X = np.random.default_rng(3).standard_normal((20, 100)) / 10
    K = gaussian_kernel(X)
    sizes = np.array([200, 2000, 20000])
    errors = []
    for k in sizes:
        squares = []
        for seed in range(6):
            Z = CirculantFeatures(n_components=int(k), random_state=seed).fit_transform(X)
            squares.append(np.mean((Z @ Z.T - K) ** 2))
        errors.append(np.sqrt(np.mean(squares)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


@pytest.mark.parametrize("options", [{"n_components": 0}, {"sigma": "x"}])
def test_refuses_bad_parameters(options: dict[str, Any]) -> None:
    """A wrong parameter is one line that names it."""
    with pytest.raises(TinykernelError, match=next(iter(options))):
        CirculantFeatures(**options).fit(np.zeros((2, 3)))
