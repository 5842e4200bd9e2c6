"""Dense random Fourier features and their signs: formulas, kernels, Hamming distances."""

from typing import Any

import numpy as np
import pytest

import tinykernel.papers.features.fourier as fourier_module
from tinykernel.errors import TinykernelError
from tinykernel.papers.features import BCSIK, RandomFourierFeatures

KERNELS = {
    "gaussian": lambda x, y: np.exp(-np.sum((x - y) ** 2) / 2),
    "laplacian": lambda x, y: np.exp(-np.sum(np.abs(x - y))),
    "cauchy": lambda x, y: np.prod(1 / (1 + (x - y) ** 2)),
}


def kernel_matrix(kernel: str, X: np.ndarray) -> np.ndarray:
    """Return the values of a kernel of width 1 for all pairs of rows."""
    return np.array([[KERNELS[kernel](x, y) for y in X] for x in X])


def test_equals_the_formula() -> None:
    """z = sqrt(2/p) cos(W'x + b) of the fitted attributes, in both precisions."""
    X = np.random.default_rng(0).standard_normal((7, 5)) / 2
    z = RandomFourierFeatures(n_components=33, random_state=0).fit(X)
    expected = np.sqrt(2 / 33) * np.cos(X @ z.weights_ + z.offset_)
    np.testing.assert_allclose(z.transform(X), expected, atol=1e-14)
    single = z.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_are_signs(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """sign(cos(W'x + b) + t) of the fitted attributes, +-1 in int8, in blocks of rows as whole."""
    X = np.random.default_rng(0).standard_normal((300, 6)).astype(dtype)
    code = BCSIK(n_components=50, random_state=0).fit(X)
    margin = np.cos(X @ code.weights_ + code.offset_) + code.threshold_
    clear = np.abs(margin) > 1e-4
    assert clear.mean() > 0.99
    Z = code.transform(X)
    assert Z.dtype == np.int8
    np.testing.assert_array_equal(Z[clear], np.sign(margin[clear]))
    monkeypatch.setattr(fourier_module, "_VALUES_AT_ONCE", 1000)
    np.testing.assert_array_equal(code.transform(X)[clear], Z[clear])


@pytest.mark.parametrize("kernel", KERNELS)
def test_unbiased(kernel: str) -> None:
    """The mean over 200 draws is the kernel within 4 standard errors (1 in 16000 a pair)."""
    X = np.random.default_rng(2).standard_normal((4, 3)) / 2
    grams = []
    for seed in range(200):
        z = RandomFourierFeatures(n_components=64, kernel=kernel, random_state=seed)
        Z = z.fit_transform(X)
        grams.append(Z @ Z.T)
    error = np.std(grams, axis=0, ddof=1) / np.sqrt(200)
    assert np.all(np.abs(np.mean(grams, axis=0) - kernel_matrix(kernel, X)) < 4 * error)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kernel": "linear"}, "kernel"), ({"sigma": -1.0}, "sigma"), ({"n_components": 0}, "n_comp")],
)
def test_refuses_bad_parameters(options: dict[str, Any], message: str) -> None:
    """A wrong parameter is one line that names it."""
    with pytest.raises(TinykernelError, match=message):
        RandomFourierFeatures(**options).fit(np.zeros((2, 3)))
