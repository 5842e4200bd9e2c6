"""Recordings of a sensor: read without a pause, and written one file each."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import queue
import re
import struct
import threading
import time
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tinykernel.board.link import Link
from tinykernel.board.samples import LARGEST_FRAME, Frames, Lines
from tinykernel.errors import TinykernelError

FORMATS = ("text", "s16le")
_LEARN = 5.0  # seconds for the first samples
_SILENCE = 10.0  # seconds without a sample
_SHOWN = 40  # bytes of what is no sample


class Sensor:
    """The samples of a port, read by a thread so that none waits in a full buffer.

    `samples` counts those since the start, `ranges` has the least and the largest of each channel.
    """

    def __init__(self, link: Link, form: str = "text") -> None:
        self.link, self.form = link, form
        self.samples = 0
        self.ranges: list[tuple[float, float]] = []
        self._reader: Lines | Frames = Lines() if form == "text" else Frames()
        self._arrived: queue.SimpleQueue[bytes | TinykernelError] = queue.SimpleQueue()
        self._begun = self._since = time.monotonic()
        self._waiting: list[Any] = []  # samples that came with those that made the channels known
        self._seen = b""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            try:
                data = self.link.read()
            except TinykernelError as error:
                self._arrived.put(error)
                return
            if data:
                self._arrived.put(data)

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the channels; empty until they are known."""
        return () if self._reader.layout is None else self._reader.layout.names

    @property
    def lost(self) -> int:
        """Samples that were lost, or lines that are no samples."""
        return self._reader.lost

    @property
    def rate(self) -> float:
        """Samples a second: of frames, else counted since the channels are known; 0 before that."""
        layout = self._reader.layout
        if layout is not None and layout.rate is not None:
            return layout.rate
        return self.samples / max(1e-9, self._since - self._begun)

    def take(self) -> tuple[list[Any], bool]:
        """Return new samples, or frames, and whether some are missing before them."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            return waiting, False
        data, known = b"", bool(self.names)
        with contextlib.suppress(queue.Empty):
            first = self._arrived.get(timeout=0.05)
            if isinstance(first, TinykernelError):
                raise first
            data = first
        self._seen = (self._seen + data)[-4096:]
        samples: list[Any] = list(self._reader.take(data))
        self._count(samples, known=known)
        return samples, isinstance(self._reader, Frames) and self._reader.gap

    def _count(self, samples: list[Any], *, known: bool) -> None:
        """Count samples; `known` says whether the channels were known before they came."""
        if not known and self.names:
            self.ranges = [(float("inf"), float("-inf"))] * len(self.names)
            self._begun = time.monotonic()
            self.samples -= len(samples)  # they came before the clock was started
        if samples:
            self._since = time.monotonic()
        for sample in self._numbers(samples):
            self.samples += 1
            pairs = zip(self.ranges, map(float, sample), strict=True)
            self.ranges = [(min(low, value), max(high, value)) for (low, high), value in pairs]

    def _numbers(self, samples: list[Any]) -> Iterator[tuple[Any, ...]]:
        for sample in samples:
            if isinstance(sample, tuple):
                yield sample
            else:  # a frame
                yield from struct.iter_unpack(f"<{len(self.names)}h", sample)

    def wait_for_samples(self) -> None:
        """Wait until the channels are known; raise an error that describes any other output."""
        limit = time.monotonic() + _LEARN
        while not self.names:
            self._waiting, _ = self.take()
            if time.monotonic() > limit and not self.names:
                raise TinykernelError(f"{self.link.port}: {self._wrong()}")

    def check_alive(self) -> None:
        """Raise an error if the sensor sends nothing any more."""
        if time.monotonic() - self._since > _SILENCE:
            raise TinykernelError(
                f"{self.link.port}: no sample in {_SILENCE:.0f} seconds; check that the sketch runs"
            )

    def _wrong(self) -> str:
        if not self._seen:
            return (
                f"nothing arrived in {_LEARN:.0f} seconds; check the port, and that the sketch "
                "prints samples"
            )
        printable = sum(32 <= byte < 127 or byte in b"\r\n\t" for byte in self._seen)
        shown = repr(self._seen[-_SHOWN:].decode("ascii", "replace"))
        if self.form != "text":
            return (
                f"no packets of s16le in {len(self._seen)} bytes, of at most {LARGEST_FRAME} "
                "samples each; try --format text"
            )
        if printable < 0.9 * len(self._seen):
            return (
                f"{shown} is not text at {self.link.baud} baud; try --baud 9600, 57600 or 230400, "
                "or --format s16le"
            )
        return f"{shown} has no lines of numbers; print 3 or more such as 'x:1,y:2'"


class RecordingFile:
    """One file that is being written, under a hidden name until it is whole.

    It becomes ``folder/LABEL/LABEL-N``, with N the next free number.
    """

    def __init__(self, folder: Path, label: str, group: str | None, sensor: Sensor) -> None:
        self.sensor, self.labels = sensor, [label] if group is None else [label, group]
        self.samples, self.begun = 0, time.monotonic()
        suffix = ".csv" if sensor.form == "text" else ".wav"
        place = folder / label
        try:
            place.mkdir(parents=True, exist_ok=True)
            self.path = _next_path(place, label, suffix)
            self._part = place / f".{self.path.name}.part"
            self._file = self._part.open("wb")
        except OSError as error:
            problem = f"cannot be written ({error.strerror}); choose another folder with --output"
            raise TinykernelError(f"{place}: {problem}") from None

    def take(self, samples: list[Any]) -> None:
        """Append samples, or frames."""
        if self.sensor.form == "text":
            self._file.write("".join(f"{','.join(sample)}\n" for sample in samples).encode())
            self.samples += len(samples)
        else:
            self._file.write(b"".join(samples))
            self.samples += sum(map(len, samples)) // (2 * len(self.sensor.names))
        self._file.flush()

    def finish(self, rate: float) -> Path | None:
        """Write the file with its times and label; none where there are no samples."""
        self._file.close()
        if self.samples and rate <= 0.0:
            self._part.unlink()
            raise TinykernelError(f"{self.path}: too short to measure the rate; give --rate")
        if self.samples:
            whole = self._part.with_suffix(".whole")
            if self.sensor.form == "text":
                self._write_csv(whole, rate)
            else:
                self._write_wav(whole, rate)
            os.replace(whole, self.path)
        self._part.unlink()
        return self.path if self.samples else None

    def _write_csv(self, path: Path, rate: float) -> None:
        end = io.StringIO(newline="")
        csv.writer(end, lineterminator="\n").writerow(self.labels)
        names = ["time_s", *self.sensor.names, *("label", "group")[: len(self.labels)]]
        with self._part.open() as part, path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(names)
            for number, line in enumerate(part):
                file.write(f"{number / rate:.6f},{line[:-1]},{end.getvalue()}")

    def _write_wav(self, path: Path, rate: float) -> None:
        with wave.open(str(path), "wb") as file, self._part.open("rb") as part:
            file.setnchannels(len(self.sensor.names))
            file.setsampwidth(2)
            file.setframerate(round(rate))
            while data := part.read(1 << 20):
                file.writeframes(data)


def _next_path(folder: Path, label: str, suffix: str) -> Path:
    """Return the path with the next free number."""
    numbers = [
        int(match[1])
        for path in folder.iterdir()
        if (match := re.fullmatch(rf"\.?{re.escape(label)}-(\d+)\..*", path.name))
    ]
    return folder / f"{label}-{max(numbers, default=0) + 1}{suffix}"


def check_label(label: str) -> None:
    """Refuse a label that cannot be the name of a folder."""
    if not re.fullmatch(r"\w[\w .+-]*", label) or label != label.strip():
        raise TinykernelError(
            f"label {label!r}: begin with a letter or digit, then also spaces, '.', '+' and '-'"
        )


@contextmanager
def sensor_at(port: str, baud: int, form: str) -> Iterator[Sensor]:
    """Open a port and wait until the channels of its sensor are known."""
    with Link(port, baud) as link:
        sensor = Sensor(link, form)
        try:
            sensor.wait_for_samples()
            yield sensor
        finally:
            sensor.close()


class Recorder:
    """Makes one recording after the other from a sensor.

    A gap in frames ends a recording and begins another one; so each file is complete.
    """

    def __init__(
        self, sensor: Sensor, folder: Path, group: str | None = None, rate: float | None = None
    ) -> None:
        self.sensor, self.folder, self.group, self.rate = sensor, folder, group, rate
        self.paths: list[Path] = []

    def _begun(self, label: str) -> RecordingFile:
        return RecordingFile(self.folder, label, self.group, self.sensor)

    def _end(self, recording: RecordingFile) -> None:
        rate = self.sensor.rate
        # Within the tolerance of a clock a rate is an integer.
        measured = float(round(rate)) if abs(rate - round(rate)) <= 0.01 * rate else rate
        path = recording.finish(self.rate or measured)
        self.paths += [] if path is None else [path]

    def record(self, label: str, seconds: float) -> None:
        """Make a recording of so many seconds, or of that many samples at `rate`."""
        # A silent or lost sensor ends it with a TinykernelError; earlier samples are saved.
        recording = self._begun(label)
        try:
            while not self._is_long(recording, seconds):
                samples, gap = self.sensor.take()
                if gap and recording.samples:
                    ended, recording = recording, self._begun(label)
                    self._end(ended)
                if samples:
                    recording.take(samples)
                self.sensor.check_alive()
        finally:
            self._end(recording)

    def _is_long(self, recording: RecordingFile, seconds: float) -> bool:
        if self.rate is not None or self.sensor.form != "text":
            return recording.samples >= seconds * (self.rate or self.sensor.rate)
        return time.monotonic() - recording.begun >= seconds
