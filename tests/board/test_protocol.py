"""The protocol to the letter, by a client that knows only its text, and damaged commands."""

import doctest
import os
import random
import re
import select
import subprocess
import time
import tty
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.board.kinds import KINDS, rows_of
from tests.codegen.kinds import calibrated
from tests.random_fronts import local_model, random_signal_stage
from tests.random_models import random_model, random_raw
from tests.refusals import refused
from tests.sessions import ROOT, blocks
from tinykernel import save
from tinykernel.base.errors import BoardError
from tinykernel.compile.projects import export
from tinykernel.pieces.beside.sample import random_beside
from tinykernel.run.emulator import board_name, build_program, emulated_board
from tinykernel.run.link import ConnectedBoard, Link
from tinykernel.run.program import host_toolchain

NUMBER = r"\d+"


class Client:
    """Talks to a device as MLCommons' runner does: commands that end in %, answers in m-ready."""

    def __init__(self, device: str) -> None:
        self.file = os.open(device, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.file)
        self.seen = b""

    def ask(self, command: str) -> list[str]:
        """Return the lines before m-ready, each of which ends with CR LF."""
        os.write(self.file, command.encode("latin-1"))
        limit = time.monotonic() + 60
        while b"m-ready\r\n" not in self.seen:
            assert time.monotonic() < limit, (command, self.seen)
            if select.select([self.file], [], [], 1.0)[0]:
                self.seen += os.read(self.file, 4096)
        answer, _, self.seen = self.seen.partition(b"m-ready\r\n")
        lines = answer.decode("ascii").split("\r\n")
        assert lines.pop() == "", answer
        return lines


@pytest.fixture(scope="module")
def table() -> Any:
    """Return a model of a table."""
    return KINDS["table"]()


@pytest.fixture
def client(table) -> Iterator[Client]:
    """Return a client of the program on this computer."""
    with emulated_board(table) as board:
        found = Client(board.port)
        yield found
        os.close(found.file)


def load(client: Client, row: bytes) -> None:
    """Load an input."""
    assert client.ask(f"db load {len(row)}%") == [f"m-[Expecting {len(row)} bytes]"]
    answers = [client.ask(f"db {row[at : at + 5].hex()}%") for at in range(0, len(row), 5)]
    assert answers == [[]] * (len(answers) - 1) + [["m-load-done"]]


def test_answers_are_those_of_the_protocol(client, table) -> None:
    """Names, brackets and order are what MLPerf Tiny's runner matches."""
    raw = rows_of(table, 1)
    assert client.ask("name%") == [f"m-name-dut-[{board_name(None)}]"]
    profile = client.ask("profile%")
    assert re.fullmatch(r"m-profile-\[[^\]]+\]", profile[0])
    assert profile[1:] == [f"m-model-[{table.fingerprint()[:8]}]"]
    assert re.fullmatch(f"m-lap-us-{NUMBER}", *client.ask("timestamp%"))
    assert "infer" in " ".join(client.ask("help%"))
    load(client, raw.astype("<i2").tobytes())
    shifted = table.scores(raw)[0].astype(int) - table.least_score + 1
    results = f"m-results-[{','.join(map(str, shifted))}]"
    patterns = ["m-warmup-start-2", "m-warmup-done", "m-infer-start-3", f"m-lap-us-{NUMBER}"]
    patterns += [f"m-lap-us-{NUMBER}", "m-infer-done", re.escape(results)]
    for pattern, line in zip(patterns, client.ask("infer 3 2%"), strict=True):
        assert re.fullmatch(pattern, line), line
    assert client.ask("infer 1%")[0] == "m-warmup-start-10"
    assert client.ask("results%") == [results]
    assert client.ask("cycles%") == ["m-cycles-0"]
    assert client.ask("stack%") == ["m-stack-0"]
    assert client.ask(" \r\n name  %") == client.ask("name%")
    loaded = raw.astype("<i2").tobytes()
    lines = [f"m-buffer-{loaded[at : at + 8].hex('-')}" for at in range(0, len(loaded), 8)]
    assert client.ask("db print%") == lines
    client.ask(f"db load {len(loaded)}%")
    assert client.ask("db print%") == []
    assert client.ask(f"db  {loaded.hex()}  %") == ["m-load-done"]


def test_lines_of_the_page_compare_with_predict(table, tmp_path, monkeypatch, require_tool):
    """docs/board.md: whoever reads a board without `verify` undoes the shift as the page does."""
    require_tool("serial")
    monkeypatch.chdir(tmp_path)
    save(table, "gesture.tkm")
    np.save("rows.npy", rows_of(table, 1))
    page = ROOT / "docs" / "board.md"
    (block,) = blocks(page, "pycon")
    with emulated_board(table) as board:
        text = block.text.replace("/dev/ttyACM0", board.port)
        example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), block.line)
        assert doctest.DocTestRunner().run(example, clear_globs=False).failed == 0
        example.globs["port"].close()


@given(seed=st.integers(0, 999), n_classes=st.integers(2, 9))
@settings(max_examples=30)
def test_results_may_be_divided_by_their_sum(seed, n_classes) -> None:
    """MLCommons' runner does so: the shares of all models, of two classes too, keep their order."""
    model = random_model(seed, n_classes=n_classes, n_features=9, n_blocks=1)
    scores = model.scores(random_raw(model, seed, 40)).astype(int)
    results = scores - model.least_score + 1
    shares = results / results.sum(axis=1, keepdims=True)
    assert shares.min() > 0
    assert np.array_equal(shares.argmax(axis=1), scores.argmax(axis=1))


def test_a_runner_that_streams_is_answered(require_tool) -> None:
    """Its `start` begins a stream, its `stop` ends one."""
    require_tool("serial")
    model = KINDS["signal"]()
    with emulated_board(model) as place, Link(place.port) as link:
        board = ConnectedBoard(link)
        assert board.ask("start") == []
        assert board.send(bytes(2)) == []
        assert board.ask("stop") == []
        refused(BoardError, board.send, bytes(2))


def test_bad_commands_are_answered(client, table) -> None:
    """Each gets one line e-[what] and m-ready, and what comes next is right again."""
    row = rows_of(table, 1).astype("<i2").tobytes()
    wrong = {
        "%": "unknown",
        "names%": "unknown",
        "name x%": "unknown",
        "load 18%": "unknown",
        "\xff\x80\x01%": "unknown",
        "infer 1%": "no input",
        "db 00%": "bad number",
        f"db load {len(row) + 1}%": "bad number",
        "db load%": "bad number",
        "db print 1%": "bad number",
        "print%": "unknown",
        "db load 99999999999%": "bad number",
        "x" * 81 + "%": "too long",
        "x" * 100_000 + "%": "too long",
    }
    for command, what in wrong.items():
        assert client.ask(command) == [f"e-[{what}]"], command[:20]
    for digits, what in (("0", "bad number"), ("0g", "bad number"), ("@0", "bad number")):
        client.ask(f"db load {len(row)}%")
        assert client.ask(f"db {digits}%") == [f"e-[{what}]"]
    client.ask(f"db load {len(row)}%")
    assert client.ask(f"db {row.hex()}00%") == ["e-[bad number]"]
    assert client.ask("infer 1%") == ["e-[no input]"]
    load(client, row)
    for command in (
        "infer 0%",
        "infer x%",
        "infer 1 x%",
        "infer 1 1 1%",
        "infer -1%",
        "infer%",
        # Numbers were taken modulo 2^32, and a board ran for hours.
        "infer 99999999999%",
        "infer 1 4294967296%",
    ):
        assert client.ask(command) == ["e-[bad number]"], command
    assert len(client.ask("infer 1 0%")) == 7


def test_a_line_that_is_cut_harms_nobody(table, require_tool) -> None:
    """Whoever connects after a cable was pulled in the middle of a command is understood."""
    require_tool("serial")
    with emulated_board(table) as board:
        for cut in ("na", "db load", "db 0", "infer 1", "x" * 200, "db load 18%db 00"):
            with Link(board.port) as link:
                link.write(cut)
            with Link(board.port) as link:
                assert ConnectedBoard(link).target == "host"


def test_a_baud_of_ten_digits_is_one_line(require_tool) -> None:
    """A port that is not there, or has no such speed, is an error of one line."""
    require_tool("serial")
    here, there = os.openpty()
    for port, baud in (
        ("/dev/no_such_port", 115200),
        ("nonsense://x", 115200),
        (os.ttyname(there), 10**10),
    ):
        refused(BoardError, Link, port, baud)
    os.close(here)
    os.close(there)


def test_the_self_test_waits_for_the_end_of_a_stream(require_tool) -> None:
    """It uses the memory of the stream; bytes that come after it are refused."""
    require_tool("serial")
    with emulated_board(KINDS["signal"]()) as place, Link(place.port) as link:
        board = ConnectedBoard(link)
        board.ask("stream")
        board.ask("selftest")
        refused(BoardError, board.send, bytes(2))


def random_line(source: random.Random) -> bytes:
    """Return a command, a damaged one, or noise."""
    words = ["name", "db", "load", "print", "infer", "results", "cycles", "stack", "stream"]
    words += ["counters", "start", "stop"]
    kind = source.randrange(4)
    if kind == 0:
        return source.randbytes(source.randrange(200)).replace(b"%", b"")
    line = " ".join(source.choice(words) for _ in range(source.randrange(4)))
    if kind == 1:
        line += f" {source.choice([0, 1, 2, 18, 80, 10**7, 10**12, -1])}"
    if kind == 2:
        line = f"db {source.randbytes(source.randrange(40)).hex()[: source.randrange(90)]}"
    if source.random() < 0.2:
        at = source.randrange(len(line) + 1)
        line = line[:at] + chr(source.randrange(1, 128)) + line[at:]
    return line.encode("latin-1").replace(b"%", b"")


@pytest.mark.parametrize("kind", ["table", "signal", "values"])
def test_random_lines_never_leave_the_memory(kind, tmp_path, require_tool) -> None:
    """Of 1,000 random lines each is answered, and the sanitizers have nothing to say."""
    compiler, source = require_tool("gcc"), random.Random(kind)
    model = KINDS[kind]()
    export(model, "host", tmp_path / "p", name="m")
    sources = sorted(map(str, [*tmp_path.glob("p/src/*.c"), tmp_path / "p/lib/m/src/m.c"]))
    program = tmp_path / "program"
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    headers = [f"-I{tmp_path / 'p' / name}" for name in ("include", "lib/m/src")]
    chain = host_toolchain([compiler])
    subprocess.run([*chain.command, *flags, *headers, *sources, "-o", program], check=True)
    size = rows_of(model, 1).nbytes
    lines = [random_line(source) for _ in range(1000)]
    for at in range(0, 1000, 50):  # now and then something to run
        lines[at] = f"db load {size}".encode()
        lines[at + 1 : at + 1 + -(-size // 31)] = [
            f"db {bytes(min(31, size - begin)).hex()}".encode() for begin in range(0, size, 31)
        ]
    text = b"".join(line + b"%" for line in lines).replace(b"10000000", b"100")
    done = subprocess.run([program, "answer"], input=text, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"m-ready\r\n") == len(lines)
    assert done.stdout.count(b"m-infer-done\r\n") + done.stdout.count(b"m-load-done") > 5


@pytest.mark.slow
def test_it_takes_little_flash(tmp_path, require_tool) -> None:
    """Beside model and self-test the protocol of every kind takes 1.75 KB on a Cortex-M4."""
    require_tool("qemu-system-arm")
    size = require_tool("arm-none-eabi-gcc").replace("gcc", "size")
    beside = local_model(random_signal_stage(1), 1, beside=random_beside(1, 3, "int16"))
    largest = calibrated(lambda: beside, "margin")
    for kind, model in {**{kind: make() for kind, make in KINDS.items()}, "all": largest}.items():
        build_program(model, "cortex-m4", tmp_path / kind)
        command = [size, tmp_path / kind / "tk_protocol.o"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert int(done.stdout.splitlines()[1].split()[0]) <= 1792, kind
