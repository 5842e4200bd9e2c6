"""From sources to a program: the compilers of a machine, and running here or on an emulator."""

import contextlib
import functools
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tinykernel.base.errors import LinkError, TinykernelError, ToolError
from tinykernel.base.files import home, source_folder
from tinykernel.compile.compilers import Toolchain, run_command, zig_command
from tinykernel.compile.sources import render_sources
from tinykernel.compile.targets import Compiler, Target, find_target
from tinykernel.model.integer import IntegerModel
from tinykernel.run import emulated
from tinykernel.run.emulated import Machine, machines_for

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
    boards = source_folder("firmware") / "boards"
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
        [source_folder("firmware") / "boards" / "harness.c", folder / "src" / f"{MODEL}.c"],
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


# C libraries that come as a GCC specs file, which has to be asked for; Arm's newlib needs none
# for headers but wants the stubs of nosys for what a program might pull in.
# The C library of AVR is where its compiler looks.
_SPECS = {"arm": "nosys.specs", "riscv": "picolibc.specs", "xtensa": "picolibc.specs"}


def _which(program: str) -> str | None:
    """Find a program on the PATH or among PlatformIO's packages."""
    core = os.environ.get("PLATFORMIO_CORE_DIR")
    root = Path(core) if core else (home() or Path("/nonexistent")) / ".platformio"
    folders = [None, *map(str, sorted((root / "packages").glob("toolchain-*/bin")))]
    paths = (shutil.which(program, path=folder) for folder in folders)
    return next((path for path in paths if path is not None), None)


def _output_of(command: Sequence[str]) -> str:
    """Return what a command prints, or nothing when it cannot be run."""
    try:
        finished = run_command(command)
    except TinykernelError:
        return ""
    return finished.stdout if finished.returncode == 0 else ""


def _specs_flag(command: str, compiler: Compiler, specs: str) -> tuple[str, ...]:
    """Return the option that chooses a C library, or nothing when it is not installed."""
    # GCC prints the path of a file that it finds and the bare name of one that it does not.
    if os.path.isabs(_output_of([command, f"-print-file-name={specs}"]).strip()):
        return (f"--specs={specs}",)
    # Debian keeps the specs of the Xtensa picolibc where its own compiler does not look.
    beside = Path(command).resolve().parent.parent / "lib" / compiler.prefix.rstrip("-") / specs
    return (f"--specs={beside}",) if beside.is_file() else ()


def _cross_gcc(target: Target, compiler: Compiler) -> Toolchain | None:
    name = f"{compiler.prefix}gcc"
    command = _which(name)
    if command is None:
        return None
    # GCC before version 7 has only the second option.
    full, short = (_output_of([command, f"-dump{kind}"]) for kind in ("fullversion", "version"))
    version = (full or short).strip()
    if not version:
        return None
    specs = _SPECS.get(target.family)
    library = _specs_flag(command, compiler, specs) if specs else ()
    return Toolchain(
        name=name,
        version=version,
        kind="gcc",
        command=(command,),
        flags=(*compiler.flags, *library),
        link_flags=("-nostartfiles", "-Wl,--gc-sections"),
        # The address space of constants in flash is GNU C.
        standard="-std=gnu99" if target.family == "avr" else "",
    )


def _zig(target: Target) -> Toolchain | None:
    command = zig_command()
    if command is None or (target.zig is None and target.family != "host"):
        return None
    version = _output_of([*command, "version"]).strip()
    if not version:
        return None
    chain = Toolchain("zig", version, "zig", (*command, "cc"))
    if target.zig is None:
        return chain
    triple, cpu = target.zig
    # zig strips symbols at -Os unless debugging information is asked for; its undefined
    # behaviour traps would add code that no firmware has. Its library is built once for each level,
    # in half the time for -Os, and is then as small as those of frameworks.
    flags = ("-target", triple, f"-mcpu={cpu}", "-g", "-fno-sanitize=all")
    return replace(chain, flags=flags, link_flags=("-Os", "-Wl,-e,main", "-Wl,--gc-sections"))


def host_toolchain(command: Sequence[str]) -> Toolchain:
    """Return the toolchain of a compiler of this computer that is started by `command`."""
    banner = run_command([*command, "--version"])
    title = (banner.stdout.splitlines() or [""])[0].strip() if banner.returncode == 0 else ""
    name = Path(command[0]).name
    version = re.search(r"\d+\.\d+(\.\d+)?", title)
    kind = "clang" if "clang" in banner.stdout else "gcc"
    return Toolchain(
        name, version.group() if version else "", kind, tuple(command), title=title or name
    )


@functools.cache
def _find_all(target: Target, _path: str, _core: str, cc: str) -> tuple[Toolchain, ...]:
    """List all toolchains; the environment is part of the key so that changes are noticed."""
    if target.family == "host":
        names = dict.fromkeys(filter(None, (cc, "gcc", "clang", "cc")))
        paths = [path for path in map(shutil.which, names) if path is not None]
        chains: list[Toolchain | None] = [
            host_toolchain([path]) for path in paths if _output_of([path, "--version"])
        ]
    else:
        chains = [_cross_gcc(target, compiler) for compiler in target.compilers]
    return tuple(chain for chain in (*chains, _zig(target)) if chain is not None)


def find_toolchains(target: str | Target) -> tuple[Toolchain, ...]:
    """List the toolchains on this computer that build for a target, the preferred first."""
    # A GCC (from the PATH, then from PlatformIO's packages), zig; for the host CC, gcc, clang, cc
    # and zig.
    return _find_all(
        find_target(target),
        os.environ.get("PATH", ""),
        os.environ.get("PLATFORMIO_CORE_DIR", ""),
        os.environ.get("CC", ""),
    )


def find_toolchain(target: str | Target, kind: str | None = None) -> Toolchain | None:
    """Find the preferred toolchain for a target, or the one of a `kind`; None without any."""
    chains = find_toolchains(target)
    return next((chain for chain in chains if kind in (None, chain.kind)), None)
