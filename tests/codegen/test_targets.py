"""The table of targets: every row is complete, and wrong names are refused clearly."""

import pytest

from tests.refusals import refused
from tinykernel.base.errors import TargetError
from tinykernel.compile.targets import BOARDS, TARGETS, board_for, find_target

NAMES = [
    *("cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m4f", "cortex-m7"),
    *("cortex-m7f", "cortex-m33", "cortex-m33f", "esp32", "esp32s3", "esp32c3", "esp8266"),
    *("atmega328p", "host"),
]


@pytest.mark.parametrize("name", NAMES)
def test_row_is_complete(name: str) -> None:
    """A row with a hole would fail late, in a template or in a report."""
    target = find_target(name)
    assert target.description
    assert target.boards
    assert target.compilers
    assert target.board.platform
    assert target.board.frameworks
    if target.family != "host":
        assert target.flash > 0
        assert target.ram > 0
        assert target.machines
        assert all(board.name for board in target.boards)


@pytest.mark.parametrize(
    ("target", "board", "framework", "chosen"),
    [
        ("cortex-m4", None, None, ("nucleo_f401re", "arduino", "ststm32")),
        ("esp32c3", None, "espidf", ("esp32-c3-devkitm-1", "espidf", "espressif32")),
        ("cortex-m4", "nrf52_dk", "zephyr", ("nrf52_dk", "zephyr", "nordicnrf52")),
    ],
)
def test_a_board_that_has_the_framework_is_chosen(target, board, framework, chosen) -> None:
    """By default the first board and its first framework; a board brings its platform."""
    row, name = board_for(find_target(target), board, framework)
    assert (row.name, name, row.platform) == chosen


def test_every_board_belongs_to_one_target() -> None:
    """The message for a board of another target names that target."""
    names = [board.name for board in BOARDS]
    assert len(names) == len(set(names))
    assert {board.target for board in BOARDS} == {target.core for target in TARGETS.values()}
    for board in BOARDS:
        assert board.target == "host" or min(board.flash, board.ram, board.clock) > 0


def test_a_core_with_its_fpu_has_the_boards_of_the_core() -> None:
    """Boards are listed once; a board whose chip lacks the FPU is refused, not built for one."""
    assert board_for(find_target("cortex-m4f"), "nano33ble")[0].platform == "nordicnrf52"
    assert board_for(find_target("cortex-m4"), "teensy31")[0].name == "teensy31"
    refused(TargetError, board_for, find_target("cortex-m4f"), "teensy31")


def test_a_board_that_is_in_no_platform() -> None:
    """It is sized and listed, but a project for it needs a platform that the user names."""
    refused(TargetError, board_for, find_target("cortex-m33"), "rpipico2")


def test_platform_for_a_board_that_the_table_lacks() -> None:
    """Whoever knows a board and its platform is not held up by the table."""
    board, framework = board_for(find_target("cortex-m33"), "rpipico2", platform="raspberrypi")
    assert (board.name, board.platform, framework) == ("rpipico2", "raspberrypi", "arduino")
    refused(TargetError, board_for, find_target("cortex-m0plus"), "pico", platform="ststm32")
    refused(TargetError, board_for, find_target("cortex-m4"), platform="ststm32")
    refused(TargetError, board_for, find_target("cortex-m4"), "some", platform="x\n[env]")
