"""Serial devices that lie: damaged answers, decisions and samples end in one line, or are right."""

import tempfile
import wave
from pathlib import Path
from unittest import mock

import numpy as np

from tests.board.kinds import KINDS, rows_of
from tests.fuzz.batch import Batch
from tinykernel.base.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.run import link as links
from tinykernel.run.checking import Decisions, verify_on_board
from tinykernel.run.link import ConnectedBoard, Link
from tinykernel.run.recording import Recorder, Sensor
from tinykernel.run.samples import HEADER, MAGIC

_PIECES = (
    b"",
    b"9" * 20,
    b"9" * 400,
    b"9" * 5000,
    b"-",
    b",",
    b"]",
    b"\r\n",
    b"1e999",
    b"\xff\x00",
    b"\x1b[2J",
)
_ANSWERS = {
    "name": "m-name-dut-[x]",
    "infer": "m-lap-us-1\r\nm-lap-us-7\r\nm-infer-done",
    "cycles": "m-cycles-90",
    "stack": "m-stack-12",
}


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """Replace up to nine bytes at random places by pieces."""
    for _ in range(int(rng.integers(0, 4))):
        at = int(rng.integers(len(data) + 1))
        piece = _PIECES[int(rng.integers(len(_PIECES)))]
        data = data[:at] + piece + data[at + int(rng.integers(0, 10)) :]
    return data


class Liar(Link):
    """A port at which bytes arrive in random pieces; then the cable is pulled.

    With a model it answers commands, and damages some answers.
    """

    def __init__(
        self, rng: np.random.Generator, data: bytes, model: IntegerModel | None = None
    ) -> None:
        self.port, self.baud, self._waiting = "liar", 115200, bytearray()
        self.rng, self.data, self.model = rng, data, model
        self.row, self.command = b"", ""

    def write(self, text: str) -> None:
        """Answer commands, where there is a model."""
        for command in text.split("%")[:-1] if self.model is not None else ():
            answer = (self.answer(command) + "\r\nm-ready\r\n").encode()
            self.data += damaged(self.rng, answer) if self.rng.random() < 0.02 else answer

    def answer(self, command: str) -> str:
        """Return an honest answer."""
        model, word = self.model, command.partition(" ")[0]
        assert model is not None
        if word == "profile":
            text = f"m-profile-[tinykernel 0.1.0 host]\r\nm-model-[{model.fingerprint()[:8]}]"
        elif command.startswith("db load"):
            self.row, text = b"", "m-[Expecting]"
        elif word == "db":
            self.row += bytes.fromhex(command[3:])
            text = "m-load-done"
        else:
            text = _ANSWERS.get(word, "")
        if word == "infer":
            raw = np.frombuffer(self.row, model.raw_dtype).reshape(1, -1)
            results = model.scores(raw)[0].astype(int) - model.least_score + 1
            text += f"\r\nm-results-[{','.join(map(str, results))}]"
        return text

    def read(self) -> bytes:
        """Return what comes next."""
        if not self.data and self.model is None:
            raise self._gone_error()
        size = int(self.rng.integers(1, 200))
        data, self.data = self.data[:size], self.data[size:]
        return data


def record(rng: np.random.Generator, folder: Path, batch: Batch) -> None:
    """Record what a sensor sends; without damage all samples must be there."""
    n, is_text = int(rng.integers(4, 300)), rng.random() < 0.5
    values = rng.integers(-999, 999, (n, 2))
    if is_text:
        data = b"\n" + b"".join(b"%d,%d\n" % tuple(row) for row in values.tolist())
    else:
        parts = [(at, values[at : at + 16].astype("<i2")) for at in range(0, n, 16)]
        header = (HEADER.pack(MAGIC, len(part), 2, 0, at, 100) for at, part in parts)
        data = b"".join(a + part.tobytes() for a, (_, part) in zip(header, parts, strict=True))
    sent = damaged(rng, data)
    sensor = Sensor(Liar(rng, sent), "text" if is_text else "s16le")
    recorder = Recorder(sensor, folder)
    try:
        sensor.wait_for_samples()
        recorder.record("x", 60.0)
    finally:
        sensor.close()
        saved = 0
        for path in recorder.paths:
            if is_text:
                saved += len(path.read_text().splitlines()) - 1
            else:
                with wave.open(str(path)) as file:
                    saved += file.getnframes()
        if saved != sensor.arrivals.samples or (sent == data and saved != n):
            batch.find("differences", f"{saved} of {n} samples are saved")
        if list(folder.rglob(".*")):
            batch.find("differences", "a recording is half-written")


def verify(rng: np.random.Generator, model: IntegerModel) -> None:
    """Verify rows on a board that damages one answer in fifty."""
    board = ConnectedBoard(Liar(rng, b"", model))
    verify_on_board(board, model, rows_of(model, 3))


def watch(rng: np.random.Generator, model: IntegerModel) -> None:
    """Watch decisions until the cable is pulled."""
    line = b"m-results-[1,-2,3,4]\r\n"
    for decision in Decisions(Liar(rng, damaged(rng, line * 40)), model):
        assert decision.label in model.classes


def run(batch: Batch, size: int) -> None:
    """Connect `size` devices to each command."""
    model = KINDS["table"]()
    with mock.patch.object(links, "_ANSWER", 0.3):
        for index in range(size):
            rng = np.random.default_rng((batch.seed, index))
            for number in range(3):
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        batch.counts["serial devices"] += 1
                        if number == 0:
                            record(rng, Path(folder), batch)
                        else:
                            (verify if number == 1 else watch)(rng, model)
                    except TinykernelError as error:
                        if not str(error).isprintable() or len(str(error)) > 300:
                            batch.find("uncaught exceptions", f"device {index}: {error}")
                    except Exception as error:
                        batch.find("uncaught exceptions", f"device {index}, {number}: {error!r}")
