"""Every kind of model in every format, by two compilers: it links, runs and is right."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.codegen.kinds import EVERY
from tinykernel.build.program import WARNING_FLAGS
from tinykernel.codegen.projects import export, formats
from tinykernel.codegen.sources import render_single, render_sources

#: By format: what is compiled, and where its headers are.
SOURCES = {
    "library": (("library/src/@.c", "library/examples/SelfTest/@_selftest.c"), "library"),
    "platformio": (("platformio/src/tk_selftest.c", "platformio/src/tk_protocol.c"), "platformio"),
    "single": (("single/@.c",), "single"),
}
#: The function of each model that its program calls.
CALLED = {"library": "selftest", "platformio": "run", "single": "selftest"}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all models in all formats, model `i` as m<i>."""
    root = tmp_path_factory.mktemp("projects")
    for number, make in enumerate(EVERY.values()):
        model, name = make(), f"m{number}"
        folder = root / name
        for format in formats():
            target = "host" if format == "platformio" else None
            export(model, target, folder / format, name=name, format=format)
        for path in (folder / "platformio" / "lib" / name / "src").iterdir():
            assert path.read_bytes() == (folder / "library" / "src" / path.name).read_bytes()
    return root


def compiled(compiler: str, folder: Path, format: str, objects: Path) -> list[str]:
    """Compile what a format has of its own, all warnings errors; return the object files."""
    patterns, place = SOURCES[format]
    name, extra = folder.name, ["-Wcast-align"] if compiler.endswith("clang") else []
    headers = {path.parent for path in folder.glob(f"{place}/**/*.h")}
    headers.add(folder / "library/examples/SelfTest")
    objects.mkdir(parents=True)
    command = [compiler, "-O0", *WARNING_FLAGS, *extra, f"-Dtk_selftest_run={name}_run"]
    command += [f"-Dtk_protocol_poll={name}_poll", "-c"]
    command += [f"-I{path}" for path in sorted(headers)]
    command += [str(folder / pattern.replace("@", name)) for pattern in patterns]
    done = subprocess.run(command, cwd=objects, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), f"{list(EVERY)[int(name[1:])]}: {done.stderr}"
    return sorted(str(path) for path in objects.glob("*.o"))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_kind_of_model_links_and_runs(
    compiler: str, projects: Path, tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """Without a warning; all models of a format in one program, whose scores are all right."""
    program = require_tool(compiler)
    folders = [projects / f"m{number}" for number in range(len(EVERY))]
    made = {
        format: [compiled(program, f, format, tmp_path / format / f.name) for f in folders]
        for format in SOURCES
    }
    common = projects / "m0" / "platformio"
    selftests = [objects[1] for objects in made["library"]]
    for format in SOURCES:
        calls = [f"{folder.name}_{CALLED[format]}" for folder in folders]
        given = "tk_board_print, 0" if CALLED[format] == "selftest" else ""
        taken = "void (*print)(const char *), uint32_t (*microseconds)(void)" if given else "void"
        heads = "".join(f"int {call}({taken});\n" for call in calls)
        returned = " | ".join(f"{call}({given})" for call in calls)
        (tmp_path / "main.c").write_text(
            f'#include "tk_board.h"\n{heads}int main(void) {{ return {returned}; }}\n'
        )
        objects = {path for paths in made[format] for path in paths} | set(selftests)
        if format == "platformio":
            objects |= {path for paths in made["library"] for path in paths}
        command = [
            program,
            f"-I{common / 'include'}",
            tmp_path / "main.c",
            common / "src/tk_board.c",
        ]
        subprocess.run([*command, *sorted(objects), "-o", tmp_path / format / "all"], check=True)
        done = subprocess.run([tmp_path / format / "all"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        assert len(re.findall(r"PASS: \d vectors?", done.stdout)) == len(EVERY), done.stdout


def test_every_format_is_tried() -> None:
    """A new format must say here which of its files are compiled."""
    assert set(SOURCES) == set(formats())


def test_a_header_dropped_in_a_false_condition_was_missing_in_the_single_source() -> None:
    """What stands in one condition is there again where another one may hold."""
    files = render_sources(EVERY["float signal, calibrated: known"](), "m")
    text = render_single(files, "m")["single/m.c"].decode()
    assert text.count("/* tk_float.h */") == text.count("/* tk_prototypes.h */") == 2
    assert text.count("/* tk_words.h */") == 1
