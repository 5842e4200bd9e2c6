"""Fastfood and its binary codes: against dense matrices, kernels, Lemma 1 and KernelMachine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard
from sklearn.metrics.pairwise import rbf_kernel

from tests.papers.features.hamming import expected_hamming, shares
from tinykernel.errors import TinykernelError
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.papers.features import RMBCSIK, Fastfood

OPTIONS = [
    {"diagonal": "gaussian", "row_scale": "chi", "permutation": "orbit"},
    {"diagonal": "sign", "row_scale": "one", "permutation": "identity"},
    {"diagonal": "gaussian", "row_scale": "one", "permutation": "stored"},
]


def rows(n: int, d: int, seed: int = 0, dtype: type = np.float64) -> np.ndarray:
    """Normal rows of length about 1."""
    return (np.random.default_rng(seed).standard_normal((n, d)) / np.sqrt(d)).astype(dtype)


def dense_matrix(fitted: Fastfood | RMBCSIK) -> np.ndarray:
    """Write out R = [V_1; V_2; ...] of formula (4) from the fitted attributes."""
    n_blocks, d = fitted.diagonal_.shape
    H = hadamard(d).astype(np.float64)
    blocks = []
    for block in range(n_blocks):
        B = np.zeros((d, fitted.sign_.size))
        np.fill_diagonal(B, fitted.sign_)
        P = np.eye(d)[fitted.permutation_.indices(d)]
        G = np.diag(fitted.diagonal_[block])
        blocks.append(fitted.row_scale_[block][:, None] * (H @ G @ P @ H @ B))
    return np.concatenate(blocks)[: fitted.n_components]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("n_features", [1, 40])
def test_equals_the_dense_formula(options: dict[str, Any], n_features: int) -> None:
    """Every option computes sqrt(2/p) cos(R x + b) and sign(cos(R x + b) + t) of its attributes."""
    X = rows(5, n_features)
    p = 150
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 2e-5)):
        z = Fastfood(n_components=p, sigma=0.7, random_state=3, **options).fit(X)
        angles = X @ dense_matrix(z).T + z.offset_.ravel()[:p]
        got = z.transform(X.astype(dtype))
        assert got.dtype == dtype
        np.testing.assert_allclose(got, np.sqrt(2 / p) * np.cos(angles), atol=tolerance)
    code = RMBCSIK(n_components=p, sigma=0.7, random_state=3, **options).fit(X)
    angles = X @ dense_matrix(code).T + code.offset_.ravel()[:p]
    margin = np.cos(angles) + code.threshold_.ravel()[:p]
    clear = np.abs(margin) > 1e-4
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(code.transform(X)[clear], np.where(margin > 0, 1, -1)[clear])


@given(seed=st.integers(0, 2**31), scale=st.floats(0.01, 100))
@settings(max_examples=25, deadline=None)
def test_window_is_the_sign_of_the_cosine(seed: int, scale: float) -> None:
    """The phase window gives sign(cos(theta + b) + t) for the very same angles, ties apart."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0, scale, 2000), rng.uniform(0, 2 * np.pi, 2000)
    t = rng.uniform(-1, 1, 2000)
    half = np.arccos(-t)
    window = np.mod(theta + b + half, 2 * np.pi) < 2 * half
    margin = np.cos(theta + b) + t
    differs = window != (margin > 0)
    assert np.all(np.abs(margin[differs]) < 1e-12 * max(1, scale))


@pytest.mark.parametrize("row_scale", ["chi", "one"])
@pytest.mark.parametrize("diagonal", ["gaussian", "sign"])
def test_row_lengths(diagonal: str, row_scale: str) -> None:
    """Rows of R have the lengths of Gaussian rows of width 1/sigma, or their root mean square."""
    d, sigma = 64, 2.5
    z = Fastfood(
        n_components=6400, sigma=sigma, diagonal=diagonal, row_scale=row_scale, random_state=0
    ).fit(np.zeros((2, d)))
    lengths = np.linalg.norm(dense_matrix(z), axis=1) * sigma
    if row_scale == "one":
        np.testing.assert_allclose(lengths, np.sqrt(d))
        return
    # Chi-square with d degrees of freedom: mean d, variance 2 d; 6400 draws, 4 standard errors.
    squares = lengths**2
    assert abs(squares.mean() - d) < 4 * np.sqrt(2 * d / 6400)
    assert squares.var() == pytest.approx(2 * d, rel=0.15)


@pytest.mark.parametrize(("diagonal", "row_scale"), [("gaussian", "chi"), ("sign", "one")])
def test_gram_converges_at_the_root_of_p(diagonal: str, row_scale: str) -> None:
    """The root-mean-square error of the Gram matrix falls as p^(-1/2), to the Gaussian kernel."""
    X = rows(25, 200, seed=1)
    K = rbf_kernel(X, gamma=0.5)
    sizes = np.array([256, 1024, 4096])
    errors = []
    for p in sizes:
        squares = []
        for seed in range(6):
            Z = Fastfood(
                n_components=int(p),
                diagonal=diagonal,
                row_scale=row_scale,
                random_state=seed,
            ).fit_transform(X)
            squares.append(np.mean((Z @ Z.T - K) ** 2))
        errors.append(np.sqrt(np.mean(squares)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4
    # One cosine feature has variance at most 1/2 + ...: sqrt(1/p) is the scale of the error.
    assert errors[-1] < 1.2 / np.sqrt(sizes[-1])


def test_hamming_distance_follows_the_kernel() -> None:
    """The share of differing features of all pairs is that of Lemma 1 within 0.025."""
    p = int(np.ceil(np.log(60**2 / 0.01) / (2 * 0.025**2)))
    X = rows(60, 50, seed=5) * np.geomspace(0.05, 5, 60)[:, None]
    expected = expected_hamming(rbf_kernel(X, gamma=0.5))
    for options in ({}, {"diagonal": "sign", "row_scale": "one"}):
        share = shares(RMBCSIK(n_components=p, random_state=0, **options).fit_transform(X))
        np.testing.assert_allclose(share, expected, atol=0.025)


@pytest.mark.parametrize(
    ("diagonal", "permutation", "n_features"),
    [("gaussian", "orbit", 30), ("sign", "stored", 64), ("sign", "identity", 1)],
)
def test_kernel_machine_takes_the_attributes(
    diagonal: str, permutation: str, n_features: int
) -> None:
    """A KernelMachine built from the fitted attributes computes the same features."""
    X = rows(50, n_features, seed=6, dtype=np.float32)
    code = RMBCSIK(
        n_components=300, diagonal=diagonal, permutation=permutation, random_state=1
    ).fit(X)
    n_blocks, d = code.diagonal_.shape
    machine = KernelMachine(
        classes=(0, 1),
        raw_dtype="float32",
        input_offset=np.zeros(n_features),
        input_scale=np.ones(n_features),
        input_low=np.full(n_features, -100.0),
        input_high=np.full(n_features, 100.0),
        sign=code.sign_,
        permutation=code.permutation_,
        diagonal=code.diagonal_,
        diagonal_kind=diagonal,
        row_scale=code.row_scale_,
        start=code.start_,
        width=code.width_,
        weights=np.ones((1, n_blocks * d), dtype=np.int8),
        output_scale=np.ones(1),
        output_offset=np.zeros(1),
    )
    np.testing.assert_array_equal(code.transform(X) > 0, machine.features(X)[:, :300])


def test_reproducible_and_cut() -> None:
    """The seed decides everything; fewer components of the same block count are a prefix."""
    X = rows(6, 20)
    first = RMBCSIK(n_components=64, random_state=7).fit_transform(X)
    np.testing.assert_array_equal(first, RMBCSIK(n_components=64, random_state=7).fit_transform(X))
    short = RMBCSIK(n_components=50, random_state=7).fit_transform(X)
    np.testing.assert_array_equal(first[:, :50], short)
    assert set(np.unique(first)) == {-1, 1}
    names = RMBCSIK(n_components=3).fit(X).get_feature_names_out()
    assert list(names) == ["rmbcsik0", "rmbcsik1", "rmbcsik2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 2.5}, "n_components"),
        ({"n_components": True}, "n_components"),
        ({"sigma": 0}, "sigma"),
        ({"sigma": np.nan}, "sigma"),
        ({"sigma": "wide"}, "sigma"),
        ({"diagonal": "uniform"}, "diagonal"),
        ({"row_scale": "uniform"}, "row_scale"),
        ({"permutation": "random"}, "permutation"),
    ],
)
def test_refuses_bad_parameters(options: dict[str, Any], message: str) -> None:
    """A wrong parameter is one line that names it."""
    with pytest.raises(TinykernelError, match=message):
        Fastfood(**options).fit(np.zeros((3, 2)))
