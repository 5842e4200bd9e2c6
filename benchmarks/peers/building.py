"""Build other classifiers in C, run them on this computer and count their instructions."""

import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from elftools.elf.elffile import ELFFile

from tinykernel.base import files as resources
from tinykernel.compile.compilers import Toolchain
from tinykernel.compile.targets import find_target
from tinykernel.run.bench import function_ranges
from tinykernel.run.program import build, find_platforms, find_toolchain

__all__ = [
    "SOURCES",
    "Outcome",
    "Sources",
    "count_instructions",
    "finished",
    "flash_and_ram",
    "header",
    "run_on_host",
    "sections",
]

#: The folder of hand-written C.
SOURCES = Path(__file__).parent
_TARGET = "cortex-m4"
_C_TYPES = {"uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "float32": "float"}


@dataclass(frozen=True)
class Outcome:
    """One trained classifier and the labels that it gives the test rows."""

    what: str
    flash: int
    source: str
    labels: np.ndarray
    instructions: int | None = None
    ram: int | None = None


class _WithMath(Toolchain):
    """A compiler that links the mathematical library, after all else."""

    def link(self, objects: Any, output: Path, **named: Any) -> None:
        super().link([*objects, Path("-lm")], output, **named)


def _with_math(chain: Toolchain) -> Toolchain:
    return _WithMath(**vars(chain))


@dataclass(frozen=True)
class Sources:
    """A peer in C: its files by name, one of them peer.c, and where other headers are."""

    files: dict[str, str]
    include: tuple[Path, ...] = ()


def flash_and_ram(sources: Sources) -> tuple[int, int]:
    """Return the bytes that a peer adds to an empty program, and its static data."""
    chain = find_toolchain(find_target(_TARGET))
    assert chain is not None
    sizes = []
    with _written(sources) as folder:
        script = resources.source_folder("firmware") / "boards" / "size.ld"
        include = [folder, *sources.include]
        _with_math(chain).compile(folder / "peer.c", folder / "peer.o", include=include)
        for kind, flags in (("empty", ["-DEMPTY"]), ("full", [])):
            output = folder / f"{kind}.o"
            chain.compile(
                SOURCES / "size.c", output, include=include, flags=["-Os", "-std=c99", *flags]
            )
            elf = folder / f"{kind}.elf"
            _with_math(chain).link([output, folder / "peer.o"], elf, script=script)
            sizes.append(sections(elf))
    (empty, empty_ram), (full, full_ram) = sizes
    return full - empty, full_ram - empty_ram


def sections(path: Path) -> tuple[int, int]:
    """Return the bytes of a program in flash, and in RAM without the stack."""
    flash = ram = 0
    with path.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            if section["sh_flags"] & 2:
                flash += section["sh_size"] if section["sh_type"] != "SHT_NOBITS" else 0
                ram += section["sh_size"] if section["sh_flags"] & 1 else 0
    return flash, ram


@contextlib.contextmanager
def _written(sources: Sources) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as name:
        for file, text in sources.files.items():
            (Path(name) / file).write_text(text)
        yield Path(name)


def run_on_host(sources: Sources, rows: np.ndarray) -> np.ndarray:
    """Return the labels that the C gives rows, on this computer."""
    with _written(sources) as folder:
        program = _program(sources, folder, "host")
        rows.tofile(folder / "in.bin")
        program.run()
        return np.fromfile(folder / "out.bin", "<i4")


def count_instructions(sources: Sources, row: np.ndarray) -> int:
    """Count the instructions of one decision on the target."""
    with _written(sources) as folder:
        program = _program(sources, folder, _TARGET)
        row.tofile(folder / "in.bin")
        functions = function_ranges(program.path)
        begin = functions["peer_predict"].start
        outside = (functions["peer_measured"], functions["main"])
        count, inside = 0, False
        for address in itertools.chain.from_iterable(program.trace()):
            inside = inside or address == begin
            if inside and any(address in function for function in outside):
                return count
            count += inside
    raise SystemExit("the emulator's trace shows no decision")


def _program(sources: Sources, folder: Path, target: str) -> Any:
    platform = find_platforms(find_target(target))[-1]
    platform = replace(platform, chain=_with_math(platform.chain))
    flags = ["-Os", "-std=gnu99"]
    files = [SOURCES / "harness.c", folder / "peer.c"]
    return build(platform, files, folder, include=[folder, *sources.include], flags=flags)


def finished(
    what: str, sources: Sources, flash: int, ram: int, X_test: np.ndarray, classes: np.ndarray
) -> Outcome:
    """Run a peer that fits over the test rows."""
    labels = classes[run_on_host(sources, X_test)]
    counts = [count_instructions(sources, X_test[i : i + 1]) for i in range(min(3, len(X_test)))]
    return Outcome(what, flash, "linked", labels, max(counts), ram)


def header(dtype: np.dtype[Any], n_inputs: int) -> str:
    """Write peer.h."""
    return (
        f"#include <stdint.h>\ntypedef {_C_TYPES[dtype.name]} peer_input_t;\n"
        f"#define PEER_INPUTS {n_inputs}\nint32_t peer_predict(const peer_input_t *row);\n"
    )
