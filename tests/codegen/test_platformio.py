"""Exported projects in PlatformIO itself: really built, and their self-test run in an emulator."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.processes import captured
from tests.random_models import random_model
from tinykernel.base import files as resources
from tinykernel.compile.projects import export
from tinykernel.run.emulated import MACHINES

PLATFORM = Path(__file__).parent / "platform_offline"

# Target, framework, family of the start-up code, machine.
PROJECTS = [
    ("cortex-m4", "cmsis", "arm", "mps2-an386"),
    ("esp32c3", "arduino", "riscv", "virt-rv32"),
]


@pytest.fixture
def pio(platformio_offline, require_tool):
    """Return a function that runs PlatformIO in a folder, without network."""
    require_tool("SCons")
    program = require_tool("pio")
    environment = os.environ | platformio_offline

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return captured(
            [program, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=900,
        )

    return run


def write_linker_script(path: Path, machine: str) -> None:
    """Write the script that links for the memory of a machine."""
    script = (resources.source_folder("firmware") / "boards" / "board.ld").read_text()
    row = MACHINES[machine]
    names = ("ROM", "ROM_SIZE", "RAM", "RAM_SIZE")
    for name, value in zip(names, (*row.rom, *row.ram), strict=True):
        script = script.replace(f"@{name}@", hex(value))
    path.write_text(script)


def in_qemu(machine: str) -> list[str]:
    """Return the command that runs a program, whose path is still to follow."""
    quiet = ["-nographic", "-monitor", "none", "-serial", "none"]
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    return [*MACHINES[machine].qemu, *quiet, *semihosting, "-kernel"]


def emulated(folder: Path, family: str, machine: str) -> None:
    """Put the platform into a project, and what a program needs in an emulator."""
    shutil.copytree(PLATFORM, folder / "platform_offline")
    boards = resources.source_folder("firmware") / "boards"
    (folder / "emulated").mkdir()
    for file in (family + "/start.c", "semihost.h", "initialise.h"):
        shutil.copy(boards / file, folder / "emulated")
    write_linker_script(folder / "board.ld", machine)


def offline_project(folder: Path, target: str, framework: str, family: str, machine: str) -> None:
    """Export a project and change nothing but where its platform comes from, and add QEMU."""
    model = random_model(1, n_classes=4, raw_dtype="float32")
    export(model, target, folder, name="gesture", framework=framework)
    emulated(folder, family, machine)
    ini = folder / "platformio.ini"
    text = re.sub(
        r"(?m)^platform = .*$", "platform = symlink://./platform_offline", ini.read_text(), count=1
    )
    program = "${platformio.build_dir}/${this.__env__}/firmware.elf"
    lines = "".join(f"\n    {word}" for word in (*in_qemu(machine), program))
    marker = "test_build_src = yes\n"
    assert marker in text
    ini.write_text(text.replace(marker, f"{marker}test_testing_command ={lines}\n"))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "framework", "family", "machine"), PROJECTS)
def test_built_and_tested_by_platformio(
    target: str,
    framework: str,
    family: str,
    machine: str,
    tmp_path: Path,
    pio: Callable[..., subprocess.CompletedProcess[str]],
    require_tool: Callable[[str], Any],
) -> None:
    """`pio run` builds the project and `pio test` passes; with a wrong table it fails."""
    gcc = "arm-none-eabi" if family == "arm" else "riscv64-unknown-elf"
    require_tool(f"{gcc}-gcc")
    require_tool(MACHINES[machine].qemu[0])
    folder = tmp_path / "project"
    offline_project(folder, target, framework, family, machine)
    built = pio(folder, "run")
    assert built.returncode == 0, built.stdout + built.stderr
    assert list(folder.glob(".pio/build/*/firmware.elf"))
    passed = pio(folder, "test")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "PASS: 8 vectors, 32 scores equal" in passed.stdout
    # Without the chip's own CMSIS nobody knows the clock.
    assert ("TIME: one inference takes" in passed.stdout) == (framework == "arduino")
    source = folder / "lib" / "gesture" / "src" / "gesture.c"
    source.write_text(source.read_text().replace("tk_biases[4] = {", "tk_biases[4] = {1 + "))
    failed = pio(folder, "test")
    assert failed.returncode != 0
    assert "FAIL: vector 0, score of class 0" in failed.stdout
