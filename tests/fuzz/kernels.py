"""The C of random models under sanitizers: every entry, inputs at the extremes, NaN, streams."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.convolutions import convolution_model
from tests.fuzz.batch import Batch, no_limit
from tests.random_fronts import local_model, offset_model, random_signal_stage
from tests.random_models import random_model, random_quantized, random_raw, tree_model, with_linear
from tests.spectra import spectral_model
from tinykernel.base.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.beside.sample import random_beside
from tinykernel.run.parity import compare, entry_rows, expected_values, run_rows
from tinykernel.run.program import Platform, build_model, host_toolchain

#: Wrapping is how phases work, so that unsigned overflow and shifts out of the top are meant.
SANITIZERS = {
    "gcc": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "clang": [
        "-fsanitize=address,undefined,integer,implicit-conversion",
        "-fno-sanitize=unsigned-integer-overflow,unsigned-shift-base",
        "-fno-sanitize-recover=all",
    ],
}
VARIANTS = (
    *((), ("-DTK_FORCE_PORTABLE=1",), ("-DTK_FORCE_RADIX=2",), ("-DTK_FORCE_RADIX=4",)),
    ("-DTK_FORCE_SOFT_FLOAT=1",),
)
_RAW = ("float32", "uint8", "int8", "uint16", "int16", "int32")
_ROWS = 2000


def any_model(rng: np.random.Generator) -> IntegerModel:
    """Draw a model: components, a linear part, trees, or what stands behind other stages."""
    kind, seed = rng.random(), int(rng.integers(2**32))
    if kind < 0.08:
        return spectral_model(
            seed,
            length=int(rng.choice([64, 128, 256, 512])),
            frames=int(rng.integers(13, 30)),
            channels=int(rng.integers(1, 3)),
            dtype=str(rng.choice(_RAW[1:])),
            n_kernels=int(rng.integers(1, 12)),
            hop=int(rng.choice([0, 6])),
            dilations=(1,),
            n_numbers=int(rng.integers(3)),
        )
    if kind < 0.11:
        return offset_model(
            seed,
            str(rng.choice(_RAW[1:5])),
            height=int(rng.integers(17, 45)) * 2,
            hop=16,
            n_numbers=int(rng.integers(3)),
        )
    if kind < 0.2:
        average = int(rng.integers(1, 3))  # of which windows and hops are multiples
        stage = random_signal_stage(
            seed,
            average=average,
            height=average * int(rng.integers(34 // average, 90 // average)),
            hop=average * int(rng.integers(1, 17)),
            channels=int(rng.integers(1, 4)),
            raw_dtype=str(rng.choice(_RAW)),
            n_kernels=int(rng.integers(1, 12)),
        )
        numbers = random_beside(seed, seed % 4, stage.input.dtype) if seed % 4 else None
        return local_model(stage, seed, components=bool(rng.integers(2)), beside=numbers)
    if kind < 0.46:
        return convolution_model(
            seed,
            (int(rng.integers(12, 30)), int(rng.integers(12, 30))),
            tuple(rng.integers(0, 2, int(rng.integers(1, 3))).tolist()),
            channels=int(rng.integers(1, 5)),
            bits=int(rng.choice([4, 8])),
            padding=int(rng.integers(2)),
            units=int(rng.choice([0, 1, 9])),
            unit_bits=int(rng.choice([1, 2, 4, 8])),
            components=bool(rng.integers(2)),
            raw_dtype=str(rng.choice(_RAW)),
        )
    if kind < 0.54:
        n_features = int(rng.choice([1, 2, 33, 100]))
        return tree_model(
            seed,
            n_features,
            int(rng.choice([2, 3, 12])),
            bits=int(rng.choice([8, 16])),
            leaf_bits=int(rng.choice([4, 8])),
            linear=bool(rng.integers(2)),
            shared_scaler=n_features < 3,  # one of several inputs varies
            raw_dtype=str(rng.choice(_RAW)),
        )
    model = random_model(
        seed,
        n_features=int(rng.choice([1, 2, 31, 32, 33, 64, 100, 129, 300])),
        n_blocks=int(rng.integers(1, 5)),
        n_classes=int(rng.choice([2, 2, 3, 5, 12])),
        bits=int(rng.choice([8, 16])),
        raw_dtype=str(rng.choice(_RAW)),
        diagonal_kind=str(rng.choice(["int8", "int4", "sign"])),
        permutation=str(rng.choice(["identity", "orbit"])),
        kept=str(rng.choice(["all", "tail", "some", "few"])),
        zero_weights=bool(rng.integers(2)),
        one_scale=bool(rng.integers(2)),
        shared_scaler=bool(rng.integers(2)),
        phase_shift=int(rng.integers(0, 32)),
        windows=str(
            rng.choice(["rows", "phases", "one width", "two starts", "half turns", "constant"])
        ),
    )
    if kind > 0.75:
        model = with_linear(model, seed, int(rng.choice([1, 2, 4, 8])), bool(rng.integers(2)))
    return model


def any_rows(model: IntegerModel, rng: np.random.Generator, n: int) -> NDArray[Any]:
    """Draw raw rows: inside and outside the ranges, and some wholly at the ends of the type."""
    raw = random_raw(model, int(rng.integers(2**32)), n)
    dtype = np.dtype(model.raw_dtype)
    if dtype.kind == "f":
        ends = np.array([-np.inf, np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, -0.0], dtype)
    else:
        ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0], dtype)
    wild = rng.random(n) < 0.3
    raw[wild] = rng.choice(ends, (int(wild.sum()), raw.shape[1]))
    return raw


def run(batch: Batch, size: int) -> None:
    """Build `size` models with each compiler."""
    no_limit()
    compilers = [name for name in SANITIZERS if shutil.which(name)]
    for index in range(size):
        rng = np.random.default_rng((batch.seed, index))
        model = any_model(rng)
        large = model.n_inputs > 400 or model.n_classes > 10
        rows = entry_rows(model, any_rows(model, rng, _ROWS // 4 if large else _ROWS))
        if "quantized" in rows:
            rows["quantized"] = random_quantized(model, batch.seed, len(rows["raw"]))
            rows["quantize"] = rows["raw"]
        _check(batch, model, rows, compilers, index, rng)


def _check(
    batch: Batch,
    model: IntegerModel,
    rows: dict[str, Any],
    compilers: list[str],
    index: int,
    rng: np.random.Generator,
) -> None:
    expected = _expected(model, rows)
    for name in compilers:
        flags = [
            "-g",
            str(rng.choice(["-O1", "-O2"])),
            *SANITIZERS[name],
            *VARIANTS[rng.integers(len(VARIANTS))],
        ]
        with tempfile.TemporaryDirectory() as folder:
            try:
                program = build_model(model, Platform(host_toolchain([name])), Path(folder), flags)
                outputs, _ = run_rows(program, model, rows)
            except TinykernelError as error:
                batch.find("sanitizer reports", f"model {index}, {name} {flags}: {error}")
                continue
        result = compare(model, expected, outputs, None)
        batch.counts["kernel inputs"] += sum(map(len, rows.values()))
        if result.differences:
            batch.find("differences", f"model {index}, {name} {flags}: {result.first_difference}")


def _expected(model: IntegerModel, rows: dict[str, Any]) -> dict[str, Any]:
    """Return Python's values; quantized rows here are no longer those of the raw ones."""
    if "quantize" not in rows:
        return expected_values(model, rows)
    expected = expected_values(model, {name: rows[name] for name in ("raw", "quantized")})
    return expected | {"quantize": model.quantize_inputs(rows["raw"])}


__all__ = ["any_model", "run"]
