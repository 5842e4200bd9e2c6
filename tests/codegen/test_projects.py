"""Exported projects: complete, the same bytes every time, accepted by compilers and PlatformIO."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.firmware.compiling import WARNINGS
from tests.processes import captured
from tests.random_models import random_model
from tests.refusals import refused
from tests.spectra import spectral_model
from tinykernel.base.errors import OptionError
from tinykernel.compile.projects import export, exported_files
from tinykernel.compile.sources import generated_inputs, n_vectors
from tinykernel.compile.targets import TARGETS
from tinykernel.model.integer import IntegerModel

EVERY_PROJECT = [(name, fw) for name, target in TARGETS.items() for fw in target.frameworks]


@pytest.fixture(scope="module")
def model() -> IntegerModel:
    """Return a small model with float inputs and every table of the scaler."""
    return random_model(1, n_classes=4, raw_dtype="float32")


def run(command: list[str], folder: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder and return what it printed."""
    return captured(command, cwd=folder, timeout=timeout, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(("target", "framework"), EVERY_PROJECT)
def test_project_is_complete(model: IntegerModel, target: str, framework: str) -> None:
    """Every target and framework has an entry point, a board file and what its build needs."""
    files = exported_files(model, target, framework=framework, name="gesture")
    language = "cpp" if framework == "arduino" else "c"
    names = ("tk_protocol.c", "tk_selftest.c", "gesture_selftest.c")
    wanted = {f"src/{name}" for name in (f"main.{language}", f"tk_board.{language}", *names)}
    names = ("tk_protocol.h", "gesture_selftest.h", "gesture_vectors.h")
    wanted |= {f"include/{name}" for name in names}
    wanted |= {f"lib/gesture/{name}" for name in ("library.json", "src/gesture.h", "src/gesture.c")}
    wanted |= {"README.md", "platformio.ini", "test/test_custom_runner.py"}
    wanted |= {"test/test_selftest/test_selftest.c"}
    wanted |= {"CMakeLists.txt", "src/CMakeLists.txt"} if framework == "espidf" else set()
    wanted |= {"zephyr/CMakeLists.txt", "zephyr/prj.conf"} if framework == "zephyr" else set()
    assert wanted <= set(files)
    ini = files["platformio.ini"].decode()
    assert f"platform = {TARGETS[target].board.platform}" in ini
    assert str(Path(__file__).resolve().parents[2]) not in ini
    assert "{{" not in "".join(map(str, files.values()))


@pytest.mark.parametrize(("target", "kind"), [("host", "platformio"), (None, "library")])
def test_the_input_of_a_readme_has_no_numbers_beside_it(target: str | None, kind: str) -> None:
    """The window is as long as the header says, and without a hop there is no state."""
    model = replace(spectral_model(5, n_numbers=2), hop=0)
    files = exported_files(model, target, name="gesture", format=kind)
    assert b"input[GESTURE_WINDOW * GESTURE_CHANNELS];" in files["README.md"]
    header = next(text for path, text in files.items() if path.endswith("src/gesture.h"))
    assert b"GESTURE_STATE_WORDS" not in header


@pytest.mark.parametrize("name", ["main", "tk_model", "9lives", "a b", "loop", "driver"])
def test_name_that_clashes(model: IntegerModel, name: str, tmp_path: Path) -> None:
    """A model called like a file of the project would overwrite it; build systems have names, too.

    ESP-IDF has a component `driver`, and CMake a target `test`.
    """
    refused(OptionError, export, model, "host", tmp_path / "project", name=name)
    assert not (tmp_path / "project").exists()
    for taken in ("driver", "test", "kernel", "install"):
        refused(OptionError, exported_files, model, None, name=taken, format="library")


@pytest.mark.parametrize("raw", ["float32", "uint8", "int8", "uint16", "int16", "int32"])
def test_generated_inputs_cover_the_range(raw: str) -> None:
    """Test vectors that saturate everywhere would test nothing."""
    sample = random_model(5, n_features=40, raw_dtype=raw, shared_scaler=True)
    quantised = sample.quantize_inputs(generated_inputs(sample))
    assert quantised[0].max() == -128
    assert quantised[1].min() >= 126
    assert len(np.unique(quantised[2:])) > 60


@pytest.mark.parametrize("cpu", ["cortex-m0", "cortex-m4"])
@pytest.mark.parametrize("defines", [[], ["-DTK_SEMIHOSTING"]])
def test_bare_board_file_compiles(model, cpu, defines, tmp_path, require_compiler):
    """The board file for CMSIS must build for cores with and without a cycle counter."""
    export(model, cpu, tmp_path / "project", framework="cmsis", name="gesture")
    command = require_compiler(cpu, "-std=c99")
    options = [*WARNINGS, "-Iinclude", *defines]
    sources = ["src/main.c", "src/tk_board.c"]
    result = run([*command, "-Os", *options, "-c", *sources], tmp_path / "project")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("target", ["cortex-m4", "esp32", "atmega328p", "host"])
def test_platformio_accepts_the_ini_file(model, target, tmp_path, require_tool):
    """A platformio.ini with an unknown or misspelt option is found by PlatformIO's own lint."""
    export(model, target, tmp_path / "project", name="gesture")
    command = [require_tool("pio"), "project", "config", "--lint"]
    result = run(command, tmp_path / "project")
    assert result.returncode == 0, result.stdout
    assert "free from linting errors" in result.stdout


def test_the_example_of_a_stream_has_the_rate_of_the_recordings() -> None:
    """Its period is that of the recordings, where the model file knows it."""
    model, how = spectral_model(1), {"name": "m", "format": "library"}
    at = "examples/Stream/source.h"
    known = exported_files(model, None, about={"recordings": {"rate": 16000.0}}, **how)[at]
    assert b"#define SOURCE_SAMPLES 2u\n#define SOURCE_MICROSECONDS 125u\n" in known
    for about in (None, {"recordings": {"rate": "a"}}, {"recordings": 1}):
        assert b"Put the rate" in exported_files(model, None, about=about, **how)[at]


def test_self_test_of_large_inputs_filled_the_flash() -> None:
    """Eight seconds of sound took 257 KB; an export holds 16 KB of vectors, or one."""
    small, large = random_model(1, n_features=20), spectral_model(1, frames=700)
    assert n_vectors(small) == 8
    assert large.n_inputs * 2 > 16384
    files = exported_files(large, None, format="library")
    header = next(data for path, data in files.items() if path.endswith("_vectors.h"))
    assert b"VECTORS 1\n" in header
