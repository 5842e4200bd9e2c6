"""The generated C on emulated cores, in all its variants, against Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.random_models import random_model, random_raw
from tinykernel.verify import VerifyResult

CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "esp32c3")
# Between them every format, raw type and special case of a kernel that differs between cores.
MODELS: dict[str, dict[str, Any]] = {
    "int8 diagonal": {"n_features": 100, "n_blocks": 3, "n_classes": 10, "phase_shift": 12},
    "sign diagonal": {
        "n_features": 61, "diagonal_kind": "sign", "permutation": "orbit", "one_scale": True,
        "n_classes": 2, "zero_weights": False, "raw_dtype": "float32", "phase_shift": 17,
    },
    "int16 inputs": {
        "n_features": 40, "bits": 16, "raw_dtype": "int32", "permutation": "stored",
        "kept": "few", "phase_shift": 3, "n_classes": 26,
    },
    "tail dropped": {
        "n_features": 300, "kept": "tail", "raw_dtype": "int16", "shared_scaler": True,
        "phase_shift": 16,
    },
}  # fmt: skip


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("kind", MODELS)
def test_scores_equal_those_of_python(
    run_emulated: Callable[..., VerifyResult], core: str, kind: str
) -> None:
    """Every core computes the scores of Python, from raw and from quantised inputs."""
    model = random_model(7, **MODELS[kind])
    result = run_emulated(model, core, "-O2" if core == "cortex-m0" else "-Os")
    assert result.first_difference is None
    assert result.scores == result.rows * model.n_classes


@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4", "esp32c3"])
@pytest.mark.parametrize(
    "flags",
    [
        ("-Os", "-DTK_FORCE_PORTABLE=1"),
        ("-O2", "-DTK_PREFER_SIZE=1"),
        ("-O1", "-DTK_FORCE_RADIX=2"),
        ("-O2", "-DTK_FORCE_RADIX=4"),
        ("-O3", "-DTK_FORCE_RADIX=8"),
    ],
    ids=" ".join,
)
def test_variants_compute_the_same(
    run_emulated: Callable[..., VerifyResult], core: str, flags: tuple[str, ...]
) -> None:
    """Forcing a variant of the kernels changes the speed and no bit."""
    model = random_model(8, n_features=100, n_classes=5, phase_shift=11)
    assert run_emulated(model, core, *flags).first_difference is None


@pytest.mark.parametrize("phase_shift", [0, 1, 8, 15, 16, 23, 24, 25, 31])
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4"])
def test_every_phase_shift(
    run_emulated: Callable[..., VerifyResult], core: str, phase_shift: int
) -> None:
    """The byte of the product that counts moves with the phase shift, in assembly too."""
    model = random_model(9, n_features=30, phase_shift=phase_shift)
    assert run_emulated(model, core, "-Os").first_difference is None


def test_packed_instructions_fault_on_a_poorer_core(emulate: Callable[..., Any]) -> None:
    """A program for a Cortex-M4 does not run on an M3 as if it were right."""
    model = random_model(3, n_features=40)
    built = emulate(model, "cortex-m4", "-O2")
    on_m3 = built._replace(
        core=built.core._replace(machine=("qemu-system-arm", "-M", "mps2-an385"))
    )
    finished = on_m3.run("raw", random_raw(model, 1, 2).tobytes())
    assert finished.returncode == 70
    assert b"FAULT" in finished.stderr
