"""Finding the compilers of a machine and running them the same way whatever their make."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tinykernel.codegen.targets import Compiler, Target, find_target
from tinykernel.errors import TinykernelError
from tinykernel.files import home

# C libraries that come as a GCC specs file, which has to be asked for; Arm's newlib needs none
# for headers but wants the stubs of nosys for what a program might pull in.
# The C library of AVR is where its compiler looks.
_SPECS = {"arm": "nosys.specs", "riscv": "picolibc.specs", "xtensa": "picolibc.specs"}
# What the linkers of GCC and LLVM say, and the assertion at the end of firmware/boards/board.ld.
_TOO_LARGE = re.compile(r"region .*overflowed.*")


class ProgramTooLarge(TinykernelError):
    """A program does not fit the memory of the machine that it is linked for."""


def run_command(
    command: Sequence[str], *, folder: Path | None = None, timeout: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; a missing one, or one that hangs, is an error of one line."""
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )
    except OSError as error:
        raise TinykernelError(
            f"{command[0]}: cannot be started ({error.strerror}); install it"
        ) from None
    except subprocess.TimeoutExpired:
        raise TinykernelError(
            f"{Path(command[0]).name}: stopped, as it took more than {timeout:.0f} seconds"
        ) from None


@dataclass(frozen=True)
class Toolchain:
    """A C compiler with its linker, ready for one target."""

    name: str  # ``"arm-none-eabi-gcc"``, ``"zig"``, ...
    version: str  # what the compiler says of its version.
    kind: str  # {"gcc", "clang", "zig"}: which options it understands.
    command: tuple[str, ...]  # how it is started.
    flags: tuple[str, ...] = ()  # options that choose the processor.
    link_flags: tuple[str, ...] = ()  # options for linking only.
    title: str = ""  # name and version for a report.
    # Option for the language that the target needs in place of the one that is asked for.
    standard: str = ""

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", f"{self.name} {self.version}")

    def compile(
        self,
        source: Path,
        output: Path,
        *,
        include: Iterable[Path] = (),
        flags: Sequence[str] = ("-Os", "-std=c99"),
    ) -> None:
        """Compile one source file to an object file; `include` are the folders of headers."""
        folders = [f"-I{folder}" for folder in include]
        complaint = self._run(
            [*self.flags, *flags, *filter(None, [self.standard]), "-ffunction-sections"]
            + ["-fdata-sections", *folders, "-c", str(source), "-o", str(output)]
        )
        if complaint is not None:
            reason = _first_complaint(complaint)
            raise TinykernelError(f"{self.name}: {source.name} does not compile: {reason}")

    def link(
        self,
        objects: Iterable[Path],
        output: Path,
        *,
        script: Path | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        """Link object files, placed by a linker script, to an ELF file."""
        # A program too large for the script's memory is a `ProgramTooLarge`.
        placed = [] if script is None else ["-T", str(script)]
        complaint = self._run(
            [*self.flags, *self.link_flags, *placed, *flags]
            + [*map(str, objects), "-o", str(output)]
        )
        if complaint is not None:
            too_large = _TOO_LARGE.search(complaint)
            kind = ProgramTooLarge if too_large else TinykernelError
            reason = too_large[0] if too_large else _first_complaint(complaint)
            raise kind(f"{self.name}: the program does not link: {reason}")

    def _run(self, arguments: Sequence[str]) -> str | None:
        """Return what the compiler complains about, None when it is content."""
        finished = run_command([*self.command, *arguments])
        return None if finished.returncode == 0 else finished.stderr


def _first_complaint(text: str) -> str:
    """Return the line that states the error; "ld returned 1" does not."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = re.compile(r"\b(error|undefined|overflowed|will not fit)\b")
    wrong = [line for line in lines if telling.search(line) and not line.startswith("collect2")]
    return (wrong or lines or ["no message"])[0]


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


def _zig_command() -> tuple[str, ...] | None:
    """Find zig: the ziglang package of this Python, or the program on the PATH."""
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang")
    program = shutil.which("zig")
    return None if program is None else (program,)


def _zig(target: Target) -> Toolchain | None:
    command = _zig_command()
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
    # behaviour traps would add code that no firmware has.
    flags = ("-target", triple, f"-mcpu={cpu}", "-g", "-fno-sanitize=all")
    return replace(chain, flags=flags, link_flags=("-Wl,-e,main", "-Wl,--gc-sections"))


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
