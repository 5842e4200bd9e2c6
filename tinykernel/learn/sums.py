"""Sums and products of floats in an order that the source fixes, so that bits never differ.

A compiler that may regroup additions takes as many partial sums as the vectors of the processor
hold, so that the last bits of a sum depend on the processor. Here ``sum of x_i y_i`` is always::

    s_k   = x_k y_k + x_(k+8) y_(k+8) + ...             k = 0..7, products rounded, from the left
    total = ((s_0 + s_4) + (s_2 + s_6)) + ((s_1 + s_5) + (s_3 + s_7))

A vector of eight float32 is one register of AVX, two of SSE or NEON: speed differs, bits do not.

BLAS and LAPACK choose their order of additions by the processor, so that the last bits differ. Here
every element is ``((a_1 b_1 + a_2 b_2) + a_3 b_3) + ...``, and vectors run along the other index.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from tinykernel.base.compiled import inlined, njit, part
from tinykernel.base.hadamard import LANES

WIDTH = 8
_VECTOR = ir.VectorType(ir.FloatType(), WIDTH)
# Numbers of two vectors that `totals` adds to those so many places on: processors shuffle within
# halves of a vector.
_HALVES = (
    ((0, 1, 2, 3, 8, 9, 10, 11), 4),
    ((0, 1, 8, 9, 4, 5, 12, 13), 2),
    ((0, 2, 8, 10, 4, 6, 12, 14), 1),
)


class _Eight(types.Type):  # type: ignore[misc]
    """Eight float32 in compiled code; never seen by Python."""

    def __init__(self) -> None:
        super().__init__(name="tinykernel.eight")


_EIGHT = _Eight()


@register_model(_Eight)
class _EightModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


@intrinsic
def zeros(_: Any) -> Any:
    """Return eight zeros."""
    return _EIGHT(), lambda context, builder, signature, arguments: ir.Constant(_VECTOR, None)


@intrinsic
def load(_: Any, x: Any, first: Any) -> Any:
    """Return x[first : first + 8] of a contiguous float32 vector; not checked."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=4)

    if not (isinstance(x, types.Array) and x.dtype == types.float32 and x.layout == "C"):
        return None
    return _EIGHT(x, types.intp), generate


@intrinsic
def store(_: Any, x: Any, first: Any, value: Any) -> Any:
    """Set x[first : first + 8] of a contiguous float32 vector; not checked."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(place, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(x, types.intp, _EIGHT), generate


@intrinsic
def add(_: Any, x: Any, y: Any) -> Any:
    """Return x + y."""
    return _EIGHT(x, y), lambda context, builder, signature, arguments: builder.fadd(*arguments)


@intrinsic
def multiply(_: Any, x: Any, y: Any) -> Any:
    """Return x y, rounded."""
    return _EIGHT(x, y), lambda context, builder, signature, arguments: builder.fmul(*arguments)


@intrinsic
def spread(_: Any, x: Any) -> Any:
    """Return eight times the same float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        none = ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(none, arguments[0], cgutils.int32_t(0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), None)
        return builder.shuffle_vector(one, none, mask)

    return _EIGHT(types.float32), generate


@intrinsic
def total(_: Any, x: Any) -> Any:
    """Return the sum of the eight numbers, by halves."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, width = arguments[0], WIDTH
        while width > 1:
            width //= 2
            halves = [
                builder.shuffle_vector(
                    value,
                    ir.Constant(value.type, ir.Undefined),
                    ir.Constant(
                        ir.VectorType(ir.IntType(32), width), list(range(first, first + width))
                    ),
                )
                for first in (0, width)
            ]
            value = builder.fadd(*halves)
        return builder.extract_element(value, cgutils.int32_t(0))

    return types.float32(x), generate


@intrinsic
def _totals(_: Any, v0: Any, v1: Any, v2: Any, v3: Any, v4: Any, v5: Any, v6: Any, v7: Any) -> Any:
    """Return the totals of eight vectors."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left = [arguments[i] for i in (0, 4, 1, 5, 2, 6, 3, 7)]
        for firsts, moved in _HALVES:
            places = [[i + by for i in firsts] for by in (0, moved)]
            masks = [ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), each) for each in places]
            left = [
                builder.fadd(*(builder.shuffle_vector(x, y, mask) for mask in masks))
                for x, y in zip(left[::2], left[1::2], strict=True)
            ]
        return left[0]

    return _EIGHT(*[_EIGHT] * WIDTH), generate


@inlined
def add_totals(out, first, parts, begin):  # type: ignore[no-untyped-def]
    """Add to out[first : first + 8] the totals of eight vectors, which are in a row in parts."""
    x, k = parts, begin
    low = load(x, k), load(x, k + 8), load(x, k + 16), load(x, k + 24)
    high = load(x, k + 32), load(x, k + 40), load(x, k + 48), load(x, k + 56)
    sums = _totals(*low, *high)
    store(out, first, add(load(out, first), sums))


@inlined
def add_product(sums, x, y):  # type: ignore[no-untyped-def]
    """Return sums + x y, rounded twice."""
    return add(sums, multiply(x, y))


@inlined
def lane_products(x, y):  # type: ignore[no-untyped-def]
    """Return the eight partial sums of the dot product of two contiguous vectors of `LANES`."""
    sums = multiply(load(x, 0), load(y, 0))
    for k in range(WIDTH, LANES, WIDTH):
        sums = add_product(sums, load(x, k), load(y, k))
    return sums


@inlined
def lane_dot(x, y):  # type: ignore[no-untyped-def]
    """Return the dot product of two contiguous vectors of `LANES` numbers."""
    return total(lane_products(x, y))


@inlined
def combine_lanes(factors, rows, out):  # type: ignore[no-untyped-def]
    """Fill `out` (LANES) with the sum of rows (n, LANES), each times its factor, from the first."""
    s, t, u, v = zeros(), zeros(), zeros(), zeros()
    for i in range(factors.shape[0]):
        row, factor = rows[i], spread(factors[i])
        s, t = add_product(s, factor, load(row, 0)), add_product(t, factor, load(row, 8))
        u, v = add_product(u, factor, load(row, 16)), add_product(v, factor, load(row, 24))
    store(out, 0, s)
    store(out, 8, t)
    store(out, 16, u)
    store(out, 24, v)


@inlined
def lane_parts(x):  # type: ignore[no-untyped-def]
    """Return the eight partial sums of a contiguous vector of `LANES` numbers."""
    sums = load(x, 0)
    for k in range(WIDTH, LANES, WIDTH):
        sums = add(sums, load(x, k))
    return sums


@inlined
def lane_sum(x):  # type: ignore[no-untyped-def]
    """Return the sum of a contiguous vector of `LANES` numbers."""
    return total(lane_parts(x))


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
        share = 0.5 * beta[k] * along
        # Loops: differences of arrays in place take four seconds to compile.
        for j in range(v.size):
            moved[j] -= share * v[j]
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
        for j in range(n):
            out[j] += v[i] * rows[i, first + j]
    return out


@njit(nogil=True, error_model="numpy")
def inverse_root(basis, diagonal, second, penalty):  # type: ignore[no-untyped-def]
    """Return Z with ``Z' Z = (Q T Q' + penalty)^-1``, of what `tridiagonal` returns.

    With ``T + penalty = L D L'`` it is ``D^-1/2 L^-1 Q'``; L has ones and a second diagonal.
    """
    out, pivot = basis.copy(), diagonal[0] + penalty
    for i in range(1, out.shape[0]):
        factor, scale = second[i - 1] / pivot, 1.0 / np.sqrt(pivot)
        for j in range(out.shape[1]):
            out[i, j] -= factor * out[i - 1, j]
            out[i - 1, j] *= scale
        # No pivot is smaller, but for rounding errors.
        pivot = max(diagonal[i] + penalty - factor * second[i - 1], penalty)
    scale = 1.0 / np.sqrt(pivot)
    for j in range(out.shape[1]):
        out[-1, j] *= scale
    return out
