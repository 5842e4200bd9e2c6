"""Fastfood and its binary codes: against dense matrices, kernels, Lemma 1 and KernelMachine."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import hadamard
from sklearn.metrics.pairwise import rbf_kernel

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


def expected_hamming(u: np.ndarray) -> np.ndarray:
    """Return the expected share for values of the Gaussian kernel, accurate to 1e-4.

    ``8/pi^2 sum_{m >= 1} (1 - k(m x, m y)) / (4 m^2 - 1)`` (Raginsky & Lazebnik 2009, lemma 2.3)
    with ``k(m x, m y) = k(x, y)^(m^2)``, and ``sum 1 / (4 m^2 - 1) = 1/2``.
    """
    total = np.full(u.shape, 0.5)
    for square in np.arange(1.0, 2001.0) ** 2:
        total -= u**square / (4 * square - 1)
    return 8 / np.pi**2 * total


def shares(Z: np.ndarray) -> np.ndarray:
    """Return the share of differing features of all pairs of rows of codes."""
    codes = Z.astype(np.float64)
    return (codes.shape[1] - codes @ codes.T) / (2 * codes.shape[1])


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
def test_kernel_machine_takes_the_attributes(diagonal, permutation, n_features):
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
        ({"sigma": np.nan}, "sigma"),
        ({"diagonal": "uniform"}, "diagonal"),
        ({"row_scale": "uniform"}, "row_scale"),
        ({"permutation": "random"}, "permutation"),
    ],
)
def test_refuses_bad_parameters(options: dict[str, Any], message: str) -> None:
    """A wrong parameter is one line that names it."""
    with pytest.raises(TinykernelError, match=message):
        Fastfood(**options).fit(np.zeros((3, 2)))
