"""Products, distances and factors of float64 matrices, added up in the order of the source.

BLAS and LAPACK choose their order of additions by the processor, so that the last bits differ. Here
every element is ``((a_1 b_1 + a_2 b_2) + a_3 b_3) + ...``, and vectors run along the other index.
"""

from __future__ import annotations

import numpy as np

from tinykernel.compiled import njit, part

#: Rows of a factor that are taken from the others at a time; a multiple of 4.
PANEL = 32
# Pivots below this share of the largest are 0: what is left of the matrix are rounding errors.
_LEAST_PIVOT = 1e-14


@njit(nogil=True, error_model="numpy")
def product(left, right):  # type: ignore[no-untyped-def]
    """Return ``left @ right``."""
    out = np.zeros((left.shape[0], right.shape[1]))
    for i in range(left.shape[0]):
        for k in range(left.shape[1]):
            for j in range(right.shape[1]):
                out[i, j] += left[i, k] * right[k, j]
    return out


@njit(nogil=True, error_model="numpy")
def distances(rows, others):  # type: ignore[no-untyped-def]
    """Return the squared distances of rows (n, d) from the columns of others (d, m)."""
    out = np.zeros((rows.shape[0], others.shape[1]))
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            for j in range(others.shape[1]):
                step = rows[i, k] - others[k, j]
                out[i, j] += step * step
    return out


@njit(nogil=True, error_model="numpy")
def cholesky(matrix):  # type: ignore[no-untyped-def]
    """Return the upper triangular U with ``U' U = matrix``, positive semidefinite.

    Cholesky's rows one after the other (Golub & Van Loan, Matrix Computations, 4th ed., 4.2), by
    panels: a row below a panel is read once for four rows of it. Of a pivot of 0 the row is 0.
    """
    u, largest = np.zeros(matrix.shape), 0.0
    # Loops: np.triu, np.diag and factors of slices take three seconds to compile.
    for i in range(u.shape[0]):
        largest = max(largest, matrix[i, i])
        for j in range(i, u.shape[0]):
            u[i, j] = matrix[i, j]
    for first in range(0, u.shape[0], PANEL):
        eliminate(u, first, _LEAST_PIVOT * largest)
    return u


@njit(nogil=True, error_model="numpy")
def eliminate(u, first, least=0.0):  # type: ignore[no-untyped-def]
    """Eliminate a panel of `cholesky` in the upper half of u, which is all that it reads."""
    n = u.shape[0]
    last = min(first + PANEL, n)
    for k in range(first, last):
        pivot = u[k, k]
        scale = 1.0 / np.sqrt(pivot) if pivot > least else 0.0
        for j in range(k, n):
            u[k, j] *= scale
        for i in range(k + 1, last):
            factor = u[k, i]
            for j in range(i, n):
                u[i, j] -= factor * u[k, j]
    for i in range(last, n):
        row = u[i, i:]
        for k in range(first, last, 4):
            a, b, c, d = u[k, i:], u[k + 1, i:], u[k + 2, i:], u[k + 3, i:]
            p, q, r, s = a[0], b[0], c[0], d[0]
            for j in range(n - i):
                row[j] = (((row[j] - p * a[j]) - q * b[j]) - r * c[j]) - s * d[j]


@njit(nogil=True, error_model="numpy")
def solve(matrix, right):  # type: ignore[no-untyped-def]
    """Return x with ``matrix @ x = right``, (n, k), of a positive definite matrix."""
    return substitute(cholesky(matrix), right)


@njit(nogil=True, error_model="numpy")
def substitute(u, right):  # type: ignore[no-untyped-def]
    """Return x with ``U' U x = right``, (n, k)."""
    x, n = right.copy(), right.shape[0]
    for o in range(x.shape[1]):
        for k in range(n):
            x[k, o] /= u[k, k]
            for i in range(k + 1, n):
                x[i, o] -= u[k, i] * x[k, o]
        for k in range(n - 1, -1, -1):
            for i in range(k + 1, n):
                x[k, o] -= u[k, i] * x[i, o]
            x[k, o] /= u[k, k]
    return x


@njit(nogil=True, error_model="numpy")
def tridiagonal(matrix):  # type: ignore[no-untyped-def]
    """Return Q', the diagonal and the second diagonal of T with ``matrix = Q T Q'``, symmetric.

    Reflections ``1 - beta v v'`` bring row after row to two entries (Householder; Golub & Van Loan,
    8.3); Q is their product, from the last to the first.
    """
    n = matrix.shape[0]
    a, basis = matrix.copy(), np.eye(n)
    second, beta = np.zeros(n), np.zeros(n)
    for k in range(n - 1):
        v = a[k, k + 1 :]
        square = 0.0
        for j in range(v.size):
            square += v[j] * v[j]
        second[k] = -np.sqrt(square) if v[0] > 0 else np.sqrt(square)
        v[0] -= second[k]
        if square == 0.0:
            continue
        beta[k] = -1.0 / (second[k] * v[0])
        moved = beta[k] * _weighed_rows(v, a, k + 1)
        along = 0.0
        for j in range(v.size):
            along += v[j] * moved[j]
        moved -= 0.5 * beta[k] * along * v
        for i in range(v.size):
            row, p, q = a[k + 1 + i, k + 1 :], v[i], moved[i]
            for j in range(v.size):
                row[j] -= p * moved[j] + q * v[j]
    for k in range(n - 2, -1, -1):
        v = a[k, k + 1 :]
        moved = beta[k] * _weighed_rows(v, basis, k + 1)
        for i in range(v.size):
            row, p = basis[k + 1 + i, k + 1 :], v[i]
            for j in range(v.size):
                row[j] -= p * moved[j]
    return np.ascontiguousarray(basis.T), np.diag(a).copy(), second[: n - 1]


@part()
def _weighed_rows(v, matrix, first):  # type: ignore[no-untyped-def]
    """Return ``v @ matrix[first:, first:]``, four rows at a time, which are contiguous."""
    out, n, rows = np.zeros(v.size), v.size, matrix[first:]
    for i in range(0, n - 3, 4):
        a, b, c, d = rows[i, first:], rows[i + 1, first:], rows[i + 2, first:], rows[i + 3, first:]
        p, q, r, s = v[i], v[i + 1], v[i + 2], v[i + 3]
        for j in range(n):
            out[j] = (((out[j] + p * a[j]) + q * b[j]) + r * c[j]) + s * d[j]
    for i in range(n - n % 4, n):
        out += v[i] * rows[i, first:]
    return out


@njit(nogil=True, error_model="numpy")
def inverse_root(basis, diagonal, second, penalty):  # type: ignore[no-untyped-def]
    """Return Z with ``Z' Z = (Q T Q' + penalty)^-1``, of what `tridiagonal` returns.

    With ``T + penalty = L D L'`` it is ``D^-1/2 L^-1 Q'``; L has ones and a second diagonal.
    """
    out, pivot = basis.copy(), diagonal[0] + penalty
    for i in range(1, out.shape[0]):
        factor = second[i - 1] / pivot
        out[i] -= factor * out[i - 1]
        out[i - 1] *= 1.0 / np.sqrt(pivot)
        # No pivot is smaller, but for rounding errors.
        pivot = max(diagonal[i] + penalty - factor * second[i - 1], penalty)
    out[-1] *= 1.0 / np.sqrt(pivot)
    return out
