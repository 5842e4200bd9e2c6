"""From sources to a program that runs on this computer or on an emulated board."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinykernel.base import files as resources
from tinykernel.base.errors import LinkError, ToolError
from tinykernel.compile.compilers import Toolchain, run_command
from tinykernel.compile.sources import render_sources
from tinykernel.compile.targets import Target
from tinykernel.model.integer import IntegerModel
from tinykernel.run import emulated
from tinykernel.run.emulated import Machine, machines_for
from tinykernel.run.toolchains import find_toolchain

#: Name of the model in the programs built here.
MODEL = "tested"
#: The language and the warnings that generated C is clean under; each is an error here.
WARNING_FLAGS = (
    *("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"),
)
_START_FLAGS = ("-Os", "-std=gnu99")
_START = {"xtensa": ("start.c", "rom.c")}
_TOOLS = {"arm": "gcc-arm-none-eabi and qemu-system-arm", "avr": "gcc-avr, avr-libc and simavr"}
# GCC with QEMU (AVR: simavr), zig with Unicorn, which both come from PyPI, and the other pairs.
_BACK_ENDS = (
    ("gcc", "qemu"),
    ("gcc", "simavr"),
    ("zig", "unicorn"),
    ("gcc", "unicorn"),
    ("zig", "qemu"),
)


@dataclass(frozen=True)
class Platform:
    """A compiler that builds a program, and an emulator that runs it."""

    chain: Toolchain
    machine: Machine | None = None  # the emulated board; None for this computer.
    back_end: str = ""  # {"", "qemu", "unicorn", "simavr"}
    emulator: str = ""  # its name and version; empty for this computer.
    note: str = ""  # what a run there does not prove about the target; mostly empty.

    @property
    def core(self) -> str:
        """The processor core; empty for this computer."""
        return "" if self.machine is None else self.machine.core


@dataclass(frozen=True)
class Program:
    """An executable file and the platform that it was built for; its files lie beside it."""

    path: Path
    platform: Platform

    def run(self) -> None:
        """Run it to its end; anything but the status 0 is an error of one line."""
        machine = self.platform.machine
        if machine is None:
            finished = run_command([str(self.path)], folder=self.path.parent, timeout=600.0)
            name, status, text = self.path.name, finished.returncode, finished.stderr
        else:
            name = machine.name
            status, text = emulated.run(machine, self.path, back_end=self.platform.back_end)
            if status == emulated.EXIT_FAULT:
                raise ToolError(
                    f"{name}: the {machine.core} stopped the program: an instruction or an "
                    "address that it does not have"
                )
        if status != 0:
            reason = (text.strip().splitlines() or ["no message"])[0]
            raise ToolError(f"{name}: the program failed with status {status}: {reason}")

    def trace(self) -> Iterator[emulated.Block]:
        """Run it on its emulated board, and give the blocks of instructions that it executes."""
        assert self.platform.machine is not None
        return emulated.trace(self.platform.machine, self.path, back_end=self.platform.back_end)


def find_platform(target: Target, machine: Machine, back_end: str = "auto") -> Platform | None:
    """Find a compiler and an emulator for a machine, or None; `back_end` selects one of the two."""
    closest, note = machines_for(target)[0], target.emulated_as.format(core=machine.core)
    if not note and machine is not closest:
        note = (
            f"the model needs more memory than the emulated {closest.core} board has; its code for "
            f"{target.name} ran on a {machine.core}, which has the same instructions and more"
        )
    for kind, emulator in _BACK_ENDS:
        if back_end not in ("auto", emulator):
            continue
        chain = find_toolchain(machine.target or target, kind)
        name = emulated.emulator_name(machine, emulator)
        if chain is not None and name is not None:
            return Platform(chain, machine, emulator, name, note)
    return None


def find_platforms(target: Target, back_end: str = "auto") -> list[Platform]:
    """List what can build and run programs for a target, the closest first; at least one."""
    if target.family == "host":
        chain = find_toolchain(target)
        if chain is None:
            raise ToolError(
                "no C compiler found (looked for gcc, clang, cc and zig); "
                "install one, for instance with 'pip install ziglang'"
            )
        return [Platform(chain)]
    by_machine = [find_platform(target, machine, back_end) for machine in machines_for(target)]
    platforms = [platform for platform in by_machine if platform is not None]
    if not platforms:
        raise ToolError(
            f"no compiler and emulator for {target.name} found; install {tools_for(target)}"
        )
    return platforms


def tools_for(target: Target) -> str:
    """Name what to install to build and run programs for a target."""
    if target.family == "host":
        return "gcc, clang, or 'pip install ziglang'"
    from_pypi = ", or 'pip install ziglang unicorn'" if target.zig else ""
    return _TOOLS.get(target.family, "its gcc and qemu") + from_pypi


def write_sources(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Write rendered files, by relative POSIX path, and list the folders that hold headers."""
    headers = set()
    for name, data in files.items():
        path = folder.joinpath(*name.split("/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if name.endswith(".h"):
            headers.add(path.parent)
    return sorted(headers)


def build(
    platform: Platform,
    sources: Sequence[Path],
    folder: Path,
    *,
    include: Sequence[Path] = (),
    flags: Sequence[str] = ("-Os", "-std=c99"),
    objects: Sequence[Path] = (),
) -> Program:
    """Compile sources, one of them with a `main`, and link them, with objects, in `folder`."""
    boards = resources.folder("firmware") / "boards"
    machine, chain = platform.machine, platform.chain
    family = "host" if machine is None else machine.family
    linked = [*objects]
    for name in _START.get(family, ("start.c",)):
        linked.append(folder / f"board-{name}.o")
        chain.compile(boards / family / name, linked[-1], include=[boards], flags=_START_FLAGS)
    for source in sources:
        linked.append(folder / f"{source.stem}.o")
        chain.compile(source, linked[-1], include=[boards, *include], flags=flags)
    if machine is None:
        path = folder / ("program.exe" if os.name == "nt" else "program")
        chain.link(linked, path, flags=flags)  # sanitisers are options of the linker too
        return Program(path, platform)
    path = folder / "program.elf"
    entry = ["-Wl,-e,tk_reset"] if chain.kind == "zig" else []
    # The script that places a program in the memory of the machine.
    special = boards / family / "board.ld"
    text = (special if special.exists() else boards / "board.ld").read_text(encoding="utf-8")
    for name, (start, size) in {"ROM": machine.rom, "RAM": machine.ram}.items():
        text = text.replace(f"@{name}@", hex(start)).replace(f"@{name}_SIZE@", hex(size))
    script = folder / "board.ld"
    script.write_text(text, encoding="utf-8")
    chain.link(linked, path, script=script, flags=entry)
    return Program(path, platform)


def harness_flags(model: IntegerModel, name: str) -> list[str]:
    """Return the options by which harness.c knows a model and what it has."""
    flags = [f"-DMODEL_HEADER={name}.h", f"-DMODEL={name}", f"-DMODEL_UPPER={name.upper()}"]
    if model.takes_quantized:
        flags.append("-DQUANTIZED_ENTRIES=1")
    elif model.hop:
        flags.append("-DSTREAM_ENTRIES=1")
    if model.n_numbers:
        flags.append("-DNUMBERS=1")
    if model.is_regressor:
        flags.append("-DVALUES=1")
    if model.decision is not None:
        flags.append("-DDECISIONS=1")
        if model.decision.novelty_threshold is not None:
            flags.append(f"-DNOVELTY={2 if model.decision.n_prototypes else 1}")
    return flags


def build_model(
    model: IntegerModel, platform: Platform, folder: Path, flags: Sequence[str] | None = None
) -> Program:
    """Build a model with the harness that feeds it, in a new folder."""
    include = write_sources(folder, render_sources(model, MODEL))
    if flags is None:  # on boards as frameworks do
        flags = ("-O2",) if platform.machine is None else ("-Os",)
    # Counting by stage reads the debugging data of a board's program.
    measured = [] if platform.machine is None else ["-DPAINT_STACK=1", "-g"]
    return build(
        platform,
        [resources.folder("firmware") / "boards" / "harness.c", folder / "src" / f"{MODEL}.c"],
        folder,
        include=include,
        flags=[*WARNING_FLAGS, *flags, *harness_flags(model, MODEL), *measured],
    )


def build_closest(
    model: IntegerModel,
    platforms: Sequence[Platform],
    folder: Path,
    flags: Sequence[str] | None = None,
) -> Program:
    """Build a model for the first of these platforms that is large enough for it."""
    return on_closest(platforms, lambda platform: build_model(model, platform, folder, flags))


def on_closest(platforms: Sequence[Platform], build_for: Callable[[Platform], Program]) -> Program:
    """Build a program for the first of these platforms that is large enough for it."""
    for platform in platforms[:-1]:
        with contextlib.suppress(LinkError):
            return build_for(platform)
    return build_for(platforms[-1])
