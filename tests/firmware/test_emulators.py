"""The generated C on emulated cores, in all its variants and formats, against Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.firmware.test_host import EDGES
from tests.random_fronts import local_model, random_signal_stage, random_stage
from tests.random_models import random_model, random_quantized, random_raw
from tinykernel.build.harness import run_rows
from tinykernel.build.program import build_model
from tinykernel.build.toolchains import ProgramTooLarge
from tinykernel.model.integer import IntegerModel

CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33", "esp32c3", "esp8266")
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
        "permutation": "stored",
        "kept": "few",
        "phase_shift": 3,
        "n_classes": 26,
    },
    "compact": EDGES["compact"] | {"n_classes": 10},
    "phases": EDGES["phases"] | {"n_features": 40, "n_blocks": 3, "diagonal_kind": "int4"},
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
        got = run_rows(program, model, {"raw": raw, "quantized": quantized})
        expected = {"raw": model.scores(raw), "quantized": model.scores_quantized(quantized)}
        total = 0
        for entry, scores in expected.items():
            total += int(np.count_nonzero(got[entry].scores != scores))
            total += int(np.count_nonzero(got[entry].labels != scores.argmax(axis=1)))
            assert 0 < got[entry].stack <= 512
        return total

    return count


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("kind", MODELS)
def test_scores_equal_those_of_python(
    differences: Callable[..., int], core: str, kind: str
) -> None:
    """Every core computes the scores of Python, from raw and from quantized inputs."""
    assert differences(random_model(7, **MODELS[kind]), core, "-Os") == 0


@pytest.mark.parametrize("core", ["cortex-m4f", "cortex-m7f", "cortex-m33f"])
def test_float_inputs_on_an_fpu(differences: Callable[..., int], core: str) -> None:
    """The FPU rounds as the software does, so that float inputs quantise to the same integers."""
    assert differences(random_model(7, **MODELS["sign diagonal"]), core, "-Os") == 0


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "tail dropped"])
def test_a_core_whose_int_has_16_bits(differences: Callable[..., int], kind: str) -> None:
    """On AVR, too, whose promotions are others and whose tables have an address space of theirs."""
    assert differences(random_model(7, **MODELS[kind]), "atmega328p", "-Os") == 0


def test_a_model_too_large_for_the_chip_is_refused(differences: Callable[..., int]) -> None:
    """A scratch of 2 KB leaves no RAM for a stack: the linker says so before anything runs."""
    with pytest.raises(ProgramTooLarge, match="RAM"):
        differences(random_model(7, **MODELS["tail dropped"]), "atmega328p", "-Os")


@pytest.mark.parametrize("kind", ["image", "signal"])
def test_local_stages_on_a_core_whose_int_has_16_bits(
    require_platforms: Callable[[str], Any], tmp_path: Path, kind: str
) -> None:
    """Packed lanes, running counts and kernels are computed as elsewhere."""
    if kind == "image":
        stage = random_stage(
            1,
            height=8,
            width=8,
            raw_dtype="int16",
            average=1,
            size=(3, 3),
            padding=1,
            n_kernels=8,
            cells=(2, 4),
            level_bits=3,
        )
    else:
        stage = random_signal_stage(
            1,
            height=32,
            channels=2,
            raw_dtype="float32",
            average=2,
            n_kernels=12,
            hop=16,
            cells=(2, 1),
            dilations=(1,),
        )
    model = local_model(stage, 1, weight_bits=4, n_classes=3)
    raw = random_raw(model, 1, 5)
    platform = require_platforms("atmega328p")[0]
    got = run_rows(build_model(model, platform, tmp_path), model, {"raw": raw})["raw"]
    assert np.array_equal(got.scores, model.scores(raw))


# Without assembly of its own, a RISC-V core has only the portable kernels.
@pytest.mark.parametrize(
    ("core", "flags"),
    [
        ("cortex-m0", ("-Os", "-DTK_FORCE_PORTABLE=1")),
        ("cortex-m4", ("-Os", "-DTK_FORCE_PORTABLE=1")),
    ]
    + [
        (core, flags)
        for core in ("cortex-m0", "cortex-m4", "esp32c3")
        for flags in (
            ("-O1", "-DTK_FORCE_RADIX=2"),
            ("-O2", "-DTK_FORCE_RADIX=4"),
            ("-O3", "-DTK_FORCE_RADIX=8"),
        )
    ],
    ids=str,
)
def test_variants_compute_the_same(
    differences: Callable[..., int], core: str, flags: tuple[str, ...]
) -> None:
    """Forcing a variant of the kernels changes the speed and no bit."""
    model = random_model(8, n_features=100, n_classes=5, phase_shift=11)
    assert differences(model, core, *flags) == 0


# A core without assembly of its own runs the portable kernels, as this computer does.
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4"])
@pytest.mark.parametrize("windows", ["phases", "one width", "two starts", "half turns", "constant"])
@pytest.mark.parametrize("one_scale", [False, True])
def test_every_table_of_windows(
    differences: Callable[..., int], core: str, windows: str, one_scale: bool
) -> None:
    """Whatever the windows have in common and leave out of their table, the bits are the same."""
    model = random_model(10, n_features=40, kept="tail", windows=windows, one_scale=one_scale)
    assert differences(model, core, "-Os") == 0


@pytest.mark.parametrize("phase_shift", [0, 8, 15, 16, 24, 31])
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4"])
def test_every_phase_shift(differences: Callable[..., int], core: str, phase_shift: int) -> None:
    """The byte of the product that counts moves with the phase shift, in assembly too."""
    assert differences(random_model(9, n_features=30, phase_shift=phase_shift), core, "-Os") == 0
