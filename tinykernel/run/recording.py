"""Recordings of a sensor: read without a pause, and written one file each."""

import contextlib
import csv
import io
import itertools
import math
import os
import queue
import re
import struct
import threading
import time
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from tinykernel.base.errors import BoardError, FileError, OptionError, TinykernelError
from tinykernel.base.text import count
from tinykernel.run.link import Link
from tinykernel.run.samples import FASTEST, LARGEST_FRAME, Arrivals, Frames, Lines, Pause

FORMATS = ("text", "s16le")
_LEARN = 5.0  # seconds for the first samples
_SILENCE = 10.0  # seconds without a sample
_SHOWN = 40  # bytes of what is no sample
_MOST_BYTES = 1 << 31  # of samples in a .wav file


@dataclass(frozen=True)
class Arrived:
    """Samples, or frames, that arrived together."""

    samples: list[Any]
    first: int = 0  # the number of the first sample since the sensor was opened
    gap: bool = False  # whether samples are missing before them


class Sensor:
    """The samples of a port, their times and ranges; a thread reads, so none waits in a buffer."""

    def __init__(self, link: Link, form: str = "text") -> None:
        self.link, self.form = link, form
        self.arrivals = Arrivals()
        self.ranges: list[tuple[float, float]] = []
        self._reader: Lines | Frames = Lines() if form == "text" else Frames()
        self._arrived: queue.SimpleQueue[tuple[float, bytes | TinykernelError]]
        self._arrived = queue.SimpleQueue()
        self._start = self._latest = time.monotonic()
        self._waiting: Arrived | None = None  # came with those that made the channels known
        self._seen = b""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            try:
                data: bytes | TinykernelError = self.link.read()
            except TinykernelError as error:
                data = error
            if data:
                self._arrived.put((time.monotonic(), data))
            if isinstance(data, TinykernelError):
                return

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
        """Samples a second: of frames, else measured; 0 where it is unknown."""
        layout = self._reader.layout
        if layout is not None and layout.rate is not None:
            return layout.rate
        return self.arrivals.measured()[0]

    def take(self) -> Arrived:
        """Return new samples, maybe none; raise an error where none come any more."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            return waiting
        try:
            now, data = self._arrived.get(timeout=0.05)
        except queue.Empty:
            now, data = time.monotonic(), b""
        if isinstance(data, TinykernelError):
            raise data
        if now - max(self._start, self.arrivals.latest) > _SILENCE and self.names:
            raise BoardError(
                f"{self.link.port}: no sample in {_SILENCE:.0f} seconds; check that the sketch runs"
            )
        return self._batch(now, data)

    def rest(self) -> Arrived:
        """Return what has arrived at the end, with a last frame that no other one follows."""
        if self._waiting is not None:
            return self.take()
        data = b""
        with contextlib.suppress(queue.Empty):
            while not isinstance(latest := self._arrived.get_nowait()[1], TinykernelError):
                data += latest
        return self._batch(time.monotonic(), data, is_end=True)

    def _batch(self, now: float, data: bytes, *, is_end: bool = False) -> Arrived:
        """Find and count the samples that are complete with bytes."""
        self._seen = (self._seen + data)[-4096:]
        was_there = self._reader.has_waiting
        samples: list[Any] = list(self._reader.take(data, is_end=is_end))
        if self.names and not self.ranges:
            self.ranges = [(math.inf, -math.inf)] * len(self.names)
        batch = Arrived(samples, self.arrivals.samples, self._reader.gap)
        numbers = list(self._numbers(samples))
        for sample in numbers:
            pairs = zip(self.ranges, map(float, sample), strict=True)
            self.ranges = [(min(low, value), max(high, value)) for (low, high), value in pairs]
        first = len(list(self._numbers(samples[:1]))) if was_there else 0
        self.arrivals.add(self._latest, first)
        self.arrivals.add(now, len(numbers) - first)
        self._latest = now if data else self._latest
        return batch

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
            lost = None
            try:
                batch = self.take()
            except TinykernelError as error:
                lost = error
            if lost or time.monotonic() > limit:
                batch = self.rest()  # with a frame that no other one follows
                if not self.names:
                    raise lost or BoardError(f"{self.link.port}: {self._wrong()}")
            self._waiting = batch if batch.samples else None
            if lost:  # once these are recorded
                self._arrived.put((time.monotonic(), lost))

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
                f"samples each, and {FASTEST:,} Hz; try --format text"
            )
        if printable < 0.9 * len(self._seen):
            return (
                f"{shown} is not text at {self.link.baud} baud; try --baud 9600, 57600 or 230400, "
                "or --format s16le"
            )
        return f"{shown} has no lines of numbers; print 3 or more such as 'x:1,y:2'"


class RecordingFile:
    """A recording that is being written, hidden until it is whole: then LABEL/LABEL-N."""

    def __init__(self, folder: Path, label: str, group: str | None, sensor: Sensor) -> None:
        self.sensor, self.labels = sensor, [label] if group is None else [label, group]
        self.samples, self.begun, self._first = 0, time.monotonic(), 0
        suffix = ".csv" if sensor.form == "text" else ".wav"
        self._place = folder / label
        try:
            self._place.mkdir(parents=True, exist_ok=True)
            self.path = _next_path(self._place, label, suffix)
            self._part = self._place / f".{self.path.name}.part"
            self._file = self._part.open("xb")
        except OSError as error:
            problem = f"cannot be written ({error.strerror}); choose another folder with --output"
            raise BoardError(f"{self._place}: {problem}") from None

    def take(self, batch: Arrived) -> None:
        """Append samples, or frames."""
        samples = batch.samples
        if not self.samples:
            self._first = batch.first
        if self.sensor.form == "text":
            data = "".join(f"{','.join(sample)}\n" for sample in samples).encode()
        else:
            data = b"".join(samples)
        with self._writing():
            self._file.write(data)
            self._file.flush()
        text = self.sensor.form == "text"
        self.samples += len(samples) if text else len(data) // (2 * len(self.sensor.names))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say where the samples are if no more can be written."""
        try:
            yield
        except OSError as error:
            raise FileError(
                f"{self.path}: cannot be written ({error.strerror}); the samples so far are in "
                f"{self._part.name}, beside it"
            ) from None

    @property
    def pauses(self) -> list[Pause]:
        """The pauses of the sensor within the recording, by the numbers of its samples."""
        renumbered = (
            replace(pause, sample=pause.sample - self._first)
            for pause in self.sensor.arrivals.measured()[1]
        )
        return [pause for pause in renumbered if 0 < pause.sample < self.samples]

    def finish(self, rate: float) -> list[Path]:
        """Write the file with its times and label: none where there are no samples."""
        # Where the rate is 0, it has no times. A pause is a gap in time, and begins another .wav
        # file.
        paths: list[Path] = []
        with self._writing():
            self._file.close()
            if self.samples and self.sensor.form == "text":
                self._put(self.path, lambda path: self._write_csv(path, rate))
                paths = [self.path]
            elif self.samples:
                paths = self._write_wavs(rate)
            self._part.unlink()
        return paths

    def _put(self, path: Path, write: Callable[[Path], None]) -> None:
        """Write a file under another name until it is whole."""
        whole = path.with_name(f".{path.name}.whole")
        try:
            write(whole)
            os.replace(whole, path)
        finally:
            whole.unlink(missing_ok=True)

    def _write_csv(self, path: Path, rate: float) -> None:
        end = io.StringIO(newline="")
        csv.writer(end, lineterminator="\n").writerow(self.labels)
        time_name = ["time_s"] if rate else []
        names = [*time_name, *self.sensor.names, *("label", "group")[: len(self.labels)]]
        later = {pause.sample: round(pause.seconds * rate) for pause in self.pauses}
        place = 0
        with (
            self._part.open(encoding="utf-8") as part,
            path.open("w", newline="", encoding="utf-8") as file,
        ):
            csv.writer(file, lineterminator="\n").writerow(names)
            for number, line in enumerate(part):
                place += later.get(number, 0)
                seconds = f"{place / rate:.6f}," if rate else ""
                file.write(f"{seconds}{line[:-1]},{end.getvalue()}")
                place += 1

    def _write_wavs(self, rate: float) -> list[Path]:
        """Write a file for each stretch without a pause that fits the header."""
        size = 2 * len(self.sensor.names)
        most = _MOST_BYTES // size
        ends = sorted({*(pause.sample for pause in self.pauses), *range(most, self.samples, most)})
        paths = [self.path]
        with self._part.open("rb") as part:
            for begin, end in itertools.pairwise((0, *ends, self.samples)):
                if begin:
                    paths.append(_next_path(self._place, self.labels[0], ".wav"))
                write = partial(self._write_wav, part, (end - begin) * size, rate)
                self._put(paths[-1], write)
        return paths

    def _write_wav(self, part: BinaryIO, size: int, rate: float, path: Path) -> None:
        with wave.open(str(path), "wb") as file:
            file.setnchannels(len(self.sensor.names))
            file.setsampwidth(2)
            file.setframerate(round(rate))
            while data := part.read(min(1 << 20, size)):
                file.writeframes(data)
                size -= len(data)


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
        raise OptionError(
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
    """Makes one recording after the other, into `paths`; a gap in frames begins another one."""

    def __init__(
        self, sensor: Sensor, folder: Path, group: str | None = None, rate: float | None = None
    ) -> None:
        self.sensor, self.folder, self.group, self.rate = sensor, folder, group, rate
        self.paths: list[Path] = []
        self._notes: list[str] = []

    def _begin(self, label: str) -> RecordingFile:
        return RecordingFile(self.folder, label, self.group, self.sensor)

    def _end(self, recording: RecordingFile) -> None:
        rate = self.sensor.rate
        # Within the tolerance of a clock a rate is an integer.
        measured = float(round(rate)) if abs(rate - round(rate)) <= 0.01 * rate else rate
        paths = recording.finish(self.rate or measured)
        self.paths += paths
        if paths:
            self._notes += [f"{paths[0].name}: {note}" for note in self._note(recording)]

    def _note(self, recording: RecordingFile) -> Iterator[str]:
        if not (self.rate or self.sensor.rate):
            yield (
                "the rate is unknown, as the samples came at once, so it has no times; train with "
                "--set rate=HZ"
            )
        if pauses := recording.pauses:
            longest = max(pauses, key=lambda pause: pause.seconds)
            is_text = self.sensor.form == "text"
            yield (
                f"{count(len(pauses), 'pause')} without samples, the longest of "
                f"{longest.seconds:.2g} s after sample {longest.sample}; "
                + ("a gap in time each" if is_text else "each begins another file")
            )

    def warnings(self) -> list[str]:
        """Return what to know of all recordings, a line each."""
        sensor, lines = self.sensor, list(self._notes)
        if sensor.lost:
            kind = "lines without a sample" if sensor.form == "text" else "samples lost"
            lines.append(f"{kind}: {sensor.lost}")
        if self.rate and sensor.rate and abs(sensor.rate / self.rate - 1.0) > 0.02:
            lines.append(f"the rate is {sensor.rate:.4g} Hz, not {self.rate:g} Hz as given")
        return lines

    def _append(self, recording: RecordingFile, batch: Arrived) -> RecordingFile:
        """Append samples; those behind a gap begin the recording that is returned."""
        if batch.gap and recording.samples:
            self._end(recording)
            recording = self._begin(recording.labels[0])
        if batch.samples:
            recording.take(batch)
        return recording

    def record(self, label: str, seconds: float) -> None:
        """Make a recording of so many seconds, or of that many samples at `rate`."""
        # A silent or lost sensor ends it with a TinykernelError, Ctrl-C with a KeyboardInterrupt;
        # the samples so far are saved.
        recording = self._begin(label)
        try:
            while not self._is_long(recording, seconds):
                recording = self._append(recording, self.sensor.take())
        except BaseException:
            recording = self._append(recording, self.sensor.rest())
            raise
        finally:
            self._end(recording)

    def _is_long(self, recording: RecordingFile, seconds: float) -> bool:
        if self.rate is not None or self.sensor.form != "text":
            return recording.samples >= seconds * (self.rate or self.sensor.rate)
        return time.monotonic() - recording.begun >= seconds
