"""The commands that talk to a board, against the program of an export on this computer."""

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.board.test_checking import altered
from tests.cli.tools import failed, process, run
from tinykernel.board.emulator import emulated_board
from tinykernel.modelfile import load


@pytest.fixture(autouse=True)
def _needs_pyserial(require_tool) -> None:
    require_tool("serial")


@pytest.fixture
def port(work) -> Iterator[str]:
    """Return the port of a board that runs the model."""
    with emulated_board(load(work / "gesture.tkm")) as board:
        yield board.port


def test_verify_on_a_port(port, work) -> None:
    """The table names the board; JSON has what `verify` has, and what inferences took."""
    arguments = ("verify", work / "gesture.tkm", work / "data.npz", "--port", port)
    shown = run(*arguments, "--rows", "all")
    assert shown.exit_code == 0, shown.output
    assert f"this computer at {port}" in shown.stdout
    assert "C and Python agree on every score (the test part of data.npz)" in shown.stdout
    assert "not measured" in shown.stdout
    found = json.loads(run(*arguments, "--json", "--rows", 6).stdout)
    assert (found["rows"], found["scores"], found["differences"]) == (6, 18, 0)
    assert (found["target"], found["board"]) == ("host", "this computer")
    assert {"microseconds", "cycles", "stack", "stack_promised"} <= set(found)


def test_a_board_with_another_score_ends_with_status_1(work, monkeypatch) -> None:
    """One difference fails, in one line that says where."""
    done = b"say(TEXT_INFER_DONE)"
    altered(monkeypatch, done, b"{ static int n; now.results[1] += ++n == 2; } " + done)
    with emulated_board(load(work / "gesture.tkm")) as board:
        result = run("verify", work / "gesture.tkm", work / "data.npz", "--port", board.port)
    assert result.exit_code == 1
    assert "1 difference between board and Python; the first: row 1" in result.stderr


def test_one_board_needs_no_port(monkeypatch) -> None:
    """The only USB device is taken; none and several are told, with their ports."""
    from serial.tools import list_ports

    from tinykernel.board import link

    rows = [SimpleNamespace(device="/dev/ttyS0", vid=None)]
    monkeypatch.setattr(list_ports, "comports", lambda: rows)
    arguments = ("record", "--label", "x")
    assert "no board is connected by USB" in failed(*arguments)
    rows.append(SimpleNamespace(device="/dev/ttyACM0", vid=0x483))
    assert link.find_port(None) == link.find_port("auto") == "/dev/ttyACM0"
    rows.append(SimpleNamespace(device="/dev/ttyACM1", vid=0x2E8A))
    assert "are connected: /dev/ttyACM0, /dev/ttyACM1; choose one with --port" in failed(*arguments)


@pytest.mark.slow
def test_an_esp32_ran_silently_on_a_risc_v(work, require_tool) -> None:
    """The line of an emulated board says which core it has, where no emulator has the target's."""
    require_tool("qemu-system-riscv32")
    board = process("emulate", work / "gesture.tkm", "-t", "esp32")
    assert board.stderr is not None
    line = board.stderr.readline()
    board.terminate()
    board.communicate(timeout=60)
    assert line.startswith("emulated virt-rv32, until Ctrl-C; no emulator has the Xtensa LX6, so ")
    assert "its C runs on a RISC-V RV32IMC" in line


def test_options_that_do_not_go_together(work) -> None:
    """Nothing that was asked for is ignored."""
    model, data = work / "gesture.tkm", work / "data.npz"
    for arguments, message in (
        (("verify", model, data, "--rows", "5"), "needs --port"),
        (("verify", model, data, "--port", "x", "--target", "host"), "excludes --port"),
        (("verify", model, data, "--port", "x", "--rows", "-1"), "give a number of rows, or all"),
        (("emulate",), "give either MODEL or --sensor"),
        (("emulate", model, "--sensor", "still"), "give either MODEL or --sensor"),
    ):
        assert message in failed(*arguments, status=2)
    assert "choose from still, shaking, turning" in failed("emulate", "--sensor", "flying")
    assert "no emulated board has a serial port" in failed("emulate", model, "-t", "esp8266")
