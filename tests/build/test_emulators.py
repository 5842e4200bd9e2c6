"""Generated C on emulated cores: every score equal to Python's, and checks that bite."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinykernel import resources
from tinykernel.build.boards import EXIT_FAULT, build, run_program
from tinykernel.build.emulators import EmulatorRun, find_emulation, run, run_all
from tinykernel.build.machines import MACHINES
from tinykernel.build.toolchains import find_toolchain
from tinykernel.codegen.projects import generated_inputs
from tinykernel.codegen.targets import TARGETS, find_target
from tinykernel.errors import TinykernelError
from tinykernel.measure.report import report
from tinykernel.measure.samples import random_model
from tinykernel.model import IntegerModel
from tinykernel.parity import verify

CHIPS = [name for name in TARGETS if name != "host"]
ZIG_CHIPS = [name for name in CHIPS if find_target(name).zig]
TOOLS = {
    "arm": ("arm-none-eabi-gcc", "qemu-system-arm"),
    "riscv": ("riscv64-unknown-elf-gcc", "qemu-system-riscv32"),
    "xtensa": ("xtensa-lx106-elf-gcc", "qemu-system-xtensa"),
}

SHAPES: dict[str, dict[str, Any]] = {
    "ten classes": {"n_features": 50, "n_components": 300, "n_classes": 10, "raw_dtype": "uint8"},
    "two classes, floats": {
        "n_features": 33, "n_components": 100, "n_classes": 2, "raw_dtype": "float32",
        "scaler_per_feature": True, "constant_features": 3,
    },
    "two inputs, 26 classes": {"n_features": 2, "n_components": 64, "n_classes": 26,
                               "raw_dtype": "int16", "bits": 16, "diagonal_kind": "sign"},
    "dropped rows": {"n_features": 70, "n_components": 256, "n_classes": 3, "raw_dtype": "int32",
                     "dropped_rows": 0.7, "permutation": "stored", "zero_weights": False},
    "int8 inputs": {"n_features": 30, "n_components": 96, "n_classes": 3, "raw_dtype": "int8",
                    "diagonal_kind": "int4", "windows": "half turns", "zero_weights": False},
}  # fmt: skip


@pytest.fixture
def require_qemu(require_tool: Callable[[str], Any]) -> Callable[[str], None]:
    """Return a function that asks for the GCC and the QEMU of a target."""

    def require(target: str) -> None:
        families = {find_target(target).family}
        if find_target(target).emulated_as:
            families.add("riscv")
        for family in families:
            for tool in TOOLS[family]:
                require_tool(tool)

    return require


def check(model: IntegerModel, found: EmulatorRun, scores: Any) -> None:
    """Compare a run with Python."""
    np.testing.assert_array_equal(found.scores, scores)
    np.testing.assert_array_equal(found.labels, scores.argmax(axis=1))


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("shape", list(SHAPES))
def test_qemu_computes_the_scores_of_python(
    target: str, shape: str, require_qemu: Callable[[str], None]
) -> None:
    """The promise of the project, on every core: the same int32 scores."""
    require_qemu(target)
    model = random_model(**SHAPES[shape])
    rows = generated_inputs(model, 40)
    for found in run_all(model, target, rows):
        assert found.emulator.startswith("QEMU ")
        check(model, found, model.scores(rows))
        assert bool(found.note) == bool(find_target(target).emulated_as)


@pytest.mark.parametrize("target", ZIG_CHIPS)
def test_zig_and_unicorn_need_no_system_package(
    target: str, require_tool: Callable[[str], Any]
) -> None:
    """Both come from PyPI, so verification works where apt does not."""
    require_tool("ziglang")
    require_tool("unicorn")
    chain = find_toolchain(target, "zig")
    assert chain is not None
    for shape in ("ten classes", "two classes, floats"):
        model = random_model(**SHAPES[shape])
        rows = generated_inputs(model, 20)
        found = run(model, target, rows, back_end="unicorn")
        assert found.emulator.startswith("Unicorn ")
        check(model, found, model.scores(rows))


def test_quantised_entries(require_qemu: Callable[[str], None]) -> None:
    """All three entries of the C are reachable: raw, quantised, and quantisation alone."""
    require_qemu("cortex-m0")
    model = random_model(**SHAPES["two classes, floats"])
    rows = generated_inputs(model, 20)
    quantised = run(model, "cortex-m0", rows, entry="quantize").quantized
    np.testing.assert_array_equal(quantised, model.quantize_inputs(rows))
    assert quantised is not None
    assert quantised.dtype == np.int8
    found = run(model, "cortex-m0", quantised, entry="quantized")
    check(model, found, model.scores(rows))


def test_special_floats(require_qemu: Callable[[str], None]) -> None:
    """NaN, infinities and subnormal numbers give the same scores with and without an FPU."""
    model = random_model(**SHAPES["two classes, floats"])
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38]
    rows = np.resize(np.array(special, dtype=np.float32), (9, model.n_features))
    for target in ("cortex-m0", "esp8266", "esp32c3"):
        require_qemu(target)
        check(model, run(model, target, rows), model.scores(rows))


def with_one_weight_flipped(model: IntegerModel) -> IntegerModel:
    """Change the sign of one weight of class 4: one bit of the tables."""
    weights = model.weights.copy()
    weights[4, np.flatnonzero(weights[4])[3]] *= -1
    return replace(model, weights=weights)


@pytest.mark.parametrize("target", CHIPS)
def test_one_flipped_weight_fails_verification(
    target: str, require_qemu: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison that cannot fail proves nothing: on every core one wrong bit is noticed."""
    require_qemu(target)
    model = random_model(**SHAPES["ten classes"])
    rows = generated_inputs(model, 5)
    cores = []

    def run_damaged(_: IntegerModel, *args: Any, **named: Any) -> list[EmulatorRun]:
        found = run_all(with_one_weight_flipped(model), *args, **named)
        cores.extend(row.core for row in found if row.quantized is None)
        return found

    monkeypatch.setattr("tinykernel.build.emulators.run_all", run_damaged)
    result = verify(model, rows, target=target)
    assert not result.ok
    assert "score of class 4" in str(result.first_difference)
    # Every row is wrong on each core, in one score from raw and in one from quantised inputs.
    assert result.differences >= len(cores) * len(rows)


@pytest.mark.parametrize("target", ZIG_CHIPS)
def test_one_flipped_weight_is_noticed_without_system_packages(
    target: str, require_tool: Callable[[str], Any]
) -> None:
    """The fallback of zig and Unicorn notices one wrong bit as well."""
    require_tool("ziglang")
    require_tool("unicorn")
    model = random_model(**SHAPES["ten classes"])
    rows = generated_inputs(model, 5)
    found = run(with_one_weight_flipped(model), target, rows, back_end="unicorn")
    assert found.emulator.startswith("Unicorn ")
    wrong = np.flatnonzero((found.scores != model.scores(rows)).any(axis=0))
    assert wrong.tolist() == [4]


def test_dsp_code_traps_on_a_core_without_it(
    tmp_path: Path, require_qemu: Callable[[str], None]
) -> None:
    """The emulated M3 must really be poorer than the M4, or running on it proves nothing."""
    require_qemu("cortex-m4")
    source = tmp_path / "dsp.c"
    source.write_text(
        "#include <stdint.h>\n"
        "int main(void) { uint32_t x = 0x00010002u, y;\n"
        '__asm__ volatile("sadd16 %0, %1, %1" : "=r"(y) : "r"(x));\n'
        "return y == 0x00020004u ? 5 : 6; }\n"
    )
    chain = find_toolchain("cortex-m4", "gcc")
    assert chain is not None
    status = {}
    for name in ("mps2-an386", "mps2-an385"):
        folder = tmp_path / name
        folder.mkdir()
        program = build(MACHINES[name], chain, [source], folder)
        status[name] = run_program(MACHINES[name], program, folder)[0]
    assert status == {"mps2-an386": 5, "mps2-an385": EXIT_FAULT}


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3", "cortex-m4", "esp32c3"])
@pytest.mark.parametrize("shape", ["ten classes", "two classes, floats"])
def test_stack_bound_holds(target: str, shape: str, require_qemu: Callable[[str], None]) -> None:
    """What an inference really took of the stack is within the bound of the report."""
    require_qemu(target)
    model = random_model(**SHAPES[shape])
    found = run(model, target, generated_inputs(model, 3))
    bound = report(model, target, compiler="gcc").stack
    # The harness calls through one more function, which keeps its return address.
    assert 0 < found.stack <= bound + 32


def test_model_too_large_for_the_small_board(require_qemu: Callable[[str], None]) -> None:
    """A model beyond 16 KB of RAM runs on a larger core, and the note says so."""
    require_qemu("cortex-m0")
    model = random_model(2048, 2048, 3, raw_dtype="float32")
    rows = generated_inputs(model, 3)
    found = run(model, "cortex-m0", rows)
    check(model, found, model.scores(rows))
    assert found.core == "Cortex-M3"
    assert "more memory" in found.note


def test_missing_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a compiler the message says what to install."""
    model = random_model(**SHAPES["ten classes"])
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path))
    with pytest.raises(TinykernelError, match="no compiler and emulator for esp8266"):
        run(model, "esp8266", generated_inputs(model, 1))
    with pytest.raises(TinykernelError, match="not emulated"):
        run(model, "host", generated_inputs(model, 1))
    assert find_emulation("esp8266", MACHINES["sim-lx106"]) is None


_FLOATS = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
float add(float, float); float sub(float, float); float mul(float, float);
uint32_t fix(float); float from_signed(int32_t); float from_unsigned(uint32_t);
uint32_t quotient(uint32_t, uint32_t); uint32_t modulo(uint32_t, uint32_t);
static uint32_t state = 1u;
static uint32_t next(void)
{ static const uint32_t edges[] = {0u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 1u,
  0x007fffffu, 0x00800000u, 0x7f7fffffu, 0x3f800000u, 0x4b7fffffu, 0x33800000u};
  state = state * 1664525u + 1013904223u;
  if (state >> 29 == 0u) { return edges[(state >> 8) % 12u]; }
  /* Numbers of similar size, so that sums cancel and round. */
  if (state >> 31) { return (state & 0x80ffffffu) | 0x3f000000u; }
  { uint32_t high = state; state = state * 1664525u + 1013904223u;
    return (high & 0xffff0000u) ^ (state >> 12); } }
static float number(uint32_t bits) { float f; memcpy(&f, &bits, 4); return f; }
static int differ(float a, float b)
{ uint32_t x, y; memcpy(&x, &a, 4); memcpy(&y, &b, 4); return x != y && !(a != a && b != b); }
int main(void)
{ long i, wrong = 0;
  for (i = 0; i < 3000000; i++) {
    const uint32_t x = next(), y = next(); const float a = number(x), b = number(y);
    wrong += differ(add(a, b), a + b) + differ(sub(a, b), a - b) + differ(mul(a, b), a * b);
    wrong += differ(from_signed((int32_t)x), (float)(int32_t)x);
    wrong += differ(from_unsigned(x), (float)x);
    if (a >= 0.0f && a < 4294967296.0f) { wrong += fix(a) != (uint32_t)a; }
    if (y != 0u) { wrong += (quotient(x, y) != x / y) + (modulo(x, y) != x % y); }
  }
  printf("%ld\\n", wrong); return wrong != 0; }
"""


def test_rom_arithmetic_equals_that_of_the_host(
    tmp_path: Path, require_tool: Callable[[str], Any]
) -> None:
    """The stand-ins for the ESP8266's boot ROM are IEEE 754 to the last bit."""
    gcc = require_tool("gcc")
    names = {"__addsf3": "add", "__subsf3": "sub", "__mulsf3": "mul", "__fixunssfsi": "fix",
             "__floatsisf": "from_signed", "__floatunsisf": "from_unsigned",
             "__udivsi3": "quotient", "__umodsi3": "modulo"}  # fmt: skip
    shutil.copy(resources.folder("firmware") / "boards" / "xtensa" / "rom.c", tmp_path / "rom.c")
    (tmp_path / "check.c").write_text(_FLOATS)
    renamed = [f"-D{old}={new}" for old, new in names.items()]
    build_command = [gcc, "-O2", *renamed, "rom.c", "check.c", "-o", "check"]
    subprocess.run(build_command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    result = subprocess.run(["./check"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (result.stdout.strip(), result.returncode) == ("0", 0)
