"""Print the code bytes and the stack of every header of the runtime on three cores.

``python benchmarks/headers.py`` compiles one model of every kind, counts bytes by the line table of
the program, and compares with the last tag. A header has the most bytes and the most stack that one
model needs of it; tables are not counted. It needs arm-none-eabi-gcc and riscv64-unknown-elf-gcc.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tests.codegen.kinds import EVERY
from tinykernel.compile.sources import render_sources
from tinykernel.model.integer import IntegerModel
from tinykernel.run.program import find_toolchain, write_sources

ROOT = Path(__file__).resolve().parents[1]
CORES = ("cortex-m0plus", "cortex-m4", "esp32c3")
# Linked whole, so that the line table has addresses; what the code calls of libgcc is left out.
_LINKED = ("-nostdlib", "-Wl,-e,0,--no-gc-sections,--unresolved-symbols=ignore-all")
Table = dict[str, dict[str, list[int]]]  # bytes and stack by header and core


def models() -> Iterator[IntegerModel]:
    """Yield models until each piece that one has was in one."""
    seen = set[str]()
    for make in EVERY.values():
        model = make()
        kinds = {piece.KIND for piece in model.pieces}
        if not kinds <= seen:
            seen |= kinds
            yield model


def bytes_by_file(file: Path) -> Counter[str]:
    """Return the bytes of the code in a program by the name of the file that they come from."""
    found: Counter[str] = Counter()
    with file.open("rb") as opened:
        debug = ELFFile(opened).get_dwarf_info()
        for unit in debug.iter_CUs():
            program = debug.line_program_for_CU(unit)
            names, before = program["file_entry"], None
            for state in (entry.state for entry in program.get_entries() if entry.state):
                if before is not None:
                    name = names[before.file - 1].name.decode()
                    found[Path(name).name] += state.address - before.address
                before = None if state.end_sequence else state
    return found


def measured() -> Table:
    """Compile all models for all cores."""
    table: Table = {}
    with tempfile.TemporaryDirectory() as place:
        for number, model in enumerate(models()):
            folder = Path(place, str(number))
            include = write_sources(folder, render_sources(model, "model"))
            for core in CORES:
                chain, built = find_toolchain(core, "gcc"), folder / f"{core}.o"
                if chain is None:
                    sys.exit(f"no gcc for {core}: see .ci/run")
                flags = ["-Os", "-std=c99", "-gdwarf-4", "-fstack-usage"]
                chain.compile(folder / "src/model.c", built, include=include, flags=flags)
                whole = built.with_suffix(".elf")
                link = [*chain.command, *chain.flags, *_LINKED, str(built), "-o", str(whole)]
                subprocess.run(link, check=True)
                stacks: dict[str, int] = {}
                for line in built.with_suffix(".su").read_text().splitlines():
                    where, n_bytes, _ = line.split("\t")
                    name = Path(where.split(":")[0]).name
                    stacks[name] = max(stacks.get(name, 0), int(n_bytes))
                for name, n_bytes in bytes_by_file(whole).items():
                    cell = table.setdefault(name, {}).setdefault(core, [0, 0])
                    cell[:] = max(cell[0], n_bytes), max(cell[1], stacks.get(name, 0))
    return table


def of_last_tag() -> tuple[str, Table]:
    """Return the name of the last tag and its table, which its own sources make."""
    git = ("git", "-C", str(ROOT))
    tags = subprocess.check_output([*git, "tag", "--sort=-creatordate"], text=True).split()
    if not tags:
        return "no tag yet", {}
    with tempfile.TemporaryDirectory() as place:
        packed = subprocess.check_output([*git, "archive", tags[0]])
        subprocess.run(["tar", "-x", "-C", place], input=packed, check=True)
        script = Path(place, "benchmarks/headers.py")
        if not script.is_file():
            return f"{tags[0]} has no such table", {}
        command = [sys.executable, str(script), "--json"]
        environment = os.environ | {"PYTHONPATH": place}
        return tags[0], json.loads(subprocess.check_output(command, env=environment))


def shown(now: list[int], before: list[int] | None) -> str:
    """Return bytes and stack, each with its difference where there is one.

    >>> shown([120, 16], [100, 16]), shown([120, 16], None)
    ('120 (+20), 16', '120, 16')
    """
    changes = [0, 0] if before is None else [n - b for n, b in zip(now, before, strict=True)]
    return ", ".join(f"{n} ({d:+})" if d else str(n) for n, d in zip(now, changes, strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="the numbers alone")
    table = measured()
    if parser.parse_args().json:
        print(json.dumps(table))
        return
    tag, before = of_last_tag()
    print(f"code bytes, stack (difference to the last tag: {tag})")
    print(f"{'header':20}" + "".join(f"{core:>24}" for core in CORES))
    for name, row in sorted(table.items()):
        old = before.get(name, {})
        cells = (shown(row[core], old.get(core)) if core in row else "-" for core in CORES)
        print(f"{name:20}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
