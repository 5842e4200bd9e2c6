"""Programs for emulated cores: every score equal to Python's, and checks that bite."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.random_models import changed, random_model, random_raw
from tests.refusals import refused
from tinykernel.base.errors import LinkError, ToolError
from tinykernel.compile.targets import TARGETS, find_target
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.ternary.spec import Ternary
from tinykernel.run.emulated import EXIT_FAULT, MACHINES, run
from tinykernel.run.parity import compare, entry_rows, expected_values, run_rows, verify
from tinykernel.run.program import Platform, build, build_model, find_platform, find_platforms

# ESP32 and ESP32-S3 have no emulated core of their own: the others run the same programs.
CORES = [row.name for row in TARGETS.values() if row.machines and not row.emulated_as]


def with_one_weight_flipped(model: IntegerModel) -> IntegerModel:
    """Change the sign of one weight of class 4: one bit of the tables."""
    ternary = model.find(Ternary)
    weights = ternary.weights.copy()
    weights[4, np.flatnonzero(weights[4])[3]] *= -1
    return changed(model, replace(ternary, weights=weights))


def check_core(platform: Platform, folder: Path) -> None:
    """Run a model with one wrong weight: equal to itself in Python, and not to the true one."""
    model = random_model(3, n_features=33, n_classes=6, raw_dtype="float32", kept="tail")
    damaged = with_one_weight_flipped(model)
    raw = random_raw(model, 1, 40)
    program = build_model(damaged, platform, folder)
    rows = entry_rows(model, raw)
    outputs, _ = run_rows(program, damaged, rows)
    expected = expected_values(damaged, rows)
    assert compare(damaged, expected, outputs, None).first_difference is None
    found = compare(model, expected_values(model, rows), outputs, None)
    # Every row is wrong in one score, from raw and from quantized inputs.
    assert found.differences >= 2 * len(raw)
    assert "score of class 4" in str(found.first_difference)


@pytest.mark.parametrize("target", CORES)
def test_every_core_computes_the_same_and_one_bit_is_noticed(target, tmp_path, require_platforms):
    """The promise of the project on every core; floats are NaN, infinite and subnormal too."""
    check_core(require_platforms(target)[0], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m7f", "esp32c3"])
def test_zig_and_unicorn_need_no_system_package(target, tmp_path, require_tool, monkeypatch):
    """Both come from PyPI, so verification works, and fails, where apt does not."""
    require_tool("ziglang")
    require_tool("unicorn")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path / "empty"))
    check_core(find_platforms(find_target(target))[0], tmp_path)


def test_verify_runs_on_the_core_that_stands_for_a_target(require_tool) -> None:
    """For an ESP32 its stand-in must agree with Python, and the result says what it is."""
    require_tool("xtensa-lx106-elf-gcc")
    require_tool("qemu-system-xtensa")
    model = random_model(1)
    result = verify(model, random_raw(model, 1, 10), target="esp32")
    assert result.ok
    assert result.core == "Xtensa LX106"
    assert "LX106" in result.note


def test_dsp_code_traps_on_a_core_without_it(tmp_path, require_tool) -> None:
    """The emulated M3 must really be poorer than the M4, or running on it proves nothing."""
    require_tool("arm-none-eabi-gcc")
    require_tool("qemu-system-arm")
    source = tmp_path / "dsp.c"
    source.write_text(
        "#include <stdint.h>\n"
        "int main(void) { uint32_t x = 0x00010002u, y;\n"
        '__asm__ volatile("sadd16 %0, %1, %1" : "=r"(y) : "r"(x));\n'
        "return y == 0x00020004u ? 5 : 6; }\n"
    )
    status = {}
    for name in ("mps2-an386", "mps2-an385"):
        machine = MACHINES[name]
        platform = find_platform(find_target("cortex-m4"), machine, "qemu")
        folder = tmp_path / name
        folder.mkdir()
        status[name] = run(machine, build(platform, [source], folder).path)[0]
    assert status == {"mps2-an386": 5, "mps2-an385": EXIT_FAULT}


def test_model_too_large_for_the_small_board(require_platforms) -> None:
    """A model beyond 16 KB of RAM runs on a larger core, and the note says so."""
    require_platforms("cortex-m0")
    model = random_model(1, n_features=2048, n_blocks=1, raw_dtype="float32")
    result = verify(model, random_raw(model, 1, 3), target="cortex-m0")
    assert result.ok
    assert result.core == "Cortex-M3"
    assert result.note


@pytest.mark.parametrize(
    ("tool", "back_end"), [("arm-none-eabi-gcc", "qemu"), ("ziglang", "unicorn")]
)
def test_too_large_is_said_by_the_linker(tool, back_end, tmp_path, require_tool) -> None:
    """Both linkers' words for it are understood, or no larger board would be tried."""
    require_tool(tool)
    require_tool("qemu-system-arm" if back_end == "qemu" else "unicorn")
    model = random_model(1, n_features=2048, n_blocks=1, raw_dtype="float32")
    platform = find_platform(find_target("cortex-m0"), MACHINES["microbit"], back_end)
    with pytest.raises(LinkError) as caught:
        build_model(model, platform, tmp_path)
    # Neither the path of the linker nor that of the program.
    assert re.search(r"link: region \W?RAM\W.*overflowed", str(caught.value))


def test_missing_tools(monkeypatch, tmp_path) -> None:
    """Without a compiler the message says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path))
    refused(ToolError, find_platforms, find_target("esp8266"))
