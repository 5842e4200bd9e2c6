"""Kernels against their formulas, and the width heuristic against a search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestNeighbors

from tests.papers.features.hamming import expected_hamming, hamming_bounds
from tinykernel.errors import TinykernelError
from tinykernel.papers.features import (
    cauchy_kernel,
    gaussian_kernel,
    laplacian_kernel,
    neighbour_distance,
)

KERNELS = {
    gaussian_kernel: lambda x, y, s: np.exp(-np.sum((x - y) ** 2) / (2 * s * s)),
    laplacian_kernel: lambda x, y, s: np.exp(-np.sum(np.abs(x - y)) / s),
    cauchy_kernel: lambda x, y, s: np.prod(1 / (1 + ((x - y) / s) ** 2)),
}


@pytest.mark.parametrize("kernel", KERNELS)
@given(
    n=st.integers(1, 4),
    m=st.integers(1, 4),
    d=st.integers(1, 5),
    sigma=st.floats(0.1, 10),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_equals_the_formula(
    kernel: Callable[..., np.ndarray], n: int, m: int, d: int, sigma: float, seed: int
) -> None:
    """Every entry is the formula of the docstring, in the dtype of the inputs."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, d)), rng.standard_normal((m, d))
    slow = np.array([[KERNELS[kernel](x, y, sigma) for y in Y] for x in X])
    np.testing.assert_allclose(kernel(X, Y, sigma), slow, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.diag(kernel(X, sigma=sigma)), 1.0, rtol=1e-9)
    single = kernel(X.astype(np.float32), Y.astype(np.float32), sigma)
    assert single.dtype == np.float32


def test_convention_against_scikit_learn() -> None:
    """The width sigma is gamma = 1 / (2 sigma^2), the norm squared."""
    X = np.random.default_rng(0).standard_normal((6, 3))
    np.testing.assert_allclose(gaussian_kernel(X, sigma=3.0), rbf_kernel(X, gamma=1 / 18))


@pytest.mark.parametrize("kernel", KERNELS)
def test_refuses_bad_arguments(kernel: Callable[..., np.ndarray]) -> None:
    """A width that is not positive and rows of different lengths are one clear line."""
    for sigma in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(TinykernelError, match="sigma"):
            kernel([[0.0]], sigma=sigma)
    with pytest.raises(TinykernelError, match="1 features and Y has 2"):
        kernel([[0.0]], [[0.0, 1.0]])


def test_hamming_bounds_enclose_the_expectation() -> None:
    """Lemma 1: h1 <= expected share <= h2 over the whole range, and they meet at both ends."""
    u = np.linspace(0, 1, 101)
    lower, upper = hamming_bounds(u)
    expected = expected_hamming(u)
    assert np.all(lower <= expected + 2e-4)
    assert np.all(expected <= upper + 2e-4)
    assert upper[0] == pytest.approx(lower[0])
    assert upper[-1] == lower[-1] == 0
    # What 000 (7) prints is a looser bound than the one of 001, nowhere a tighter one.
    assert np.all(np.sqrt(1 - u) <= np.sqrt(1 - u**2) + 1e-12)


@pytest.mark.parametrize("k", [1, 7, 39])
def test_neighbour_distance_is_the_mean_over_all_rows(k: int) -> None:
    """With the sample as large as the data, it is the plain mean of a neighbour search."""
    X = np.random.default_rng(1).standard_normal((40, 4))
    distances, _ = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors(X)
    assert neighbour_distance(X, k=k) == pytest.approx(distances[:, k].mean())


def test_neighbour_distance_of_a_sample_estimates_the_same() -> None:
    """A sample of rows measures to all rows: near the full answer, and reproducible."""
    X = np.random.default_rng(2).standard_normal((600, 3))
    full = neighbour_distance(X, n_rows=600)
    part = neighbour_distance(X, n_rows=100, random_state=0)
    assert part == neighbour_distance(X, n_rows=100, random_state=0)
    assert part == pytest.approx(full, rel=0.15)


def test_neighbour_distance_edge_cases() -> None:
    """Fewer rows than k, identical rows, float32, and refusals."""
    assert neighbour_distance([[0.0], [2.0]], k=50) == 2.0
    assert neighbour_distance(np.ones((5, 2))) == 1.0
    assert neighbour_distance(np.array([[0], [3]], dtype=np.float32), k=1) == pytest.approx(3)
    with pytest.raises(TinykernelError, match="two rows"):
        neighbour_distance([[1.0]])
    with pytest.raises(TinykernelError, match="start at 1"):
        neighbour_distance([[1.0], [2.0]], k=0)


def test_neighbour_distance_far_from_the_origin() -> None:
    """Raw readings in float32 around a large mean once gave rounding errors, or 1.0, as width."""
    X = np.random.default_rng(3).standard_normal((300, 3)).astype(np.float32)
    moved = X + np.float32(2**14)
    assert neighbour_distance(moved) == pytest.approx(neighbour_distance(moved - 2**14), rel=1e-3)
