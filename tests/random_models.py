"""Models with random contents: the one generator of all tests."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from tinykernel.model.answers import Labels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.components.sample import random_components
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.linear.sample import random_linear
from tinykernel.pieces.piece import Part, Readout, Stage
from tinykernel.pieces.prototypes.sample import random_prototypes
from tinykernel.pieces.scale.sample import random_scaler
from tinykernel.pieces.scale.spec import Scale, order_of
from tinykernel.pieces.ternary.sample import random_ternary
from tinykernel.pieces.ternary.spec import Ternary
from tinykernel.pieces.trees.sample import random_trees
from tinykernel.pieces.trees.spec import Trees

_LIMITS = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "uint16": (0, 65535),
    "int16": (-32768, 32767),
    "int32": (-(2**31), 2**31 - 1),
}
#: Options of `random_model`: between them every layout of windows, weights and factors.
TABLES: dict[str, dict[str, Any]] = {
    "windows by row": {"n_features": 70, "raw_dtype": "float32"},
    "bitmap": {
        "n_features": 33,
        "bits": 16,
        "raw_dtype": "int32",
        "permutation": "orbit",
        "kept": "few",
        "n_blocks": 6,
        "n_classes": 20,
        "phase_shift": 25,
    },
    "compact": {
        "n_features": 70,
        "diagonal_kind": "int4",
        "one_scale": True,
        "windows": "half turns",
        "zero_weights": False,
        "kept": "tail",
        "raw_dtype": "int16",
        "permutation": "orbit",
    },
    "phases": {"diagonal_kind": "int4", "windows": "phases", "kept": "tail", "n_blocks": 3},
    "one width": {"n_features": 90, "windows": "one width", "zero_weights": False, "kept": "some"},
    "signs, two classes": {"n_features": 1, "diagonal_kind": "sign", "n_classes": 2},
    "words by block": {"n_features": 300, "n_blocks": 12, "kept": "few"},
    "packed weights": {"n_features": 70, "n_blocks": 3, "packed": True, "kept": "tail"},
    "packed weights, few values": {"n_blocks": 7, "packed": True, "n_classes": 12},
    "starts and widths in a byte": {"windows": "sixteenths", "packed": True, "one_scale": True},
    "starts and widths beside scales": {"windows": "sixteenths", "n_features": 70},
    "starts of four bits": {
        "windows": "starts of four bits",
        "one_scale": True,
        "n_features": 33,
        "kept": "tail",
    },
    "constant windows": {"n_features": 70, "windows": "constant", "raw_dtype": "uint16"},
}


def random_model(
    seed: int,
    *,
    n_features: int = 20,
    n_blocks: int = 2,
    n_classes: int = 3,
    bits: int = 8,
    raw_dtype: str = "uint8",
    diagonal_kind: str = "int8",
    permutation: str = "identity",
    kept: str = "all",
    zero_weights: bool = True,
    one_scale: bool = False,
    shared_scaler: bool = False,
    phase_shift: int = 10,
    windows: str = "rows",
    packed: bool | None = None,
) -> IntegerModel:
    """Return a model that is valid, proved and uses the whole range of every parameter.

    `windows` says what the windows have in common, see `random_windows`.
    """
    rng = np.random.default_rng(seed)
    scaler = random_scaler(rng, raw_dtype, bits, n_features, shared_scaler)
    components = random_components(
        rng,
        scaler,
        n_features,
        n_blocks=n_blocks,
        diagonal_kind=diagonal_kind,
        permutation=permutation,
        rows=kept,
        one_scale=one_scale,
        phase_shift=phase_shift,
        windows=windows,
    )
    n_outputs = 1 if n_classes == 2 else n_classes
    ternary = random_ternary(rng, n_outputs, components.n_components, zero_weights, packed)
    return IntegerModel(
        input=Grid.table(scaler.raw_dtype, n_features),
        stages=(scaler, components),
        readout=Readout((ternary,), rng.integers(-100000, 100000, n_outputs)),
        answers=Labels(tuple(range(n_classes))),
    )


def changed(
    model: IntegerModel, *pieces: Stage | Part, offset: Any = None, **fields: Any
) -> IntegerModel:
    """Return the model with other stages, parts and fields; a part of a new kind comes last."""
    own = {piece.KIND: piece for piece in pieces}
    stages = tuple(own.pop(stage.KIND, stage) for stage in model.stages)
    parts = tuple(own.pop(part.KIND, part) for part in model.readout.parts)
    readout = Readout((*parts, *own.values()), model.readout.offset if offset is None else offset)
    return replace(model, **{"stages": stages, "readout": readout} | fields)


def with_linear(
    model: IntegerModel, seed: int, weight_bits: int, components: bool = True
) -> IntegerModel:
    """Return a model with a linear part, and with or without its components."""
    rng = np.random.default_rng(seed)
    part = random_linear(rng, model.scaler, model.n_outputs, model.n_features, weight_bits)
    if components:
        return changed(model, part)
    stages = tuple(stage for stage in model.stages if stage.KIND != "components")
    return replace(model, stages=stages, readout=Readout((part,), model.readout.offset))


def tree_model(
    seed: int,
    n_features: int = 5,
    n_classes: int = 3,
    *,
    bits: int = 16,
    leaf_bits: int = 4,
    linear: bool = False,
    most: tuple[int, int] = (11, 19),
    **how: Any,
) -> IntegerModel:
    """Draw a model of trees, or of trees and a linear part; `how` are those of `random_model`.

    Of `random_trees` is `most`.
    """
    other = random_model(seed, n_features=n_features, n_classes=n_classes, bits=bits, **how)
    other = with_linear(other, seed, 4, components=False)
    trees = random_trees(seed, n_features, other.n_outputs, bits, leaf_bits, most)
    constant = np.flatnonzero(other.scaler.constant(n_features))
    if constant.size:
        varies = np.setdiff1d(np.arange(n_features), constant)
        feature = np.where(np.isin(trees.feature, constant), varies[0], trees.feature)
        trees = replace(trees, feature=feature.astype(np.uint16))
    parts = (*other.readout.parts, trees) if linear else (trees,)
    return replace(other, readout=Readout(parts, other.readout.offset))


#: Trees as converted ones have them: of raw values in order, with vectors, and of many nodes.
EXACT: dict[str, dict[str, Any]] = {
    "floats, vectors": {"n_classes": 4, "vectors": 20, "missing": True},
    "floats, few vectors": {"n_classes": 3, "vectors": 7},
    "floats, wide leaves, missing": {"n_classes": 2, "missing": True},
    "int32, wide": {"raw_dtype": "int32", "n_classes": 3, "most": (40, 400)},
}


def exact_trees(
    seed: int,
    n_features: int = 6,
    n_classes: int = 3,
    *,
    raw_dtype: str = "float32",
    vectors: int = 0,
    missing: bool = False,
    most: tuple[int, int] = (11, 60),
) -> IntegerModel:
    """Draw trees that compare raw values as they are, input 1 without a threshold."""
    rng = np.random.default_rng([seed, 11])
    plain = random_trees(seed, n_features, 1 if n_classes == 2 else n_classes, 16, 8, most)
    n, leaves = int(rng.integers(20, 400)), plain.leaves.size
    feature = rng.choice(np.delete(np.arange(n_features), 1), n).astype(np.uint16)
    is_float = raw_dtype == "float32"
    raw = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n)
    threshold = order_of(raw.astype(np.float32)) if is_float else np.rint(raw * 1e5)
    varies = np.arange(n_features) != 1
    number = rng.integers(0, vectors, leaves) if vectors else rng.integers(-(2**24), 2**24, leaves)
    trees = replace(
        plain,
        feature=feature,
        threshold=threshold.astype(np.int64),
        test=rng.integers(0, n, plain.test.size),
        leaves=number,
        shift=np.zeros_like(plain.shift),
        output=plain.output * 0 if vectors else plain.output,
        multiplier=np.ones_like(plain.multiplier),
        vectors=rng.integers(-9, 70000, (vectors, n_classes)) if vectors else None,
        missing=rng.integers(0, 2, n).astype(np.uint8) if missing else None,
    )
    scale = Scale("float32", 32, -100 * varies, 2e7 * varies)
    if not is_float:
        scale = Scale(raw_dtype, 32, [-(10**6)], 65536 * varies, [2 * 10**6], [5])
    offset = rng.integers(-(2**16), 2**16, trees.multiplier.size)
    answers = Labels(tuple(f"class {i}" for i in range(n_classes)))
    grid = Grid.table(raw_dtype, n_features)
    return IntegerModel(grid, (scale,), Readout((trees,), offset), answers)


def one_class(model: IntegerModel, seed: int, n_prototypes: int = 5) -> IntegerModel:
    """Return a model of one class with the inputs, and the local stage, of another."""
    rng = np.random.default_rng(seed)
    part = random_prototypes(rng, n_prototypes, model.n_features)
    stages = tuple(stage for stage in model.stages if stage.KIND != "components")
    offset = rng.integers(-(2**20), 0, 1)
    return replace(
        model,
        stages=stages,
        readout=Readout((part,), offset),
        answers=Labels(("normal", "novel")),
    )


def random_raw(model: IntegerModel, seed: int, n_rows: int) -> NDArray[Any]:
    """Return raw inputs: mostly inside the ranges, also far outside, at the ends, on thresholds."""
    if not model.takes_quantized:
        given = model.input
        samples = n_rows * given.rows * given.columns
        raw = _random_values(model.raw_scaler, seed, (samples, given.channels))
        numbers = np.empty((n_rows, 0), dtype=raw.dtype)
        if model.beside is not None:
            entries = _random_values(
                model.beside.scaler, seed + 1, (n_rows, model.beside.n_entries)
            )
            numbers = entries[:, : model.n_numbers]  # as the first entries look at them
        return np.hstack([raw.reshape(n_rows, given.size), numbers])
    raw = _random_values(model.scaler, seed, (n_rows, model.n_features))
    for part in model.readout.parts:
        if isinstance(part, Trees) and model.scaler.bits == 32 and model.raw_dtype == "float32":
            order = part.threshold.astype(np.int64)
            bits = np.where(order < 0, 2**31 - order, order).astype(np.uint32)
            raw[np.arange(order.size) % n_rows, part.feature] = bits.view(np.float32)
    return raw


def _random_values(scaler: Scale, seed: int, shape: tuple[int, int]) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    if scaler.raw_dtype == "float32":
        with np.errstate(divide="ignore"):
            reach = np.where(scaler.multiplier > 0, 2**scaler.bits / scaler.multiplier, 1.0)
        raw = (scaler.offset + rng.uniform(-0.2, 1.2, shape) * reach).astype(np.float32)
        wild = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 3e38, 1e-45], dtype=np.float32)
        return np.where(rng.random(shape) < 0.02, rng.choice(wild, shape), raw)
    low, high = _LIMITS[scaler.raw_dtype]
    span = scaler.span.astype(np.int64) if scaler.span is not None else 0
    inside = scaler.offset + (rng.random(shape) * (span + 1)).astype(np.int64)
    anywhere = rng.integers(low, high, shape, endpoint=True, dtype=np.int64)
    ends = rng.choice([low, high], shape)
    kind = rng.random(shape)
    raw = np.where(kind < 0.8, inside, np.where(kind < 0.95, anywhere, ends))
    return np.clip(raw, low, high).astype(scaler.raw_dtype)


def random_quantized(model: IntegerModel, seed: int, n_rows: int) -> NDArray[Any]:
    """Return quantized inputs: any values of the type, the extremes often."""
    rng = np.random.default_rng(seed)
    limits = np.iinfo(model.input_dtype)
    shape = (n_rows, model.n_features)
    anywhere = rng.integers(limits.min, limits.max, shape, endpoint=True)
    extreme = rng.choice([limits.min, limits.max], shape)
    rows = np.where(rng.random((n_rows, 1)) < 0.3, extreme, anywhere)
    return rows.astype(model.input_dtype)


CLASSES = (("no", "yes"), (0, 1, 2), (False, True), (-1.5, 0.25, 3.0, 8.0))


def make_model(
    seed: int, raw_dtype: str = "float32", bits: int = 8, latest: bool = True
) -> IntegerModel:
    """Return a small `random_model` of any shape and kind, with extremes where they are allowed.

    `latest` halves as late as is allowed, else everywhere.
    """
    rng = np.random.default_rng(seed)
    classes = CLASSES[rng.integers(len(CLASSES))]
    model = random_model(
        seed,
        n_features=int(rng.integers(1, 70)),
        n_blocks=int(rng.integers(1, 4)),
        n_classes=len(classes),
        bits=bits,
        raw_dtype=raw_dtype,
        diagonal_kind=str(rng.choice(["int8", "int4", "sign"])),
        permutation=str(rng.choice(["identity", "orbit"])),
        kept=str(rng.choice(["some", "few"])),
        shared_scaler=bool(rng.integers(2)),
        phase_shift=int(rng.integers(0, 32)),
    )
    components, ternary = model.find(Components), model.find(Ternary)
    p, outputs = components.n_components, model.n_outputs
    if not latest:
        always = (True,) * components.log2_dimension
        components = replace(components, halve_first=always, halve_second=always)
    return changed(
        model,
        replace(
            components, scale=rng.choice([1, 255, 77], p), width=rng.choice([1, 128, 255, 40], p)
        ),
        replace(ternary, multiplier=rng.integers(-5000, 5000, outputs)),
        answers=Labels(classes),
        offset=rng.integers(-(2**30), 2**30, outputs),
    )


@st.composite
def models(draw: st.DrawFn) -> IntegerModel:
    """Draw a random model of any raw type, width, schedule and code."""
    model = make_model(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.sampled_from(["float32", "uint8", "int8", "uint16", "int16", "int32"])),
        draw(st.sampled_from([8, 16])),
        draw(st.booleans()),
    )
    return changed(model, replace(model.find(Components), small_code=draw(st.booleans())))


def balanced(model: IntegerModel) -> IntegerModel:
    """Return the model with its scores moved so that every class is the label of some rows."""
    scores = model.scores(random_raw(model, 0, 300)).mean(axis=0)
    mean = scores[1:] if model.n_outputs == 1 else scores
    return changed(model, offset=(model.readout.offset - mean).astype(np.int32))


def components_of(model: IntegerModel, Q: ArrayLike) -> NDArray[np.bool_]:
    """The components of rows of quantized inputs, True where z is +1."""
    return model.run(model.quantized(Q))["components"]
