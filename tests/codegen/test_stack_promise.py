"""The stack that the generated header promises, at every level of optimisation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.random_models import random_model, random_raw
from tinykernel.build.harness import run_rows
from tinykernel.build.program import build_closest, find_platforms
from tinykernel.codegen.targets import find_target

TOOLS = {
    "cortex-m0plus": ("arm-none-eabi-gcc", "qemu-system-arm"),
    "cortex-m4": ("arm-none-eabi-gcc", "qemu-system-arm"),
    "esp32c3": ("riscv64-unknown-elf-gcc", "qemu-system-riscv32"),
    "esp8266": ("xtensa-lx106-elf-gcc", "qemu-system-xtensa"),
}
# All that is deepest: float inputs, scaled in integers where there is no FPU, and bits that wait.
MODEL: dict[str, Any] = {
    "n_features": 61,
    "raw_dtype": "float32",
    "kept": "few",
    "n_blocks": 5,
    "n_classes": 5,
    "permutation": "stored",
    "phase_shift": 12,
}


@pytest.mark.parametrize("core", TOOLS)
@pytest.mark.parametrize("level", ["-O0", "-Og", "-Os", "-O1", "-O2", "-O3"])
def test_stack_is_what_the_header_says(
    require_tool: Callable[[str], Any], core: str, level: str, tmp_path: Path
) -> None:
    """A debug build, too, computes the right scores on the stack that was promised."""
    for tool in TOOLS[core]:
        require_tool(tool)
    model = random_model(3, **MODEL)
    rows = random_raw(model, 1, 4)
    program = build_closest(model, find_platforms(find_target(core), "qemu"), tmp_path, (level,))
    found = run_rows(program, model, {"raw": rows})["raw"]
    assert np.array_equal(found.scores, model.scores(rows))
    assert 0 < found.stack <= {"-Os": 320, "-Og": 320, "-O0": 576}.get(level, 512)
