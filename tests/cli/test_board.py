"""The commands that talk to a board, against the program of an export on this computer."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.board.test_checking import altered
from tests.cli.test_flash import fake_pio, write_ini
from tests.cli.tools import failed, run
from tinykernel.board.emulator import emulated_board
from tinykernel.board.link import Port
from tinykernel.files import MANIFEST, manifest
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
    assert {"microseconds", "cycles", "instructions", "stack", "stack_promised"} <= set(found)


def test_a_board_with_another_score_ends_with_status_1(work, monkeypatch) -> None:
    """One difference fails, in one line that says where."""
    done = b"say(TEXT_INFER_DONE)"
    altered(monkeypatch, done, b"{ static int n; now.results[1] += ++n == 2; } " + done)
    with emulated_board(load(work / "gesture.tkm")) as board:
        result = run("verify", work / "gesture.tkm", work / "data.npz", "--port", board.port)
    assert result.exit_code == 1
    assert "1 scores of the board differ from Python; the first: row 1" in result.stderr


def test_a_measured_time_is_kept_and_reported(port, work, tmp_path) -> None:
    """bench --save changes nothing of the model, and report names the board that was timed."""
    model = Path(shutil.copy(work / "gesture.tkm", tmp_path))
    before = load(model).fingerprint()
    result = run("bench", model, "--port", port, "--save")
    assert result.exit_code == 0, result.output
    assert "this computer, host" in result.stdout
    assert load(model).fingerprint() == before
    from tinykernel.cli.board.verify import measured_in_words
    from tinykernel.modelfile import about

    integer = load(model)
    words = measured_in_words(about(model), "host", integer)
    assert words.endswith("microseconds an inference, measured on this computer")
    assert measured_in_words(about(model), "cortex-m4", integer) == ""


def test_flash_verifies_what_it_flashed(port, work, tmp_path, monkeypatch) -> None:
    """After PlatformIO is done the board is compared with the model, at the same port."""
    project = tmp_path / "project"
    project.mkdir()
    write_ini(project, "[env:board]\nplatform = ststm32\n")
    fake_pio(tmp_path, monkeypatch, "exit 0")
    given = ("flash", project, "--port", port, "--verify")
    assert "the model of this export is not next to it; give it with --model" in failed(*given)
    shutil.copy(work / "gesture.tkm", tmp_path)
    ini = (project / "platformio.ini").read_bytes()
    fingerprint = load(work / "gesture.tkm").fingerprint()
    (project / MANIFEST).write_bytes(manifest({"platformio.ini": ini}, model=fingerprint))
    for more in ((), ("--model", work / "gesture.tkm")):
        result = run(*given, *more)
        assert result.exit_code == 0, result.output
        assert "C and Python agree on every score (made rows of gesture.tkm)" in result.stdout


def test_one_board_needs_no_port(monkeypatch) -> None:
    """The only USB device is taken; none and several are told, with their ports."""
    from tinykernel.board import link

    rows: list[Port] = [Port("/dev/ttyS0", "", "")]
    monkeypatch.setattr(link, "list_ports", lambda: rows)
    arguments = ("record", "--label", "x")
    assert "no board is connected by USB" in failed(*arguments)
    rows.append(Port("/dev/ttyACM0", "Nucleo", "0483:374b"))
    assert link.find_port(None) == link.find_port("auto") == "/dev/ttyACM0"
    assert run("ports").stdout.splitlines()[2].split() == ["/dev/ttyACM0", "Nucleo", "0483:374b"]
    rows.append(Port("/dev/ttyACM1", "Pico", "2e8a:0003"))
    assert "are connected: /dev/ttyACM0, /dev/ttyACM1; choose one with --port" in failed(*arguments)


def test_options_that_do_not_go_together(work) -> None:
    """Nothing that was asked for is ignored."""
    model, data = work / "gesture.tkm", work / "data.npz"
    for arguments, message in (
        (("verify", model, data, "--rows", "5"), "needs --port"),
        (("verify", model, data, "--port", "x", "--target", "host"), "excludes --port"),
        (("verify", model, data, "--port", "x", "--rows", "-1"), "give a number of rows, or all"),
        (("bench", model, "--save"), "needs --port"),
        (("bench", model, "--port", "x", "--clock", "8MHz"), "excludes --target, --clock"),
        (("monitor", model, "--fast"), "needs --send"),
        (("emulate",), "give either MODEL or --sensor"),
        (("emulate", model, "--sensor", "still"), "give either MODEL or --sensor"),
    ):
        assert message in failed(*arguments, status=2)
    assert "choose from still, shaking, turning" in failed("emulate", "--sensor", "flying")
    assert "no emulated board has a serial port" in failed("emulate", model, "-t", "esp8266")
