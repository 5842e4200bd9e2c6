"""The table of emulated machines on which generated firmware is run."""

from dataclasses import dataclass

from tinykernel.codegen.targets import Target, find_target


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
