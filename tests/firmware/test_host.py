"""The generated C on this computer: random models, all variants, sanitisers, several models."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.firmware.compiling import WARNINGS, run_compiler
from tests.random_models import random_model, random_quantized, random_raw
from tinykernel.build.harness import run_rows
from tinykernel.build.parity import verify
from tinykernel.build.program import Platform, build_model, write_sources
from tinykernel.build.toolchains import host_toolchain
from tinykernel.codegen.sources import render_sources, render_vectors

# Not optimised, for which a compiler takes three times as long under sanitizers, but with the
# kernels of an optimised build.
SANITISERS = (
    *("-O0", "-g", "-DTK_FORCE_RADIX=8"),
    *("-fsanitize=undefined,address", "-fno-sanitize-recover=all"),
)
WINDOWS = ("rows", "phases", "one width", "two starts", "half turns", "constant")
EDGES: dict[str, dict[str, Any]] = {
    "one feature, two classes": {"n_features": 1, "n_classes": 2, "raw_dtype": "float32"},
    "d = 32": {"n_features": 32, "raw_dtype": "int8", "diagonal_kind": "sign"},
    "100 classes": {"n_features": 33, "n_classes": 100, "kept": "few"},
    "odd features, 16 bits": {
        "n_features": 63,
        "bits": 16,
        "raw_dtype": "int32",
        "permutation": "stored",
        "phase_shift": 16,
        "n_classes": 2,
        "zero_weights": False,
    },
    "orbit, one scale a block": {
        "n_features": 70,
        "bits": 16,
        "raw_dtype": "uint16",
        "permutation": "orbit",
        "one_scale": True,
        "kept": "some",
        "n_blocks": 4,
        "phase_shift": 31,
    },
    "compact": {
        "n_features": 100,
        "diagonal_kind": "int4",
        "windows": "half turns",
        "one_scale": True,
        "zero_weights": False,
        "kept": "tail",
        "n_blocks": 3,
    },
    "compact, rows dropped": {
        "n_features": 100,
        "diagonal_kind": "int4",
        "windows": "half turns",
        "one_scale": True,
        "zero_weights": False,
        "kept": "some",
        "n_classes": 2,
    },
    "compact, few rows": {
        "n_features": 120,
        "diagonal_kind": "int4",
        "windows": "half turns",
        "kept": "few",
        "zero_weights": False,
        "n_blocks": 6,
        "n_classes": 12,
    },
    "phases": {
        "n_features": 50,
        "windows": "phases",
        "one_scale": True,
        "kept": "some",
        "zero_weights": False,
        "phase_shift": 14,
    },
    "d = 2048, shared scaler": {
        "n_features": 1500,
        "n_blocks": 1,
        "shared_scaler": True,
        "raw_dtype": "int16",
        "phase_shift": 0,
    },
}


@pytest.mark.parametrize("kind", EDGES)
def test_edges_under_sanitisers(require_tool: Callable[[str], str], kind: str) -> None:
    """Extreme models compute Python's scores, with no overflow and no access out of bounds."""
    require_tool("gcc")
    model = random_model(5, **EDGES[kind])
    result = verify(model, random_raw(model, 2, 40), flags=SANITISERS)
    assert result.first_difference is None


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_random_models(require_tool: Callable[[str], str], data: st.DataObject) -> None:
    """Whatever the model, C and Python agree; quantized inputs at their extremes too."""
    require_tool("gcc")
    model = random_model(
        data.draw(st.integers(0, 2**32 - 1)),
        n_features=data.draw(st.integers(1, 130)),
        n_blocks=data.draw(st.integers(1, 4)),
        n_classes=data.draw(st.integers(2, 12)),
        bits=data.draw(st.sampled_from([8, 16])),
        raw_dtype=data.draw(
            st.sampled_from(["float32", "uint8", "int8", "uint16", "int16", "int32"])
        ),
        diagonal_kind=data.draw(st.sampled_from(["int8", "int4", "sign"])),
        permutation=data.draw(st.sampled_from(["identity", "orbit", "stored"])),
        kept=data.draw(st.sampled_from(["all", "tail", "some", "few"])),
        zero_weights=data.draw(st.booleans()),
        one_scale=data.draw(st.booleans()),
        shared_scaler=data.draw(st.booleans()),
        phase_shift=data.draw(st.integers(0, 31)),
        windows=data.draw(st.sampled_from(WINDOWS)),
    )
    assert verify(model, random_raw(model, 2, 30), flags=["-O1"]).first_difference is None


def test_extreme_quantized_inputs(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """All inputs at the ends of their type reach the proved limits and do not exceed them."""
    gcc = require_tool("gcc")
    for seed, bits in enumerate((8, 16)):
        model = random_model(seed, n_features=128, bits=bits, n_blocks=2)
        rows = random_quantized(model, seed, 200)
        program = build_model(model, Platform(host_toolchain([gcc])), tmp_path, SANITISERS)
        got = run_rows(program, model, {"quantized": rows})["quantized"].scores
        assert np.array_equal(got, model.scores_quantized(rows))


@pytest.mark.parametrize(
    "flags",
    [
        ("-O2", "-DTK_FORCE_RADIX=2"),
        ("-O2", "-DTK_FORCE_RADIX=4"),
        ("-O3", "-DTK_FORCE_PORTABLE=1"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("n_features", [30, 60, 120, 250, 500, 1000, 2000, 4000])
def test_variants_at_every_length(
    require_tool: Callable[[str], str], flags: tuple[str, ...], n_features: int
) -> None:
    """Every way of cutting the transform into passes gives the same bits, for each length."""
    require_tool("gcc")
    kind = "int4" if n_features % 20 else "int8"
    model = random_model(6, n_features=n_features, n_blocks=1, n_classes=2, diagonal_kind=kind)
    assert verify(model, random_raw(model, 2, 6), flags=flags).first_difference is None


TWO_MODELS = """
#include "first.h"
#include "second.h"
#include "first_vectors.h"
#include "second_vectors.h"
static uint32_t scratch[FIRST_SCRATCH_WORDS + SECOND_SCRATCH_WORDS];
int main(void)
{
    int row;
    for (row = 0; row < FIRST_VECTORS; ++row) {
        if (first_predict(first_vector_inputs[row], scratch) != first_vector_labels[row]) {
            return 1;
        }
    }
    for (row = 0; row < SECOND_VECTORS; ++row) {
        int32_t scores[SECOND_CLASSES];
        second_scores(second_vector_inputs[row], scratch, scores);
        if (scores[0] != second_vector_scores[row][0]
            || second_vector_labels[row] != second_predict(second_vector_inputs[row], scratch)) {
            return 2;
        }
    }
    return FIRST_FINGERPRINT == SECOND_FINGERPRINT || first_class_names[0][0] != '0'
        || first_vector_scores[0][0] == 1 << 30;
}
"""


@pytest.mark.parametrize(
    "compiler",
    [
        ("gcc", "-std=c99"),
        ("clang", "-std=c99"),
        ("g++", "-xc++", "-std=c++17"),
        ("clang++", "-xc++", "-std=c++17"),
    ],
    ids=" ".join,
)
def test_two_models_in_one_program(
    require_tool: Callable[[str], str], tmp_path: Path, compiler: tuple[str, ...]
) -> None:
    """Two models compile without a warning, as C and as C++, link, and both compute."""
    program = [require_tool(compiler[0]), *compiler[1:]]
    for name, options in (("first", {"raw_dtype": "float32"}), ("second", {"n_features": 50})):
        model = random_model(3, **options)
        X = np.nan_to_num(random_raw(model, 1, 5), posinf=9, neginf=-9)
        write_sources(tmp_path, render_sources(model, name) | render_vectors(model, name, X))
    (tmp_path / "src" / "main.c").write_text(TWO_MODELS)
    more = [tmp_path / "src" / "first.c", tmp_path / "src" / "second.c", "-o", tmp_path / "two"]
    command = [*program, *WARNINGS, "-O1", *map(str, more)]
    finished = run_compiler(tmp_path, *command, source="main.c", to_object=False)
    assert finished.returncode == 0, finished.stderr
    assert subprocess.run([tmp_path / "two"]).returncode == 0
