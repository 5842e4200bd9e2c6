"""Running a program on an emulated board, in QEMU, in Unicorn or in simavr."""

import ctypes.util
import importlib
import importlib.util
import shutil
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from elftools.elf.elffile import ELFFile

from tinykernel.build.machines import Machine
from tinykernel.build.simavr import Simavr
from tinykernel.compilers import run_command
from tinykernel.errors import ToolError

#: Addresses of instructions that are executed one after the other.
Block: TypeAlias = tuple[int, ...]
#: Exit status of a program that its processor stopped, see firmware/boards/semihost.h.
EXIT_FAULT = 77
_EBREAK = 0x00100073
_ARM_BREAKPOINT = 7  # Unicorn's number of the exception
# Semihosting operations, see Arm's "Semihosting for AArch32 and AArch64", chapter 5.
_OPEN, _WRITE0, _WRITE, _READ, _EXIT_EXTENDED = 0x01, 0x04, 0x05, 0x06, 0x20


def emulator_name(machine: Machine, back_end: str) -> str | None:
    """Return name and version of an emulator, None where it is missing or lacks the machine."""
    if (back_end == "simavr") != (machine.family == "avr"):
        return None
    if back_end == "simavr":
        library = ctypes.util.find_library("simavr")
        return None if library is None else f"simavr ({library})"
    if back_end == "unicorn":
        if not machine.unicorn or importlib.util.find_spec("unicorn") is None:
            return None
        return f"Unicorn {importlib.import_module('unicorn').__version__}"
    program = shutil.which(machine.qemu[0])
    if program is None:
        return None
    parts = run_command([program, "--version"]).stdout.split()
    return f"QEMU {parts[3]}" if len(parts) > 3 and parts[2] == "version" else "QEMU"


def run(
    machine: Machine,
    program: Path,
    *,
    back_end: str = "qemu",
    options: Sequence[str] = (),
    timeout: float = 600.0,
) -> tuple[int, str]:
    """Run an ELF file to its end, with its files beside it; return its status and its text."""
    # The status is `EXIT_FAULT` after an illegal instruction or access; `options` are for QEMU.
    if back_end != "qemu":
        return _emulator(machine, program, back_end).run(timeout)
    arguments = ["-nographic", "-monitor", "none", "-serial", "none", "-kernel", str(program)]
    if machine.family == "xtensa":
        hosting = ["-semihosting"]
        # The flags by which a program asks for a new file depend on the version of QEMU; those
        # for writing to an existing one do not.
        (program.parent / "out.bin").touch()
    else:
        hosting = ["-semihosting-config", "enable=on,target=native"]
    command = [*machine.qemu, *arguments, *hosting, *options]
    finished = run_command(command, folder=program.parent, timeout=timeout)
    return finished.returncode, finished.stderr + finished.stdout


def _emulator(machine: Machine, program: Path, back_end: str) -> "_Unicorn | Simavr":
    if back_end == "unicorn":
        return _Unicorn(machine, program)
    return Simavr(machine.name, program)


def trace(machine: Machine, program: Path, *, back_end: str = "qemu") -> Iterator[Block]:
    """Run an ELF file to its end, and give the blocks of instructions in the order of execution."""
    if back_end == "qemu":
        yield from _translated(machine, program)
        return
    addresses: list[int] = []
    status, _ = _emulator(machine, program, back_end).run(600.0, addresses)
    _check_status(machine, status)
    blocks = {address: (address,) for address in set(addresses)}
    yield from map(blocks.__getitem__, addresses)


def _translated(machine: Machine, program: Path) -> Iterator[Block]:
    """Read a log of QEMU: each block as it is translated, then a line for each execution."""
    log = program.parent / "trace.log"
    status, _ = run(
        machine, program, options=["-d", "in_asm,exec,nochain", "-D", str(log)], timeout=600.0
    )
    _check_status(machine, status)
    blocks: dict[bytes, Block] = {}
    translated: list[int] = []
    with log.open("rb") as stream:
        for line in stream:
            if line.startswith(b"Trace"):
                # [cs_base/pc/flags/cflags]: the same address may be translated in several ways.
                key = line[line.index(b"[") :]
                if translated and translated[0] == int(key.split(b"/", 2)[1], 16):
                    blocks[key] = tuple(translated)
                    translated = []
                yield blocks[key]
            elif line.startswith(b"IN:"):
                translated = []
            elif line.startswith(b"0x"):
                translated.append(int(line[: line.index(b":")], 16))
    log.unlink()


def _check_status(machine: Machine, status: int) -> None:
    if status != 0:
        raise ToolError(f"{machine.name}: the program ended with status {status}")


class _Unicorn:
    """Runs a program in Unicorn and serves its semihosting calls from Python."""

    def __init__(self, machine: Machine, program: Path) -> None:
        self.machine, self.folder = machine, program.parent
        self.files: list[Any] = []
        self.text, self.status = "", -1
        uc: Any = importlib.import_module("unicorn")
        arm = machine.family == "arm"
        names = importlib.import_module(f"unicorn.{'arm' if arm else 'riscv'}_const")
        kind = "ARM" if arm else "RISCV"
        mode = uc.UC_MODE_THUMB | uc.UC_MODE_MCLASS if arm else uc.UC_MODE_RISCV32
        self.emulator = uc.Uc(getattr(uc, f"UC_ARCH_{kind}"), mode)
        cpu = f"UC_CPU_{'ARM' if arm else 'RISCV32'}_{machine.unicorn}"
        self.emulator.ctl_set_cpu_model(getattr(names, cpu))
        first, second = ("R0", "R1") if arm else ("A0", "A1")
        self.registers = {
            "first": getattr(names, f"UC_{kind}_REG_{first}"),
            "second": getattr(names, f"UC_{kind}_REG_{second}"),
            "pc": getattr(names, f"UC_{kind}_REG_PC"),
            "sp": getattr(names, f"UC_{kind}_REG_SP"),
        }
        for start, size in (machine.rom, machine.ram):
            self.emulator.mem_map(start, size)
        with program.open("rb") as stream:
            elf = ELFFile(stream)
            self.entry = elf["e_entry"] | (1 if arm else 0)
            for segment in elf.iter_segments():
                if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
                    self.emulator.mem_write(segment["p_paddr"], segment.data())
        self.emulator.reg_write(self.registers["sp"], sum(machine.ram))
        self.emulator.hook_add(uc.UC_HOOK_INTR, self._interrupt)
        self.error = uc.UcError

    def run(self, timeout: float, addresses: list[int] | None = None) -> tuple[int, str]:
        """Run from the reset until the program exits; append the address of every instruction."""
        at: int | None = self.entry
        if addresses is not None:
            uc: Any = importlib.import_module("unicorn")
            self.emulator.hook_add(uc.UC_HOOK_CODE, lambda _, at, *__: addresses.append(at))
        try:
            while at is not None:
                at = self._start(at, timeout)
        finally:
            for file in self.files:
                file.close()
        if self.status < 0:
            raise ToolError(
                f"{self.machine.name}: the program did not end within {timeout:.0f} seconds"
            )
        return self.status, self.text

    def _start(self, at: int, timeout: float) -> int | None:
        """Run until the program ends, or return where to resume after a semihosting call."""
        try:
            self.emulator.emu_start(at, 0xFFFFFFFF, timeout=int(timeout * 1e6))
        except self.error:
            # Unicorn takes the ebreak of a RISC-V semihosting call for an invalid instruction.
            pc: int = self.emulator.reg_read(self.registers["pc"])
            if self.machine.family == "riscv" and self._words(pc, 1)[0] == _EBREAK:
                self._call()
                return None if self.status >= 0 else pc + 4
            self.status = EXIT_FAULT
        return None

    def _interrupt(self, emulator: Any, number: int, _data: object) -> None:
        if self.machine.family == "riscv" or number != _ARM_BREAKPOINT:
            self.status = EXIT_FAULT
            emulator.emu_stop()
            return
        pc = emulator.reg_read(self.registers["pc"])
        self._call()
        if self.status >= 0:
            emulator.emu_stop()
        else:
            emulator.reg_write(self.registers["pc"], (pc + 2) | 1)

    def _call(self) -> None:
        """Serve the semihosting call in the argument registers."""
        operation = self.emulator.reg_read(self.registers["first"])
        result = self._serve(operation, self.emulator.reg_read(self.registers["second"]))
        self.emulator.reg_write(self.registers["first"], result & 0xFFFFFFFF)

    def _words(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self.emulator.mem_read(address, 4 * count))

    def _serve(self, operation: int, argument: int) -> int:
        """Do one semihosting call and return its result."""
        if operation == _EXIT_EXTENDED:
            self.status = self._words(argument, 2)[1]
            return 0
        if operation == _WRITE0:
            text = bytearray()
            while (byte := self.emulator.mem_read(argument + len(text), 1)[0]) != 0:
                text.append(byte)
            self.text += text.decode("ascii", "replace")
            return 0
        first, address, size = self._words(argument, 3)
        if operation == _OPEN:
            name = bytes(self.emulator.mem_read(first, size)).decode()
            self.files.append((self.folder / name).open("wb" if address == 5 else "rb"))
            return len(self.files)
        file = self.files[first - 1]
        if operation == _READ:
            data = file.read(size)
            self.emulator.mem_write(address, data)
            return size - len(data)
        if operation == _WRITE:
            file.write(bytes(self.emulator.mem_read(address, size)))
            return 0
        return -1
