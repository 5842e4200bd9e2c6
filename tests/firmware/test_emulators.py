"""The generated C on emulated cores, in all its variants and formats, against Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.random_models import TABLES, random_model, random_quantized, random_raw
from tinykernel.build.harness import run_rows
from tinykernel.build.program import build_model
from tinykernel.model.integer import IntegerModel

CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33", "esp32c3", "esp8266", "atmega328p")
# A scratch of 2 KB leaves no RAM for a stack.
TOO_LARGE = ("atmega328p", "tail dropped")
# Between them every format, and every special case of a kernel that differs between cores.
MODELS: dict[str, dict[str, Any]] = {
    "int8 diagonal": {"n_features": 100, "n_blocks": 3, "n_classes": 10, "phase_shift": 12},
    "sign diagonal": {
        "n_features": 61,
        "diagonal_kind": "sign",
        "permutation": "orbit",
        "one_scale": True,
        "n_classes": 2,
        "zero_weights": False,
        "raw_dtype": "float32",
        "phase_shift": 17,
    },
    "int16 inputs": {
        "n_features": 40,
        "bits": 16,
        "raw_dtype": "int32",
        "permutation": "orbit",
        "kept": "few",
        "phase_shift": 3,
        "n_classes": 26,
    },
    "compact": TABLES["compact"] | {"n_classes": 10},
    "phases": TABLES["phases"],
    "tail dropped": {
        "n_features": 300,
        "kept": "tail",
        "raw_dtype": "int16",
        "shared_scaler": True,
        "phase_shift": 16,
    },
}


@pytest.fixture
def differences(require_platforms: Callable[[str], Any], tmp_path: Path) -> Callable[..., int]:
    """Return a function that counts what a core and Python disagree on: (model, core, *flags)."""

    def count(model: IntegerModel, core: str, *flags: str) -> int:
        platform = require_platforms(core)[0]
        raw = random_raw(model, 1, 10)
        quantized = np.concatenate([model.quantize_inputs(raw), random_quantized(model, 2, 10)])
        program = build_model(model, platform, tmp_path, flags)
        got, stack = run_rows(program, model, {"raw": raw, "quantized": quantized})
        expected = {"raw": model.scores(raw), "quantized": model.scores_quantized(quantized)}
        total = 0
        for entry, scores in expected.items():
            total += int(np.count_nonzero(got[entry][:, :-1] != scores))
            total += int(np.count_nonzero(got[entry][:, -1] != scores.argmax(axis=1)))
            assert 0 < stack[entry] <= 512
        return total

    return count


@pytest.mark.parametrize(
    ("core", "kind"),
    [(core, kind) for core in CORES for kind in MODELS if (core, kind) != TOO_LARGE],
)
def test_scores_equal_those_of_python(differences, core, kind):
    """Every core computes the scores of Python, from raw and from quantized inputs.

    The int of an AVR has 16 bits, and its tables have an address space of their own.
    """
    assert differences(random_model(7, **MODELS[kind]), core, "-Os") == 0


# Without assembly of its own, a RISC-V core has only the portable kernels.
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4"])
@pytest.mark.parametrize(
    "flags",
    [
        ("-Os", "-DTK_FORCE_PORTABLE=1"),
        ("-O1", "-DTK_FORCE_RADIX=2"),
        ("-O2", "-DTK_FORCE_RADIX=4"),
        ("-O3", "-DTK_FORCE_RADIX=8"),
    ],
    ids=str,
)
def test_variants_compute_the_same(differences, core, flags):
    """Forcing a variant of the kernels changes the speed and no bit."""
    model = random_model(8, n_features=100, n_classes=5, phase_shift=11)
    assert differences(model, core, *flags) == 0


# A core without assembly of its own runs the portable kernels, as this computer does.
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4"])
@pytest.mark.parametrize(
    ("windows", "one_scale", "phase_shift"),
    [
        *(("phases", False, 0), ("one width", False, 8), ("two starts", False, 15)),
        *(("half turns", False, 16), ("constant", False, 24), ("phases", True, 31)),
        *(("one width", True, 24), ("two starts", True, 16), ("half turns", True, 15)),
        *(("constant", True, 8), ("rows", False, 31), ("rows", True, 0)),
    ],
)
def test_every_table_of_windows_and_phase_shift(differences, core, windows, one_scale, phase_shift):
    """Whatever the table of windows leaves out and which byte of a product counts, in assembly."""
    options = {"windows": windows, "one_scale": one_scale, "phase_shift": phase_shift}
    assert differences(random_model(9, n_features=40, kept="tail", **options), core, "-Os") == 0
