"""The slow obvious execution of the specification of an integer model."""

from typing import Any

import numpy as np

from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.ternary.spec import Ternary


def _value(array: np.ndarray[Any, Any], index: int) -> Any:
    return array[index if array.size > 1 else 0]


def slow_quantize(model: IntegerModel, row: np.ndarray[Any, Any]) -> list[int]:
    """Step 1 of the specification, one value at a time."""
    scaler, half = model.scaler, 1 << (model.scaler.bits - 1)
    result = []
    for i, x in enumerate(row):
        multiplier = _value(scaler.multiplier, i)
        if multiplier == 0:
            result.append(0)
        elif scaler.span is None:
            with np.errstate(all="ignore"):
                t = np.float32(np.float32(x - _value(scaler.offset, i)) * multiplier)
            top = 2 * half - 1
            result.append((int(min(t, top)) if t > 0 else 0) - half)
        else:
            u = min(max(int(x) - int(_value(scaler.offset, i)), 0), int(_value(scaler.span, i)))
            product = (u >> int(_value(scaler.pre_shift, i))) * int(multiplier)
            assert product < 2**32
            result.append((product >> 16) - half)
    return result


def slow_transform(u: list[int], halve: tuple[bool, ...]) -> list[int]:
    """Transform with halvings; every result must fit 16 bits with either sign."""
    u = list(u)
    for k, halved in enumerate(halve):
        for j in range(len(u)):
            if not j >> k & 1:
                a, b = u[j], u[j + 2**k]
                u[j], u[j + 2**k] = a + b, a - b
        if halved:
            u = [value >> 1 for value in u]
        assert all(abs(value) <= 32767 for value in u)
    return u


def slow_rows(model: IntegerModel, q: Any) -> list[list[int]]:
    """Steps 2 and 3: the rows of every block, in unbounded integers."""
    own = model.find(Components)
    d = own.dimension
    u = [int(s) * max(int(v), -32767) for s, v in zip(own.sign, q, strict=True)]
    u = slow_transform(u + [0] * (d - len(u)), own.halve_first)
    mixed = [u[int(j)] for j in own.permutation.indices(d)]
    shift = {"int8": 7, "int4": 3, "sign": 0}[own.diagonal_kind]
    return [
        slow_transform(
            [(int(g) * value) >> shift for g, value in zip(diagonal, mixed, strict=True)],
            own.halve_second,
        )
        for diagonal in own.diagonal
    ]


def slow_scores(model: IntegerModel, q: Any) -> tuple[list[bool], list[int]]:
    """Steps 2 to 5: components and scores."""
    own, ternary = model.find(Components), model.find(Ternary)
    values = [
        value
        for kept, rows in zip(own.row_kept, slow_rows(model, q), strict=True)
        for keep, value in zip(kept, rows, strict=True)
        if keep
    ]
    z = []
    for r, v in enumerate(values):
        phase = int(own.scale[r]) * v % 2**32 * 2**own.phase_shift
        phase = (phase + (int(own.start[r]) << 24)) % 2**32
        z.append(phase < int(own.width[r]) << 24)
    totals = []
    for o in range(model.n_outputs):
        total = sum(int(w) * (1 if on else -1) for w, on in zip(ternary.weights[o], z, strict=True))
        totals.append(int(ternary.multiplier[o]) * total + int(model.readout.offset[o]))
    return z, [-totals[0], totals[0]] if model.n_outputs == 1 else totals
