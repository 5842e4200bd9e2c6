"""What the tests of README, docs and examples share: reading and running what the texts show."""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from typer.testing import CliRunner

from tinykernel.face import app
from tinykernel.run.emulated import emulator_name, machines_for
from tinykernel.run.program import find_toolchain

ROOT = Path(__file__).resolve().parents[1]

_FENCE = re.compile(r"^ {0,3}(`{3,})(.*)$")
# What a trainer says of its progress where there is no terminal; a terminal shows bars that vanish.
_PROGRESS = re.compile(
    r"^(?!note:)[a-z][a-z -]*: \d+(/\d+)?( |$)"
    r"|^(reading|cutting windows|linking|judging|building|finding what fits"
    r"|computing in Python|comparing with a linear model|counting instructions"
    r"|.*: \d+ of \d+ epochs|compiling, once|running on"
    r"|choosing|fitting|measuring|training|spectra|listening)"
    r"\b[\w ,-]*(: .*)?$"
)
_VERSION = re.compile(
    r"\b((?:[\w-]+-)?(?:gcc|cc|clang|zig|QEMU|Unicorn))(?: \([^)]*\))?(?: version)? \d[\w.]*"
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
# Accuracies depend on the versions of libraries, instructions a little on the data.
_ACCURACY_POINTS, _SHARE = 1.0, 0.2
# Times depend on the computer, and what is left of a budget is a small difference of large numbers.
_UNCOMPARED = re.compile(r" (s|[KM]?B (left|of the budget))\b")
# The compilers whose names, sizes and instructions the texts show: GCC of this version.
_SHOWN_TARGETS, _SHOWN_VERSION = ("host", "cortex-m4", "esp32c3"), "12.2."
_TOOLS = re.compile(r"\b(?:(?:[\w-]+-)?(?:gcc|cc|clang)|zig|QEMU|Unicorn)\b( \([^)]*\))?( [\d.]+)?")
_SIZE = re.compile(r"\d+(\.\d+)? ([KM]?B|bytes)\b")


@dataclass(frozen=True)
class Block:
    """A fenced block of a Markdown file."""

    file: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a console block, as it stands and as one line, with the promised output."""

    block: Block
    lines: tuple[str, ...]
    command: str
    output: tuple[str, ...]


def blocks(file: Path, language: str | None = None) -> list[Block]:
    """Return the fenced blocks of a Markdown file, or those of one language."""
    found: list[Block] = []
    fence, start, name = "", 0, ""
    lines: list[str] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        match = _FENCE.match(line)
        if match and not fence:
            fence, name, start, lines = match.group(1), match.group(2).strip(), number, []
        elif match and match.group(1) == fence and not match.group(2).strip():
            found.append(Block(file, start, name, "\n".join(lines) + "\n"))
            fence = ""
        else:
            lines.append(line)
    assert not fence, f"{file}:{start}: the block has no end"
    return [block for block in found if language in (None, block.language)]


def commands(block: Block) -> Iterator[Command]:
    """Split a console block into commands (``$ ``; a backslash continues them) and outputs."""
    lines = block.text.splitlines()
    assert lines, f"{block}: an empty session"
    assert lines[0].startswith("$ "), f"{block}: a session begins with a command"
    at = 0
    while at < len(lines):
        first, command, at = at, lines[at][2:], at + 1
        while command.endswith("\\"):
            command, at = command[:-1] + lines[at].lstrip(), at + 1
        shown, output = lines[first:at], []
        while at < len(lines) and not lines[at].startswith("$ "):
            output.append(lines[at])
            at += 1
        yield Command(block, tuple(shown), command, tuple(output))


def environment(folder: Path) -> dict[str, str]:
    """Return an environment whose ``tinykernel`` and ``python`` are those under test."""
    programs = folder / ".programs"
    programs.mkdir(exist_ok=True)
    python = shlex.quote(sys.executable)
    for name, start in (("tinykernel", f"{python} -m tinykernel"), ("python", python)):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {start} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    return dict(
        os.environ,
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
        PYTHONPATH=str(ROOT),
        PYTHONUNBUFFERED="1",
    )


def run_shell(command: str, folder: Path, given: str = "") -> list[str]:
    """Run a command and return the lines that a terminal would keep."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        input=given,
        text=True,
        timeout=1800,
    )
    kept = _kept(done.stdout)
    assert done.returncode == 0, f"{command}\nended with {done.returncode}:\n" + "\n".join(kept)
    return kept


def run_command(command: str, folder: Path) -> list[str]:
    """As `run_shell`, but ``tinykernel`` in this process, which has imported it already."""
    program, _, rest = command.partition(" | ")
    if not program.startswith("tinykernel ") or "&&" in command:
        return run_shell(command, folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner().invoke(app, shlex.split(program)[1:])
    finally:
        os.chdir(before)
    assert done.exit_code == 0, f"{command}\nended with {done.exit_code}:\n{done.output}"
    if not rest:
        return _kept(done.output)
    return [*_kept(done.stderr), *run_shell(rest, folder, done.stdout)]


def page_differences(page: Path, folder: Path, left_out: str = "$^") -> list[str]:
    """Run the commands of a page in turn; return how their outputs differ from those it shows.

    Commands that begin like the expression `left_out` are not run. A board that is emulated ends
    before the next one; its port stands for the one that is shown.
    """
    wrong, shown_port, port = list[str](), "/dev/pts/5", ""
    with contextlib.ExitStack() as boards:
        for block in blocks(page, "console"):
            for shown in commands(block):
                if re.match(left_out, shown.command):
                    continue
                if shown.command.startswith("tinykernel emulate"):
                    assert shown.output == (shown_port,)
                    boards.close()
                    how = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
                    program, where = shlex.split(shown.command), environment(folder)
                    board = subprocess.Popen(program, cwd=folder, env=where, **how)
                    boards.enter_context(board)
                    boards.callback(board.terminate)
                    port = board.stdout.readline().strip()
                    continue
                got = run_command(shown.command.replace(shown_port, port), folder)
                text = difference(
                    list(shown.output), [x.replace(port or shown_port, shown_port) for x in got]
                )
                if text:
                    wrong.append(f"{block}: $ {shown.command}\n  {text}")
    return wrong


def _kept(output: str) -> list[str]:
    lines = [line.rstrip() for line in output.splitlines()]
    return [line for line in lines if not _PROGRESS.match(line)]


@cache
def tools_of_the_texts() -> bool:
    """Say whether this machine has the compilers and emulators whose figures the texts show."""
    chains = [find_toolchain(target) for target in _SHOWN_TARGETS]
    machines = [machines_for(target)[0] for target in _SHOWN_TARGETS[1:]]
    return all(
        chain is not None and chain.kind == "gcc" and chain.version.startswith(_SHOWN_VERSION)
        for chain in chains
    ) and all(emulator_name(machine, "qemu") for machine in machines)


def without_tools(lines: list[str]) -> list[str]:
    """Leave out of an output what depends on compilers: their names, linked sizes, counts."""
    if any(re.match(r"target +instructions\b", line) for line in lines):
        return [line.split()[0] for line in lines[:2]]
    plain = [_TOOLS.sub("a tool", line) for line in lines]
    return [
        _SIZE.sub("a size", line) if "(linked)" in line or line.startswith("RAM ") else line
        for line in plain
    ]


def wording(line: str) -> str:
    """Return a line without its numbers, versions and alignment."""
    return " ".join(_NUMBER.sub("#", _VERSION.sub(r"\1", line)).split())


def _figures(line: str) -> list[tuple[float, str]]:
    """Return the numbers of a line, each with the text that follows it."""
    plain = _VERSION.sub(r"\1", line)
    return [(float(m.group()), plain[m.end() :]) for m in _NUMBER.finditer(plain)]


def difference(promised: list[str], got: list[str]) -> str:
    """Say in what two outputs differ, or return an empty string.

    The words must be the same. Percentages may differ by a point, times and what is left of a
    budget in any way, and other numbers by a fifth; 0 is 0. What depends on a compiler or an
    emulator is compared only on a machine that has those of the texts.
    """
    if not tools_of_the_texts():
        promised, got = without_tools(promised), without_tools(got)
    for wanted, line in zip(promised, got, strict=False):
        if wording(wanted) != wording(line):
            return f"{wanted!r} in the text, {line!r} now"
        for (a, unit), (b, _) in zip(_figures(wanted), _figures(line), strict=True):
            if _UNCOMPARED.match(unit):
                continue
            allowed = _ACCURACY_POINTS if unit.startswith(" %") else _SHARE * abs(a)
            if abs(a - b) > allowed:
                return f"{a:g} in {wanted!r} of the text, {b:g} now"
    if len(promised) != len(got):
        return f"{len(promised)} lines in the text, {len(got)} now:\n" + "\n".join(got)
    return ""
