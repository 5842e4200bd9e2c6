"""Random small integer models, and the slow obvious execution of the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tinykernel.hadamard import padded_dimension
from tinykernel.model import InputScaler, IntegerModel, choose_schedules
from tinykernel.model.machine import KernelMachine
from tinykernel.model.permutation import Permutation

CLASSES = (("no", "yes"), (0, 1, 2), (False, True), (-1.5, 0.25, 3.0, 8.0))


def make_scaler(rng: np.random.Generator, raw_dtype: str, bits: int, n: int) -> InputScaler:
    """Make a scaler of one or n values that uses the raw type up to its ends."""
    length = int(rng.choice([1, n]))
    if raw_dtype == "float32":
        multiplier = rng.uniform(0.1, 2.0**bits, length) * (rng.random(length) < 0.8)
        offset = rng.normal(size=length)
        return InputScaler(raw_dtype, bits, offset.astype("f4"), multiplier.astype("f4"))
    limits = np.iinfo(raw_dtype)
    offset = rng.integers(limits.min, int(limits.max) + 1, length)
    room = np.maximum(int(limits.max) - offset, 1)
    span = (rng.integers(1, room + 1) if rng.random() < 0.7 else np.minimum(room, 3)).astype(int)
    pre_shift = np.maximum([int(s).bit_length() - 16 for s in span], 0)
    multiplier = ((1 << (16 + bits)) - 1) // (span >> pre_shift) * (rng.random(length) < 0.8)
    return InputScaler(raw_dtype, bits, offset, multiplier, span, pre_shift)


def make_permutation(rng: np.random.Generator, d: int) -> Permutation:
    """Make a permutation of any kind."""
    kind = rng.integers(3)
    if kind == 2:
        return Permutation("stored", table=rng.permutation(d).astype(np.uint16))
    return Permutation("orbit", multiplier=13, increment=7) if kind else Permutation()


def make_model(
    seed: int, raw_dtype: str = "float32", bits: int = 8, latest: bool = True
) -> IntegerModel:
    """Make a random model; `latest` halves as late as is allowed, else everywhere."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 70))
    d, blocks = padded_dimension(n), int(rng.integers(1, 4))
    scaler = make_scaler(rng, raw_dtype, bits, n)
    sign = np.where(scaler.constant(n), 0, rng.choice([-1, 1], n)).astype(np.int8)
    kind = str(rng.choice(["int8", "int4", "sign"]))
    diagonal = rng.choice([-1, 1], (blocks, d))
    if kind == "int8":
        diagonal = diagonal * rng.choice([0, 1, 64, 127, *range(2, 9)], (blocks, d))
    if kind == "int4":
        diagonal = diagonal * rng.integers(0, 8, (blocks, d))
    permutation = make_permutation(rng, d)
    stages = d.bit_length() - 1
    halve = choose_schedules(sign, bits, permutation, diagonal, kind)
    kept = rng.random((blocks, d)) < rng.choice([0.05, 0.9])
    kept[-1, -1] = True
    p = int(kept.sum())
    classes = CLASSES[rng.integers(len(CLASSES))]
    outputs = 1 if len(classes) == 2 else len(classes)
    return IntegerModel(
        n_features=n, scaler=scaler, sign=sign, permutation=permutation, diagonal=diagonal,
        diagonal_kind=kind, halve_first=halve[0] if latest else (True,) * stages,
        halve_second=halve[1] if latest else (True,) * stages, row_kept=kept,
        scale=rng.choice([1, 255, 77], p), start=rng.integers(0, 256, p),
        width=rng.choice([1, 128, 255, 40], p), phase_shift=int(rng.integers(0, 32)),
        weights=rng.integers(-1, 2, (outputs, p)), multiplier=rng.integers(-5000, 5000, outputs),
        offset=rng.integers(-(2**30), 2**30, outputs), classes=classes,
    )  # fmt: skip


@st.composite
def models(draw: st.DrawFn) -> IntegerModel:
    """Draw a random model of any raw type, width and schedule."""
    return make_model(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.sampled_from(["float32", "uint8", "int8", "uint16", "int16", "int32"])),
        draw(st.sampled_from([8, 16])),
        draw(st.booleans()),
    )


def quantized_inputs(model: IntegerModel, seed: int, rows: int = 3) -> np.ndarray[Any, Any]:
    """Make quantized inputs, half of them at the ends of their type."""
    rng = np.random.default_rng(seed)
    limits = np.iinfo(model.input_dtype)
    shape = (rows, model.n_features)
    q = rng.integers(limits.min, limits.max + 1, shape)
    ends = rng.choice([limits.min, limits.max, 0, -1], shape)
    return np.where(rng.random(shape) < 0.5, ends, q).astype(model.input_dtype)


def raw_inputs(model: IntegerModel, seed: int, rows: int = 3) -> np.ndarray[Any, Any]:
    """Make raw inputs around the scaler's range and at the ends of the raw type."""
    rng = np.random.default_rng(seed)
    shape = (rows, model.n_features)
    if model.raw_dtype == "float32":
        special = rng.choice(np.array([np.nan, np.inf, -np.inf, 3e38, 0, 1e-42], "f4"), shape)
        return np.where(rng.random(shape) < 0.2, special, rng.normal(size=shape)).astype("f4")
    limits = np.iinfo(model.raw_dtype)
    x = rng.integers(limits.min, int(limits.max) + 1, shape)
    ends = rng.choice([limits.min, limits.max], shape)
    return np.where(rng.random(shape) < 0.2, ends, x).astype(model.raw_dtype)


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
    d = model.dimension
    u = [int(s) * max(int(v), -32767) for s, v in zip(model.sign, q, strict=True)]
    u = slow_transform(u + [0] * (d - len(u)), model.halve_first)
    mixed = [u[int(j)] for j in model.permutation.indices(d)]
    shift = {"int8": 7, "int4": 3, "sign": 0}[model.diagonal_kind]
    return [
        slow_transform(
            [(int(g) * value) >> shift for g, value in zip(diagonal, mixed, strict=True)],
            model.halve_second,
        )
        for diagonal in model.diagonal
    ]


def slow_scores(model: IntegerModel, q: Any) -> tuple[list[bool], list[int]]:
    """Steps 2 to 5: components and scores."""
    values = [
        value
        for kept, rows in zip(model.row_kept, slow_rows(model, q), strict=True)
        for keep, value in zip(kept, rows, strict=True)
        if keep
    ]
    z = []
    for r, v in enumerate(values):
        phase = int(model.scale[r]) * v % 2**32 * 2**model.phase_shift
        phase = (phase + (int(model.start[r]) << 24)) % 2**32
        z.append(phase < int(model.width[r]) << 24)
    totals = []
    for o in range(model.n_outputs):
        total = sum(int(w) * (1 if on else -1) for w, on in zip(model.weights[o], z, strict=True))
        totals.append(int(model.multiplier[o]) * total + int(model.offset[o]))
    return z, [-totals[0], totals[0]] if model.n_outputs == 1 else totals


def make_machine(
    seed: int,
    *,
    n_features: int = 20,
    n_blocks: int = 2,
    n_classes: int = 3,
    raw_dtype: str = "float32",
    kind: str = "gaussian",
    bits: int = 8,
    sigma: float = 1.0,
) -> KernelMachine:
    """Make a random float machine on inputs in [0, 200]."""
    rng = np.random.default_rng(seed)
    d = padded_dimension(n_features)
    shape = (n_blocks, d)
    outputs = 1 if n_classes == 2 else n_classes
    gaussian = kind == "gaussian"
    h = np.arccos(rng.uniform(-0.9, 0.9, shape))
    sign = rng.choice([-1, 1], n_features).astype(np.int8)
    diagonal = rng.normal(size=shape) if gaussian else rng.choice([-1.0, 1.0], shape)
    if kind == "int4":
        unit = rng.uniform(0.2, 0.4, (n_blocks, 1))
        diagonal = np.clip(np.rint(rng.normal(size=shape) / unit), -7, 7) * unit
    return KernelMachine(
        classes=tuple(range(n_classes)), raw_dtype=raw_dtype,
        input_offset=np.full(n_features, 100.0), input_scale=np.full(n_features, 0.01),
        input_low=np.full(n_features, -1.0), input_high=np.full(n_features, 1.0),
        sign=sign,
        permutation=Permutation("orbit", multiplier=5, increment=3),
        diagonal=diagonal,
        diagonal_kind=kind,
        row_scale=np.full(shape, 2 / (sigma * d)) * (rng.uniform(0.5, 1, shape) if gaussian else 1),
        start=rng.uniform(0, 2 * np.pi, shape), width=2 * h,
        weights=rng.integers(-1, 2, (outputs, n_blocks * d)).astype(np.int8),
        output_scale=rng.uniform(0.5, 1, outputs), output_offset=rng.normal(size=outputs),
        input_bits=bits,
    )  # fmt: skip
