"""Compilers of any make, and how they are run: all the same way."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinykernel.base.errors import LinkError, ToolError

# What the linkers of GCC and LLVM say, and the assertion at the end of firmware/boards/board.ld.
_TOO_LARGE = re.compile(r"region .*overflowed.*")


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
        raise ToolError(f"{command[0]}: cannot be started ({error.strerror}); install it") from None
    except subprocess.TimeoutExpired:
        raise ToolError(
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
            raise ToolError(f"{self.name}: {source.name} does not compile: {reason}")

    def link(
        self,
        objects: Iterable[Path],
        output: Path,
        *,
        script: Path | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        """Link object files, placed by a linker script, to an ELF file."""
        # A program too large for the script's memory is a `LinkError`.
        placed = [] if script is None else ["-T", str(script)]
        complaint = self._run(
            [*self.flags, *self.link_flags, *placed, *flags]
            + [*map(str, objects), "-o", str(output)]
        )
        if complaint is not None:
            too_large = _TOO_LARGE.search(complaint)
            kind = LinkError if too_large else ToolError
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


def zig_command() -> tuple[str, ...] | None:
    """Find zig: the program of the ziglang package of this Python, or that on the PATH."""
    package = importlib.util.find_spec("ziglang")
    # Not by "python -m ziglang", which starts a Python for each file.
    folder = Path(package.origin).parent if package is not None and package.origin else None
    program = (folder and shutil.which("zig", path=str(folder))) or shutil.which("zig")
    return None if program is None else (program,)
