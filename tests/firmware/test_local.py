"""Linear parts, images and signals: the generated C against Python, in all its variants."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.firmware.compiling import (
    COMPILERS,
    WARNINGS,
    check_statically,
    compile_export,
    run_compiler,
)
from tests.firmware.local_models import ALL
from tests.firmware.test_host import SANITISERS
from tests.random_fronts import local_model, offset_model, random_signal_stage, random_stage
from tests.random_models import random_raw
from tinykernel.build.harness import run_rows
from tinykernel.build.parity import compare, entry_rows, expected_values, verify
from tinykernel.build.program import build_model, write_sources
from tinykernel.codegen.plan import pack
from tinykernel.codegen.projects import export, generated_inputs
from tinykernel.codegen.sources import render_sources
from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel

# A build for each example: shrinking would take minutes.
FEW = settings(
    max_examples=10,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("kind", ALL)
def test_equal_under_sanitisers(require_tool: Callable[[str], str], kind: str) -> None:
    """Windows, images and every hop of a stream score as in Python, in their own memory."""
    require_tool("gcc")
    model = ALL[kind]()
    result = verify(model, random_raw(model, 2, 12), flags=SANITISERS)
    assert result.first_difference is None
    assert result.hops > 0 or not model.hop


def _extremes(model: IntegerModel) -> np.ndarray[Any, Any]:
    """Return inputs of which all, or every other value, are at the ends of the raw type."""
    dtype = np.dtype(model.raw_dtype)
    low, high = (-3e38, 3e38) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    rows = np.full((4, model.n_inputs), low, dtype=dtype)
    rows[1], rows[2, ::2], rows[3, 1::2] = high, high, high
    return rows


@pytest.mark.parametrize(
    "kind", [name for name in ALL if name.startswith(("image, ", "signal, ", "offset, "))]
)
def test_extreme_levels(require_tool: Callable[[str], str], kind: str) -> None:
    """Levels that are all 0 or at the top reach the ends of a lane and do not leave it."""
    require_tool("gcc")
    model = ALL[kind]()
    assert verify(model, _extremes(model), flags=["-O2"]).first_difference is None


# Packed instructions, and in turns a core without them and one of another family.
@pytest.mark.parametrize(
    ("kind", "core"),
    [
        (kind, core)
        for number, kind in enumerate(ALL)
        for core in ("cortex-m4", ("cortex-m0", "esp32c3")[number % 2])
    ],
)
def test_equal_on_every_core(
    require_platforms: Callable[[str], Any], tmp_path: Path, kind: str, core: str
) -> None:
    """Each core gives the scores of Python, within the stack that the header promises."""
    model = ALL[kind]()
    rows = entry_rows(model, random_raw(model, 3, 4))
    platform = require_platforms(core)[-1 if core == "cortex-m0" else 0]
    program = build_model(model, platform, tmp_path, ["-Os"])
    outputs = run_rows(program, model, rows)
    assert compare(model, expected_values(model, rows), outputs, None).first_difference is None
    is_float = model.raw_dtype == "float32"
    deep = platform.chain.kind == "zig" or kind.startswith(("spectrum", "offset"))
    most = 320 if deep else 256
    assert 0 < outputs["raw"].stack <= most or is_float


@pytest.mark.parametrize(
    "flags", [("-Os", "-DTK_FORCE_PORTABLE=1"), ("-O3", "-DTK_FORCE_RADIX=2"), ("-O0",)], ids=str
)
@pytest.mark.parametrize("kind", ["image, 28 x 28", "image, 16-bit lanes", "signal, averaged"])
def test_variants_compute_the_same(
    require_platforms: Callable[[str], Any], kind: str, flags: tuple[str, ...]
) -> None:
    """Forcing a variant of the kernels changes the speed and no bit."""
    require_platforms("cortex-m4")
    model = ALL[kind]()
    result = verify(model, random_raw(model, 2, 3), target="cortex-m4", flags=flags)
    assert result.first_difference is None


@FEW
@given(data=st.data())
def test_random_images(require_tool: Callable[[str], str], data: st.DataObject) -> None:
    """Whatever the size of image, kernels and cells, C and Python agree."""
    require_tool("gcc")
    average = data.draw(st.sampled_from([1, 2]))
    tall, wide = data.draw(st.sampled_from([(1, 1), (3, 3), (5, 3), (3, 7), (5, 5)]))
    level_bits = data.draw(st.integers(1, 3))
    stage = random_stage(
        data.draw(st.integers(0, 2**32 - 1)),
        height=average * (data.draw(st.integers(0, 20)) + 2 * tall + 3),
        width=data.draw(st.integers(2 * average, 70)),
        channels=data.draw(st.sampled_from([1, 1, 2, 3])),
        n_kernels=data.draw(st.integers(1, 9)),
        raw_dtype=data.draw(st.sampled_from(["uint8", "int16", "float32", "int32"])),
        bits=data.draw(st.sampled_from([8, 16])),
        level_bits=level_bits,
        average=average,
        size=(tall, wide),
        dilations=data.draw(st.sampled_from([(1,), (2,), (1, 2)])),
        cells=(data.draw(st.integers(1, 3)), 4 if level_bits < 3 and tall < 5 else 2),
        padding=data.draw(st.integers(0, 3)),
        terms=data.draw(st.integers(0, 2)),
    )
    model = local_model(stage, 1, weight_bits=data.draw(st.sampled_from([1, 2, 4, 8])))
    assert verify(model, random_raw(model, 2, 5), flags=["-O1"]).first_difference is None


@FEW
@given(data=st.data())
def test_random_signals(require_tool: Callable[[str], str], data: st.DataObject) -> None:
    """Whatever window, hop, channels and kernels, C and Python agree at every hop."""
    require_tool("gcc")
    average = data.draw(st.sampled_from([1, 2]))
    dilations = data.draw(st.sampled_from([(1,), (1, 2), (1, 2, 4)]))
    rows = 8 * dilations[-1] + 3 + data.draw(st.integers(0, 60))
    stage = random_signal_stage(
        data.draw(st.integers(0, 2**32 - 1)),
        height=average * rows,
        channels=data.draw(st.integers(1, 7)),
        n_kernels=data.draw(st.integers(1, 40)),
        raw_dtype=data.draw(st.sampled_from(["uint8", "int16", "float32", "int32"])),
        level_bits=data.draw(st.integers(1, 12)),
        average=average,
        dilations=dilations,
        cells=(data.draw(st.integers(1, 3)), 1),
        terms=data.draw(st.integers(0, 2)),
        hop=average * data.draw(st.integers(1, rows)),
    )
    model = local_model(stage, 1, components=data.draw(st.booleans()))
    assert verify(model, random_raw(model, 2, 5), flags=["-O1"]).first_difference is None


@pytest.mark.parametrize(
    "kind",
    ["signal, averaged", "spectrum, numbers beside", "offset, numbers beside"],
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


_ASKED_TWICE = """
#include "act.h"
int main(void)
{
    static act_state_t state;
    static act_scratch_t scratch;
    act_input_t sample[ACT_CHANNELS] = { 0 };
    int32_t first[ACT_CLASSES];
    int32_t second[ACT_CLASSES];
    int i;
    act_init(&state);
    for (i = 1; i <= ACT_WINDOW; ++i) {
        sample[0] = (act_input_t)(i * i);
        (void)act_push(&state, sample);
    }
    act_stream_scores(&state, scratch, first);
    for (i = 1; i < ACT_HOP; ++i) {
        (void)act_push(&state, sample);
    }
    act_stream_scores(&state, scratch, second);
    for (i = 0; i < ACT_CLASSES; ++i) {
        if (first[i] != second[i]) {
            return 1;
        }
    }
    return 0;
}
"""


def test_a_stream_counted_a_window_anew_for_each_question(
    require_tool: Callable[[str], str], tmp_path: Path
) -> None:
    """Scores are those of the window that ended last, whatever came since: it was counted once."""
    gcc = require_tool("gcc")
    files = render_sources(offset_model(1), "act") | {"src/main.c": _ASKED_TWICE.encode()}
    folders = [f"-I{folder}" for folder in write_sources(tmp_path, files)]
    sources = [str(tmp_path / "src" / name) for name in ("act.c", "main.c")]
    program = str(tmp_path / "program")
    subprocess.run([gcc, "-std=c99", *WARNINGS, *folders, *sources, "-o", program], check=True)
    assert subprocess.run([program]).returncode == 0


def test_scratch_of_whole_windows_held_the_samples_of_a_stream() -> None:
    """The samples that a stream keeps are no part of it, of numbers beside either."""
    for kind in ("offset, int16", "offset, numbers beside", "spectrum, int16"):
        model = ALL[kind]()
        stages = {stage.KIND: stage for stage in model.stages}
        kept = 4 + stages["spectrum"].length // 2 if "spectrum" in stages else model.input.size // 2
        packed = pack(model)
        assert packed.scratch_words == packed.stream_words + packed.state_words - kept


def test_windows_less_their_means_did_not_compile_for_avr(
    require_platforms: Callable[[str], Any],
) -> None:
    """There a pointer to a type that may alias others is no pointer to that type."""
    require_platforms("atmega328p")
    model = ALL["offset, int16"]()
    assert verify(model, random_raw(model, 2, 3), target="atmega328p").ok


def test_cells_that_no_kernel_serves_are_refused() -> None:
    """A word holds the cells across: other numbers of cells have no C, and are named."""
    with pytest.raises(TinykernelError, match="no C for 1 cells across"):
        pack(local_model(random_stage(1, cells=(2, 1)), 1))


@pytest.mark.parametrize(
    "kind",
    [
        "linear, 2 bits, components",
        "image, averaged, odd size, dilated",
        "image, components only",
        "signal, components",
        "signal, averaged",
        "offset, numbers beside",
    ],
)
@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
def test_no_warning(
    require_compiler: Callable[..., list[str]],
    tmp_path: Path,
    compiler: tuple[str, ...],
    kind: str,
) -> None:
    """C99 and C++17 compilers for every core take these models without a warning."""
    command = require_compiler(*compiler)
    write_sources(tmp_path, render_sources(ALL[kind](), "gesture"))
    finished = run_compiler(tmp_path, *command, *WARNINGS, "-Os")
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""


@pytest.mark.parametrize("kind", ALL)
def test_cppcheck(require_tool: Callable[[str], str], tmp_path: Path, kind: str) -> None:
    """Static analysis of the generated C finds nothing."""
    cppcheck = require_tool("cppcheck")
    write_sources(tmp_path, render_sources(ALL[kind](), "gesture"))
    check_statically(cppcheck, tmp_path)
