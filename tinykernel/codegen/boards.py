"""The boards of ``boards.txt``: PlatformIO's names for them, their core and memory.

Versions of platforms are pinned in ``templates/platformio/format.json``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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


def _boards() -> Iterator[Board]:
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
BOARDS: tuple[Board, ...] = tuple(_boards())


def boards_of(target: str, count: int | None = None) -> tuple[Board, ...]:
    """List the boards of a target, or the first ones."""
    return tuple(board for board in BOARDS if board.target == target)[:count]
