"""The table of targets: to add a processor, add one row to `_ROWS`, and its boards.

Versions of platforms are pinned in ``templates/platformio/format.json``.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from tinykernel.base.errors import TargetError
from tinykernel.base.text import similar

_LISTED, _KILOBYTE = Path(__file__).with_name("boards.txt"), 1024


@dataclass(frozen=True)
class Board:
    """A board that can be bought."""

    name: str  # PlatformIO's board identifier; empty for a platform without boards.
    platform: str  # empty where PlatformIO's registry has none with this board.
    # For which a project can be exported, the default one first; "none" is for this computer.
    frameworks: tuple[str, ...]
    title: str  # what is printed on the box.
    target: str = ""  # its core; empty for a board that only the user knows.
    flash: int = 0  # bytes that a program may use; 0 where that is not known.
    ram: int = 0
    clock: int = 0  # hertz, the usual one.


def _listed_boards() -> Iterator[Board]:
    target = ""
    for line in _LISTED.read_text(encoding="ascii").splitlines():
        if not line.startswith(" "):
            target = line
            continue
        name, platform, frameworks, *numbers, title = line.split(maxsplit=6)
        flash, ram, clock = map(int, numbers)
        yield Board(
            name.strip("-"),
            platform.strip("-"),
            tuple(frameworks.split(",")),
            title,
            target,
            flash * _KILOBYTE,
            ram * _KILOBYTE,
            clock * 1_000_000,
        )


#: All boards, by target, the suggested ones first.
BOARDS: tuple[Board, ...] = tuple(_listed_boards())


def boards_of(target: str, count: int | None = None) -> tuple[Board, ...]:
    """List the boards of a target, or the first ones."""
    return tuple(board for board in BOARDS if board.target == target)[:count]


@dataclass(frozen=True)
class Compiler:
    """A compiler that can build for a target."""

    prefix: str  # what stands before ``gcc`` in the command, e.g. ``"arm-none-eabi-"``.
    flags: tuple[str, ...] = ()  # which choose the processor.


@dataclass(frozen=True)
class Target:
    """One processor."""

    name: str  # on the command line.
    description: str  # core and instruction set in a few words.
    family: str  # "arm", "riscv", "xtensa", "avr" or "host": who reads its machine code.
    boards: tuple[Board, ...]  # to suggest; the first is the default.
    compilers: tuple[Compiler, ...]  # in order of preference.
    zig: tuple[str, str] | None = None  # ``(-target, -mcpu)`` of zig, where it has such a target.
    machines: tuple[str, ...] = ()  # emulated ones that run its code, the closest first.
    emulated_as: str = ""  # what is not proven, where no machine has this core but {core}.
    tables_in_ram: bool = False  # whether the chip copies constant tables to RAM at start.
    # Cycles an instruction that are assumed, from and to: code in memory without wait states up to
    # code in flash behind a cache.
    cycles: tuple[float, float] = (1.0, 2.0)
    notes: tuple[str, ...] = ()  # what a memory report must say about the chip.
    chip: str = ""  # the device of the default board, where the target's own name does not say it.
    soft: str = ""  # of a core with its FPU, the target without, whose boards these are.

    @property
    def core(self) -> str:
        """The target that has the boards: itself, or the same core without its FPU."""
        return self.soft or self.name

    @property
    def board(self) -> Board:
        """The default board."""
        return self.boards[0]

    @property
    def flash(self) -> int:
        """Bytes of the default board, a typical small one; 0 where it does not matter."""
        return self.board.flash

    @property
    def ram(self) -> int:
        """Bytes of RAM of the default board."""
        return self.board.ram

    @property
    def frameworks(self) -> tuple[str, ...]:
        """All frameworks of all its boards, the default first."""
        return tuple(dict.fromkeys(name for board in self.boards for name in board.frameworks))


# Names of the Cortex-M cores, for each: boards to suggest, the chip of the first, cycles an
# instruction from and to, machines, description. Loads take two cycles and taken branches two or
# three on most of them; the M7 issues two instructions per cycle.
_CORTEX = """\
m0 3 STM32F072RB 1.2 2.0 microbit,mps2-an385 Cortex-M0, ARMv6-M: no DSP, no FPU, no divide
m0plus 2 STM32L053R8 1.1 1.8 microbit,mps2-an385 Cortex-M0+, ARMv6-M: no DSP, no FPU, no divide
m3 2 STM32F103C8 1.1 1.8 mps2-an385 Cortex-M3, ARMv7-M: no DSP, no FPU
m4 2 STM32F401RE 1.1 1.8 mps2-an386 Cortex-M4, ARMv7E-M: DSP
m7 2 STM32F767ZI 0.6 1.2 mps2-an500 Cortex-M7, ARMv7E-M: DSP, two issues a cycle
m33 1 STM32L552ZE 1.0 1.7 mps2-an505 Cortex-M33, ARMv8-M Mainline: DSP
"""
# FPUs of single precision. What a chip has besides (double precision) is of no use here.
_FPUS = {"cortex-m4": "fpv4-sp-d16", "cortex-m7": "fpv5-sp-d16", "cortex-m33": "fpv5-sp-d16"}
# Boards with a core that has an FPU in others.
_WITHOUT_FPU = ("teensy31",)
# The DSP extension is an option of the M33 that its chips have; GCC assumes it, zig does not.
_ZIG_CPUS = {"cortex-m33": "cortex_m33+dsp"}


def _cortex(row: str) -> tuple[Target, ...]:
    """Return the targets of a row of the table: a core, and the same with its FPU if it has one."""
    core, n_boards, chip, low, high, machines, description = row.split(maxsplit=6)
    name = f"cortex-{core}"
    fpu = _FPUS.get(name)
    plain = Target(
        name=name,
        description=description + ("; built without the optional FPU" if fpu else ""),
        family="arm",
        boards=boards_of(name, int(n_boards)),
        compilers=_arm_gcc(name, "-mfloat-abi=soft"),
        zig=("thumb-freestanding-eabi", _ZIG_CPUS.get(name, name.replace("-", "_"))),
        machines=tuple(machines.split(",")),
        cycles=(float(low), float(high)),
        chip=chip,
    )
    if fpu is None or plain.zig is None:
        return (plain,)
    with_fpu = replace(
        plain,
        name=f"{name}f",
        description=f"{description}; built with its FPU of single precision",
        boards=tuple(row for row in plain.boards if row.name not in _WITHOUT_FPU),
        compilers=_arm_gcc(name, f"-mfpu={fpu}", "-mfloat-abi=hard"),
        zig=("thumb-freestanding-eabihf", plain.zig[1]),
        soft=name,
    )
    return plain, with_fpu


def _arm_gcc(cpu: str, *flags: str) -> tuple[Compiler, ...]:
    return (Compiler("arm-none-eabi-", (f"-mcpu={cpu}", "-mthumb", *flags)),)


def _esp32(name: str, chip: str, core: str) -> Target:
    """Return the row of a chip whose exact core no machine emulates."""
    return Target(
        name=name,
        description=f"{chip}, {core}",
        family="xtensa",
        boards=boards_of(name, 1),
        compilers=(Compiler(f"xtensa-{name}-elf-", ("-mlongcalls",)),),
        machines=("sim-lx106", "virt-rv32"),
        emulated_as=f"no emulator has the {core}, so its C runs on a {{core}}; its own compiler "
        "and register windows are not exercised",
    )


_RV32 = ("-march=rv32imc", "-mabi=ilp32")
_ROWS = (
    *(target for row in _CORTEX.splitlines() for target in _cortex(row)),
    _esp32("esp32", "ESP32", "Xtensa LX6"),
    _esp32("esp32s3", "ESP32-S3", "Xtensa LX7"),
    Target(
        name="esp32c3",
        description="ESP32-C3, RISC-V RV32IMC",
        family="riscv",
        boards=boards_of("esp32c3", 1),
        compilers=(Compiler("riscv32-esp-elf-", _RV32), Compiler("riscv64-unknown-elf-", _RV32)),
        zig=("riscv32-freestanding-none", "generic_rv32+m+c"),
        machines=("virt-rv32",),
    ),
    Target(
        name="esp8266",
        description="ESP8266, Xtensa LX106",
        family="xtensa",
        boards=boards_of("esp8266", 2),
        compilers=(Compiler("xtensa-lx106-elf-", ("-mlongcalls",)),),
        machines=("sim-lx106",),
        tables_in_ram=True,
        notes=(
            "the ESP8266 copies constant data to RAM at start, so the tables count as flash and "
            "as static RAM",
        ),
    ),
    Target(
        name="atmega328p",
        description="ATmega328P, 8-bit AVR: no barrel shifter, multiplies bytes",
        family="avr",
        boards=boards_of("atmega328p", 1),
        compilers=(Compiler("avr-", ("-mmcu=atmega328p", "-gdwarf-2")),),
        machines=("atmega328p",),
        cycles=(1.4, 1.8),
    ),
    Target(
        name="host",
        description="this computer, for trying out and for tests",
        family="host",
        boards=boards_of("host", 1),
        compilers=(Compiler(""),),
    ),
)

#: All targets by name; a core with its FPU follows the same core without.
TARGETS: dict[str, Target] = {row.name: row for row in _ROWS}


def find_target(name: str | Target) -> Target:
    """Look a target up by its name; the TinykernelError of an unknown one proposes another."""
    if isinstance(name, Target):
        return name
    try:
        return TARGETS[name]
    except (KeyError, TypeError):
        target = _target_of(str(name))
        hint = f"{similar(str(name), TARGETS)} choose from {', '.join(TARGETS)}".lstrip()
        if target is not None:
            hint = f"give its target, {target}, and the board by --set board={name}"
            raise TargetError(f"{name!r} is a board; {hint}") from None
        raise TargetError(f"unknown target {name!r}; {hint}") from None


def find_targets(names: Iterable[str], everything: Iterable[str]) -> list[str]:
    """Return each target once; the name "all" stands for `everything`."""
    names_of = (everything if name == "all" else [find_target(name).name] for name in names)
    return list(dict.fromkeys(chain.from_iterable(names_of)))


def _boards_of(target: Target) -> dict[str, Board]:
    without = _WITHOUT_FPU if target.soft else ()
    return {row.name: row for row in boards_of(target.core) if row.name not in without}


def board_for(
    target: Target,
    board: str | None = None,
    framework: str | None = None,
    platform: str | None = None,
) -> tuple[Board, str]:
    """Choose the board and the framework of a project.

    `board` is one of the target's, by PlatformIO's name, unless `platform` names that of a board
    missing in the table, perhaps with a version, as in ``"ststm32@19.0.0"``.

    >>> chosen, framework = board_for(find_target("esp32"), framework="espidf")
    >>> chosen.name, framework
    ('esp32dev', 'espidf')
    >>> board_for(find_target("cortex-m0plus"), "pico")[0].platform
    'raspberrypi'
    """
    if platform is not None:
        chosen = _board_of_user(target, board, framework, platform)
    elif board is None:
        able = [row for row in target.boards if framework in (None, *row.frameworks)]
        chosen = able[0] if able else target.board
    elif board in _boards_of(target):
        chosen = _boards_of(target)[board]
    else:
        raise TargetError(f"board {board!r} {_why_not(target, board)}")
    if chosen.name and not chosen.platform:
        raise TargetError(
            f"board {chosen.name}: no platform of PlatformIO's registry has it; name your platform "
            "with --set board=PLATFORM:NAME, or export --format library"
        )
    if framework not in (None, *chosen.frameworks):
        raise TargetError(
            f"framework {framework!r} does not fit target {target.name}"
            + (f" on board {chosen.name}" if chosen.name else "")
            + f"; choose one of {', '.join(chosen.frameworks)}"
        )
    return chosen, framework or chosen.frameworks[0]


def _board_of_user(
    target: Target, board: str | None, framework: str | None, platform: str
) -> Board:
    """Return a board with the platform that the user names."""
    if board is None or target.family == "host":
        raise TargetError("platform: needs a board, and a target other than host")
    for word, text in (("board", board), ("platform", platform.replace("@", "").replace("/", ""))):
        if not re.fullmatch(r"[\w.-]+", text, re.ASCII):
            raise TargetError(f"{word} {text!r}: not a name that PlatformIO can have; check it")
    listed = _boards_of(target).get(board)
    if listed and listed.platform and listed.platform != platform.partition("@")[0]:
        raise TargetError(
            f"board {board} belongs to platform {listed.platform}; leave platform out"
        )
    frameworks = listed.frameworks if listed else (framework or "arduino",)
    return Board(board, platform, frameworks, board)


def _why_not(target: Target, board: str) -> str:
    """Say why a board does not fit, and which ones do."""
    names, other = list(filter(None, _boards_of(target))), _target_of(board)
    if not names:
        return f"does not fit target {target.name}, which is this computer"
    if other is not None:
        return f"is a board of target {other}; give --target {other}"
    near = difflib.get_close_matches(board, names, n=3) or names[:6]
    return (
        f"is not known for target {target.name}; choose from {', '.join(near)}, or give another "
        "with --set board=PLATFORM:NAME"
    )


def _target_of(board: str) -> str | None:
    return next((row.target for row in BOARDS if row.name == board), None)
