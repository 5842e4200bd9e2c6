"""The stack that the generated header promises, at every level of optimisation."""

from typing import Any

import numpy as np
import pytest

from tests.random_models import random_model, random_raw
from tinykernel.build.harness import run_rows
from tinykernel.build.program import build_closest

# All that is deepest: float inputs, scaled in integers where there is no FPU, and bits that wait.
MODEL: dict[str, Any] = {
    "n_features": 61,
    "raw_dtype": "float32",
    "kept": "few",
    "n_blocks": 5,
    "n_classes": 5,
    "permutation": "orbit",
    "phase_shift": 12,
}


@pytest.mark.parametrize(
    ("core", "level"),
    [
        *(("cortex-m0plus", level) for level in ("-O0", "-Og", "-Os", "-O1", "-O2", "-O3")),
        *(
            (core, level)
            for core in ("cortex-m4", "esp32c3", "esp8266")
            for level in ("-O0", "-Os")
        ),
    ],
)
def test_stack_is_what_the_header_says(require_platforms, core, level, tmp_path):
    """A debug build, too, computes the right scores on the stack that was promised."""
    model = random_model(3, **MODEL)
    rows = random_raw(model, 1, 4)
    platforms = require_platforms(core)
    program = build_closest(model, platforms, tmp_path, (level,))
    values, stack = run_rows(program, model, {"raw": rows})
    assert np.array_equal(values["raw"][:, : model.n_scores], model.scores(rows))
    # Clang takes -Og for -O1.
    most = {"-Os": 320, "-Og": 320 if platforms[0].chain.kind == "gcc" else 512, "-O0": 576}
    assert 0 < stack["raw"] <= most.get(level, 512)
