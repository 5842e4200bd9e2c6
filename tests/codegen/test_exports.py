"""Models in every format: each compiles without a warning, links, runs and is right."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.codegen.kinds import EVERY
from tinykernel.compile.projects import export, formats
from tinykernel.compile.sources import render_single, render_sources
from tinykernel.model.integer import IntegerModel
from tinykernel.run.program import WARNING_FLAGS

#: By format: what is compiled, and the function of each model that its program calls.
SOURCES = {
    "library": (("src/@.c", "examples/SelfTest/@_selftest.c"), "selftest"),
    "single": (("@.c",), "selftest"),
    "platformio": (("src/tk_selftest.c", "src/tk_protocol.c"), "run"),
}
STAND_INS = Path(__file__).parent
SOUND = {"recordings": {"rate": 16000}}
PRINT = "void (*print)(const char *), uint32_t (*microseconds)(void)"


def protocol_of(model: IntegerModel) -> tuple[object, ...]:
    """Return what the program for a board depends on, beside the C of the model."""
    decision, kind = model.decision, model.input.kind
    decides = decision is not None and (decision.novelty_threshold is None, decision.n_prototypes)
    lines = model.stages[0].GIVES == "image"
    return kind, lines, model.hop > 0, model.n_numbers > 0, type(model.answers), decides


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Return the folders of models by format, as m<number>.

    Libraries and single sources are of a third of all kinds, as zig builds every model, and
    programs of one kind for each protocol.
    """
    root = tmp_path_factory.mktemp("projects")
    models = {f"m{number}": make() for number, make in enumerate(EVERY.values())}
    boards = {protocol_of(model): name for name, model in models.items()}.values()
    made: dict[str, list[Path]] = {}
    for format in ("library", "single", "platformio"):
        names = dict.fromkeys(boards if format == "platformio" else [*[*models][::3], *boards])
        target = "host" if format == "platformio" else None
        made[format] = [root / format / name for name in names]
        for folder in made[format]:
            model, name = models[folder.name], folder.name
            export(model, target, folder, name=name, format=format, about=SOUND)
    for folder in made["platformio"]:
        for path in (folder / "lib" / folder.name / "src").iterdir():
            assert path.read_bytes() == (root / "single" / folder.name / path.name).read_bytes()
    return made


def compiled(command: list[str], folder: Path, objects: Path) -> list[str]:
    """Compile what a format has of its own, all warnings errors; return the object files."""
    name, format = folder.name, folder.parent.name
    headers = {path.parent for path in folder.rglob("*.h")}
    headers.add(folder.parents[1] / "library" / name / "examples" / "SelfTest")
    objects.mkdir(parents=True)
    command = [*command, "-O0", *WARNING_FLAGS, f"-Dtk_selftest_run={name}_run"]
    command += [f"-Dtk_protocol_poll={name}_poll", *(f"-I{path}" for path in sorted(headers))]
    command += [str(folder / source.replace("@", name)) for source in SOURCES[format][0]]
    done = subprocess.run(command, cwd=objects, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), f"{list(EVERY)[int(name[1:])]}: {done.stderr}"
    return sorted(str(path) for path in objects.glob("*.o"))


@pytest.mark.slow
def test_kinds_of_models_link_and_run(projects, tmp_path, require_tool):
    """All models of a format in one program, whose scores are all right."""
    gcc = require_tool("gcc")
    made = {
        format: {f.name: compiled([gcc, "-c"], f, tmp_path / format / f.name) for f in folders}
        for format, folders in projects.items()
    }
    common = projects["platformio"][0]
    for format, folders in projects.items():
        called, taken = SOURCES[format][1], PRINT if format != "platformio" else "void"
        given = "tk_board_print, 0" if format != "platformio" else ""
        calls = [f"{folder.name}_{called}" for folder in folders]
        heads = "".join(f"int {call}({taken});\n" for call in calls)
        returned = " | ".join(f"{call}({given})" for call in calls)
        (tmp_path / "main.c").write_text(
            f'#include "tk_board.h"\n{heads}int main(void) {{ return {returned}; }}\n'
        )
        # The self-test of a single source, and all of the library in a project, are those there.
        shared = slice(1, None) if format == "single" else slice(None)
        objects = {path for f in folders for path in made["library"][f.name][shared]}
        objects |= {path for paths in made[format].values() for path in paths}
        program = tmp_path / format / "all"
        command = [gcc, f"-I{common / 'include'}", tmp_path / "main.c", common / "src/tk_board.c"]
        subprocess.run([*command, *sorted(objects), "-o", program], check=True)
        done = subprocess.run([program], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        assert len(re.findall(r"PASS: \d vectors?", done.stdout)) == len(folders), done.stdout


@pytest.mark.slow
def test_no_kind_of_model_has_a_warning_of_clang(projects, tmp_path, require_tool):
    """Nor do alignments that a cast raises, which neither GCC nor zig tell."""
    command = [require_tool("clang"), "-fsyntax-only", "-Wcast-align"]
    for format in ("library", "platformio"):
        for folder in projects[format]:
            compiled(command, folder, tmp_path / format / folder.name)


def test_examples_of_every_kind_of_stream_compile(projects, tmp_path, require_tool):
    """Sketches as Arduino compiles them, and sources of ESP-IDF, Zephyr and CMake, in each use."""
    gcc, gxx = require_tool("gcc"), require_tool("g++")
    idf, zephyr = STAND_INS / "build_systems/esp_idf/include", STAND_INS / "build_systems/zephyr"
    on_zephyr = [gcc, "-D__ZEPHYR__", f"-I{zephyr / 'include'}", f"-I{zephyr / 'audio'}"]
    plus = [gxx, "-std=gnu++11", f"-I{STAND_INS / 'platform_offline/arduino'}"]
    uses: list[tuple[list[str], str]] = [
        ([*plus, "-include", "Arduino.h", "-xc++"], "Stream/Stream.ino Record/Record.ino"),
        (plus, "Stream/source_loop.cpp"),
        ([*plus, "-DARDUINO_ARDUINO_NANO33BLE"], "Stream/source_pdm.cpp"),
        ([gcc, "-DRECORD"], "Sensor/sensor.c"),
        ([gcc, "-DESP_PLATFORM", f"-I{idf}"], "Sensor/sensor.c Stream/source_i2s.c Pipe/main.c"),
        ([gcc, "-DSOURCE_TIMER", f"-I{idf}"], "Sensor/source_timer.c"),
        ([*on_zephyr, "-DSOURCE_TIMER", "-DLIVE"], "Sensor/sensor.c Sensor/source_timer.c"),
        ([*on_zephyr, "-DSOURCE_DMIC"], "Sensor/source_dmic.c"),
    ]
    for folder in projects["platformio"]:
        examples = folder.parents[1] / "library" / folder.name / "examples"
        for command, sources in uses:
            paths = [p for p in map(examples.joinpath, sources.split()) if p.exists()]
            if not paths:  # of a model without a stream, or of no sound
                continue
            headers = [f"-I{examples / 'Stream'}", f"-I{examples.parent / 'src'}"]
            flags = ["-fsyntax-only", *WARNING_FLAGS[command[0] == gxx :], *headers]
            done = subprocess.run([*command, *flags, *paths], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, ""), f"{folder.name}: {done.stderr}"


def test_every_format_is_tried() -> None:
    """A new format must say here which of its files are compiled; test_web.py runs a module."""
    assert {*SOURCES, "web"} == set(formats())


def test_a_single_source_has_every_header_where_it_is_needed() -> None:
    """What stands in one condition is there again where another one may hold."""
    files = render_sources(EVERY["float signal, calibrated: known"](), "m")
    text = render_single(files, "m")["single/m.c"].decode()
    assert text.count("/* tk_float.h */") == 2
    assert text.count("/* tk_prototypes.h */") == text.count("/* tk_words.h */") == 1
