"""Dense binary codes: angles, kernels, Lemma 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.papers.features.hamming import expected_hamming, hamming_bounds
from tinykernel.errors import TinykernelError
from tinykernel.papers.features import (
    BCSIK,
    RMBCSIK,
    BinaryJohnsonLindenstrauss,
    cauchy_kernel,
    gaussian_kernel,
    laplacian_kernel,
)


def shares(Z: np.ndarray) -> np.ndarray:
    """Share of differing features of all pairs of rows."""
    codes = Z.astype(np.float64)
    return (codes.shape[1] - codes @ codes.T) / (2 * codes.shape[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_the_formulas(dtype: type) -> None:
    """sign(Rx) and sign(cos(W'x + b) + t) of the fitted attributes, +-1 in int8."""
    X = np.random.default_rng(0).standard_normal((300, 6)).astype(dtype)
    angle = BinaryJohnsonLindenstrauss(n_components=50, random_state=0).fit(X)
    projected = X @ angle.weights_
    clear = np.abs(projected) > 1e-5
    Z = angle.transform(X)
    assert Z.dtype == np.int8
    np.testing.assert_array_equal(Z[clear], np.sign(projected[clear]))
    code = BCSIK(n_components=50, random_state=0).fit(X)
    margin = np.cos(X @ code.weights_ + code.offset_) + code.threshold_
    clear = np.abs(margin) > 1e-4
    assert clear.mean() > 0.99
    Z = code.transform(X)
    assert Z.dtype == np.int8
    np.testing.assert_array_equal(Z[clear], np.sign(margin[clear]))


def test_johnson_lindenstrauss_keeps_angles() -> None:
    """The share of differing bits is angle / pi within 4 standard errors, lengths do not matter."""
    p = 20000
    rng = np.random.default_rng(1)
    X = rng.standard_normal((15, 8)) * rng.uniform(0.1, 10, (15, 1))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = np.arccos(np.clip(unit @ unit.T, -1, 1)) / np.pi
    np.fill_diagonal(expected, 0)
    share = shares(BinaryJohnsonLindenstrauss(n_components=p, random_state=0).fit_transform(X))
    error = np.sqrt(expected * (1 - expected) / p)
    assert np.all(np.abs(share - expected) <= 4.5 * error)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "cauchy"])
def test_hamming_distance_keeps_to_lemma_1(kernel: str) -> None:
    """All pairs lie between h1 - delta and h2 + delta; delta 0.03, epsilon 0.01, n = 40."""
    n, delta = 40, 0.03
    p = int(np.ceil(np.log(n**2 / 0.01) / (2 * delta**2)))
    X = np.random.default_rng(2).standard_normal((n, 4)) * np.geomspace(0.02, 2, n)[:, None]
    compute = {"gaussian": gaussian_kernel, "laplacian": laplacian_kernel, "cauchy": cauchy_kernel}
    u = compute[kernel](X, sigma=1.3)
    lower, upper = hamming_bounds(u)
    code = BCSIK(n_components=p, kernel=kernel, sigma=1.3, random_state=0)
    share = shares(code.fit_transform(X))
    assert np.all(share >= lower - delta)
    assert np.all(share <= upper + delta)
    if kernel == "gaussian":
        np.testing.assert_allclose(share, expected_hamming(u), atol=delta)


@pytest.mark.parametrize("kind", ["angle", "dense", "structured"])
def test_distances_converge_at_the_root_of_p(kind: str) -> None:
    """The error of the share of differing features falls as p^(-1/2), to its expectation."""
    X = np.random.default_rng(5).standard_normal((20, 32)) / 3
    if kind == "angle":
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        expected = np.arccos(np.clip(unit @ unit.T, -1, 1)) / np.pi
    else:
        expected = expected_hamming(gaussian_kernel(X, sigma=2.0))
    sizes, errors = np.array([256, 2048, 16384]), []
    for p in sizes:
        options: dict[str, Any] = {"n_components": int(p)}
        squares = []
        for seed in range(6):
            code: Any = BinaryJohnsonLindenstrauss(**options, random_state=seed)
            if kind == "dense":
                code = BCSIK(sigma=2.0, random_state=seed, **options)
            elif kind == "structured":
                code = RMBCSIK(
                    sigma=2.0,
                    shared=False,
                    diagonal="gaussian",
                    row_scale="chi",
                    permutation="stored",
                    random_state=seed,
                    **options,
                )
            squares.append(np.mean((shares(code.fit_transform(X)) - expected) ** 2))
        errors.append(np.sqrt(np.mean(squares)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


def test_reproducible_and_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed decides the codes, and blocks of rows do not change them."""
    import tinykernel.papers.features.binary as module

    X = np.random.default_rng(3).standard_normal((37, 5))
    maps = [
        cls(n_components=9, random_state=4).fit(X) for cls in (BCSIK, BinaryJohnsonLindenstrauss)
    ]
    whole = [z.transform(X) for z in maps]
    monkeypatch.setattr(module, "_VALUES_AT_ONCE", 50)
    for z, expected in zip(maps, whole, strict=True):
        np.testing.assert_array_equal(z.transform(X), expected)
    np.testing.assert_array_equal(BCSIK(n_components=9, random_state=4).fit_transform(X), whole[0])


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (BCSIK(kernel="linear"), "kernel"),
        (BCSIK(sigma=0), "sigma"),
        (BCSIK(n_components=0), "n_components"),
        (BinaryJohnsonLindenstrauss(n_components=-1), "n_components"),
    ],
)
def test_refuses_bad_parameters(estimator: Any, message: str) -> None:
    """A wrong parameter is one line that names it."""
    with pytest.raises(TinykernelError, match=message):
        estimator.fit(np.zeros((2, 3)))
