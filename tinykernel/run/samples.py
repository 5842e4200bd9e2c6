"""Samples as a board sends them: numbers per line or frames, and when they arrive."""

import math
import re
import struct
from array import array
from collections import Counter
from dataclasses import dataclass

import numpy as np

from tinykernel.base.errors import BoardError
from tinykernel.data.columns import is_time_name
from tinykernel.data.tables import LABEL_NAMES

_ONE = 0.02  # seconds within which bytes are one arrival: a read may divide what was sent at once
_SHORTEST = 0.1  # seconds of a pause, at least
_BRIEF = 0.25  # seconds that are too few for a rate: what was sent at once takes a part of them
_STEPS = 5  # a pause is longer than so many median steps


@dataclass(frozen=True)
class Pause:
    """Time for which a sensor sent nothing: what it took besides one step."""

    sample: int  # the first one behind it
    seconds: float


class Arrivals:
    """The times of samples; what a driver kept and gives at once later is no pause."""

    def __init__(self) -> None:
        self.samples = 0
        self.latest = -math.inf
        self._begun = -math.inf  # of the latest arrival
        self._times, self._counts = array("d"), array("q")

    def add(self, seconds: float, samples: int) -> None:
        """Note that so many samples more are there at a time."""
        if samples == 0:
            return
        self.samples += samples
        self.latest = seconds
        if seconds - self._begun < _ONE:
            self._times[-1], self._counts[-1] = seconds, self.samples
        else:
            self._begun = seconds
            self._times.append(seconds)
            self._counts.append(self.samples)

    def measured(self) -> tuple[float, list[Pause]]:
        """Return the rate without the pauses, in Hz, and the pauses."""
        # The rate is 0 where it is unknown: of fewer than three arrivals, or within a quarter
        # second.
        times, counts = np.array(self._times), np.array(self._counts)
        if len(times) < 3 or times[-1] - times[0] < _BRIEF:
            return 0.0, []
        steps = np.diff(times)
        step = float(np.median(steps))
        longest = max(_SHORTEST, _STEPS * step)
        usual = steps <= longest
        rate = float(np.diff(counts)[usual].sum() / steps[usual].sum())
        # What came late is there soon after the silence.
        soon = np.searchsorted(times, times[1:] + max(_SHORTEST, 2 * step), "right") - 1
        pauses = []
        for at in np.flatnonzero(~usual):
            until = soon[at]
            missing = rate * (times[until] - times[at]) - (counts[until] - counts[at])
            if missing > rate * steps[at] / 2:
                pauses.append(Pause(int(counts[at]), float(missing / rate)))
        sending = times[-1] - times[0] - sum(pause.seconds for pause in pauses)
        return float((counts[-1] - counts[0]) / sending), pauses


#: Begins a frame: it counts samples, channels, the number of the first sample, and Hz.
MAGIC = b"tks1"
HEADER = struct.Struct("<4sHBBII")
#: Samples in a frame at most.
LARGEST_FRAME = 4096
#: Samples a second at most, in Hz; the header of a .wav file has bytes a second in 32 bits.
FASTEST = 1_000_000
_DIVIDED = re.compile(r"[,;\t ]+")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_LONGEST_LINE = 1 << 16  # bytes
_LONGEST_NAME = 60  # characters
_LINES_TO_LEARN = 3  # of the same channels


@dataclass(frozen=True)
class Channels:
    """The channels of a sensor, and its rate where frames say it, in Hz."""

    names: tuple[str, ...]
    rate: float | None = None


def split_line(line: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return names and numbers, as text, of a line as "ax:0.1, ay:-3"; None of another line."""
    if ";" in line:
        line = _DECIMAL_COMMA.sub(".", line)
    cells = _DIVIDED.split(re.sub(r":\s+", ":", line.strip()).strip(",;"))
    names, numbers = [], []
    for cell in cells:
        name, colon, number = cell.rpartition(":")
        is_name = 0 < len(name) <= _LONGEST_NAME and name.isprintable()
        if not _NUMBER.fullmatch(number) or (colon and not is_name) or math.isinf(float(number)):
            return None
        names += [name] if colon else []
        numbers.append(number)
    if names and len(names) != len(numbers):
        return None
    return tuple(names), tuple(numbers)


def _channel_name(name: str, names: tuple[str, ...]) -> str:
    """Keep a channel apart from labels, groups and times: ``class`` becomes ``channel_class``."""
    is_axis = name.lower() == "y" and "x" in map(str.lower, names)
    taken = name.lower() in (*LABEL_NAMES, "group", "groups") or is_time_name(name)
    return f"channel_{name}" if taken and not is_axis else name


class Lines:
    """Samples of a sketch that prints a line for each.

    `layout` is None until enough lines have come; `lost` counts lines that are cut, damaged or
    text. Lines have no numbers by which one is missed, so `gap` is never true, and none waits for
    the next one.
    """

    gap = has_waiting = False

    def __init__(self) -> None:
        self.layout: Channels | None = None
        self.lost = 0
        self._rest = b""
        self._first = True
        self._early: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def take(self, data: bytes, *, is_end: bool = False) -> list[tuple[str, ...]]:
        """Return the samples that are complete with these bytes: of whole lines."""
        *lines, self._rest = (self._rest[-_LONGEST_LINE:] + data).split(b"\n")
        if lines and self._first:
            lines, self._first = lines[1:], False  # the port was opened within this line
        samples = []
        for line in lines:
            text = line.decode("ascii", "replace").strip()
            sample = split_line(text) if text else None
            if sample is None:
                self.lost += bool(text)
            elif self.layout is None:
                self._early.append(sample)
                samples += self._learn()
            elif len(sample[1]) == len(self.layout.names):
                samples.append(sample[1])
            else:
                self.lost += 1
        return samples

    def _learn(self) -> list[tuple[str, ...]]:
        """Learn the channels from the lines so far, if enough agree; return their samples."""
        ((names, size), alike), *_ = Counter((a, len(b)) for a, b in self._early).most_common(1)
        if alike < _LINES_TO_LEARN:
            return []
        names = tuple(_channel_name(name, names) for name in names)
        if len({name.lower() for name in names}) < size:
            names = tuple(f"c{number}" for number in range(size))
        self.layout = Channels(names)
        samples = [numbers for _, numbers in self._early if len(numbers) == size]
        self.lost += len(self._early) - len(samples)
        return samples


class Frames:
    """Samples in frames, ``--format s16le``: a header, and 16-bit numbers, all little-endian.

    Attributes are those of `Lines`; `lost` counts samples. A frame counts only when the next one
    begins right behind it, so that lost bytes do not shift the numbers.
    """

    def __init__(self) -> None:
        self.layout: Channels | None = None
        self.lost = 0
        self.gap = False  # whether samples are missing before those that `take` returned last
        self._rest = b""
        self._next: int | None = None

    @property
    def has_waiting(self) -> bool:
        """Whether a whole frame waits for the next one."""
        if len(self._rest) < HEADER.size:
            return False
        _, n, channels, *_ = HEADER.unpack_from(self._rest)
        return len(self._rest) >= HEADER.size + 2 * int(n) * int(channels)

    def take(self, data: bytes, *, is_end: bool = False) -> list[bytes]:
        """Return the numbers of the frames that are complete, up to the next gap."""
        self._rest += data
        frames: list[bytes] = []
        self.gap = False
        while (frame := self._frame(is_end)) is not None:
            layout, first, numbers, size = frame
            missing = 0 if self._next is None else (first - self._next) % 2**32
            other = self.layout not in (None, layout)
            if (missing or other) and frames:
                return frames  # this frame comes first in the next call
            if other:
                raise BoardError("the channels or the rate of the packets changed; keep both")
            self.layout = layout
            self.gap = self.gap or missing > 0
            self.lost += missing if missing < 2**31 else 0  # else the sensor began again
            self._next = (first + len(numbers) // (2 * len(layout.names))) % 2**32
            self._rest = self._rest[size:]
            frames.append(numbers)
        return frames

    def _frame(self, is_end: bool) -> tuple[Channels, int, bytes, int] | None:
        """Find the next whole frame: its channels, its first sample, its numbers, its size."""
        while True:
            at = self._rest.find(MAGIC)
            self._rest = self._rest[at:] if at >= 0 else self._rest[-len(MAGIC) + 1 :]
            if at < 0 or len(self._rest) < HEADER.size:
                return None
            _, n, channels, _, first, rate = HEADER.unpack_from(self._rest)
            size = HEADER.size + 2 * n * channels
            if not (0 < n <= LARGEST_FRAME and channels and 0 < rate <= FASTEST):
                self._rest = self._rest[1:]
                continue
            is_last = is_end and len(self._rest) == size
            if len(self._rest) < size + len(MAGIC) and not is_last:
                return None
            if not is_last and self._rest[size : size + len(MAGIC)] != MAGIC:
                self._rest = self._rest[1:]
                continue
            layout = Channels(tuple(f"c{number}" for number in range(channels)), float(rate))
            return layout, first, self._rest[HEADER.size : size], size
