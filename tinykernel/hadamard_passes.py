"""Vector code of the Walsh-Hadamard transform: several stages in registers, then one store.

The loop vectoriser of LLVM leaves the stages of short stride scalar (inner loops of 1 to 8 turns)
and guards the others with overlap checks. So the passes are emitted as vector operations, which
LLVM splits or lowers to what the processor has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

__all__ = [
    "first_pass_1",
    "first_pass_2",
    "first_pass_4",
    "first_pass_8",
    "further_pass_2",
    "further_pass_4",
    "further_pass_8",
    "halving_first_pass_1",
    "halving_first_pass_2",
    "halving_first_pass_4",
    "halving_first_pass_8",
    "halving_further_pass_2",
    "halving_further_pass_4",
    "halving_further_pass_8",
    "lanes_of",
]

VECTOR_BYTES = 64


def _add_subtract(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Emit ``(a + b, a - b)`` on vectors; integers wrap around."""
    if isinstance(a.type.element, ir.IntType):
        return builder.add(a, b), builder.sub(a, b)
    return builder.fadd(a, b), builder.fsub(a, b)


def _halving_butterfly(builder: Any, a: Any, b: Any, shift: Any) -> tuple[Any, Any]:
    """Emit ``((a + b) >> s, (a - b) >> s)`` for s in {0, 1}, exact without a wider type.

    With ``a = 2 a' + a0`` and ``b = 2 b' + b0``: ``floor((a + b) / 2) = a' + b' + (a0 and b0)`` and
    ``floor((a - b) / 2) = a' - b' - (b0 and not a0)``. Both fit 16 bits. With s = 0 the masks are
    zero and the plain butterfly, which wraps around, is left.
    """
    a_half, b_half = builder.ashr(a, shift), builder.ashr(b, shift)
    carry = builder.and_(builder.and_(a, b), shift)
    borrow = builder.and_(builder.and_(builder.not_(a), b), shift)
    total = builder.add(builder.add(a_half, b_half), carry)
    return total, builder.sub(builder.sub(a_half, b_half), borrow)


_Butterfly = Callable[[Any, Any, Any, int], tuple[Any, Any]]


def _emit_pass(
    builder: Any, base: Any, step: Any, radix: int, within: bool, butterfly: _Butterfly
) -> None:
    """Emit the stages that `radix` vectors at ``base + r * step`` can do among themselves.

    Stages are emitted in ascending order of stride; `butterfly` receives their running number.
    """
    element = base.type.pointee
    n_bytes = 2 if element == ir.IntType(16) else 8 if element == ir.DoubleType() else 4
    lanes = VECTOR_BYTES // n_bytes
    vector = ir.VectorType(element, lanes)
    pointers = []
    for r in range(radix):
        address = builder.gep(base, [builder.mul(step, ir.Constant(step.type, r))])
        pointers.append(builder.bitcast(address, vector.as_pointer()))
    values = [builder.load(pointer, align=n_bytes) for pointer in pointers]
    stage = 0
    for bit in range(lanes.bit_length() - 1) if within else ():
        stride = 1 << bit
        values = [_stage_within(builder, value, stride, stage, butterfly) for value in values]
        stage += 1
    stride = 1
    while stride < radix:
        for r in range(radix):
            if not r & stride:
                pair = butterfly(builder, values[r], values[r + stride], stage)
                values[r], values[r + stride] = pair
        stride *= 2
        stage += 1
    for value, pointer in zip(values, pointers, strict=True):
        builder.store(value, pointer, align=n_bytes)


def _stage_within(builder: Any, value: Any, stride: int, stage: int, butterfly: _Butterfly) -> Any:
    """Emit one stage between the lanes of one vector."""
    lanes = value.type.count
    index = ir.VectorType(ir.IntType(32), lanes)
    low = [lane & ~stride for lane in range(lanes)]
    a = builder.shuffle_vector(value, value, ir.Constant(index, low))
    b = builder.shuffle_vector(value, value, ir.Constant(index, [i | stride for i in low]))
    total, difference = butterfly(builder, a, b, stage)
    blend = [lane + lanes if lane & stride else lane for lane in range(lanes)]
    return builder.shuffle_vector(total, difference, ir.Constant(index, blend))


def _make_pass(radix: int, within: bool) -> Any:
    """Make the intrinsic ``f(x, offset, step)``; see `_emit_pass`."""

    @intrinsic
    def run(typing_context: Any, x: Any, offset: Any, step: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = make_array(signature.args[0])(context, builder, arguments[0]).data
            base = builder.gep(data, [arguments[1]])
            _emit_pass(
                builder, base, arguments[2], radix, within,
                lambda builder, a, b, stage: _add_subtract(builder, a, b),
            )  # fmt: skip
            return context.get_dummy_value()

        return types.void(x, types.intp, types.intp), emit

    return run


def _make_halving_pass(radix: int, within: bool) -> Any:
    """Make the intrinsic ``f(x, offset, step, shifts, first_stage)`` for int16."""

    @intrinsic
    def run(typing_context: Any, x: Any, offset: Any, step: Any, shifts: Any, first: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = make_array(signature.args[0])(context, builder, arguments[0]).data
            table = make_array(signature.args[3])(context, builder, arguments[3]).data
            base = builder.gep(data, [arguments[1]])

            def butterfly(builder: Any, a: Any, b: Any, stage: int) -> tuple[Any, Any]:
                place = builder.add(arguments[4], ir.Constant(arguments[4].type, stage))
                shift = builder.load(builder.gep(table, [place]))
                splat = ir.Constant(a.type, ir.Undefined)
                splat = builder.insert_element(splat, shift, ir.Constant(ir.IntType(32), 0))
                zeros = ir.Constant(ir.VectorType(ir.IntType(32), a.type.count), None)
                splat = builder.shuffle_vector(splat, splat, zeros)
                return _halving_butterfly(builder, a, b, splat)

            _emit_pass(builder, base, arguments[2], radix, within, butterfly)
            return context.get_dummy_value()

        return types.void(x, types.intp, types.intp, shifts, types.intp), emit

    return run


first_pass_1 = _make_pass(1, True)
first_pass_2 = _make_pass(2, True)
first_pass_4 = _make_pass(4, True)
first_pass_8 = _make_pass(8, True)
further_pass_2 = _make_pass(2, False)
further_pass_4 = _make_pass(4, False)
further_pass_8 = _make_pass(8, False)
halving_first_pass_1 = _make_halving_pass(1, True)
halving_first_pass_2 = _make_halving_pass(2, True)
halving_first_pass_4 = _make_halving_pass(4, True)
halving_first_pass_8 = _make_halving_pass(8, True)
halving_further_pass_2 = _make_halving_pass(2, False)
halving_further_pass_4 = _make_halving_pass(4, False)
halving_further_pass_8 = _make_halving_pass(8, False)


@intrinsic
def lanes_of(typing_context: Any, x: Any) -> Any:
    """Give the number of elements of `x` in a vector, as a constant of the compiled code."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        n_bytes = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        return ir.Constant(context.get_value_type(types.intp), VECTOR_BYTES // n_bytes)

    return types.intp(x), emit
