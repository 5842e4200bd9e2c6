"""The table of targets: one row says everything the rest of the package knows about a processor.

To add a processor, add one row to `TARGETS`; its boards are in `tinykernel.codegen.boards`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace

from tinykernel.codegen.boards import BOARDS, Board, boards_of
from tinykernel.codegen.platformio import installed_board
from tinykernel.errors import TinykernelError
from tinykernel.text import similar


@dataclass(frozen=True)
class Compiler:
    """A compiler that can build for a target.

    Parameters
    ----------
    prefix : str
        What stands before ``gcc`` in the command, e.g. ``"arm-none-eabi-"``.
    flags : tuple of str
        Flags that choose the processor.
    stand_in : str
        Empty when the compiler builds for this very processor, else one sentence saying how the
        processor it builds for differs.
    """

    prefix: str
    flags: tuple[str, ...] = ()
    stand_in: str = ""


@dataclass(frozen=True)
class Target:
    """One processor.

    Parameters
    ----------
    name : str
        The name on the command line.
    description : str
        Core and instruction set in a few words.
    family : {"arm", "riscv", "xtensa", "avr", "host"}
        Which instruction decoder reads its machine code.
    boards : tuple of Board
        Boards to suggest; the first is the default.
    compilers : tuple of Compiler
        In order of preference; a true compiler comes before a stand-in.
    zig : tuple of (str, str) or None
        ``(-target, -mcpu)`` for the C compiler of zig, None where zig has no such target.
    machines : tuple of str
        Emulated machines that run its code, the closest one first (`build.machines`).
    emulated_as : str
        Empty when a machine has this very core, else one sentence about what is not proven.
    tables_in_ram : bool
        Whether the chip copies constant tables from flash to RAM at start.
    cycles : tuple of (float, float)
        Cycles an instruction, from and to, assumed where a time is computed from a number of
        instructions: code in memory without wait states up to code in flash behind a cache.
    notes : tuple of str
        What a memory report must say about the chip.
    chip : str
        The device of the default board; empty where the target's own name says it.
    soft : str
        Of a core with its FPU, the target of the same core without, whose boards these are; else
        empty.
    """

    name: str
    description: str
    family: str
    boards: tuple[Board, ...]
    compilers: tuple[Compiler, ...]
    zig: tuple[str, str] | None = None
    machines: tuple[str, ...] = ()
    emulated_as: str = ""
    tables_in_ram: bool = False
    cycles: tuple[float, float] = (1.0, 2.0)
    notes: tuple[str, ...] = field(default=())
    chip: str = ""
    soft: str = ""

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
        """The same of RAM."""
        return self.board.ram

    @property
    def frameworks(self) -> tuple[str, ...]:
        """All frameworks of all its boards, the default first."""
        return tuple(dict.fromkeys(name for board in self.boards for name in board.frameworks))


_ARM_GCC = "arm-none-eabi-"
_LX106 = Compiler(
    "xtensa-lx106-elf-",
    ("-mlongcalls",),
    "built for the Xtensa LX106 (call0 calling convention), the nearest instruction set to this "
    "Xtensa core that a compiler was found for; the real core has more instructions and register "
    "windows",
)


# The DSP extension is an option of the M33 that its chips have; GCC assumes it, zig does not.
_ZIG_CPUS = {"cortex-m33": "cortex_m33+dsp"}


# Boards with a core that has an FPU in others.
_WITHOUT_FPU = ("teensy31",)
# FPUs of single precision. What a chip has besides (double precision) is of no use here.
_FPUS = {"cortex-m4": "fpv4-sp-d16", "cortex-m7": "fpv5-sp-d16", "cortex-m33": "fpv5-sp-d16"}


def _cortex(
    cpu: str, description: str, boards: int, chip: str, cycles: tuple[float, float], *machines: str
) -> Target:
    """Build a row for a Cortex-M core, with its first boards to suggest and the chip of these.

    All of them share their compilers and naming.
    """
    return Target(
        name=cpu,
        description=description,
        family="arm",
        boards=boards_of(cpu, boards),
        compilers=(Compiler(_ARM_GCC, (f"-mcpu={cpu}", "-mthumb", "-mfloat-abi=soft")),),
        zig=("thumb-freestanding-eabi", _ZIG_CPUS.get(cpu, cpu.replace("-", "_"))),
        machines=machines,
        cycles=cycles,
        chip=chip,
    )


def _with_fpu(target: Target) -> Target:
    """Return the row of the same core with its FPU: float inputs take fewer instructions."""
    flags = (f"-mcpu={target.name}", "-mthumb", f"-mfpu={_FPUS[target.name]}", "-mfloat-abi=hard")
    assert target.zig is not None
    return replace(
        target,
        name=f"{target.name}f",
        description=target.description.replace(
            "built without the optional FPU", "built with its FPU of single precision"
        ),
        boards=tuple(row for row in target.boards if row.name not in _WITHOUT_FPU),
        compilers=(Compiler(_ARM_GCC, flags),),
        zig=("thumb-freestanding-eabihf", target.zig[1]),
        soft=target.name,
    )


# Loads take two cycles and taken branches two or three on most of the Cortex-M; the M7 issues two
# instructions a cycle.
_ROWS = (
    _cortex(
        "cortex-m0",
        "Cortex-M0, ARMv6-M: no DSP, no FPU, no divide",
        3,
        "STM32F072RB",
        (1.2, 2.0),
        "microbit",
        "mps2-an385",
    ),
    _cortex(
        "cortex-m0plus",
        "Cortex-M0+, ARMv6-M: no DSP, no FPU, no divide",
        2,
        "STM32L053R8",
        (1.1, 1.8),
        "microbit",
        "mps2-an385",
    ),
    _cortex(
        "cortex-m3",
        "Cortex-M3, ARMv7-M: no DSP, no FPU",
        2,
        "STM32F103C8",
        (1.1, 1.8),
        "mps2-an385",
    ),
    _cortex(
        "cortex-m4",
        "Cortex-M4, ARMv7E-M: DSP; built without the optional FPU",
        2,
        "STM32F401RE",
        (1.1, 1.8),
        "mps2-an386",
    ),
    _cortex(
        "cortex-m7",
        "Cortex-M7, ARMv7E-M: DSP, two issues a cycle; built without the optional FPU",
        2,
        "STM32F767ZI",
        (0.6, 1.2),
        "mps2-an500",
    ),
    _cortex(
        "cortex-m33",
        "Cortex-M33, ARMv8-M Mainline: DSP; built without the optional FPU",
        1,
        "STM32L552ZE",
        (1.0, 1.7),
        "mps2-an505",
    ),
    Target(
        name="esp32",
        description="ESP32, Xtensa LX6",
        family="xtensa",
        boards=boards_of("esp32", 1),
        compilers=(Compiler("xtensa-esp32-elf-", ("-mlongcalls",)), _LX106),
        machines=("sim-lx106", "virt-rv32"),
        emulated_as="the same C ran on an Xtensa LX106 and on a RISC-V core; the Xtensa LX6 "
        "itself, its compiler and its register windows were not exercised",
    ),
    Target(
        name="esp32s3",
        description="ESP32-S3, Xtensa LX7",
        family="xtensa",
        boards=boards_of("esp32s3", 1),
        compilers=(Compiler("xtensa-esp32s3-elf-", ("-mlongcalls",)), _LX106),
        machines=("sim-lx106", "virt-rv32"),
        emulated_as="the same C ran on an Xtensa LX106 and on a RISC-V core; the Xtensa LX7 "
        "itself, its compiler and its register windows were not exercised",
    ),
    Target(
        name="esp32c3",
        description="ESP32-C3, RISC-V RV32IMC",
        family="riscv",
        boards=boards_of("esp32c3", 1),
        compilers=(
            Compiler("riscv32-esp-elf-", ("-march=rv32imc", "-mabi=ilp32")),
            Compiler("riscv64-unknown-elf-", ("-march=rv32imc", "-mabi=ilp32")),
        ),
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
TARGETS: dict[str, Target] = {
    row.name: row
    for plain in _ROWS
    for row in ((plain, _with_fpu(plain)) if plain.name in _FPUS else (plain,))
}


def find_target(name: str | Target) -> Target:
    """Look a target up by its name.

    Parameters
    ----------
    name : str or Target
        A name from `TARGETS`; a `Target` is returned as it is.

    Raises
    ------
    TinykernelError
        If there is no such target; the message says which one was probably meant.

    Examples
    --------
    >>> find_target("cortex-m4").board.name
    'nucleo_f401re'
    """
    if isinstance(name, Target):
        return name
    try:
        return TARGETS[name]
    except (KeyError, TypeError):
        raise TinykernelError(f"unknown target {name!r}; {_meant(str(name))}") from None


def _meant(name: str) -> str:
    """Say which target was probably meant; boards are known, too."""
    board = _belongs(name)
    if board is not None:
        return f"it is a board of target {board}"
    return f"{similar(name, TARGETS)} the known ones are {', '.join(TARGETS)}".lstrip()


def _boards(target: Target) -> dict[str, Board]:
    """List all boards of a target by name."""
    without = _WITHOUT_FPU if target.soft else ()
    return {row.name: row for row in boards_of(target.core) if row.name not in without}


def board_for(
    target: Target,
    board: str | None = None,
    framework: str | None = None,
    platform: str | None = None,
) -> tuple[Board, str]:
    """Choose the board and the framework of a project.

    Parameters
    ----------
    target : Target
    board : str, optional
        PlatformIO board identifier, one of the target's unless `platform` is given.
    framework : str, optional
        A framework of that board.
    platform : str, optional
        PlatformIO platform, for a board that neither the table nor the platforms that PlatformIO
        has installed know; needs `board`. A version may follow, as in ``"ststm32@19.0.0"``.

    Raises
    ------
    TinykernelError
        If the board is not known, or framework or platform do not fit.

    Examples
    --------
    >>> chosen, framework = board_for(find_target("esp32"), framework="espidf")
    >>> chosen.name, framework
    ('esp32dev', 'espidf')
    >>> board_for(find_target("cortex-m0plus"), "pico")[0].platform
    'raspberrypi'
    """
    known = _boards(target)
    if platform is not None:
        chosen = _unlisted_board(target, board, framework, platform)
    elif board is None:
        able = [row for row in target.boards if framework in (None, *row.frameworks)]
        chosen = able[0] if able else target.board
    elif board in known:
        chosen = known[board]
    else:
        found = _installed(target, board)
        if found is None:
            raise TinykernelError(f"board {board!r} {_why_not(target, board)}")
        chosen = found
    if chosen.name and not chosen.platform:
        raise TinykernelError(
            f"no platform of PlatformIO's registry has board {chosen.name}: give the one that you "
            "use with --set platform=NAME, or export --format library"
        )
    if framework is None:
        return chosen, chosen.frameworks[0]
    if framework not in chosen.frameworks:
        raise TinykernelError(
            f"framework {framework!r} does not fit target {target.name}"
            + (f" on board {chosen.name}" if chosen.name else "")
            + f"; choose one of {', '.join(chosen.frameworks)}"
        )
    return chosen, framework


def _unlisted_board(
    target: Target, board: str | None, framework: str | None, platform: str
) -> Board:
    """Return a board that the user vouches for."""
    if board is None or target.family == "host":
        raise TinykernelError("platform goes with board, and not with target host")
    for word, text in (("board", board), ("platform", platform.replace("@", "").replace("/", ""))):
        if not _is_identifier(text):
            raise TinykernelError(f"{word} {text!r} is no name of PlatformIO's")
    listed = _boards(target).get(board)
    if listed and listed.platform and listed.platform != platform.partition("@")[0]:
        raise TinykernelError(
            f"board {board} belongs to platform {listed.platform}; leave platform out"
        )
    frameworks = listed.frameworks if listed else (framework or "arduino",)
    return Board(board, platform, frameworks, board)


def _installed(target: Target, board: str) -> Board | None:
    """Find a board in the platforms that PlatformIO has installed."""
    if target.family == "host" or not _is_identifier(board) or _belongs(board) is not None:
        return None
    found = installed_board(board)
    if found is None:
        return None
    row, cpu = found
    if cpu.startswith("cortex-") and cpu != target.core:
        raise TinykernelError(f"board {board!r} is a {cpu}: use --target {cpu}")
    return row


def _belongs(board: str) -> str | None:
    """Name the target of a board of the table."""
    return next((row.target for row in BOARDS if row.name == board), None)


def _why_not(target: Target, board: str) -> str:
    """Say why a board cannot be had, and which ones can."""
    names = list(filter(None, _boards(target)))
    if not names:
        return f"does not fit target {target.name}, which is this computer"
    other = _belongs(board)
    if other is not None:
        return f"is a {other}: use --target {other}"
    near = difflib.get_close_matches(board, names, n=3) or names[:6]
    return (
        f"is not known for target {target.name}; known are {', '.join(near)}, and any other with "
        "--set platform=PLATFORM"
    )


def _is_identifier(board: str) -> bool:
    """Say whether a text can be a board identifier: letters, digits, minus, dot, underscore."""
    return board != "" and all(c.isalnum() or c in "-_." for c in board) and board.isascii()
