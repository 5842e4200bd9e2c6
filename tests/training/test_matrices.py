"""Matrices in fixed order: they are those of LAPACK but for rounding, and keep to their order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tinykernel.learn import sums as matrices

SIZES, SEEDS = st.integers(1, 70), st.integers(0, 2**32 - 1)


def gram(n: int, seed: int, rank: int = 80) -> np.ndarray:
    """Draw a symmetric matrix, positive semidefinite, of at most a rank."""
    rows = np.random.default_rng(seed).standard_normal((n, rank))
    return rows @ rows.T / rank


@given(SIZES, SEEDS)
def test_sums_have_the_order_of_the_source(n: int, seed: int) -> None:
    """Bit for bit products and squared differences are added from the left to the right."""
    x, y = np.random.default_rng(seed).standard_normal((2, n, 3))
    wanted, apart = np.zeros((2, 3, 3))
    for k in range(n):
        wanted += x[k][:, None] * y[k]
        apart += np.square(x[k][:, None] - y[k])
    np.testing.assert_array_equal(matrices.product(x.T.copy(), y), wanted)
    np.testing.assert_array_equal(matrices.distances(x.T.copy(), y), apart)


@given(SIZES, st.sampled_from([1, 5, 80]), SEEDS)
def test_factors_of_singular_matrices_give_them_back(n: int, rank: int, seed: int) -> None:
    """Where directions have no length, the rest of the factor stays what it was."""
    matrix = gram(n, seed, rank)
    factor = matrices.cholesky(matrix)
    assert not np.tril(factor, -1).any()
    np.testing.assert_allclose(factor.T @ factor, matrix, atol=1e-6)


@given(SIZES, st.sampled_from([1, 5, 80]), st.sampled_from([1e-5, 1.0, 100.0]), SEEDS)
def test_inverses_are_those_of_eigenvalues(n: int, rank: int, penalty: float, seed: int) -> None:
    """Solutions, and the inverse by the tridiagonal form, are those by `numpy.linalg.eigh`."""
    matrix = gram(n, seed, rank)
    values, vectors = np.linalg.eigh(matrix)
    inverse = (vectors / (values + penalty)) @ vectors.T
    basis, diagonal, second = reduced = matrices.tridiagonal(matrix)
    bands = np.diag(diagonal) + np.diag(second, 1) + np.diag(second, -1)
    np.testing.assert_allclose(basis.T @ bands @ basis, matrix, atol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(bands), values, atol=1e-12)
    root = matrices.inverse_root(*reduced, penalty)
    solved = matrices.solve(matrix + penalty * np.eye(n), np.eye(n))
    for found in (root.T @ root, solved):
        np.testing.assert_allclose(found * penalty, inverse * penalty, atol=1e-8)
