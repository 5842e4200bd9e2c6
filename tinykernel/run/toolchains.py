"""Finding the compilers of a machine for each target."""

import functools
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tinykernel.base.errors import TinykernelError
from tinykernel.base.files import home
from tinykernel.compile.compilers import Toolchain, run_command, zig_command
from tinykernel.compile.targets import Compiler, Target, find_target

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
