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
from dataclasses import dataclass
from pathlib import Path

from tinykernel.codegen.targets import Compiler, Target, find_target
from tinykernel.errors import TinykernelError

__all__ = ["Toolchain", "find_toolchain", "find_toolchains"]

_TIMEOUT_SECONDS = 300.0
# C libraries that come as a GCC specs file, which has to be asked for; Arm's newlib needs none
# for headers but wants the stubs of nosys for what a program might pull in.
_SPECS = {"arm": "nosys.specs", "riscv": "picolibc.specs", "xtensa": "picolibc.specs"}


@dataclass(frozen=True)
class Toolchain:
    """A C compiler with its linker, ready for one target.

    Parameters
    ----------
    name : str
        ``"arm-none-eabi-gcc"``, ``"zig"``, ...
    version : str
        What the compiler says of its version.
    kind : {"gcc", "clang", "zig"}
        Which options it understands.
    command : tuple of str
        How it is started.
    flags : tuple of str
        Options that choose the processor.
    link_flags : tuple of str
        Options for linking only.
    stand_in : str
        One sentence when it builds for a related processor only, else empty.
    """

    name: str
    version: str
    kind: str
    command: tuple[str, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    stand_in: str = ""

    @property
    def title(self) -> str:
        """Name and version for a report."""
        return f"{self.name} {self.version}"

    def compile(
        self,
        source: Path,
        output: Path,
        *,
        include: Iterable[Path] = (),
        flags: Sequence[str] = ("-Os", "-std=c99"),
    ) -> None:
        """Compile one source file to an object file.

        Parameters
        ----------
        source, output : Path
        include : iterable of Path
            Folders of headers.
        flags : sequence of str
            Optimisation, language and warnings.

        Raises
        ------
        TinykernelError
            If the compiler refuses; the message holds its first complaint.
        """
        folders = [f"-I{folder}" for folder in include]
        self._run(
            [*self.flags, *flags, "-ffunction-sections", "-fdata-sections", *folders]
            + ["-c", str(source), "-o", str(output)]
        )

    def link(
        self,
        objects: Iterable[Path],
        output: Path,
        *,
        script: Path | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        """Link object files, dropping what nothing refers to.

        Parameters
        ----------
        objects : iterable of Path
        output : Path
            The ELF file.
        script : Path, optional
            Linker script.
        flags : sequence of str
            Further options.

        Raises
        ------
        TinykernelError
            If the linker refuses.
        """
        placed = [] if script is None else ["-T", str(script)]
        self._run(
            [*self.flags, *self.link_flags, "-Wl,--gc-sections", *placed, *flags]
            + [*map(str, objects), "-o", str(output)]
        )

    def _run(self, arguments: Sequence[str]) -> None:
        finished = subprocess.run(
            [*self.command, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            stdin=subprocess.DEVNULL,
        )
        if finished.returncode != 0:
            lines = [line for line in finished.stderr.splitlines() if line.strip()]
            # The driver's own "ld returned 1" says nothing; the linker's lines before it do.
            telling = re.compile(r"\b(error|undefined|overflowed|will not fit)\b")
            wrong = [n for n in lines if telling.search(n) and not n.startswith("collect2")]
            reason = (wrong or lines or ["no message"])[0].strip()
            raise TinykernelError(f"{self.name} failed: {reason}")


def _package_folders() -> list[Path]:
    """List the folders where PlatformIO keeps the compilers that it has installed."""
    core = os.environ.get("PLATFORMIO_CORE_DIR")
    root = Path(core) if core else Path.home() / ".platformio"
    return sorted((root / "packages").glob("toolchain-*/bin"))


def _which(program: str) -> str | None:
    """Find a program on the PATH or among PlatformIO's packages."""
    found = shutil.which(program)
    if found is not None:
        return found
    for folder in _package_folders():
        found = shutil.which(program, path=str(folder))
        if found is not None:
            return found
    return None


def _output_of(command: Sequence[str]) -> str:
    """Return what a command prints, or nothing when it cannot be run."""
    try:
        finished = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
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
    """Find a GCC for a microcontroller."""
    name = f"{compiler.prefix}gcc"
    command = _which(name)
    if command is None:
        return None
    version = _output_of([command, "-dumpfullversion"]).strip()
    if not version:
        return None
    library = _specs_flag(command, compiler, _SPECS[target.family])
    return Toolchain(
        name=name,
        version=version,
        kind="gcc",
        command=(command,),
        flags=(*compiler.flags, *library),
        link_flags=("-nostartfiles",),
        stand_in=compiler.stand_in,
    )


def _zig(target: Target) -> Toolchain | None:
    """Find the C compiler of zig: the ziglang package of this Python, or zig on the PATH."""
    if target.zig is None:
        return None
    if importlib.util.find_spec("ziglang") is not None:
        command: tuple[str, ...] = (sys.executable, "-m", "ziglang")
    else:
        program = shutil.which("zig")
        if program is None:
            return None
        command = (program,)
    version = _output_of([*command, "version"]).strip()
    if not version:
        return None
    triple, cpu = target.zig
    return Toolchain(
        name="zig",
        version=version,
        kind="zig",
        command=(*command, "cc"),
        # zig strips symbols at -Os unless debugging information is asked for; its undefined
        # behaviour traps would add code that no firmware has.
        flags=("-target", triple, f"-mcpu={cpu}", "-g", "-fno-sanitize=all"),
        link_flags=("-Wl,-e,main",),
    )


def _host_compilers() -> list[Toolchain]:
    """Find the compilers of this computer."""
    found: list[Toolchain] = []
    asked = os.environ.get("CC")
    for name in dict.fromkeys(([asked] if asked else []) + ["gcc", "clang", "cc"]):
        command = shutil.which(name)
        banner = _output_of([command, "--version"]) if command else ""
        if not command or not banner:
            continue
        version = re.search(r"\d+\.\d+(\.\d+)?", banner)
        kind = "clang" if "clang" in banner else "gcc"
        found.append(Toolchain(name, version.group() if version else "", kind, (command,), (), ()))
    return found


@functools.cache
def _find_all(target: Target, _path: str, _core: str, _cc: str) -> tuple[Toolchain, ...]:
    """List all toolchains; the environment is part of the key so that changes are noticed."""
    if target.family == "host":
        return tuple(_host_compilers())
    found = [_cross_gcc(target, compiler) for compiler in target.compilers]
    own = [chain for chain in found if chain is not None and not chain.stand_in]
    stand_ins = [chain for chain in found if chain is not None and chain.stand_in]
    zig = _zig(target)
    return (*own, *([zig] if zig else []), *stand_ins)


def find_toolchains(target: str | Target) -> tuple[Toolchain, ...]:
    """List the toolchains of this machine that build for a target, the preferred first.

    A GCC for the very processor comes first (from the PATH, then from PlatformIO's packages),
    then zig's C compiler, then a GCC for a related processor.

    Parameters
    ----------
    target : str or Target

    Returns
    -------
    tuple of Toolchain
        Empty when there is none.
    """
    return _find_all(
        find_target(target),
        os.environ.get("PATH", ""),
        os.environ.get("PLATFORMIO_CORE_DIR", ""),
        os.environ.get("CC", ""),
    )


def find_toolchain(target: str | Target, kind: str | None = None) -> Toolchain | None:
    """Find the preferred toolchain for a target.

    Parameters
    ----------
    target : str or Target
    kind : {"gcc", "clang", "zig"}, optional
        Take only toolchains of this make.

    Returns
    -------
    Toolchain or None
        None when no compiler for this target is on the machine.

    Examples
    --------
    >>> chain = find_toolchain("host")
    >>> chain is None or chain.kind in ("gcc", "clang")
    True
    """
    for chain in find_toolchains(target):
        if kind in (None, chain.kind):
            return chain
    return None
