"""Running a program on an emulated board, in QEMU, in Unicorn or in simavr."""

import ctypes
import ctypes.util
import importlib
import importlib.util
import shutil
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from elftools.elf.elffile import ELFFile

from tinykernel.base.errors import ToolError
from tinykernel.compile.compilers import run_command
from tinykernel.compile.targets import Target, find_target


@dataclass(frozen=True)
class Machine:
    """An emulated board."""

    name: str
    core: str  # the processor core that it has.
    # Which start-up code in ``firmware/boards`` fits.
    family: str  # {"arm", "riscv", "xtensa", "avr"}
    # The target whose compiler builds for it; None for that of the target under test.
    target: str | None
    qemu: tuple[str, ...]  # program and machine options of QEMU; empty for a chip of simavr.
    rom: tuple[int, int]  # address and size in bytes.
    ram: tuple[int, int]
    unicorn: str = ""  # name of the processor model of Unicorn; empty where it has none.


def _arm(name: str, core: str, rom: tuple[int, int], ram: tuple[int, int], unicorn: str) -> Machine:
    return Machine(name, core, "arm", None, ("qemu-system-arm", "-M", name), rom, ram, unicorn)


_LOW = (0x00000000, 4 << 20)
_HIGH = (0x20000000, 4 << 20)

# This machine starts at its reset vector and has nothing at its exception vectors: start it at the
# program instead, and let the user, kernel and double exceptions exit with status 77 (the bytes are
# "movi.n a2, 1; movi a3, 77; simcall").
_EXIT_77 = "data=0x0051004da032120c,data-len=8"
_LX106_VECTORS = (
    *("-device", "loader,addr=0x60000000,cpu-num=0"),
    *("-device", f"loader,addr=0x40000030,{_EXIT_77}"),
    *("-device", f"loader,addr=0x40000050,{_EXIT_77}"),
    *("-device", f"loader,addr=0x40000070,{_EXIT_77}"),
)

_RV32IMC = "rv32,a=false,f=false,d=false"
# Memory sizes of the real boards, so that a program that does not fit is noticed.
_ROWS = (
    _arm("microbit", "Cortex-M0", (0, 256 << 10), (0x20000000, 16 << 10), "CORTEX_M0"),
    _arm("mps2-an385", "Cortex-M3", _LOW, _HIGH, "CORTEX_M3"),
    _arm("mps2-an386", "Cortex-M4", _LOW, _HIGH, "CORTEX_M4"),
    _arm("mps2-an500", "Cortex-M7", _LOW, _HIGH, "CORTEX_M7"),
    _arm("mps2-an505", "Cortex-M33", (0x10000000, 4 << 20), (0x38000000, 4 << 20), "CORTEX_M33"),
    Machine(
        name="virt-rv32",
        core="RISC-V RV32IMC",
        family="riscv",
        target="esp32c3",
        qemu=("qemu-system-riscv32", "-M", "virt", "-cpu", _RV32IMC, "-bios", "none"),
        rom=(0x80000000, 4 << 20),
        ram=(0x80400000, 4 << 20),
        unicorn="BASE32",
    ),
    Machine(
        name="sim-lx106",
        core="Xtensa LX106",
        family="xtensa",
        target="esp8266",
        qemu=("qemu-system-xtensa", "-M", "sim", "-cpu", "lx106", *_LX106_VECTORS),
        rom=(0x60000000, 4 << 20),
        ram=(0x60400000, 4 << 20),
    ),
    # Its RAM as the linker addresses it.
    Machine("atmega328p", "AVR", "avr", None, (), rom=(0, 32 << 10), ram=(0x800100, 2 << 10)),
)

MACHINES: dict[str, Machine] = {row.name: row for row in _ROWS}


def machines_for(target: str | Target) -> tuple[Machine, ...]:
    """List the machines that stand for a target, the closest first; none for the host."""
    return tuple(MACHINES[name] for name in find_target(target).machines)


# Registers of the ATmega that firmware/boards/avr/start.c uses: GPIOR0, GPIOR1, GPIOR2.
_TEXT, _DATA, _STATUS = 0x3E, 0x4A, 0x4B
_DONE, _CRASHED = 5, 6  # states of avr_run, see sim_avr.h
_FAULT = 77  # see firmware/boards/semihost.h
_STEPS = 256  # calls of avr_run between two looks at the clock
_SLICE = 100_000  # cycles that avr_run may take at a time
_READ = ctypes.CFUNCTYPE(ctypes.c_uint8, ctypes.c_void_p, ctypes.c_uint16, ctypes.c_void_p)
_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint16, ctypes.c_uint8, ctypes.c_void_p)
_LOGGER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


@_LOGGER
def _quiet(_avr: Any, _level: int, _text: bytes, _arguments: Any) -> None:
    """Drop what the library would print."""


def _library() -> Any:
    library = ctypes.CDLL(ctypes.util.find_library("simavr"))
    library.avr_make_mcu_by_name.restype = ctypes.c_void_p
    library.avr_make_mcu_by_name.argtypes = [ctypes.c_char_p]
    library.avr_loadcode.argtypes = [ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_uint32] * 2]
    for name in ("avr_init", "avr_run", "avr_reset", "avr_terminate"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    for name in ("avr_register_io_read", "avr_register_io_write"):
        function = getattr(library, name)
        function.argtypes = [ctypes.c_void_p, ctypes.c_uint16, ctypes.c_void_p, ctypes.c_void_p]
    library.avr_global_logger_set.argtypes = [ctypes.c_void_p]
    library.avr_global_logger_set(_quiet)
    return library


class Simavr:
    """A program (ELF) in an emulated AVR, by simavr's name of the chip, and its files beside it."""

    def __init__(self, mcu: str, program: Path) -> None:
        self.library = _library()
        self.folder = program.parent
        self.text, self.status = bytearray(), -1
        self.input, self.at, self.output = b"", 0, bytearray()
        self.avr = self.library.avr_make_mcu_by_name(mcu.encode())
        if not self.avr:
            raise ToolError(f"simavr has no {mcu}")
        self.library.avr_init(self.avr)
        self.fields = self._find_fields()
        self.callbacks = [
            (_DATA, _READ(self._read)),
            (_STATUS, _READ(lambda *_: int(self.at < len(self.input)))),
            (_DATA, _WRITE(lambda _, __, value, ___: self.output.append(value))),
            (_STATUS, _WRITE(self._exit)),
            (_TEXT, _WRITE(lambda _, __, value, ___: self.text.append(value))),
        ]
        for address, callback in self.callbacks:
            kind = "read" if isinstance(callback, _READ) else "write"
            register = getattr(self.library, f"avr_register_io_{kind}")
            register(self.avr, address, ctypes.cast(callback, ctypes.c_void_p), None)
        with program.open("rb") as stream:
            for segment in ELFFile(stream).iter_segments():
                if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
                    data = segment.data()
                    self.library.avr_loadcode(self.avr, data, len(data), segment["p_paddr"])

    def _find_fields(self) -> tuple[int, int]:
        """Find the program counter and the cycles in a structure whose layout is not public."""
        # They count by two and by one when the chip, whose flash is empty, does nothing.
        empty = bytes(64)
        self.library.avr_loadcode(self.avr, empty, len(empty), 0)
        seen = []
        for _ in range(8):
            seen.append(struct.unpack("<256I", ctypes.string_at(self.avr, 1024)))
            self.library.avr_run(self.avr)
        counted = {column: place for place, column in enumerate(zip(*seen, strict=True))}
        counter, cycles = counted.get(tuple(range(0, 16, 2))), counted.get(tuple(range(8)))
        if counter is None or cycles is None:
            raise ToolError("this version of simavr cannot be followed; install simavr 1.6")
        self.library.avr_reset(self.avr)
        return 4 * counter, 4 * cycles

    def _field(self, place: int) -> Any:
        return ctypes.c_uint32.from_address(self.avr + place)

    def run(self, timeout: float, addresses: list[int] | None = None) -> tuple[int, str]:
        """Run to the end; return status and text, and append the address of every instruction."""
        # Behind the cycles: how many are left and how many there may be before avr_run returns.
        left, most = (self._field(self.fields[1] + behind) for behind in (8, 16))
        if addresses is None and (left.value, most.value) == (1, 1):
            most.value = _SLICE
        source = self.folder / "in.bin"
        self.input = source.read_bytes() if source.exists() else b""
        limit = time.monotonic() + timeout
        step, avr, counter = self.library.avr_run, self.avr, self._field(self.fields[0])
        while self.status < 0:
            for _ in range(_STEPS):
                if addresses is not None:
                    addresses.append(counter.value)
                if step(avr) in (_DONE, _CRASHED) and self.status < 0:
                    self.status = _FAULT
                if self.status >= 0:
                    break
            if self.status < 0 and time.monotonic() > limit:
                raise ToolError(f"simavr: the program did not end within {timeout:.0f} seconds")
        (self.folder / "out.bin").write_bytes(self.output)
        return self.status, self.text.decode("ascii", "replace")

    def _read(self, _avr: Any, _address: int, _parameter: Any) -> int:
        self.at += 1
        return self.input[self.at - 1] if self.at <= len(self.input) else 0

    def _exit(self, _avr: Any, _address: int, value: int, _parameter: Any) -> None:
        self.status = value


#: Addresses of instructions that are executed one after the other.
Block: TypeAlias = tuple[int, ...]
#: Exit status of a program that its processor stopped, see firmware/boards/semihost.h.
EXIT_FAULT = 77
_EBREAK = 0x00100073
_ARM_BREAKPOINT = 7  # Unicorn's number of the exception
# Semihosting operations, see Arm's "Semihosting for AArch32 and AArch64", chapter 5.
_OPEN, _WRITE0, _WRITE_FILE, _READ_FILE, _EXIT_EXTENDED = 0x01, 0x04, 0x05, 0x06, 0x20


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
        yield from _translate(machine, program)
        return
    addresses: list[int] = []
    status, _ = _emulator(machine, program, back_end).run(600.0, addresses)
    _check_status(machine, status)
    blocks = {address: (address,) for address in set(addresses)}
    yield from map(blocks.__getitem__, addresses)


def _translate(machine: Machine, program: Path) -> Iterator[Block]:
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
        if operation == _READ_FILE:
            data = file.read(size)
            self.emulator.mem_write(address, data)
            return size - len(data)
        if operation == _WRITE_FILE:
            file.write(bytes(self.emulator.mem_read(address, size)))
            return 0
        return -1
