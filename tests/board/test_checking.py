"""Verifying on a board: the C of every kind of model over a serial line to every emulated core."""

from typing import Any

import numpy as np
import pytest

from tests.board.kinds import KINDS, SMALL, rows_of
from tests.random_models import random_model
from tinykernel.base.errors import ModelError
from tinykernel.model.integer import IntegerModel
from tinykernel.run import emulator
from tinykernel.run.checking import BoardResult, verify_on_board
from tinykernel.run.emulator import emulated_board
from tinykernel.run.link import ConnectedBoard, Link

TOOLS = {
    **dict.fromkeys(
        ("cortex-m0", "cortex-m3", "cortex-m33"), ("arm-none-eabi-gcc", "qemu-system-arm")
    ),
    "esp32c3": ("riscv64-unknown-elf-gcc", "qemu-system-riscv32"),
    "cortex-m4": ("arm-none-eabi-gcc", "qemu-system-arm"),
    "host": (),
}
# All kinds on this computer, and each on one emulated core: tests/firmware has all on all cores.
KINDS_OF = {
    target: [*KINDS][i :: len(TOOLS) - 1] if target != "host" else [*KINDS]
    for i, target in enumerate(TOOLS)
}


def verified(model: IntegerModel, target: str, n: int) -> BoardResult:
    """Verify random rows on an emulated board; with `n` decisions of a stream, too."""
    with emulated_board(model, target) as board, Link(board.port) as link:
        return verify_on_board(ConnectedBoard(link), model, rows_of(model, n))


@pytest.mark.slow
@pytest.mark.parametrize("target", TOOLS)
def test_every_kind_of_model_is_right_on_every_core(target, require_tool) -> None:
    """Over a real serial line no score differs, and the stack is at most what the report says."""
    for tool in ("serial", *TOOLS[target]):
        require_tool(tool)
    for kind in KINDS_OF[target]:
        model = KINDS[kind]()
        result = verified(model, target, 2)
        assert result.verification.differences == 0, kind
        assert result.verification.scores == 2 * model.n_scores
        assert (result.verification.hops > 0) == (kind == "signal")
        if target != "host":
            assert 0 < result.stack <= result.stack_promised, kind


def altered(monkeypatch: pytest.MonkeyPatch, old: bytes, new: bytes) -> None:
    """Change the program of boards that are emulated from now on."""
    render = emulator.exported_files

    def render_changed(*arguments: Any, **options: Any) -> dict[str, bytes]:
        files = render(*arguments, **options)
        text = files["src/tk_protocol.c"]
        assert old in text
        return files | {"src/tk_protocol.c": text.replace(old, new)}

    monkeypatch.setattr(emulator, "exported_files", render_changed)


def test_a_board_that_lies_about_one_score_is_found(monkeypatch, require_tool) -> None:
    """One score of one row that is off by one is told, with row and class."""
    require_tool("serial")
    done = b"say(TEXT_INFER_DONE)"
    altered(monkeypatch, done, b"{ static int n; now.results[2] += ++n == 4; } " + done)
    found = verified(KINDS["table"](), "host", 6).verification
    assert (found.differences, found.ok) == (1, False)
    assert (found.first_difference.row, found.first_difference.what) == (3, "score of class 2")
    assert found.first_difference.got == found.first_difference.expected + 1


def test_a_stack_without_any_paint_left_is_a_failure(monkeypatch, require_tool) -> None:
    """Where an inference takes all bytes that the board looks at, its stack is not known."""
    require_tool("serial")
    pointer = b"top = (uint8_t *)__builtin_frame_address(0) - 64;\n#elif 0\n"
    altered(monkeypatch, b"#if defined(__arm__)", b"#if 1\n    " + pointer)
    with monkeypatch.context() as patch:
        altered(patch, b'#include "tk_selftest.h"', painted(16))
        assert stack_seen() == 0
    altered(monkeypatch, b'#include "tk_selftest.h"', painted(8192))
    assert 16 < stack_seen() < 8192


def stack_seen() -> int:
    """Return what a board on this computer says that an inference takes."""
    model = KINDS["table"]()
    with emulated_board(model) as place, Link(place.port) as link:
        board = ConnectedBoard(link)
        board.load(rows_of(model, 1)[0].tobytes())
        return board.number("stack")


def painted(size: int) -> bytes:
    """Return C that lets a board look at so many bytes of its stack."""
    return b'#include "tk_selftest.h"\n#undef TK_BOARD_PAINTED\n#define TK_BOARD_PAINTED %d' % size


def test_another_model_on_the_board_is_refused(require_tool) -> None:
    """A board that runs another model is not compared, however many of its scores agree."""
    require_tool("serial")
    model, other = KINDS["table"](), random_model(7, n_classes=4, **SMALL)
    with emulated_board(other) as board, Link(board.port) as link, pytest.raises(ModelError):
        verify_on_board(ConnectedBoard(link), model, rows_of(model, 1))


def test_counters_of_a_board(require_tool) -> None:
    """The board counts its decisions by label, one for each command `infer`."""
    require_tool("serial")
    model = KINDS["table"]()
    raw = rows_of(model, 12)
    with emulated_board(model) as place, Link(place.port) as link:
        board = ConnectedBoard(link)
        verify_on_board(board, model, raw)
        counters = list(map(int, board.ask("counters")[0][len("m-counters-[") : -1].split(",")))
    expected = np.bincount(model.scores(raw).argmax(axis=1), minlength=model.n_classes)
    assert counters == expected.tolist()
