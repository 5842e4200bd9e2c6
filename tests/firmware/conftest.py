"""Building a model's C for an emulated core and running it there."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.random_models import random_quantized, random_raw
from tinykernel.codegen.sources import render_sources
from tinykernel.integer.model import IntegerModel
from tinykernel.resources import folder
from tinykernel.verify import VerifyResult, compare, write_project

WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


class Core(NamedTuple):
    """How to compile for a core and which machine of QEMU has it."""

    compiler: tuple[str, ...]
    start: str
    script: tuple[str, ...]
    machine: tuple[str, ...]


def _cortex_m(cpu: str, board: str, flash: str = "0", ram: str = "0x20000000") -> Core:
    return Core(
        ("arm-none-eabi-gcc", f"-mcpu={cpu}", "-mthumb", "--specs=nosys.specs"),
        "start_cortex_m.c",
        ("cortex_m.ld", f"-Wl,--defsym=FLASH_ORIGIN={flash},--defsym=RAM_ORIGIN={ram}"
         ",--defsym=RAM_SIZE=0x10000"),
        ("qemu-system-arm", "-M", board),
    )  # fmt: skip


# A core runs the code of a poorer one: the program for M0 on an M3 board has room for more models.
CORES = {
    "cortex-m0": _cortex_m("cortex-m0", "mps2-an385"),
    "cortex-m3": _cortex_m("cortex-m3", "mps2-an385"),
    "cortex-m4": _cortex_m("cortex-m4", "mps2-an386"),
    "cortex-m7": _cortex_m("cortex-m7", "mps2-an500"),
    "cortex-m33": _cortex_m("cortex-m33", "mps2-an505", "0x10000000", "0x38000000"),
    "esp32c3": Core(
        ("riscv64-unknown-elf-gcc", "-march=rv32imc", "-mabi=ilp32",
         "--specs=picolibc.specs", "-Wl,--no-warn-rwx-segments"),
        "start_riscv.S",
        ("riscv.ld",),
        ("qemu-system-riscv32", "-M", "virt", "-cpu", "rv32,a=false,f=false,d=false",
         "-bios", "none"),
    ),
}  # fmt: skip


class Emulated(NamedTuple):
    """A program for an emulated core."""

    program: Path
    core: Core

    def run(self, mode: str, rows: bytes) -> subprocess.CompletedProcess[bytes]:
        """Stream rows through the program; its output file is returned as stdout."""
        given = self.program.with_name(f"{mode}.in")
        result = self.program.with_name(f"{mode}.out")
        given.write_bytes(rows)
        finished = subprocess.run(
            [*self.core.machine, "-nographic", "-monitor", "none", "-serial", "none",
             "-kernel", str(self.program), "-semihosting-config",
             f"enable=on,target=native,arg=fw,arg={mode},arg={given},arg={result}"],
            capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        output = result.read_bytes() if result.exists() else b""
        return subprocess.CompletedProcess(
            finished.args, finished.returncode, output, finished.stderr
        )


@pytest.fixture
def emulate(require_tool: Callable[[str], str], tmp_path: Path) -> Callable[..., Emulated]:
    """Return a function that builds a model for a core: (model, core, *flags)."""

    def build(model: IntegerModel, core_name: str, *flags: str) -> Emulated:
        core = CORES[core_name]
        require_tool(core.machine[0])
        compiler = (require_tool(core.compiler[0]), *core.compiler[1:])
        emulator = folder("firmware") / "emulator"
        write_project(render_sources(model, "model"), tmp_path)
        program = tmp_path / "fw.elf"
        arguments = [
            *compiler, *WARNINGS, *flags, "-ffreestanding", "-nostartfiles", "-Wl,--gc-sections",
            "-ffunction-sections", "-fdata-sections",
            f"-I{tmp_path / 'include'}", f"-I{tmp_path / 'lib/tinykernel/src'}",
            '-DPREFIX_HEADER="model.h"', "-DPREFIX=model", "-DPREFIX_UPPER=MODEL",
            str(emulator / core.start), str(emulator / "harness.c"),
            str(tmp_path / "src/model.c"),
            "-T", str(emulator / core.script[0]), *core.script[1:], "-o", str(program),
        ]  # fmt: skip
        finished = subprocess.run(arguments, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stderr
        return Emulated(program, core)

    return build


@pytest.fixture
def run_emulated(emulate: Callable[..., Emulated]) -> Callable[..., VerifyResult]:
    """Return a function that compares C on a core with Python: (model, core, *flags)."""

    def run(model: IntegerModel, core_name: str, *flags: str) -> VerifyResult:
        emulated = emulate(model, core_name, *flags)
        raw = random_raw(model, 1, 12)
        quantized = model.quantize_inputs(raw)
        quantized = np.concatenate([quantized, random_quantized(model, 2, 12)])
        outputs = {}
        for mode, rows in (("raw", raw), ("quantized", quantized), ("quantize", raw)):
            finished = emulated.run(mode, rows.tobytes())
            assert finished.returncode == 0, finished.stderr
            outputs[mode] = finished.stdout
        extremes = _compare_quantized(model, outputs, quantized, len(raw))
        assert extremes == 0
        return compare(
            model, outputs, quantized[: len(raw)], None, core_name, " ".join(flags) or "default"
        )

    return run


def _compare_quantized(
    model: IntegerModel, outputs: dict[str, bytes], quantized: np.ndarray, n_raw: int
) -> int:
    """Count differences in the rows beyond the raw ones, and cut them off the outputs."""
    got = np.frombuffer(outputs["quantized"], dtype="<i4").reshape(len(quantized), -1)
    outputs["quantized"] = got[:n_raw].tobytes()
    return int(np.count_nonzero(got[:, :-1] != model.scores_quantized(quantized)))


def as_flags(options: Sequence[str]) -> list[str]:
    """Return ``-D`` flags of macros."""
    return [f"-D{option}" for option in options]
