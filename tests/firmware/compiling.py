"""Compilers and checkers on the C of a model that lies in a folder."""

import subprocess
from pathlib import Path

from tests.sessions import ROOT
from tinykernel.compile.sources import render_sources, runtime_files
from tinykernel.model.integer import IntegerModel
from tinykernel.run.program import write_sources

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
CPP = ("-xc++", "-std=c++17")
# A program, or a target whose compiler it may be, and options.
COMPILERS = [
    *(("gcc", "-std=c99"), ("clang", "-std=c99"), ("g++", *CPP), ("clang++", *CPP)),
    *(("cortex-m0plus", "-std=c99"), ("cortex-m33", "-std=c99"), ("cortex-m4f", "-std=gnu11")),
    *(("cortex-m0", *CPP, "-ffreestanding"), ("cortex-m4", *CPP, "-ffreestanding")),
    ("esp32c3", "-std=c99", "-ffreestanding"),
    ("xtensa-lx106-elf-gcc", "-std=c99", "-ffreestanding"),
    ("avr-gcc", "-std=gnu99", "-mmcu=atmega328p"),
    ("clang", "-std=c99", "--target=thumbv6m-none-eabi", "-mcpu=cortex-m0", "-ffreestanding"),
    ("clang", "-std=c99", "--target=thumbv7em-none-eabi", "-mcpu=cortex-m4", "-ffreestanding"),
]


def run_compiler(
    folder: Path, *command: str, source: str = "gesture.c", to_object: bool = True
) -> subprocess.CompletedProcess[str]:
    """Compile a source of a model, to ``object.o`` unless the command says what else to do."""
    headers = [f"-I{folder / place}" for place in ("include", "lib/tinykernel/src")]
    output = ["-c", "-o", str(folder / "object.o")] if to_object else []
    words = [*command, *headers, *output, str(folder / "src" / source)]
    return subprocess.run(words, capture_output=True, text=True)


def put_runtime(folder: Path) -> None:
    """Put the headers of the runtime into a folder."""
    for path, data in runtime_files().items():
        (folder / Path(path).name).write_bytes(data)


def program(name: str) -> str:
    """Return the text of a program of ``tests/programs``."""
    return (ROOT / "tests" / "programs" / f"{name}.c").read_text(encoding="ascii")


def run_program(
    gcc: str, name: str, model: IntegerModel, folder: Path, *flags: str, sanitised: bool = True
) -> int:
    """Run a program of ``tests/programs`` with the C of a model, called m; return its status."""
    include = [f"-I{path}" for path in write_sources(folder, render_sources(model, "m"))]
    text, source = program(name), folder / "src" / "main.c"
    source.write_text(text)
    sources = [source] if '#include "m.c"' in text else [source, folder / "src" / "m.c"]
    command = [gcc, "-std=c99", *flags, *include, *sources, "-o", folder / "program"]
    command += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] * sanitised
    subprocess.run(command, check=True)
    return subprocess.run([folder / "program"]).returncode


def compile_export(compiler: list[str], folder: Path) -> Path:
    """Compile an export for this computer with all warnings; return the program."""
    headers = sorted({f"-I{path.parent}" for path in folder.rglob("*.h")})
    sources = [*folder.glob("src/*.c"), *folder.glob("lib/*/src/*.c")]
    command = [*compiler, "-std=c99", *WARNINGS, *headers, *sources, "-o", folder / "program"]
    subprocess.run(command, check=True)
    return folder / "program"


def check_statically(cppcheck: str, folder: Path) -> None:
    """Fail where cppcheck finds anything in the C of a model."""
    options = ["--quiet", "--language=c", "--std=c99", "--error-exitcode=1", "--platform=unix32"]
    options += ["-DINT_MAX=2147483647", "-DTK_ALIAS="]
    options += ["--enable=warning,style,performance,portability"]
    options += ["--suppress=missingIncludeSystem", "--inline-suppr"]
    finished = run_compiler(folder, cppcheck, *options, to_object=False)
    assert finished.returncode == 0, finished.stderr
