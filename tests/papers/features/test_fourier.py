"""Dense random Fourier features, and Metropolis-Hastings where there is no exact sampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tinykernel.errors import TinykernelError
from tinykernel.papers.features import (
    RandomFourierFeatures,
    cauchy_kernel,
    gaussian_kernel,
    laplacian_kernel,
    metropolis_hastings,
)

KERNELS = {"gaussian": gaussian_kernel, "laplacian": laplacian_kernel, "cauchy": cauchy_kernel}


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Normal rows of length about 1."""
    return np.random.default_rng(seed).standard_normal((n, d)) / np.sqrt(d)


class _LogNormal:
    """The density as an object whose name, and so that of a test, is the same in every process."""

    def __call__(self, w: np.ndarray) -> np.ndarray:
        """Standard normal density, without its factor."""
        return -0.5 * (w**2).sum(axis=1)

    def __repr__(self) -> str:
        return "log_normal"


log_normal = _LogNormal()


def log_laplace(w: np.ndarray) -> np.ndarray:
    """Product of Laplace densities, without its factor."""
    return -np.abs(w).sum(axis=1)


def test_equals_the_formula() -> None:
    """z = sqrt(2/p) cos(W'x + b) of the fitted attributes, in both precisions."""
    X = rows(7, 5)
    z = RandomFourierFeatures(n_components=33, random_state=0).fit(X)
    expected = np.sqrt(2 / 33) * np.cos(X @ z.weights_ + z.offset_)
    np.testing.assert_allclose(z.transform(X), expected, atol=1e-14)
    single = z.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=2e-6)
    np.testing.assert_allclose(z.transform(np.asfortranarray(X)), expected, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gram_converges_at_the_root_of_p(kernel: str) -> None:
    """The error of the Gram matrix falls as p^(-1/2), to the kernel."""
    X = rows(20, 4, seed=1)
    K = KERNELS[kernel](X, sigma=1.5)
    sizes = np.array([256, 2048, 16384])
    errors = []
    for p in sizes:
        squares = []
        for seed in range(6):
            Z = RandomFourierFeatures(
                n_components=int(p), sigma=1.5, kernel=kernel, random_state=seed
            ).fit_transform(X)
            squares.append(np.mean((Z @ Z.T - K) ** 2))
        errors.append(np.sqrt(np.mean(squares)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


@pytest.mark.parametrize("kernel", KERNELS)
def test_unbiased(kernel: str) -> None:
    """The mean over 200 draws is the kernel within 4 standard errors (1 in 16000 a pair)."""
    X = rows(4, 3, seed=2)
    grams = []
    for seed in range(200):
        z = RandomFourierFeatures(n_components=64, kernel=kernel, random_state=seed)
        Z = z.fit_transform(X)
        grams.append(Z @ Z.T)
    error = np.std(grams, axis=0, ddof=1) / np.sqrt(200)
    assert np.all(np.abs(np.mean(grams, axis=0) - KERNELS[kernel](X)) < 4 * error)


@pytest.mark.parametrize(
    ("log_density", "cdf"), [(log_normal, stats.norm.cdf), (log_laplace, stats.laplace.cdf)]
)
@pytest.mark.parametrize("n_features", [1, 5])
def test_metropolis_samples_the_density(
    log_density: Callable[..., np.ndarray], cdf: Callable[..., np.ndarray], n_features: int
) -> None:
    """Each coordinate follows its distribution: Kolmogorov-Smirnov distance below 0.03."""
    drawn = metropolis_hastings(log_density, n_features, 8000, thinning=30, random_state=0)
    assert drawn.samples.shape == (8000, n_features)
    for i in range(n_features):
        assert stats.kstest(drawn.samples[:, i], cdf).statistic < 0.03


@pytest.mark.parametrize(("n_features", "rate"), [(1, 0.44), (20, 0.234)])
def test_metropolis_tunes_its_step(n_features: int, rate: float) -> None:
    """The burn-in finds the step of the best acceptance rate, whatever the scale of the density."""
    for scale in (0.01, 1.0, 100.0):
        drawn = metropolis_hastings(
            lambda w, s=scale: log_normal(w / s), n_features, 2000, random_state=0
        )
        assert drawn.acceptance_rate == pytest.approx(rate, abs=0.08)
        assert drawn.samples.std() == pytest.approx(scale, rel=0.2)


def test_metropolis_step_can_be_given() -> None:
    """A fixed step is used as it is: tiny ones are nearly all accepted, huge ones nearly never."""
    tiny = metropolis_hastings(log_normal, 2, 500, step=0.01, random_state=0)
    huge = metropolis_hastings(log_normal, 2, 500, step=50.0, random_state=0)
    assert tiny.step == 0.01
    assert tiny.acceptance_rate > 0.95
    assert huge.acceptance_rate < 0.05


def test_metropolis_keeps_to_the_support() -> None:
    """Where the density is 0 no sample falls."""
    drawn = metropolis_hastings(
        lambda w: np.where(np.abs(w[:, 0]) < 1, 0.0, -np.inf), 1, 3000, random_state=0
    )
    assert np.abs(drawn.samples).max() < 1
    assert stats.kstest(drawn.samples[:, 0], stats.uniform(-1, 2).cdf).statistic < 0.05


def test_features_by_metropolis_approximate_the_kernel() -> None:
    """A density given as a function leads to its kernel, scaled by sigma; the rate is reported."""
    X = rows(10, 3, seed=3)
    options = {"n_components": 8000, "log_density": log_laplace, "random_state": 0}
    z = RandomFourierFeatures(sigma=0.7, **options).fit(X)
    Z = z.transform(X)
    np.testing.assert_allclose(Z @ Z.T, cauchy_kernel(X, sigma=0.7), atol=0.06)
    assert 0.1 < z.acceptance_rate_ < 0.5
    assert RandomFourierFeatures().fit(X).acceptance_rate_ is None


@pytest.mark.parametrize(
    ("log_density", "message"),
    [
        (lambda w: np.full(len(w), np.nan), "NaN"),
        (lambda w: np.full(len(w), np.inf), "infinity"),
        (lambda w: np.full(len(w), -np.inf), "origin"),
        (lambda w: w, "one value a row"),
        (lambda w: 0.0, "one value a row"),
        ("normal", "function"),
    ],
)
def test_refuses_bad_densities(log_density: Any, message: str) -> None:
    """A density that cannot be sampled is one line that says why."""
    with pytest.raises(TinykernelError, match=message):
        RandomFourierFeatures(log_density=log_density).fit(np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "linear"}, "kernel"),
        ({"sigma": -1.0}, "sigma"),
        ({"n_components": 0}, "n_components"),
    ],
)
def test_refuses_bad_parameters(options: dict[str, Any], message: str) -> None:
    """A wrong parameter is one line that names it."""
    with pytest.raises(TinykernelError, match=message):
        RandomFourierFeatures(**options).fit(np.zeros((2, 3)))
    for wrong, name in (({"burn_in": -1}, "burn_in"), ({"thinning": 0}, "start at 1")):
        with pytest.raises(TinykernelError, match=name):
            metropolis_hastings(log_normal, 3, 5, **wrong)
    with pytest.raises(TinykernelError, match="step"):
        metropolis_hastings(log_normal, 3, 5, step=0.0)
    with pytest.raises(TinykernelError, match="start at 1"):
        metropolis_hastings(log_normal, 0, 5)
