"""Sums of products in eight partial sums: an order of additions that the source fixes.

A compiler that may regroup additions takes as many partial sums as the vectors of the processor
hold, so that the last bits of a sum depend on the processor. Here ``sum of x_i y_i`` is always::

    s_k   = x_k y_k + x_(k+8) y_(k+8) + ...             k = 0..7, products rounded, from the left
    total = ((s_0 + s_4) + (s_2 + s_6)) + ((s_1 + s_5) + (s_3 + s_7))

A vector of eight float32 is one register of AVX, two of SSE or NEON: speed differs, bits do not.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from tinykernel.compiled import inlined
from tinykernel.hadamard import LANES

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
