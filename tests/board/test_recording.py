"""Recordings over a pseudo terminal: every sample, whatever a sketch prints, whatever is pulled."""

import os
import pty
import re
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
from tests.cli.tools import failed, process, run
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


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"", "nothing arrived in 2 seconds"),
        (bytes(range(128, 250)) * 20, "is not text at 115200 baud; try --baud 9600"),
        (b"hello, this is the boot log\r\n" * 50, "has no lines of numbers"),
        (b"0\n1,2\n3,4\n5\n", "has no lines of numbers"),
    ],
)
def test_what_is_no_sensor_is_told_in_one_line(sent, message, monkeypatch) -> None:
    """A silent board, a wrong baud and another program: what was seen, and what to try."""
    monkeypatch.setattr(recording, "_LEARN", 2.0)
    with printing(sent, hold=3.0) as port:
        line = failed("record", "--port", port, "--label", "x", "--seconds", 1)
    assert message in line


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
    assert "x-1.csv: the rate is unknown" in done.stderr
    assert "disconnected" in done.stderr
    assert path.read_text().splitlines() == ["c0,c1,c2,label", *["1,2,3,x"] * n]


def paced(parts: list[tuple[float, bytes]]) -> Iterator[str]:
    """Print parts at a port, each after some seconds, once somebody has opened it."""
    here, there = pty.openpty()
    tty.setraw(there)

    def write() -> None:
        while termios.tcgetattr(here)[5] != termios.B115200:
            time.sleep(0.01)
        time.sleep(0.3)
        for seconds, data in parts:
            time.sleep(seconds)
            os.write(here, data)
        time.sleep(0.5)
        os.close(there)
        os.close(here)

    thread = threading.Thread(target=write)
    thread.start()
    yield os.ttyname(there)
    thread.join()


def test_a_pause_is_a_gap_in_time_and_said(tmp_path) -> None:
    """A board that restarts: the rate stays that of its samples, and no window spans the pause."""
    parts = [(0.0, b"0\n")] + [(0.02, b"1,2\n")] * 50 + [(1.5, b"3,4\n")] + [(0.02, b"3,4\n")] * 49
    with contextmanager(paced)(parts) as port:
        done = run("record", "--port", port, "--label", "x", "-o", tmp_path, "--seconds", 60)
    # On a busy computer the samples themselves may pause.
    assert re.search(r"x-1\.csv: \d pauses? without samples, the longest of 1\.", done.stderr)
    table = np.genfromtxt(tmp_path / "x/x-1.csv", delimiter=",", skip_header=1, usecols=(0, 1))
    steps = np.diff(table[:, 0])
    gap = int(steps.argmax())
    assert len(table) == 100
    assert abs(gap - 49) <= 1
    assert steps[gap] == pytest.approx(1.5, abs=0.15)
    assert np.median(np.delete(steps, gap)) == pytest.approx(0.02, abs=0.015)


def test_packets_keep_what_they_brought(tmp_path) -> None:
    """A last or only one that none follows, one before other channels, those around a pause."""
    samples = np.arange(300).reshape(300, 1)
    data = frames_of(samples, 1000, 10)[:-4]
    half = len(data) // 2
    other = frames_of(np.ones((10, 2)), 1000, 10)
    cases = {
        "cut": ([(0.0, data)], "disconnected", [300]),
        "alone": ([(0.0, frames_of(samples[:10], 1000)[:-4])], "disconnected", [10]),
        "other": ([(0.0, data + other)], "the channels or the rate of the packets changed", [300]),
        "again": ([(0.0, data + data)], "disconnected", [300, 300]),
        "pause": (
            [(0.01, data[at : at + 36]) for at in range(0, half, 36)]
            + [(1.0 if at == half else 0.01, data[at : at + 36]) for at in range(half, 1080, 36)],
            "disconnected",
            [150, 150],
        ),
    }
    for name, (parts, message, expected) in cases.items():
        with contextmanager(paced)(parts) as port:
            arguments = ("--format", "s16le", "--seconds", 60, "-o", tmp_path)
            done = run("record", "--port", port, "--label", name, *arguments)
        assert message in done.stderr, name
        assert "samples lost" not in done.stderr, name
        lengths = []
        for path in map(Path, done.stdout.split()):
            with wave.open(str(path)) as file:
                lengths.append(file.getnframes())
        assert sum(lengths) == sum(expected), name
        assert name == "pause" or lengths == expected, name
        assert name != "pause" or len(lengths) == 2
        assert len(list((tmp_path / name).iterdir())) == len(expected)


def test_a_full_disk_says_where_the_samples_are(tmp_path) -> None:
    """What was written before stays, under the name that the error says."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    with printing(b"0\n" + b"1,2,3\n" * 2000) as port:
        arguments = ("record", "--port", port, "--label", "x", "-o", str(tmp_path))
        code = f"{limit}\nfrom tinykernel.face import app\napp({arguments!r})"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    (line,) = done.stderr.splitlines()
    assert "x-1.csv: cannot be written (File too large); the samples so far are in .x-1" in line
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


@pytest.mark.parametrize("form", ["text", "s16le"])
def test_a_silent_sensor_ends_the_recording(form, tmp_path, monkeypatch) -> None:
    """A recording of so many samples ends with an error; those that came are there."""
    monkeypatch.setattr(recording, "_SILENCE", 0.3)
    data = b"0\n" + b"1,2\n" * 40 if form == "text" else frames_of(np.ones((600, 1)), 100)
    with printing(data, hold=3.0) as port, sensor_at(port, 115200, form) as sensor:
        recorder = Recorder(sensor, tmp_path, rate=100.0 if form == "text" else None)
        recorder.record("first", 0.2)
        refused(BoardError, recorder.record, "second", 60.0)
    assert [path.stem for path in recorder.paths][:1] == ["first-1"]
    assert not list(tmp_path.rglob("*.part"))


def test_a_sensor_of_one_sample_a_second_is_recorded(monkeypatch) -> None:
    """Three lines that agree are enough where no more come in time."""
    monkeypatch.setattr(recording, "_LEARN", 1.0)
    lines = b"0\nhi\n1,2\n3,4\n5,6\n"
    with printing(lines) as port, sensor_at(port, 115200, "text") as sensor:
        assert sensor.names == ("c0", "c1")
        assert sensor.take().samples == [("1", "2"), ("3", "4"), ("5", "6")]
        assert sensor.rate == 0.0


@pytest.mark.parametrize("rate", [0.3, 99.5, 1e12])
def test_a_wav_of_half_a_sample_a_second_is_refused(rate) -> None:
    """Only whole rates fit the header of the file."""
    arguments = ("record", "--port", "/dev/null", "--label", "x", "--format", "s16le")
    assert "a whole number from 1 to" in failed(*arguments, "--rate", rate, status=2)


def test_options_that_would_be_ignored_are_refused() -> None:
    """A window without a count, an unknown format, a label that is no folder."""
    port = ("record", "--port", "/dev/null")
    assert "needs --count" in failed(*port, "--label", "a", "--window", "1s", status=2)
    assert "text or s16le" in failed(*port, "--label", "a", "--format", "u8", status=2)
    assert "begin with a letter" in failed(*port, "--label", "../x")


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
    assert reader.layout.names == ("x", "channel_y", "channel_t", "channel_Group")
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
