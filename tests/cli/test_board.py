"""The commands that talk to a board, against the program of an export on this computer."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.board.test_checking import altered
from tests.cli.tools import failed, run, succeeded
from tinykernel.model.file import load
from tinykernel.run.emulator import emulated_board


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
    succeeded(*arguments, "--rows", "all")
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"m-results-["', b'"m-results-[99999999999,"', "0 results arrived where the model has 3"),
        (b'"m-results-["', b'"m-results-[1,"', "4 results arrived where the model has 3 scores"),
        (b'"m-results-["', b'"m-results-[%s"' % (b"9" * 3000), "0 results"),
        (b'"m-cycles-"', b'"m-cycles-%s"' % (b"9" * 400), "has no number of 32 bits"),
        (b'"m-lap-us-"', b'"m-lap-us-4294967296"', "has no number of 32 bits"),
        (b'"m-stack-"', b'"m-stack--"', None),
        (b'"m-stack-"', b'"m-stack-9"', None),  # of a host, for which no stack is promised
    ],
)
def test_a_board_that_lies_ends_with_one_line(old, new, message, work, monkeypatch) -> None:
    """Numbers of any length, too many of them, and a stack that nobody promised."""
    altered(monkeypatch, old, new)
    with emulated_board(load(work / "gesture.tkm")) as board:
        result = run("verify", work / "gesture.tkm", work / "data.npz", "--port", board.port)
    if message is None:
        assert result.exit_code == 0, result.output
    else:
        assert result.exit_code == 1
        (line,) = result.stderr.splitlines()[-1:]
        assert re.search(message, line), line
        assert board.port in line
        assert len(line) < 300


def test_emulate_behind_an_ampersand_ends_at_ctrl_c(work) -> None:
    """A shell lets it ignore SIGINT, which is then the only way to end it by its own help."""
    command = [sys.executable, "-m", "tinykernel", "emulate", str(work / "gesture.tkm")]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert child.stdout is not None
    assert child.stdout.readline()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 0


def test_one_board_needs_no_port(monkeypatch) -> None:
    """The only USB device is taken; none and several are told, with their ports."""
    from serial.tools import list_ports

    from tinykernel.run import link

    rows = [SimpleNamespace(device="/dev/ttyS0", vid=None)]
    monkeypatch.setattr(list_ports, "comports", lambda: rows)
    arguments = ("record", "--label", "x")
    failed(*arguments)
    rows.append(SimpleNamespace(device="/dev/ttyACM0", vid=0x483))
    assert link.find_port(None) == link.find_port("auto") == "/dev/ttyACM0"
    rows.append(SimpleNamespace(device="/dev/ttyACM1", vid=0x2E8A))
    failed(*arguments)
