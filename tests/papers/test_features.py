"""Feature maps of the papers, each formula against a slow, obvious version."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import circulant, hadamard
from scipy.optimize import minimize
from scipy.stats import cauchy, kstest
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.random_projection import GaussianRandomProjection

from tests.refusals import refused
from tinykernel.base.errors import OptionError
from tinykernel.papers import maps

_few = settings(max_examples=25)
_seed = st.integers(0, 999)


def rows_of(seed, n, d):
    return np.random.default_rng(seed).normal(size=(n, d))


def cauchy_kernel(X, sigma):
    return np.prod(1 / (1 + ((X[:, None] - X) / sigma) ** 2), axis=-1)


@pytest.mark.parametrize(
    ("features", "kernel"),
    [
        (maps.SpectralFeatures(kernel="gaussian"), lambda X: rbf_kernel(X, gamma=1 / 8)),
        (maps.SpectralFeatures(kernel="laplacian"), lambda X: laplacian_kernel(X, gamma=1 / 2)),
        (maps.SpectralFeatures(kernel="cauchy"), lambda X: cauchy_kernel(X, 2.0)),
        (
            maps.SpectralFeatures(log_density=lambda w: -0.5 * (w**2).sum(axis=1)),
            lambda X: rbf_kernel(X, gamma=1 / 8),
        ),
        (maps.Fastfood(), lambda X: rbf_kernel(X, gamma=1 / 8)),
        (maps.Fastfood(shared=True), lambda X: rbf_kernel(X, gamma=1 / 8)),
        (maps.CirculantFeatures(), lambda X: rbf_kernel(X, gamma=1 / 8)),
    ],
)
def test_products_of_features_are_the_kernel(features, kernel) -> None:
    """Products estimate the kernel of width sigma without bias, (4) of 000 and (3) of 004."""
    X = rows_of(0, 30, 6)
    features.set_params(n_components=20_000, sigma=2.0, random_state=1)
    Z = features.fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, kernel(X), atol=0.06)


@_few
@given(_seed, st.integers(1, 20), st.integers(1, 70), st.booleans())
def test_fastfood_is_the_product_of_its_matrices(seed, d, p, shared) -> None:
    """(9)-(14) of 000, (3)-(4) of 001: V = S H G P H B, block under block."""
    X = rows_of(seed, 3, d)
    map = maps.Fastfood(n_components=p, sigma=1.5, shared=shared, random_state=seed).fit(X)
    n = map.sign_.shape[1]
    H, blocks = hadamard(n), []
    for k in range(len(map.diagonal_)):
        m = 0 if shared else k
        P = np.eye(n)[map.permutation_[m]]
        blocks.append(
            np.diag(map.scale_[k]) @ H @ np.diag(map.diagonal_[k]) @ P @ H @ np.diag(map.sign_[m])
        )
    V = np.vstack(blocks)[:p, :d]
    expected = np.sqrt(2 / p) * np.cos(X @ V.T + map.offset_)
    np.testing.assert_allclose(map.transform(X), expected, atol=1e-10)


def test_rows_of_fastfood_are_gaussian() -> None:
    """S makes the entries of V normal with deviation 1 / sigma, as Le, Sarlos & Smola prove."""
    map = maps.Fastfood(n_components=4096, sigma=0.5, random_state=0).fit(np.zeros((1, 8)))
    V = map._angles(np.eye(8))
    assert kstest(V[2] * 0.5, "norm").pvalue > 1e-3
    np.testing.assert_allclose(np.cov(V), 4 * np.eye(8), atol=0.3)


@_few
@given(_seed, st.integers(1, 9), st.integers(1, 4), st.data())
def test_circulant_maps_are_products_with_circulant_matrices(seed, d, m, data) -> None:
    """(12)-(15) of 004, and its gradient (17), against matrices and finite differences."""
    k = data.draw(st.integers((m - 1) * d + 1, m * d))
    X, vectors = rows_of(seed, 3, d), rows_of(seed + 1, m, d)
    R = np.vstack([circulant(r) for r in vectors])[:k]
    np.testing.assert_allclose(maps.circulant_projection(X, vectors, k), X @ R.T, atol=1e-10)
    slopes, step = rows_of(seed + 2, 3, k), 1e-6
    slow = np.empty_like(vectors)
    for at in np.ndindex(vectors.shape):
        moved = vectors.copy()
        moved[at] += step
        change = maps.circulant_projection(X, moved, k) - maps.circulant_projection(X, vectors, k)
        slow[at] = np.sum(slopes * change) / step
    np.testing.assert_allclose(maps.circulant_gradient(X, slopes, m), slow, atol=1e-6)


@_few
@given(_seed, st.integers(1, 4), st.integers(1, 130), st.integers(0, 5), st.integers(1, 3))
def test_walks_equal_a_walk_at_a_time(seed, d, n, burn_in, thinning) -> None:
    """002: w' is taken with probability min(1, p(w') / p(w))."""

    def density(w):
        return np.exp(-np.abs(w).sum())

    drawn, rate = maps.metropolis_hastings(
        lambda w: -np.abs(w).sum(axis=1),
        *(d, n),
        burn_in=burn_in,
        thinning=thinning,
        random_state=seed,
    )
    walks, rng = min(64, n), np.random.RandomState(seed)
    here, slow, taken = [np.zeros(d) for _ in range(walks)], [], []
    for turn in range(burn_in + -(-n // walks) * thinning):
        steps, chances = rng.standard_normal((walks, d)), rng.uniform(size=walks)
        for i in range(walks):
            there = here[i] + 2.38 / np.sqrt(d) * steps[i]
            taken.append(chances[i] < density(there) / density(here[i]))
            here[i] = there if taken[-1] else here[i]
        if turn >= burn_in and (turn - burn_in + 1) % thinning == 0:
            slow += here
    np.testing.assert_allclose(drawn, slow[:n])
    assert rate == pytest.approx(np.mean(taken[burn_in * walks :]))


def test_walks_reach_the_density() -> None:
    """Samples of a heavy-tailed density are those of the density."""
    drawn, rate = maps.metropolis_hastings(
        lambda w: -np.log1p(w[:, 0] ** 2), 1, 4000, thinning=60, random_state=0
    )
    assert kstest(drawn[:, 0], cauchy.cdf).statistic < 0.04
    assert 0.3 < rate < 0.9
    refused(OptionError, maps.metropolis_hastings, lambda w: np.full(len(w), -np.inf), 1, 5)


@pytest.mark.parametrize(
    "map", [maps.SpectralFeatures(), maps.Fastfood(), maps.CirculantFeatures()]
)
def test_shares_of_differing_bits_keep_the_bounds_of_lemma_1(map) -> None:
    """h1(k) - delta <= d_H / p <= h2(k) + delta for all pairs, for the p of the lemma."""
    X = rows_of(2, 40, 7) * np.linspace(0.05, 1, 40)[:, None]
    delta, epsilon = 0.03, 0.01
    p = int(np.log(len(X) ** 2 / epsilon) / (2 * delta**2)) + 1
    codes = maps.BinaryCodes(map.set_params(n_components=p, random_state=3), random_state=4)
    Z = codes.fit_transform(X).astype(int)
    share = (p - Z @ Z.T) / (2 * p)
    u, factor = rbf_kernel(X, gamma=0.5), 4 / np.pi**2
    # (2) of 001; (7) of 000 prints sqrt(1 - u^2), a weaker bound.
    low, high = factor * (1 - u), np.minimum(np.sqrt(1 - u) / 2, factor * (1 - u * 2 / 3))
    assert np.all(low - delta <= share)
    assert np.all(share <= high + delta)
    assert np.ptp(low) > 0.35  # the rows are both near and far


@_few
@given(_seed, st.integers(1, 5), st.integers(1, 40))
def test_codes_are_signs_of_cosines_above_minus_t(seed, d, p) -> None:
    """(1) of 001, (6) of 000, and BJLE with a map of scikit-learn."""
    X = rows_of(seed, 5, d)
    map = maps.SpectralFeatures(n_components=p, random_state=seed)
    codes = maps.BinaryCodes(map, random_state=seed).fit(X)
    t = codes.threshold_ * np.sqrt(p / 2)
    angles = X @ codes.map_.weights_ + codes.map_.offset_
    assert np.all(np.abs(t) <= 1)
    expected = np.where(np.cos(angles) + t >= 0, 1, -1)
    assert np.array_equal(codes.transform(X), expected)
    plain = maps.BinaryCodes(map, threshold="zero").fit_transform(X)
    assert np.array_equal(plain, np.where(np.cos(angles) >= 0, 1, -1))
    lindenstrauss = maps.BinaryCodes(GaussianRandomProjection(d, random_state=0), threshold="zero")
    signs = lindenstrauss.fit_transform(X)
    assert np.array_equal(signs, np.sign(X @ lindenstrauss.map_.components_.T))


@_few
@given(_seed, st.integers(2, 12), st.floats(0.01, 6))
def test_alignment_is_the_maximum_of_18(seed, n, rho) -> None:
    """q is a distribution in the ball, and no solver finds a better one."""
    v = np.random.default_rng(seed).exponential(size=n)
    q = maps.maximise_alignment(v, rho)
    assert q.min() >= 0
    assert q.sum() == pytest.approx(1)
    assert n * q @ q - 1 <= rho * (1 + 1e-9)
    limits = [
        {"type": "eq", "fun": lambda x: x.sum() - 1},
        {"type": "ineq", "fun": lambda x: rho - n * x @ x + 1},
    ]
    solved = minimize(lambda x: -x @ v, np.full(n, 1 / n), bounds=[(0, 1)] * n, constraints=limits)
    assert q @ v >= -solved.fun * solved.success - 1e-5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_alignment_scores_are_those_of_19_and_26(n_classes) -> None:
    """sum_ij y_i.y_j phi_l(x_i) phi_l(x_j), as the double sum of 000."""
    X, y = rows_of(0, 20, 2), np.arange(20) % n_classes
    map = maps.KernelAlignment(n_candidates=9, rho=2.0, random_state=5).fit(X, y)
    rng = np.random.RandomState(5)
    rng.uniform(0, 2 * np.pi, 100)
    W, b = rng.standard_normal((2, 9)), rng.uniform(0, 2 * np.pi, 9)
    labels = np.array([[1 if c == i else -1 for i in range(n_classes)] for c in y])
    labels = labels[:, 1:] if n_classes == 2 else labels
    v = np.zeros(9)
    for i in range(20):
        for j in range(20):
            v += labels[i] @ labels[j] * np.cos(X[i] @ W + b) * np.cos(X[j] @ W + b)
    np.testing.assert_allclose(map.distribution_, maps.maximise_alignment(v, 2.0), atol=1e-8)
    drawn = {tuple(column) for column in map.weights_.T}
    assert drawn <= {tuple(W[:, j]) for j in np.flatnonzero(map.distribution_)}
