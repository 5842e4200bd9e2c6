"""Maps learned to a kernel: gradient, error on new rows, contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinykernel.errors import TinykernelError
from tinykernel.papers.classifiers.compact_maps import DenseProjection
from tinykernel.papers.classifiers.kernel_approximation import (
    LearnedKernelFeatures,
    kernel_error_gradient,
)
from tinykernel.papers.features.kernels import KERNELS, gaussian_kernel


def kernel_error(projection: DenseProjection, X: Any, K: Any) -> float:
    """``1/n^2 sum_ij (K_ij - Z(x_i) . Z(x_j))^2`` for all pairs of rows (004 (10))."""
    Z = projection.features(X)
    return float(np.mean((K - Z @ Z.T) ** 2))


@given(seed=st.integers(0, 2**31), d=st.integers(1, 5), k=st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_gradient_agrees_with_finite_differences(seed: int, d: int, k: int) -> None:
    """(11), with its misprints mended, is the derivative of (10) by every parameter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, d))
    K = gaussian_kernel(X)
    projection = DenseProjection(rng.normal(size=(d, k)), rng.uniform(0, 6, k))
    gradient = kernel_error_gradient(projection, X, K)
    step = 1e-6
    for parameter, got in zip(("matrix", "offset"), gradient, strict=True):
        values = getattr(projection, parameter)
        numeric = np.empty_like(values)
        for index in np.ndindex(*values.shape):
            kept = values[index]
            values[index] = kept + step
            above = kernel_error(projection, X, K)
            values[index] = kept - step
            numeric[index] = (above - kernel_error(projection, X, K)) / (2 * step)
            values[index] = kept
        np.testing.assert_allclose(got, numeric, atol=1e-7)


@pytest.mark.parametrize("kernel", ["gaussian", "cauchy"])
def test_better_than_random_on_new_rows(kernel: str) -> None:
    """Learned features have less error than random ones on rows that were not seen."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(1500, 4)), rng.normal(size=(400, 4))
    K = KERNELS[kernel](new, sigma=3.0)
    errors = []
    for steps in (0, 150):
        Z = (
            LearnedKernelFeatures(
                n_components=32,
                sigma=3.0,
                kernel=kernel,
                max_iter=steps,
                batch_size=100,
                random_state=0,
            )
            .fit(X)
            .transform(new)
        )
        errors.append(np.mean((K - Z @ Z.T) ** 2))
    assert errors[1] < 0.8 * errors[0]


def test_keeps_float32_and_seed() -> None:
    """float32 rows give float32 features; the seed decides everything."""
    X = np.random.default_rng(0).normal(size=(600, 3)).astype(np.float32)
    first, second = (
        LearnedKernelFeatures(n_components=8, max_iter=20, random_state=1).fit_transform(X)
        for _ in range(2)
    )
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 0},
        {"sigma": 0.0},
        {"kernel": "linear"},
        {"max_iter": -1},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"max_turn": -1.0},
    ],
)
def test_refuses_bad_parameters(options: dict[str, Any]) -> None:
    """A wrong parameter is one line that names it."""
    with pytest.raises(TinykernelError, match=next(iter(options))):
        LearnedKernelFeatures(**options).fit(np.zeros((4, 2)))
