"""The exported library, built and run by every build system that can be had."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.firmware.compiling import WARNINGS
from tests.firmware.local_models import with_events
from tests.firmware.test_decisions import deciding
from tests.random_fronts import local_model, random_signal_stage
from tests.random_models import random_model, random_raw
from tests.refusals import refused
from tests.separable import separable_model
from tests.spectra import spectral_model
from tinykernel.base import files as resources
from tinykernel.base.errors import OptionError
from tinykernel.compile.projects import export, exported_files, formats
from tinykernel.compile.sources import runtime_files
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.frame.spec import Frame
from tinykernel.run.link import results_of
from tinykernel.run.samples import Lines

BUILD_SYSTEMS = Path(__file__).parent / "build_systems"
OFFLINE = Path(__file__).parent / "platform_offline"
BOARDS = resources.source_folder("firmware") / "boards"
# Models of three shapes: their runtimes differ, and must not clash.
MODELS: dict[str, dict[str, Any]] = {
    "gesture": {"n_classes": 4, "raw_dtype": "float32"},
    "tap": {"n_features": 40, "n_blocks": 3, "permutation": "orbit", "kept": "some"},
    "wake": {"n_classes": 2, "raw_dtype": "int16", "bits": 16, "diagonal_kind": "sign"},
}
PASS = "PASS: 8 vectors, 32 scores equal"


def write_library(folder: Path, name: str = "gesture", format: str = "library") -> Path:
    """Export one of the models."""
    export(random_model(1, **MODELS[name]), None, folder, name=name, format=format)
    return folder


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return an exported library."""
    return write_library(tmp_path / "gesture")


def run(command: list[object], folder: Path, **variables: str) -> str:
    """Run a command that must succeed and return what it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def cmake(folder: Path, *options: str, **variables: str) -> Path:
    """Configure and build a folder with CMake; return where."""
    build = folder.parent / f"{folder.name}-build"
    configure = ["cmake", "-S", folder, "-B", build, "-DCMAKE_BUILD_TYPE=MinSizeRel", *options]
    assert "Warning" not in run([*configure], folder, **variables)
    run(["cmake", "--build", build], folder, **variables)
    return build


def ctest(build: Path) -> str:
    """Run the tests of a CMake build."""
    return run(["ctest", "--test-dir", build, "--output-on-failure", "--verbose"], build)


def test_model_and_runtime_lie_in_one_place(library: Path) -> None:
    """A user adds one folder of sources, and deletes nothing: no test, no header without a use."""
    sources = {path.name for path in (library / "src").iterdir()}
    runtime = {Path(path).name for path in runtime_files()}
    headers = sources - {"gesture.h", "gesture.c", "gesture_field.h"}
    assert headers < runtime
    assert {"tk_predict.h", "tk_windows.h"} <= headers
    assert not {"tk_spectrum.h", "tk_trees.h", "tk_prototypes.h"} & headers
    assert {path.name for path in (library / "examples").iterdir()} == {
        "SelfTest",
        "esp_idf",
        "zephyr",
    }
    assert (library / "LICENSE").read_text().lstrip().startswith("Apache License")


@pytest.mark.parametrize("target", ["esp32", "host"])
def test_platformio_project_has_only_files_that_are_read(target: str) -> None:
    """In lib/NAME are the single source, what PlatformIO reads of the library, and nothing else."""
    model = random_model(1, **MODELS["gesture"])
    library = exported_files(model, None, name="gesture", format="library")
    single = exported_files(model, None, name="gesture", format="single")
    project = exported_files(model, target, name="gesture", ci="github")
    start, names = "lib/gesture/", ("gesture.c", "gesture.h", "gesture_field.h")
    expected = {name: library[name] for name in ("LICENSE", "library.json")}
    expected |= {f"src/{name}": single[name] for name in names}
    inner = {path[len(start) :]: data for path, data in project.items() if path.startswith(start)}
    assert inner == expected
    assert len(project) <= 35


@pytest.mark.parametrize("format", [name for name in formats() if name != "platformio"])
def test_formats_for_every_target_take_none(format: str) -> None:
    """An option that changes nothing is an error, not ignored."""
    for options in ({"board": "pico"}, {"framework": "arduino"}, {"platform": "ststm32"}):
        refused(OptionError, exported_files, random_model(1), None, format=format, **options)
    refused(OptionError, exported_files, random_model(1), "esp32", format=format)
    refused(OptionError, exported_files, random_model(1), None)


@pytest.mark.parametrize(("name", "compiler"), [("gesture", "gcc"), ("wake", "clang")])
def test_cmake_on_this_computer(name, compiler, tmp_path, require_tool):
    """The folder configures, builds without warnings and passes its self-test by ctest.

    Also in a folder with blanks and letters that are not of ASCII.
    """
    require_tool("cmake")
    folder = write_library(tmp_path / ("Größe 1 µ" if name == "wake" else "plain") / name, name)
    flags = f"-DCMAKE_C_FLAGS={' '.join(WARNINGS)}"
    assert "PASS: 8 vectors" in ctest(
        cmake(folder, f"-DCMAKE_C_COMPILER={require_tool(compiler)}", flags)
    )


def test_cmake_across_to_a_microcontroller(library, require_tool):
    """With a toolchain file the same project is a Cortex-M4 program, which ctest runs in QEMU."""
    for tool in ("cmake", "arm-none-eabi-gcc", "qemu-system-arm"):
        require_tool(tool)
    build = cmake(library, f"-DCMAKE_TOOLCHAIN_FILE={BUILD_SYSTEMS / 'cortex-m4.cmake'}")
    assert PASS in ctest(build)
    source = library / "src" / "gesture.c"
    source.write_text(source.read_text().replace("tk_biases[4] = {", "tk_biases[4] = {1 + "))
    run(["cmake", "--build", build], library)
    with pytest.raises(AssertionError, match="FAIL: vector 0, score of class 0: got"):
        ctest(build)


def test_find_package_after_installation(library, tmp_path, require_tool):
    """An installed library is found by name and version, and gives the header and nothing else."""
    require_tool("cmake")
    prefix = tmp_path / "prefix"
    run(["cmake", "--install", cmake(library), "--prefix", prefix], tmp_path)
    assert [path.name for path in prefix.rglob("*.h")] == ["gesture.h"]
    user = tmp_path / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(user C)\n"
        "find_package(gesture 0.1.0 EXACT REQUIRED)\nadd_executable(user main.c)\n"
        "target_link_libraries(user PRIVATE gesture::gesture)\n"
    )
    (user / "main.c").write_text(
        '#include "gesture.h"\nstatic gesture_scratch_t scratch;\n'
        "static gesture_input_t input[GESTURE_FEATURES];\n"
        "int main(void) { return gesture_predict(input, scratch) >= GESTURE_CLASSES; }\n"
    )
    run([cmake(user, f"-DCMAKE_PREFIX_PATH={prefix}") / "user"], user)


@pytest.mark.slow
@pytest.mark.parametrize("toolchain", ["host", "cortex-m4"])
def test_three_models_in_one_image(toolchain, tmp_path, require_tool):
    """Three runtimes do not clash, and a model in an interrupt does not disturb the others."""
    require_tool("cmake")
    options = []
    if toolchain != "host":
        require_tool("arm-none-eabi-gcc")
        require_tool("qemu-system-arm")
        options = [f"-DCMAKE_TOOLCHAIN_FILE={BUILD_SYSTEMS / 'cortex-m4.cmake'}"]
    folder = tmp_path / "three"
    shutil.copytree(BUILD_SYSTEMS / "three_models", folder)
    for name in MODELS:
        write_library(folder / name, name)
    printed = ctest(cmake(folder, *options))
    assert printed.count("PASS: 8 vectors") >= 3
    assert re.search(r"\d+ interrupts, 0 differences", printed)


def test_single_source_needs_nothing_else(tmp_path: Path) -> None:
    """One header and one source hold the runtime too; `test_exports` builds and runs them."""
    folder = write_library(tmp_path / "single", "gesture", "single")
    names = {"gesture.h", "gesture.c", "gesture_field.h", "LICENSE", "manifest.json"}
    assert {path.name for path in folder.iterdir()} == names
    source = (folder / "gesture.c").read_text()
    assert re.findall(r'#include "(.+)"', source) == ["gesture.h"]
    assert source.count("SPDX-License-Identifier") == 1


def test_arduino_sketch_on_this_computer(library, tmp_path, require_tool):
    """The example compiles as Arduino compiles it, and its sketch runs the self-test."""
    program = arduino(library, tmp_path, require_tool("gcc"), require_tool("g++"))
    printed = run([program], tmp_path)
    assert PASS in printed
    assert "TIME: one inference takes" in printed


def told(model: IntegerModel, samples: NDArray[Any]) -> list[str]:
    """Return what an example prints of a stream: texts of decisions or events, and scores."""
    begins = range(0, len(samples) - model.input.rows - model.delay + 1, model.hop)
    scores = model.scores(np.array([samples[i : i + model.input.rows].ravel() for i in begins]))
    made = scores.argmax(axis=1) if model.decision is None else model.decision.decide(scores)
    made = made if model.events is None else model.events.follow(scores)
    names = {**{i: [str(name)] for i, name in enumerate(model.classes)}, -1: ["I do not know"]}
    lines = []
    for label, row in zip(made.tolist(), scores.tolist(), strict=True):
        lines += [*names.get(label, []), f"m-results-[{','.join(map(str, row))}]"]
    return lines


def export_stream(model: IntegerModel, folder: Path, rate: float = 50) -> Path:
    """Export a model of a stream as the library "motion"."""
    about = {"recordings": {"rate": rate}}
    export(model, None, folder / "motion", name="motion", format="library", about=about)
    return folder / "motion"


def hearing(kind: str) -> IntegerModel:
    """Return a model of a microphone that gives events, decisions or labels."""
    model = spectral_model(1)
    if kind == "decisions":
        return deciding(model, random_raw(model, 1, 40))
    return with_events(model, 2, 0) if kind == "events" else model


@pytest.mark.parametrize("kind", ["three channels", "labels", "events", "decisions"])
def test_arduino_sketch_of_a_stream(kind, tmp_path, require_tool):
    """Stream prints what Python tells of the samples, from any source, and Record the samples."""
    heard = kind != "three channels"
    model = hearing(kind) if heard else local_model(random_signal_stage(1), 1)
    examples = export_stream(model, tmp_path, 16000 if heard else 50) / "examples"
    compilers = (require_tool("gcc"), require_tool("g++"))
    samples = np.arange(1, 1001) * 37 % 1024  # as the stand-in reads them
    samples = samples[: 992 if heard else 999].reshape(-1, model.input.channels)
    board = ["-DARDUINO_ARDUINO_NANO33BLE=1"] * heard
    flags = [*board, "-DMEASURED=2"]
    program = arduino(examples.parent, tmp_path, *compilers, flags, sketch=examples / "Stream")
    *lines, load = sorted(run([program], tmp_path).splitlines(), key=lambda line: "%" in line)
    assert lines == told(model, samples.astype(np.int16))
    assert re.fullmatch(r"the model takes \d+ % of the processor", load)
    if not heard:
        program = arduino(examples.parent, tmp_path, *compilers, sketch=examples / "Record")
        recorded = Lines()
        lines = recorded.take(f"\n{run([program], tmp_path)}".encode())
        assert lines == [tuple(map(str, row)) for row in samples.tolist()]


@pytest.mark.parametrize("rate", [0.5, 2, 50, 300.5, 4000, 16000])
def test_the_adc_of_an_avr_compiles_for_a_rate(rate, tmp_path, require_tool):
    """Timer 1 counts samples of a second to some of audio, each without a warning."""
    stream = export_stream(hearing("labels"), tmp_path, rate) / "examples" / "Stream"
    command = [require_tool("avr-g++"), "-mmcu=atmega328p", "-DF_CPU=16000000ul", "-Os", "-c"]
    command += [*WARNINGS[1:], "-DARDUINO_ARCH_AVR", f"-I{OFFLINE / 'arduino'}"]
    command += [f"-I{stream.parents[1] / 'src'}", "-Wno-conversion", "-Wno-missing-declarations"]
    run([*command, stream / "source_adc.cpp", "-o", tmp_path / "adc.o"], tmp_path)
    named = run([require_tool("avr-nm"), tmp_path / "adc.o"], tmp_path)
    assert ("__vector_21" in named) == (rate >= 2)  # the interrupt of the ADC


@pytest.mark.parametrize(
    ("size", "pixels"), [("160x120", "rgb565"), ("96x96", "yuyv"), ("160x120", "grey8")]
)
def test_arduino_sketch_of_a_camera(size, pixels, tmp_path, require_tool):
    """Camera prints the labels that Python gives of the frames, whose length it knows."""
    channels = 1 if pixels == "grey8" else 3
    model = separable_model(1, (12, 12), channels=channels)
    frame = Frame.of(f"{size}:{pixels}", (12, 12, channels))
    model = replace(model, input=frame.taken, stages=(frame, *model.stages))
    export(model, None, tmp_path / "seen", name="seen", format="library")
    sketch = tmp_path / "seen" / "examples" / "Camera"
    program = arduino(
        tmp_path / "seen", tmp_path, require_tool("gcc"), require_tool("g++"), sketch=sketch
    )
    i = np.arange(frame.taken.size)
    frames = np.array([(i * i >> 7) + i * number for number in range(3)]).astype(np.uint8)
    printed = run([program], tmp_path).split()
    assert printed == [str(label) for label in model.predict(frames)]


@pytest.mark.parametrize(
    ("system", "kind", "example"),
    [
        *(("esp_idf", "int16", "record"), ("esp_idf", "int16", "live")),
        *(("zephyr", "float32", "record"), ("zephyr", "float32", "live")),
        *(("zephyr", "int16", "stream"), ("esp_idf", "decisions", "stream")),
        *(("esp_idf", "labels", "live"), ("zephyr", "decisions", "stream")),
    ],
)
def test_sensor_of_a_stream(system, kind, example, tmp_path, require_tool):
    """On ESP-IDF and Zephyr, too, come samples, scores or decisions of a sensor or microphone."""
    require_tool("cmake")
    timed = kind in ("int16", "float32")
    numbers = np.arange(1, 4000)
    if timed:
        model = local_model(random_signal_stage(1, raw_dtype=kind), 1)
        samples = np.repeat((numbers[:, None] - 1) % 100, 3, axis=1).astype(kind)
    else:
        model, samples = hearing(kind), (numbers[:, None] * 37 % 1024).astype(np.int16)
    folder = export_stream(model, tmp_path, 16000 * (not timed) or 50) / "examples" / system
    if kind == "float32":
        source = folder.parent / "Sensor" / "source_timer.c"
        text = source.read_text()
        assert "(number % 100u)" in text
        source.write_text(text.replace("(number % 100u)", "((float)(number % 100u) * 0.375f - 1)"))
        samples = samples * np.float32(0.375) - 1
    stand_in = [f"-DZephyr_DIR={BUILD_SYSTEMS / 'zephyr'}"] * (system == "zephyr")
    idf = str(BUILD_SYSTEMS / "esp_idf")
    build = cmake(folder, f"-DEXAMPLE={example}", *stand_in, IDF_PATH=idf)
    program = build / ("app" if system == "esp_idf" else "zephyr_final")
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as process:
        printed = [process.stdout.readline().strip() for _ in range(5)]
        process.kill()
    form = {"float32": "{:.6f}"}.get(kind, "{}")
    wanted = told(model, samples)
    lines = {
        "record": [",".join(map(form.format, row)) for row in samples.tolist()],
        "live": [line for line in wanted if results_of(line)],
        "stream": [line for line in wanted if not results_of(line)],
    }
    assert printed == lines[example][:5]


def test_pipe_tells_when_something_happened(tmp_path, require_tool):
    """On a computer, raw samples on standard input become events with the number of the sample."""
    require_tool("cmake")
    model = with_events(local_model(random_signal_stage(13, hop=4), 13))
    program = cmake(export_stream(model, tmp_path)) / "motion_pipe"
    samples = np.cumsum(np.random.default_rng(1).integers(-99, 100, (3000, 3)), axis=0)
    samples = samples.astype(np.int16)
    done = subprocess.run([program], input=samples.tobytes(), capture_output=True, check=True)
    lines = told(model, samples)
    at = model.input.rows + model.delay - model.hop
    wanted = []
    for line in lines:
        if results_of(line):
            at += model.hop
        else:
            wanted.append(f"{at + model.hop}\t{line}")
    assert len(wanted) > 5
    assert done.stdout.decode().splitlines() == wanted


def arduino(
    library: Path,
    folder: Path,
    gcc: str,
    gxx: str,
    flags: Sequence[str] = (),
    start: Path = BOARDS / "host" / "start.c",
    sketch: Path | None = None,
) -> Path:
    """Build a sketch, SelfTest by default, as Arduino does: Arduino.h before the sketch, then all C
    of its folder and of src/ of the library; return the program."""
    sketch = sketch or library / "examples" / "SelfTest"
    headers = [f"-I{path}" for path in (OFFLINE / "arduino", library / "src", sketch, BOARDS)]
    more = [OFFLINE / "arduino" / "arduino.cpp", *sketch.glob("*.cpp")]
    compile_only = [*flags, "-Os", *headers, "-c"]
    objects = []
    for source in (*sketch.glob("*.c"), *(library / "src").glob("*.c"), start):
        objects.append(folder / f"{source.stem}.o")
        strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
        run([gcc, *compile_only, *strict, source, "-o", objects[-1]], folder)
    plus = [gxx, *compile_only, "-std=gnu++11", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra"]
    for source in more:
        objects.append(folder / f"{source.stem}.o")
        run([*plus, "-Werror", source, "-o", objects[-1]], folder)
    as_sketch = ["-Werror", "-include", "Arduino.h", "-x", "c++", sketch / f"{sketch.name}.ino"]
    run([*plus, *as_sketch, "-o", folder / "sketch.o"], folder)
    run([gxx, *flags, *objects, folder / "sketch.o", "-o", folder / "program"], folder)
    return folder / "program"


def test_zephyr_module_and_sample(library: Path, require_tool: Callable[[str], Any]) -> None:
    """The sample finds the module it lies in; with a stand-in for Zephyr it builds and passes."""
    require_tool("cmake")
    build = cmake(library / "examples" / "zephyr", f"-DZephyr_DIR={BUILD_SYSTEMS / 'zephyr'}")
    printed = run([build / "zephyr_final"], build)
    assert PASS in printed
    assert re.search(r"TIME: one inference takes \d+ microseconds", printed)


def test_zephyr_module_that_is_not_chosen(library, require_tool):
    """Without its line in prj.conf the module adds nothing to the build."""
    require_tool("cmake")
    sample = library / "examples" / "zephyr"
    (sample / "prj.conf").write_text("CONFIG_PRINTK=y\n")
    with pytest.raises(AssertionError, match=r"gesture\.h"):
        cmake(sample, f"-DZephyr_DIR={BUILD_SYSTEMS / 'zephyr'}")


def test_esp_idf_component_and_example(library: Path, require_tool: Callable[[str], Any]) -> None:
    """The example finds the component, whatever its folder is called, and passes."""
    require_tool("cmake")
    renamed = library.rename(library.with_name("renamed"))
    build = cmake(renamed / "examples" / "esp_idf", IDF_PATH=str(BUILD_SYSTEMS / "esp_idf"))
    printed = run([build / "app"], build)
    assert PASS in printed
    assert "TIME: one inference takes 7 microseconds" in printed


def test_esp_idf_component_is_packed(library, tmp_path, require_tool):
    """The tool of Espressif's registry accepts the manifest and packs what belongs to it."""
    pack = [require_tool("compote"), "component", "pack", "--name", "gesture"]
    run([*pack, "--dest-dir", tmp_path / "dist"], library)
    assert list((tmp_path / "dist").glob("gesture_*.tgz"))
    (packed,) = (path for path in (tmp_path / "dist").iterdir() if path.is_dir())
    for file in (
        *("src/gesture.c", "src/tk_predict.h", "LICENSE", "examples/esp_idf/main/main.c"),
        *("examples/SelfTest/gesture_selftest.c", "idf_component.yml"),
    ):
        assert (packed / file).is_file(), file
