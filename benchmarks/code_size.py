"""Measure the code of many models on every target and write tinykernel/measure/code_sizes.json.

Run it again whenever the runtime in firmware/ changes::

    python benchmarks/code_size.py

It needs arm-none-eabi-gcc, riscv64-unknown-elf-gcc, xtensa-lx106-elf-gcc and avr-gcc, and takes a
few minutes; ``--targets`` measures some targets and keeps the rows of the others; ``--only trees``
measures such models alone, as "one class" or "spectrum" others: they share no property with any.
Coefficients come from ridge regression, which spreads what the sample cannot tell apart.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.convolutions import convolution_model
from tests.random_fronts import (
    local_model,
    offset_model,
    random_signal_stage,
    random_stage,
)
from tests.random_models import changed, one_class, random_model, tree_model, with_linear
from tests.separable import separable_model
from tests.spectra import spectral_model
from tinykernel.build.toolchains import Toolchain, find_toolchain
from tinykernel.codegen.plan import pack
from tinykernel.codegen.sources import runtime_files
from tinykernel.codegen.targets import TARGETS
from tinykernel.errors import TinykernelError
from tinykernel.files import write_bytes_atomically
from tinykernel.measure.estimate import ONE_CLASS, SAME_CODE, SMALL_CODE, TREES, code_properties
from tinykernel.measure.footprint import measure_footprint
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import Decision
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.convolutions import Convolutions
from tinykernel.model.stages.offset import Offset
from tinykernel.model.stages.scale import Scale
from tinykernel.model.stages.separable import Separable
from tinykernel.model.stages.spectrum import LENGTHS, Spectrum

OUTPUT = Path(__file__).resolve().parent.parent / "tinykernel" / "measure" / "code_sizes.json"
RIDGE = 1e-3


@functools.cache
def sample(index: int) -> IntegerModel:
    """Draw a model; the same index always gives the same one."""
    rng = np.random.default_rng(index)
    raw = str(rng.choice(["float32", "float32", "uint8", "int8", "uint16", "int16", "int32"]))
    log2 = int(rng.integers(5, 12))
    n_features = (
        int(rng.integers(2 ** (log2 - 1) + 1, 2**log2 + 1))
        if log2 > 5
        else int(rng.integers(1, 33))
    )
    if rng.random() < 0.2:
        n_features = 2**log2
    model = random_model(
        index,
        n_features=n_features,
        n_blocks=int(rng.integers(1, 4)),
        n_classes=int(rng.choice([2, 3, 10, 26])),
        raw_dtype=raw,
        bits=int(rng.choice([8, 8, 16])),
        diagonal_kind=str(rng.choice(["int8", "int4", "sign"])),
        permutation=str(rng.choice(["identity", "orbit", "orbit", "stored"])),
        shared_scaler=bool(rng.integers(2)),
        one_scale=bool(rng.integers(2)),
        zero_weights=bool(rng.random() < 0.7),
        kept=str(rng.choice(["all", "tail", "some"])),
        phase_shift=int(rng.integers(16, 24)),
        windows=str(rng.choice(["rows", "phases", "half turns"])),
    )
    # Which stages halve changes the code. A model whose sums could overflow is refused.
    for field in ("halve_first", "halve_second"):
        for _ in range(4):
            with contextlib.suppress(TinykernelError):
                own = replace(model.find(Components), **{field: _schedule(rng, log2)})
                model = changed(model, own)
                break
    return model


@functools.cache
def shaped_sample(index: int) -> IntegerModel:
    """Draw a model of images or signals, or with a linear part; the same for the same index."""
    rng = np.random.default_rng([1, index])
    classes, bits = int(rng.choice([2, 3, 6, 10])), int(rng.choice([2, 4, 8]))
    kind = ("image", "signal", "table", "both")[index % 4]
    common = {"n_classes": classes}
    if kind in ("table", "both"):
        raw = str(rng.choice(["float32", "uint8", "int8", "uint16", "int16", "int32"]))
        model = random_model(
            index,
            n_features=int(rng.integers(5, 300)),
            raw_dtype=raw,
            bits=int(rng.choice([8, 8, 16])),
            shared_scaler=bool(rng.integers(2)),
            permutation="orbit",
            diagonal_kind=str(rng.choice(["int8", "int4"])),
            **common,
        )
        return with_linear(model, index, bits, components=kind == "both")
    raw = str(rng.choice(["float32", "uint8", "int16"]))
    average = int(rng.integers(1, 3))
    if kind == "image":
        side = int(rng.choice([8, 14, 16, 28, 32]))
        kernel = int(rng.choice([3, 5]))
        stage = random_stage(
            index,
            height=side,
            width=side,
            raw_dtype=raw,
            average=average if side > 8 else 1,
            size=(kernel, kernel),
            padding=kernel // 2,
            n_kernels=int(rng.integers(8, 40)),
            cells=(int(rng.integers(2, 5)), 4),
            level_bits=2 if kernel == 5 else 3,
        )
    else:
        window = int(rng.choice([64, 128, 256]))
        stage = random_signal_stage(
            index,
            height=window,
            channels=int(rng.integers(1, 7)),
            raw_dtype=raw,
            average=average,
            n_kernels=int(rng.integers(16, 200)),
            hop=window // 2,
            cells=(int(rng.choice([1, 1, 2])), 1),
            dilations=(1, 2, 4) if window > 64 else (1, 2),
        )
    return local_model(stage, index, weight_bits=bits, **common)


@functools.cache
def one_class_sample(index: int) -> IntegerModel:
    """Draw a model of one class, every third of signals; the same for the same index."""
    if index % 3 == 2:
        return one_class(shaped_sample(4 * index + 1), index)
    rng, few = np.random.default_rng([2, index]), index % 6 == 0
    raw = str(rng.choice(["float32", "uint8", "int8", "uint16", "int16", "int32"]))
    raw = "float32" if few and index % 4 == 0 else raw
    model = random_model(
        index,
        n_features=int(rng.integers(2, 3 if few else 300)),
        raw_dtype=raw,
        bits=int(rng.choice([8, 8, 16])),
        shared_scaler=bool(rng.integers(2)),
        n_blocks=1,
    )
    return one_class(model, index, int(rng.integers(1, 12)))


@functools.cache
def tree_sample(index: int, most: tuple[int, int] = (11, 19)) -> IntegerModel:
    """Draw a model of trees, every third with a linear part; the same for the same index.

    It has at most so many trees, and nodes of each.
    """
    rng = np.random.default_rng([3, index])
    return tree_model(
        index,
        n_features=int(rng.choice([3, 20, 300])),
        n_classes=int(rng.choice([2, 3, 10])),
        raw_dtype=str(rng.choice(["float32", "uint8", "int8", "uint16", "int16", "int32"])),
        bits=int(rng.choice([8, 16])),
        leaf_bits=int(rng.choice([4, 8])),
        shared_scaler=bool(rng.integers(2)),
        linear=index % 3 == 2,
        most=most,
    )


@functools.cache
def spectral_sample(index: int, longest: int = 400) -> IntegerModel:
    """Draw a model of sounds, some with as many frames as given; the same for the same index."""
    rng = np.random.default_rng([4, index])
    length = int(rng.choice(LENGTHS))
    model = spectral_model(
        index,
        length=length,
        frames=longest if length < 256 and index % 3 == 0 else 50,
        channels=int(rng.choice([1, 1, 3])),
        dtype=str(rng.choice(["int16", "int16", "uint8"])),
        bands=int(rng.integers(5, 13)),
        output={"n_classes": int(rng.choice([2, 3, 12])), "weight_bits": int(rng.choice([2, 4]))},
        cells=(int(rng.choice([1, 2, 2, 4])), 1),
        terms=int(rng.integers(1, 3)),
        n_kernels=int(rng.integers(16, 300)),
        dilations=((1, 2, 3, 4, 5), (1, 2))[index % 2],
    )
    # As `train` has it: kernels look at the levels as they are.
    whole = Scale("uint8", 8, *np.array([[0], [1 << 16], [255]]))
    spectrum, levels, *others = model.stages
    return replace(model, stages=(spectrum, replace(levels, scaler=whole), *others))


@functools.cache
def offset_sample(index: int) -> IntegerModel:
    """Draw a model of windows less their means; the same for the same index."""
    rng = np.random.default_rng([6, index])
    channels = int(rng.choice([1, 1, 3, 6]))
    return offset_model(
        index,
        str(rng.choice(["int16", "int16", "uint8"])),
        channels=channels,
        height=int(rng.choice([64, 100, 512 // channels])),
        hop=int(rng.choice([0, 16, 32])),
        terms=int(rng.integers(1, 3)),
        average=int(rng.integers(1, 3)),
        cells=(int(rng.choice([1, 4])), 1),
    )


@functools.cache
def convolution_sample(index: int, largest: int = 28) -> IntegerModel:
    """Draw a model with convolutions, every other with a hidden layer; the same for an index."""
    rng = np.random.default_rng([5, index])
    average = int(rng.integers(1, 3))
    side = int(rng.choice([14, 16, largest // average]))
    pools = ((0, 1, 1), (0, 1), (1, 1), (0, 1, 0))[int(rng.integers(4))]
    model = convolution_model(
        index,
        (side, side),
        pools,
        padding=int(rng.integers(2)),
        average=average,
        raw_dtype=str(rng.choice(["float32", "uint8", "uint8"])),
        channels=int(rng.choice([8, 16, 32])),
        bits=int(rng.choice([4, 8, 8])),
        units=index % 2 * int(rng.choice([16, 32, 64])),
        unit_bits=int(rng.choice([2, 2, 4])),
        weight_bits=int(rng.choice([2, 4, 4])),
    )
    if model.input.dtype == "uint8":
        # As `train` has it: convolutions look at the levels as they are.
        whole = Scale("uint8", 8, *np.array([[0], [1 << 16], [255]]))
        levels, *others = model.stages
        model = replace(model, stages=(replace(levels, scaler=whole), *others))
    return model


@functools.cache
def separable_sample(index: int) -> IntegerModel:
    """Draw a model with separable convolutions; the same for the same index."""
    rng = np.random.default_rng([7, index])
    side = int(rng.choice([8, 16, 32]))
    blocks = int(rng.choice([1, 3, 4, 6]))
    model = separable_model(
        index,
        (side, side),
        tuple(map(int, rng.choice([4, 8, 12, 20], blocks))),
        tuple(map(int, rng.integers(1, 3, blocks))),
        average=int(rng.integers(1, 3)),
        raw_dtype=str(rng.choice(["float32", "uint8", "uint8"])),
        channels=int(rng.choice([1, 3])),
        weight_bits=int(rng.choice([2, 4, 4])),
        n_classes=int(rng.choice([2, 10])),
    )
    if model.input.dtype == "uint8":
        # As `train` has it: convolutions look at the levels as they are.
        whole = Scale("uint8", 8, *np.array([[0], [1 << 16], [255]]))
        levels, *others = model.stages
        model = replace(model, stages=(replace(levels, scaler=whole), *others))
    return model


# Kinds that share no property with others, by the beginning of their properties.
_ALONE = {
    ONE_CLASS: one_class_sample,
    TREES: tree_sample,
    Spectrum.KIND: spectral_sample,
    Convolutions.KIND: convolution_sample,
    Offset.KIND: offset_sample,
    Separable.KIND: separable_sample,
}


def decided(model: IntegerModel, index: int) -> IntegerModel:
    """Give a model decisions: no margin, one, or one a class; half of them with novelty.

    Half of these have prototypes.
    """
    margins = ([0], [1000 + index], list(range(1000, 1000 + model.n_classes)))[index % 3]
    none = np.zeros(1)
    decision = Decision(
        np.array(margins, np.uint32),
        np.arange(64, dtype=np.uint8),
        1 + index % 12,
        1.0,
        none.astype(np.uint32),
        none + 0.5,
        novelty_threshold=(None, 5000)[index % 2],
    )
    if index % 4 == 3:
        levels = np.random.default_rng(index).integers(-8, 8, (2, model.n_features))
        decision = replace(decision, prototypes=levels.astype(np.int8), margin_line=(1000, 300, 2))
    return replace(model, decision=decision)


def _schedule(rng: np.random.Generator, stages: int) -> tuple[bool, ...]:
    """Draw a shift schedule: mostly a late start, every other stage, or anything."""
    kind = int(rng.integers(4))
    if kind == 0:
        return tuple(stage >= stages - 2 for stage in range(stages))
    if kind == 1:
        return tuple(stage % 2 == 1 for stage in range(stages))
    if kind == 2:
        return (True,) * stages
    return tuple(bool(rng.integers(2)) for _ in range(stages))


def fit(rows: list[dict[str, float]], sizes: list[int]) -> tuple[dict[str, float], float]:
    """Fit contributions by ridge regression; return them and the largest error in bytes."""
    names = sorted({name for row in rows for name in row})
    matrix = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    goal = np.array(sizes, dtype=np.float64)
    penalty = RIDGE * np.eye(len(names))
    solved = np.linalg.solve(matrix.T @ matrix + penalty, matrix.T @ goal)
    error = float(np.abs(matrix @ solved - goal).max())
    # What small code or one class was measured with is told even where it makes no difference.
    kept = {
        name: round(float(x), 1)
        for name, x in zip(names, solved, strict=True)
        if abs(x) > 0.05 or name == SMALL_CODE or name.startswith(tuple(_ALONE))
    }
    return kept, error


def many(count: int) -> list[IntegerModel]:
    """Draw models of several classes, of every kind."""
    models = [sample(index) for index in range(count)]
    models += [shaped_sample(index) for index in range(count)]
    found = ((m, m.find(Components)) for m in models)
    models += [changed(m, replace(own, small_code=True)) for m, own in found if own is not None]
    # Some of them again, with decisions; steps of 5 meet every kind of model and of margin.
    return models + [
        decided(draw(i), i) for draw in (sample, shaped_sample) for i in range(0, count, 5)
    ]


def measure(
    name: str, chain: Toolchain, models: list[IntegerModel], known: dict[str, Any]
) -> dict[str, Any]:
    """Link models for one target and fit their code, or what a stage adds to what is known."""
    rows, code, library = [], [], []
    stack = {"float": 0, "integer": 0}
    if TARGETS[name].family == "avr":
        # A compiler with an int of 16 bits refuses an array of 32 KB.
        models = [model for model in models if _largest_array(model) < 20000]
    # The work is done by compilers, in processes of their own.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        footprints = list(pool.map(lambda model: measure_footprint(model, name, chain), models))
    for model, footprint in zip(models, footprints, strict=True):
        rows.append(code_properties(model))
        code.append(footprint.parts["code"])
        library.append(footprint.parts["library"])
        kind = "float" if model.scaler.is_float else "integer"
        stack[kind] = max(stack[kind], footprint.stack)
    if all(model.stages[0].WHOLE for model in models):
        # What the stage adds to models without it.
        own = [{n: 1.0 for n in row if n.endswith(", stage")} for row in rows]
        for part, size in (("code", code), ("library", library)):
            for at, row in enumerate(rows):
                others = row.keys() - own[at].keys()
                size[at] -= round(sum(known[part].get(n, 0.0) * row[n] for n in others))
        rows = own
    code_sizes, code_error = fit(rows, code)
    library_sizes, library_error = fit(rows, library)
    print(
        f"{name}: {chain.title}, {len(models)} models, code {min(code)}..{max(code)}, largest "
        f"error {code_error:.0f}, library {min(library)}..{max(library)}, largest error "
        f"{library_error:.0f}, stack {stack}",
        flush=True,
    )
    return {
        "compiler": chain.title,
        "largest_error": round(code_error + library_error),
        "stack": stack,
        "code": code_sizes,
        "library": library_sizes,
    }


def _largest_array(model: IntegerModel) -> int:
    """Return no less than the bytes of any array of a model."""
    packed = pack(model)
    inputs = model.input.size * np.dtype(model.input.dtype).itemsize
    return max(sum(packed.table_bytes().values()), 4 * packed.scratch_words, inputs)


def together(known: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """Put what was measured of one kind of models beside what is known of others."""

    def all_of(part: str) -> dict[str, float]:
        kinds = tuple(kind for kind in _ALONE if any(n.startswith(kind) for n in one[part]))
        others = {n: x for n, x in known[part].items() if not n.startswith(kinds)}
        return dict(sorted((others | one[part]).items()))

    return {
        "compiler": known["compiler"],
        "largest_error": max(known["largest_error"], one["largest_error"]),
        "stack": {kind: max(known["stack"][kind], size) for kind, size in one["stack"].items()},
        "code": all_of("code"),
        "library": all_of("library"),
    }


def runtime_digest() -> str:
    """Return the SHA-256 of the runtime that was measured."""
    digest = hashlib.sha256()
    for name, data in sorted(runtime_files().items()):
        digest.update(name.encode() + b"\0" + data)
    return digest.hexdigest()


def main() -> None:
    """Measure all targets and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=160, help="models a target")
    parser.add_argument("--targets", nargs="*", choices=TARGETS, help="measure only these")
    parser.add_argument("--only", choices=_ALONE, help="measure only models of this kind")
    arguments = parser.parse_args()
    kinds = [arguments.only] if arguments.only else list(_ALONE)
    runtime, kept = runtime_digest(), json.loads(OUTPUT.read_text(encoding="utf-8"))
    if arguments.targets or arguments.only:
        runtime = kept["runtime"]  # that of what is kept
    # Each row is written at once: after a fault, --targets measures the others.
    targets: dict[str, Any] = kept["targets"] if runtime == kept["runtime"] else {}
    for name, target in TARGETS.items():
        if target.family == "host" or name in SAME_CODE:
            continue
        if name not in (arguments.targets or TARGETS):
            continue
        chain = find_toolchain(name, "gcc")
        if chain is None:
            raise SystemExit(f"no GCC for {name}; install it first")
        several = None
        if not arguments.only:
            several = measure(name, chain, many(arguments.models), {})
        number = range(arguments.models // 2)
        known = several or targets[name]
        alone = [measure(name, chain, list(map(_ALONE[k], number)), known) for k in kinds]
        targets[name] = functools.reduce(together, alone, several or targets[name])
        write(runtime, targets)


def write(runtime: str, targets: dict[str, Any]) -> None:
    """Write the rows in the order of the targets."""
    rows = {name: targets[name] for name in TARGETS if name in targets}
    table = {"version": 1, "runtime": runtime, "targets": rows}
    write_bytes_atomically(OUTPUT, (json.dumps(table, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
