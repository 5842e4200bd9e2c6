"""Linear parts, images and signals: the generated C against Python, in all its variants."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.firmware.compiling import compile_export
from tests.firmware.local_models import ALL
from tests.firmware.test_host import SANITISERS
from tests.random_models import random_raw
from tinykernel.build.harness import run_rows
from tinykernel.build.parity import compare, entry_rows, expected_values, verify
from tinykernel.build.program import build_model
from tinykernel.codegen.plan import pack
from tinykernel.codegen.projects import export, generated_inputs
from tinykernel.model.integer import IntegerModel


@pytest.mark.parametrize("kind", ALL)
def test_equal_under_sanitisers(require_tool: Callable[[str], str], kind: str) -> None:
    """Windows, images and every hop of a stream score as in Python, in their own memory.

    Levels that are all 0 or at the top reach the ends of a lane and do not leave it.
    """
    require_tool("gcc")
    model = ALL[kind]()
    rows = np.concatenate([random_raw(model, 2, 12), _extremes(model)])
    result = verify(model, rows, flags=SANITISERS)
    assert result.first_difference is None
    assert result.hops > 0 or not model.hop


def _extremes(model: IntegerModel) -> np.ndarray[Any, Any]:
    """Return inputs of which all, or every other value, are at the ends of the raw type."""
    dtype = np.dtype(model.raw_dtype)
    low, high = (-3e38, 3e38) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    rows = np.full((4, model.n_inputs), low, dtype=dtype)
    rows[1], rows[2, ::2], rows[3, 1::2] = high, high, high
    return rows


# Packed instructions for all kinds, and for every third one in turns a core without them.
@pytest.mark.parametrize(
    ("kind", "core"),
    [
        *((kind, "cortex-m4") for kind in ALL),
        *((kind, ("cortex-m0", "esp32c3")[i % 2]) for i, kind in enumerate([*ALL][::3])),
    ],
)
def test_equal_on_every_core(require_platforms, tmp_path, kind, core):
    """Each core gives the scores of Python, within the stack that the header promises."""
    model = ALL[kind]()
    rows = entry_rows(model, random_raw(model, 3, 4))
    platform = require_platforms(core)[-1 if core == "cortex-m0" else 0]
    program = build_model(model, platform, tmp_path, ["-Os"])
    outputs, stack = run_rows(program, model, rows)
    assert compare(model, expected_values(model, rows), outputs, None).first_difference is None
    assert 0 < stack["raw"] <= 320 or model.raw_dtype == "float32"


@pytest.mark.parametrize(
    "flags", [("-Os", "-DTK_FORCE_PORTABLE=1"), ("-O3", "-DTK_FORCE_RADIX=2"), ("-O0",)], ids=str
)
@pytest.mark.parametrize("kind", ["convolutions, 4-bit taps", "signal, averaged"])
def test_variants_compute_the_same(require_platforms, kind, flags):
    """Forcing a variant changes the speed and no bit; convolutions did not compile for DSP."""
    require_platforms("cortex-m4")
    model = ALL[kind]()
    result = verify(model, random_raw(model, 2, 3), target="cortex-m4", flags=flags)
    assert result.first_difference is None


@pytest.mark.parametrize(
    "kind", ["signal, averaged", "spectrum, numbers beside", "offset, numbers beside"]
)
def test_self_test_streams(require_tool: Callable[[str], str], tmp_path: Path, kind: str) -> None:
    """The program of an export streams its vectors, and prints PASS and the decisions."""
    gcc = require_tool("gcc")
    model = ALL[kind]()
    export(model, "host", tmp_path / "project", name="gesture")
    program = compile_export(gcc, tmp_path / "project")
    text = subprocess.run([program], capture_output=True, text=True).stdout
    rows = entry_rows(model, generated_inputs(model))
    labels = expected_values(model, rows)["stream"][:, -1]
    assert "PASS: 8 vectors" in text
    assert f"DECISIONS: {' '.join(str(label) for label in labels)}\n" in text


def test_scratch_of_whole_windows_held_the_samples_of_a_stream() -> None:
    """The samples that a stream keeps are no part of it, of numbers beside either."""
    for kind in ("offset, int16", "offset, numbers beside", "spectrum, int16"):
        model = ALL[kind]()
        stages = {stage.KIND: stage for stage in model.stages}
        kept = 4 + stages["spectrum"].length // 2 if "spectrum" in stages else model.input.size // 2
        packed = pack(model)
        assert packed.scratch_words == packed.stream_words + packed.state_words - kept


def test_windows_less_their_means_did_not_compile_for_avr(require_platforms):
    """There a pointer to a type that may alias others is no pointer to that type."""
    require_platforms("atmega328p")
    model = ALL["offset, int16"]()
    assert verify(model, random_raw(model, 2, 3), target="atmega328p").ok
