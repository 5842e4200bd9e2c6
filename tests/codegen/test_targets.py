"""The table of targets: every row is complete, and wrong names are refused clearly."""

from __future__ import annotations

import pytest

from tinykernel.codegen.targets import TARGETS, board_for, find_target
from tinykernel.errors import TinykernelError

NAMES = [
    "cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33",
    "esp32", "esp32s3", "esp32c3", "esp8266", "host",
]  # fmt: skip


def test_all_promised_targets_are_there() -> None:
    """The README promises these targets."""
    assert list(TARGETS) == NAMES


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
        # The true compiler comes before stand-ins, or the report would name the wrong one.
        stand_ins = [bool(compiler.stand_in) for compiler in target.compilers]
        assert stand_ins == sorted(stand_ins)


def test_unknown_target_lists_the_known() -> None:
    """The message for a wrong target must help to choose a right one."""
    with pytest.raises(TinykernelError, match=r"cortex-m0, .*esp32c3.*host") as caught:
        find_target("cortex-m99")
    assert "\n" not in str(caught.value)


def test_default_board_and_framework() -> None:
    """Without options the first board and its first framework are taken."""
    board, framework = board_for(find_target("cortex-m4"))
    assert (board.name, framework) == ("nucleo_f401re", "arduino")


def test_framework_chooses_a_board_that_has_it() -> None:
    """--framework alone must pick a board for which it exists."""
    board, framework = board_for(find_target("esp32c3"), framework="espidf")
    assert board.name == "esp32-c3-devkitm-1"
    assert framework == "espidf"


def test_other_board_of_the_same_platform() -> None:
    """A board that the table does not know belongs to the default platform."""
    board, framework = board_for(find_target("esp32"), board="lolin32", framework="espidf")
    assert (board.name, board.platform, framework) == ("lolin32", "espressif32", "espidf")


@pytest.mark.parametrize(
    ("target", "board", "framework", "message"),
    [
        ("esp8266", None, "espidf", "choose one of arduino"),
        ("cortex-m33", "nucleo_l552ze_q", "zephyr", "arduino, cmsis, stm32cube"),
        ("host", "nucleo_f401re", None, "this computer"),
        ("cortex-m4", "a board\n[env]", None, "known boards: nucleo_f401re"),
    ],
)
def test_wrong_combination(target: str, board: str, framework: str, message: str) -> None:
    """A project that cannot build must not be exported."""
    with pytest.raises(TinykernelError, match=message):
        board_for(find_target(target), board, framework)
