"""Recordings over a pseudo terminal: every sample, whatever a sketch prints, whatever is pulled."""

import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
import tty
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinykernel
from tests.cli.tools import process, run
from tests.refusals import refused
from tinykernel.base.errors import BoardError
from tinykernel.run import recording
from tinykernel.run.emulator import emulated_sensor
from tinykernel.run.recording import Recorder, sensor_at
from tinykernel.run.samples import HEADER, MAGIC, Frames, Lines, split_line


@pytest.fixture(autouse=True)
def _needs_pyserial(require_tool) -> None:
    require_tool("serial")


@contextmanager
def printing(data: bytes, hold: float = 1.0) -> Iterator[str]:
    """Print bytes at a port as fast as somebody reads them; then the cable is pulled."""
    here, there = pty.openpty()
    tty.setraw(there)
    port, has_left = os.ttyname(there), threading.Event()
    os.set_blocking(here, False)

    def write() -> None:
        while termios.tcgetattr(here)[5] != termios.B115200:  # until somebody opens the port
            time.sleep(0.01)
        time.sleep(0.5)
        os.close(there)
        rest = data
        while rest and not has_left.is_set():
            try:
                rest = rest[os.write(here, rest[:4096]) :]
            except BlockingIOError:
                time.sleep(0.001)
        has_left.wait(hold)
        os.close(here)

    thread = threading.Thread(target=write)
    thread.start()
    yield port
    has_left.set()
    thread.join()


def frames_of(samples: np.ndarray, rate: int, size: int = 256) -> bytes:
    """Return frames of 16-bit samples, shape (n, channels)."""
    data = b""
    for first in range(0, len(samples), size):
        part = samples[first : first + size]
        header = HEADER.pack(MAGIC, len(part), samples.shape[1], 0, first, rate)
        data += header + part.astype("<i2").tobytes()
    return data + MAGIC


@given(
    numbers=st.lists(
        st.floats(-1e6, 1e6).map(lambda value: f"{value:.4f}"), min_size=1, max_size=8
    ),
    comma=st.sampled_from([",", "\t", " ", ";", ", ", " ; "]),
    named=st.booleans(),
)
def test_a_line_is_read_as_it_was_printed(numbers, comma, named) -> None:
    """Whatever divides the numbers, with names or without, they are what the sketch printed."""
    names = tuple(f"ch{i}" for i in range(len(numbers))) if named else ()
    cells = [f"ch{i}:{number}" if named else number for i, number in enumerate(numbers)]
    assert split_line(comma.join(cells)) == (names, tuple(numbers))
    assert split_line("0,93;0,57") == ((), ("0.93", "0.57"))  # a decimal comma


def test_what_is_no_sample_is_none() -> None:
    """Messages, halves of names and words between numbers are no samples."""
    words = ("ready", "1,2,x", "a:1,2", ":1", "a:", "1 2 3 volts", "nan,1", "--1", "\x1b[2J:1")
    for text in (*words, "1e999,1", "1," + "9" * 5000, "a" * 61 + ":1"):
        assert split_line(text) is None, text


def test_no_sample_of_a_long_recording_is_lost(tmp_path) -> None:
    """20,000 samples of six channels, with their times and labels, as `train` reads them."""
    n = 20_000
    samples = np.arange(6 * n).reshape(n, 6) % 1000
    text = "".join(",".join(map(str, row)) + "\r\n" for row in samples.tolist())
    with (
        printing(b"cut,off\r\n" + text.encode()) as port,
        sensor_at(port, 115200, "text") as sensor,
    ):
        recorder = Recorder(sensor, tmp_path, "ann", rate=1000.0)
        refused(BoardError, recorder.record, "walk", 3600.0)
    assert sensor.lost == 0
    (path,) = recorder.paths
    table = np.genfromtxt(path, delimiter=",", skip_header=1, usecols=range(7))
    assert np.array_equal(table[:, 1:], samples)
    assert np.allclose(table[:, 0], np.arange(len(table)) / 1000.0)
    header, first = path.read_text().splitlines()[:2]
    assert header == "time_s,c0,c1,c2,c3,c4,c5,label,group"
    assert first.endswith(",walk,ann")


@pytest.mark.parametrize("axes", ["xyz", "xy"])
def test_what_is_recorded_is_read_without_a_word(tmp_path, axes) -> None:
    """An axis y is a channel of its name, and the group of --group is no channel."""
    line = ",".join(f"{axis}:{{}}" for axis in axes)
    text = "".join(line.format(*[i % 7] * len(axes)) + "\n" for i in range(120))
    for label, group in (("walk", "ann"), ("run", "bob")):
        with printing(b"\n" + text.encode()) as port, sensor_at(port, 115200, "text") as sensor:
            refused(BoardError, Recorder(sensor, tmp_path, group, rate=50.0).record, label, 60)
    found = tinykernel.windows(tmp_path, "1s", "1s")
    assert (found.channels, set(found.y)) == (tuple(axes), {"walk", "run"})
    assert set(found.groups) == {"ann", "bob"}


def test_frames_lose_nothing_and_find_what_is_lost(tmp_path) -> None:
    """16 kHz of 16 bits arrive whole; a byte that is lost ends a recording and is counted."""
    samples = np.random.default_rng(0).integers(-32768, 32767, (40_000, 1))
    data = frames_of(samples, 16_000)
    damaged = data[:30_000] + data[30_001:]
    for sent, lost in ((data, 0), (damaged, 256)):
        folder = tmp_path / str(lost)
        with printing(sent) as port, sensor_at(port, 115200, "s16le") as sensor:
            recorder = Recorder(sensor, folder)
            refused(BoardError, recorder.record, "clap", 60.0)
        assert sensor.lost == lost
        parts = []
        for path in recorder.paths:
            with wave.open(str(path)) as file:
                assert (file.getframerate(), file.getnchannels()) == (16_000, 1)
                parts.append(np.frombuffer(file.readframes(-1), "<i2"))
        assert len(parts) == (2 if lost else 1)
        recorded = np.concatenate(parts)
        assert len(recorded) == len(samples) - lost
        assert np.array_equal(parts[-1], samples[len(samples) - len(parts[-1]) :, 0])


def test_noise_between_frames_is_skipped() -> None:
    """Random bytes, and a beginning of a frame that is none, cost the frame they stand in."""
    samples = np.arange(3000).reshape(1500, 2)
    data = frames_of(samples, 8000)
    reader = Frames()
    found = reader.take(b"hello" + MAGIC + b"\xff" * 20 + data[:-4]) + reader.take(MAGIC)
    assert b"".join(found) == samples.astype("<i2").tobytes()
    assert reader.layout.names == ("c0", "c1")


def test_a_recording_is_what_train_takes(tmp_path) -> None:
    """From two movements of the emulated sensor to windows with labels, channels and rate."""
    for movement in ("still", "shaking"):
        with emulated_sensor(movement) as board:
            done = run(
                *("record", "--port", board.port, "-o", tmp_path, "--label", movement),
                *("--count", 2, "--window", "1s", "--rate", 100),
            )
        assert done.exit_code == 0, done.output
        assert len(done.stdout.splitlines()) == 2
    cut = tinykernel.windows(tmp_path, "0.5s", "0.5s")
    assert cut.X.shape == (8, 50, 3)
    assert sorted(set(cut.y)) == ["shaking", "still"]
    assert cut.rate == 100


def test_a_sensor_ends_with_a_killed_emulate() -> None:
    """After SIGKILL of `emulate`, which cannot end it, the sensor's program ends by itself."""
    command = [sys.executable, "-m", "tinykernel", "emulate", "--sensor", "still"]
    emulate = subprocess.Popen(command, stdout=subprocess.PIPE)
    emulate.stdout.readline()
    children = Path(f"/proc/{emulate.pid}/task/{emulate.pid}/children").read_text().split()
    emulate.kill()
    emulate.communicate()
    assert len(children) == 1
    deadline = time.monotonic() + 10
    while Path(f"/proc/{children[0]}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{children[0]}").exists()


def test_a_killed_recording_leaves_whole_ones(tmp_path) -> None:
    """After kill -9 in the middle of the second recording the first one is there, and readable."""
    with emulated_sensor("turning") as board:
        arguments = ("--label", "turning", "--count", 3, "--window", "0.5s")
        child = process("record", "--port", board.port, "-o", tmp_path, *arguments)
        part = tmp_path / "turning" / ".turning-2.csv.part"
        limit = time.monotonic() + 60
        while not part.exists():
            assert time.monotonic() < limit
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.communicate()
    table = np.genfromtxt(tmp_path / "turning" / "turning-1.csv", delimiter=",", names=True)
    assert {path.name for path in (tmp_path / "turning").glob("turning-*")} == {"turning-1.csv"}
    assert table.dtype.names == ("time_s", "ax", "ay", "az", "label")
    assert len(table) >= 20


@pytest.mark.parametrize("n", [3, 49, 400, 5000])
def test_samples_that_come_at_once_are_kept_without_times(n, tmp_path) -> None:
    """Then the cable is pulled: all are there, and the rate is said to be unknown."""
    with printing(b"0\n" + b"1,2,3\n" * n) as port:
        done = run("record", "--port", port, "--label", "x", "-o", tmp_path, "--seconds", 9)
    assert done.exit_code == 1
    (path,) = (tmp_path / "x").iterdir()
    assert done.stdout.splitlines() == [str(path)]
    assert "x-1.csv" in done.stderr
    assert "disconnected" in done.stderr
    assert path.read_text().splitlines() == ["c0,c1,c2,label", *["1,2,3,x"] * n]


def test_a_full_disk_says_where_the_samples_are(tmp_path) -> None:
    """What was written before stays, under the name that the error says."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    with printing(b"0\n" + b"1,2,3\n" * 2000) as port:
        arguments = ("record", "--port", port, "--label", "x", "-o", str(tmp_path))
        code = f"{limit}\nfrom tinykernel.face import app\napp({arguments!r})"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    (line,) = done.stderr.splitlines()
    assert "x-1.csv" in line
    assert (tmp_path / "x/.x-1.csv.part").stat().st_size == 4096


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_a_recording_it_is_saved(ending, tmp_path) -> None:
    """Ctrl-C, kill, and a closed terminal, also of a command that was started with &."""
    with emulated_sensor("still") as board:
        command = [sys.executable, "-m", "tinykernel", "record", "--port", board.port]
        child = subprocess.Popen(
            [*command, "--label", "x", "-o", tmp_path],
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        part, limit = tmp_path / "x/.x-1.csv.part", time.monotonic() + 60
        while not (part.exists() and part.stat().st_size > 1000):
            assert time.monotonic() < limit
            time.sleep(0.01)
        child.send_signal(ending)
        assert child.wait(60) == 130
    (path,) = (tmp_path / "x").iterdir()
    assert len(path.read_text().splitlines()) > 20


def test_lines_of_another_width_are_lost_samples() -> None:
    """A line that was cut on its way is counted, and its numbers shift no channel."""
    reader = Lines()
    samples = reader.take(b"0\n" + b"1,2\n" * 12 + b"3\n4,5\nhi\n6,")
    assert samples[-1] == ("4", "5")
    assert reader.lost == 2


def test_a_channel_may_be_called_y() -> None:
    """Names that stand for labels, groups and times in a table are those of channels here."""
    reader = Lines()
    reader.take(b"\n" + b"x:1,y:2,t:3,Group:4\n" * 12)
    assert reader.layout.names == ("x", "y", "channel_t", "channel_Group")
    reader = Lines()
    reader.take(b"\n" + b"y:2,class:3\n" * 12)
    assert reader.layout.names == ("channel_y", "channel_class")
    reader = Lines()
    reader.take(b"\n" + b"y:2,channel_y:3\n" * 12)
    assert reader.layout.names == ("c0", "c1")


def test_a_wav_that_its_header_cannot_hold_is_several(tmp_path, monkeypatch) -> None:
    """At most 2 GB a file, here 400 bytes; no sample is between them."""
    monkeypatch.setattr(recording, "_MOST_BYTES", 400)
    samples = np.arange(500).reshape(500, 1)
    with printing(frames_of(samples, 16_000)) as port, sensor_at(port, 115200, "s16le") as sensor:
        recorder = Recorder(sensor, tmp_path)
        refused(BoardError, recorder.record, "hum", 60.0)
    parts = []
    for path in recorder.paths:
        with wave.open(str(path)) as file:
            parts.append(np.frombuffer(file.readframes(-1), "<i2"))
    assert list(map(len, parts)) == [200, 200, 100]
    assert np.array_equal(np.concatenate(parts), samples[:, 0])
