"""Measure the code of many models on every core and write tinykernel/run/code_sizes.json.

Run it again whenever the runtime in firmware/ changes::

    python benchmarks/code_size.py [--models 60] [--cores cortex-m4 ...]

With ``--new`` it measures only the properties that the table lacks, and keeps the others.
It needs arm-none-eabi-gcc, riscv64-unknown-elf-gcc, xtensa-lx106-elf-gcc and avr-gcc, and takes
some minutes; ``--cores`` keeps the rows of the others. The sizes are those of `code_properties`, by
ridge regression, which spreads what the sample cannot tell apart.
"""

import argparse
import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import ensemble, tree

from tests.convolutions import convolution_model, dense_model
from tests.firmware.local_models import with_events
from tests.frames import frame_model
from tests.random_fronts import local_model, offset_model, random_signal_stage
from tests.random_models import changed, one_class, random_model, tree_model, with_linear
from tests.separable import separable_model
from tests.spectra import plane_model, spectral_model
from tinykernel.base.errors import TinykernelError
from tinykernel.base.files import write_bytes_atomically
from tinykernel.base.windows import SEGMENTS
from tinykernel.compile.compilers import Toolchain
from tinykernel.compile.plan import pack
from tinykernel.compile.sources import runtime_files
from tinykernel.compile.targets import TARGETS
from tinykernel.conversion.models import convert
from tinykernel.model.answers import Decision
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.beside.sample import random_beside
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.scale.spec import Scale
from tinykernel.run.estimate import SAME, SIZES, code_properties
from tinykernel.run.footprint import measure_footprint
from tinykernel.run.program import find_toolchain

RAW = ("float32", "float32", "uint8", "int8", "uint16", "int16", "int32")
#: Ridge penalty, in squared bytes of one property.
PENALTY = 0.1


def _draws(kind: int, index: int) -> tuple[np.random.Generator, Callable[..., Any]]:
    """Return a generator, and a function that picks one of its arguments."""
    rng = np.random.default_rng([kind, index])
    return rng, lambda *values: values[int(rng.integers(len(values)))]


def component_sample(index: int) -> IntegerModel:
    """Draw a model of components, every third in small code, every fourth with a linear part."""
    rng, pick = _draws(0, index)
    log2 = int(rng.integers(5, 12))
    least = 2 ** (log2 - 1) + 1 if log2 > 5 else 1
    n_features = pick(2**log2, *(int(rng.integers(least, 2**log2 + 1)) for _ in range(4)))
    model = random_model(
        index,
        n_features=n_features,
        n_blocks=int(rng.integers(1, 4)),
        n_classes=pick(2, 3, 10, 26),
        raw_dtype=pick(*RAW),
        bits=pick(8, 8, 16),
        diagonal_kind=pick("int8", "int4", "sign"),
        permutation=pick("identity", "orbit", "orbit", "orbit"),
        shared_scaler=pick(True, False),
        one_scale=pick(True, False),
        zero_weights=pick(True, True, False),
        kept=pick("all", "tail", "some"),
        phase_shift=int(rng.integers(16, 24)),
        windows=pick("rows", "constant", "half turns"),
    )
    # Which stages halve changes the code. A model whose sums could overflow is refused.
    halves = [
        tuple(stage >= log2 - 2 for stage in range(log2)),
        tuple(stage % 2 == 1 for stage in range(log2)),
        (True,) * log2,
        tuple(bool(rng.integers(2)) for _ in range(log2)),
    ]
    for field in ("halve_first", "halve_second"):
        with contextlib.suppress(TinykernelError):
            model = changed(model, replace(model.find(Components), **{field: pick(*halves)}))
    if index % 3 == 2:
        model = changed(model, replace(model.find(Components), small_code=True))
    if index % 4 == 3:
        with contextlib.suppress(TinykernelError):
            model = with_linear(model, index, pick(2, 4, 8))
    return model


def shaped_sample(index: int) -> IntegerModel:
    """Draw a model of signals, signals beside numbers, or a linear part alone."""
    rng, pick = _draws(1, index)
    outputs = {"n_classes": pick(2, 3, 6, 10)}
    if index % 4 == 3:
        scaler = {"raw_dtype": pick(*RAW), "shared_scaler": pick(True, False)}
        table = random_model(index, n_features=int(rng.integers(5, 300)), **scaler, **outputs)
        return with_linear(table, index, pick(2, 4, 8), components=False)
    raw, average = pick("float32", "uint8", "int16"), pick(1, 2)
    common = {"raw_dtype": raw, "average": average, "n_kernels": int(rng.integers(8, 100))}
    window = pick(64, 128, 256)
    common |= {"height": window, "hop": window // 2, "channels": int(rng.integers(1, 7))}
    common |= {"cells": (pick(1, 1, 2), 1), "dilations": (1, 2, 4) if window > 64 else (1, 2)}
    beside = random_beside(index, int(rng.integers(1, 5)), raw) if index % 4 == 2 else None
    bits = pick(2, 4, 8)
    signal = random_signal_stage(index, **common)
    return local_model(signal, index, weight_bits=bits, beside=beside, **outputs)


def one_class_sample(index: int) -> IntegerModel:
    """Draw a model of one class, every third of signals."""
    if index % 3 == 2:
        return one_class(shaped_sample(4 * index + 1), index)
    rng, pick = _draws(2, index)
    n_features = int(rng.integers(2, 3 if index % 6 == 0 else 300))
    scaler = {"raw_dtype": pick(*RAW), "bits": pick(8, 16), "shared_scaler": pick(True, False)}
    model = random_model(index, n_features=n_features, n_blocks=1, **scaler)
    return one_class(model, index, int(rng.integers(1, 12)))


def tree_sample(index: int, most: tuple[int, int] = (11, 19)) -> IntegerModel:
    """Draw a model of at most so many trees and nodes of each, every third with a linear part."""
    _, pick = _draws(3, index)
    scaler = {"raw_dtype": pick(*RAW), "bits": pick(8, 16), "shared_scaler": pick(True, False)}
    shape = {"n_features": pick(3, 20, 300), "n_classes": pick(2, 3, 10), "leaf_bits": pick(4, 8)}
    return tree_model(index, linear=index % 3 == 2, most=most, **shape, **scaler)


def converted_sample(index: int) -> IntegerModel:
    """Draw trees of scikit-learn, of labels, values or counts, as `convert` stores them."""
    rng, pick = _draws(13, index)
    dtype = pick("float32", "float32", "float32", "uint8", "int16", "int32")
    n_classes, many = pick(0, 0, 2, 2, 3, 4, 10), 1 if index % 2 else 100
    X = (100 + 30 * rng.normal(size=(300, pick(3, 5, 30, 100, 300)))).clip(0, 255)
    X = (X * (1 if dtype == "uint8" else many)).astype(dtype)
    y = X[:, 0].astype(float) + X[:, 1] + 0.3 * X[:, 2]
    y = 5 + y / y.std() + 0.5 * rng.normal(size=300)
    if n_classes:
        y = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    options: dict[str, Any] = {"random_state": 0}
    kind, end = pick("Tree", "Tree", "Forest", "Forest", "Boosting"), "Regressor"
    end = "Classifier" if n_classes else end
    if kind == "Tree":
        leaves = 1 + pick(1, 1, 2, 3, 5, 8, 12, 20, 40)
        model = getattr(tree, f"DecisionTree{end}")(max_leaf_nodes=leaves, **options)
    elif kind == "Forest":
        options |= {"n_estimators": pick(1, 2, 3, 5, 10, 20), "max_depth": pick(1, 2, 3, 4, 6)}
        model = getattr(ensemble, f"RandomForest{end}")(**options)
    else:
        options |= {"max_iter": pick(1, 2, 5, 10), "max_depth": pick(1, 2, 3, 4)}
        options |= {} if n_classes or index % 2 else {"loss": "poisson"}
        model = getattr(ensemble, f"HistGradientBoosting{end}")(**options)
        if dtype == "float32" and index % 2:
            X[rng.random(X.shape) < 0.1] = np.nan
    votes = "hard" if kind == "Forest" and n_classes and index % 2 else "soft"
    return convert(model.fit(X, y), X, max_change=1.0, votes=votes)


def _whole(model: IntegerModel, place: int) -> IntegerModel:
    """Let the levels at a place of the chain be the bytes as they are, as `train` has it."""
    scaler = Scale("uint8", 8, *np.array([[0], [1 << 16], [255]]))
    stages = list(model.stages)
    stages[place] = replace(stages[place], scaler=scaler)
    return replace(model, stages=tuple(stages))


def spectral_sample(index: int, longest: int = 400) -> IntegerModel:
    """Draw a model of sounds, some with as many frames as given."""
    rng, pick = _draws(4, index)
    length = pick(*SEGMENTS)
    model = spectral_model(
        index,
        length=length,
        frames=longest if length < 256 and index % 3 == 0 else 50,
        channels=pick(1, 1, 3),
        dtype=pick("int16", "int16", "uint8"),
        bands=int(rng.integers(5, 13)),
        output={"n_classes": pick(2, 3, 12), "weight_bits": pick(2, 4)},
        cells=(pick(1, 2, 2, 4), 1),
        terms=pick(1, 2),
        n_kernels=int(rng.integers(16, 300)),
        dilations=pick((1, 2, 3, 4, 5), (1, 2)),
    )
    return _whole(model, 1)


def offset_sample(index: int) -> IntegerModel:
    """Draw a model of windows less their means."""
    _, pick = _draws(6, index)
    channels, average = pick(1, 1, 3, 6), pick(1, 2)
    shape = {"height": pick(64, 96, 512 // channels // 2 * 2), "hop": pick(0, 16, 32)}
    more = {"terms": pick(1, 2), "average": average, "cells": (pick(1, 4), 1)}
    return offset_model(index, pick("int16", "uint8"), channels=channels, **shape, **more)


def convolution_sample(index: int, largest: int = 28) -> IntegerModel:
    """Draw a model with convolutions, every other with a hidden layer."""
    _, pick = _draws(5, index)
    average = pick(1, 2)
    side, pools = pick(14, 16, largest // average), pick((0, 1, 1), (0, 1), (1, 1), (0, 1, 0))
    model = convolution_model(
        index,
        (side, side),
        pools,
        padding=pick(0, 1),
        average=average,
        raw_dtype=pick("float32", "uint8", "uint8"),
        channels=pick(8, 16, 32),
        bits=pick(4, 8, 8),
        units=index % 2 * pick(16, 32, 64),
        unit_bits=pick(2, 2, 4),
        weight_bits=pick(2, 4, 4),
    )
    return _whole(model, 0) if model.input.dtype == "uint8" else model


def dense_sample(index: int) -> IntegerModel:
    """Draw one or two hidden layers of a table, by turns of each width of weights."""
    _, pick = _draws(12, index)
    units, raw = pick((8,), (16,), (30,), (13, 8), (16, 16)), pick("float32", "uint8", "int16")
    return dense_model(index, units, (2, 4, 8)[index % 3], n=pick(12, 40, 64), raw_dtype=raw)


def separable_sample(index: int) -> IntegerModel:
    """Draw convolutions of images of one channel or three; every other one has other forms."""
    _, pick = _draws(7, index)
    average, channels = pick(1, 2), pick(1, 1, 3)
    blocks = pick((4,), (8, 8), (8, 12, 16))
    layers_of: dict[str, Any] = {}
    if index % 2:
        high, mixed, mean = pick(1, 2), pick(0, 1, 1), pick(0, 1)
        forms = [[1, 1, high, high, mean], *[[mixed, 1, 1, 1, 0]] * (len(blocks) - 1)]
        layers_of = {"forms": forms, "flat": pick(False, True), "border": pick(0, 0, 100)}
    model = separable_model(
        index,
        (pick(8, 12, 16), pick(8, 10, 16)),
        blocks,
        pick((1, 2, 2), (2, 1, 2), (1, 1, 1))[: len(blocks)],
        average=average,
        channels=channels,
        weight_bits=pick(2, 4),
        raw_dtype=pick("float32", "uint8"),
        n_classes=pick(2, 3, 10),
        layers_of=layers_of,
    )
    return _whole(model, 0) if model.input.dtype == "uint8" else model


def plane_sample(index: int) -> IntegerModel:
    """Draw a model with separable convolutions of spectra; every other one goes with the stream."""
    _, pick = _draws(9, index)
    blocks = pick((4,), (8, 8), (8, 12, 16), (8, 12, 16, 16, 20))
    row_strides = (None, (2, 1, 1, 1, 1)[: len(blocks)])[index % 2]
    return plane_model(
        index,
        blocks,
        pick((1, 2, 2, 1, 1), (2, 1, 1, 2, 1))[: len(blocks)],
        {"n_classes": pick(2, 3, 12), "weight_bits": pick(2, 4)},
        hop=pick(0, 6, 20),
        length=pick(*SEGMENTS),
        frames=pick(20, 49),
        dtype=pick("int16", "int16", "uint8"),
        bands=pick(8, 12, 20),
        row_strides=row_strides,
    )


def frame_sample(index: int) -> IntegerModel:
    """Draw a model of frames of a camera, by turns of either convolutions."""
    _, pick = _draws(8, index)
    layers, side = (0, 2, 0)[index % 3], pick(12, 14, 16)
    channels = 1 if layers else pick(1, 3)
    return frame_model(index, side, side, channels, layers=layers)


def decided_sample(index: int) -> IntegerModel:
    """Draw a model with decisions: no margin, one, or one a class; half with novelty."""
    model = (component_sample, shaped_sample)[index % 2](index)
    margins = ([0], [1000 + index], list(range(1000, 1000 + model.n_classes)))[index % 3]
    bins = np.arange(64, dtype=np.uint8)
    decision = Decision(np.array(margins, np.uint32), bins, 1 + index % 12, 1.0)
    decision = replace(decision, novelty_threshold=(None, 5000)[index // 2 % 2])
    if index % 8 > 5:  # half of these by prototypes
        levels = np.random.default_rng(index).integers(-8, 8, (2, model.n_features))
        decision = replace(decision, prototypes=levels.astype(np.int8), margin_line=(1000, 300, 2))
    return replace(model, decision=decision)


def packed_sample(index: int) -> IntegerModel:
    """Draw a model of packed weights, two in three with starts, perhaps widths, of four bits."""
    _, pick = _draws(10, index)
    return random_model(
        index,
        n_features=pick(16, 64, 200),
        n_blocks=pick(2, 5, 9),
        n_classes=pick(8, 12, 26),
        diagonal_kind=pick("int8", "int4"),
        permutation="orbit",
        one_scale=index % 3 != 0,
        windows=("rows", "sixteenths", "starts of four bits")[index % 3],
        phase_shift=20,
        packed=True,
    )


def event_sample(index: int) -> IntegerModel:
    """Draw a model with events of a stream: of samples, of sounds, or of spectra as images."""
    draw = (shaped_sample, spectral_sample, plane_sample)[index % 3]
    model = draw(4 * index)
    return with_events(replace(model, hop=model.hop or model.stages[0].step))


# Components take most of the properties.
SAMPLES: tuple[Callable[[int], IntegerModel], ...] = (
    component_sample,
    component_sample,
    component_sample,
    shaped_sample,
    decided_sample,
    one_class_sample,
    tree_sample,
    spectral_sample,
    offset_sample,
    convolution_sample,
    separable_sample,
    plane_sample,
    frame_sample,
    packed_sample,
    event_sample,
    dense_sample,
    converted_sample,
    lambda index: converted_sample(1000 + index),
)


@functools.cache
def sample(number: int) -> list[IntegerModel]:
    """Draw models of every kind; the same for the same number."""
    draws = list(enumerate(SAMPLES))
    return [draw(1000 * place + index) for index in range(number) for place, draw in draws]


def fit(rows: list[dict[str, float]], sizes: list[int]) -> tuple[dict[str, float], list[float]]:
    """Fit a size a property by ridge regression; return them, and the errors in bytes.

    The error of a model is that of the fit without it: e / (1 - h), where h is its entry in the
    diagonal of the hat matrix (Allen 1974, "The relationship between variable selection and data
    augmentation and a method for prediction").
    """
    names = sorted({name for row in rows for name in row})
    matrix = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    product = matrix.T @ matrix + PENALTY * np.eye(len(names))
    left = np.linalg.solve(product, matrix.T)
    solved = left @ np.array(sizes, float)
    known = {name: round(float(size), 1) for name, size in zip(names, solved, strict=True)}
    share = np.einsum("ij,ji->i", matrix, left)
    return known, (np.abs(matrix @ solved - sizes) / (1 - share)).tolist()


def measure(
    name: str, chain: Toolchain, models: list[IntegerModel], known: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Link models for one core and fit their code; of a `known` row what it lacks."""
    before = {} if known is None else known["code"]
    if known is not None:
        models = [model for model in models if code_properties(model).keys() - before.keys()]
    if TARGETS[name].family == "avr":
        # A compiler with an int of 16 bits refuses an array of 32 KB.
        models = [model for model in models if _largest_array(model) < 20000]
    # The work is done by compilers, in processes of their own.
    with ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        linked = list(pool.map(lambda model: measure_footprint(model, name, chain), models))
    # Less the tables as they are packed: compilers leave short ones out.
    tables = [sum(pack(model).table_bytes().values()) for model in models]
    code = [sum(each.parts.values()) - n for each, n in zip(linked, tables, strict=True)]
    rows = list(map(code_properties, models))
    code = [
        size - sum(before.get(key, 0.0) * count for key, count in row.items())
        for row, size in zip(rows, code, strict=True)
    ]
    rows = [{key: row[key] for key in row.keys() - before.keys()} for row in rows]
    sizes, errors = fit(rows, code)
    if known is not None:
        print(f"{name}: {sizes}, errors up to {max(errors):.0f}", flush=True)
        return known | {"code": before | sizes}
    row = {
        "compiler": chain.title,
        "models": len(models),
        "error": round(float(np.quantile(errors, 0.95))),
        "largest_error": round(max(errors)),
        "stack": max(footprint.stack for footprint in linked),
    }
    print(f"{name}: {row}, code {min(code)}..{max(code)}", flush=True)
    return row | {"code": sizes}


def _largest_array(model: IntegerModel) -> int:
    """Return no less than the bytes of any array of a model."""
    packed = pack(model)
    inputs = model.input.size * np.dtype(model.input.dtype).itemsize
    return max(sum(packed.table_bytes().values()), 4 * packed.scratch_words, inputs)


def runtime_digest() -> str:
    """Return the SHA-256 of the runtime that was measured."""
    digest = hashlib.sha256()
    for name, data in sorted(runtime_files().items()):
        digest.update(name.encode() + b"\0" + data)
    return digest.hexdigest()


def main() -> None:
    """Measure the cores and write the table."""
    cores = [name for name, row in TARGETS.items() if row.family != "host" and name not in SAME]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=60, help="models of each kind")
    parser.add_argument("--cores", nargs="*", choices=cores, default=cores)
    parser.add_argument("--new", action="store_true", help="only what the table lacks")
    arguments = parser.parse_args()
    stored = json.loads(SIZES.read_text(encoding="utf-8")) if SIZES.exists() else {}
    rows = stored.get("cores", {})
    for name in arguments.cores:
        chain = find_toolchain(name, "gcc")
        if chain is None:
            raise SystemExit(f"no GCC for {name}; install it first")
        known = rows.get(name) if arguments.new else None
        rows[name] = measure(name, chain, sample(arguments.models), known)
        # Each row is written at once: after a fault, --cores measures the others.
        digest = stored["runtime"] if arguments.new else runtime_digest()
        table = {"version": 2, "runtime": digest, "cores": {c: rows[c] for c in cores if c in rows}}
        write_bytes_atomically(SIZES, (json.dumps(table, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
