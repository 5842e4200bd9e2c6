"""Recordings in pieces: long ones take little memory, and a pipe need not end."""

import os
import string
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from tinykernel.base.errors import FormatError
from tinykernel.data.clock import alike
from tinykernel.data.cutting import segments_of
from tinykernel.data.labels import NO_SPAN, background_among, within
from tinykernel.data.reading import Columns, Reading, Recording, of_all
from tinykernel.data.recording_files import find_all, read_recording
from tinykernel.data.tracks import check_channels, read_tracks
from tinykernel.data.wav import Sound, open_wav

#: Instead of the name of a file: standard input.
PIPE = "-"
_RAW = np.dtype("<i2")
_TEXT, _OTHER_FILES = set(string.printable.encode()), (b"PK\3\4", b"fLaC", b"OggS", b"PAR1")


def pieces(path: str | os.PathLike[str], reading: Reading, channels: int) -> Iterator[Recording]:
    """Yield the samples of recordings, sounds as they are read; see `windows`.

    Recordings of more or fewer channels, with the numbers beside, are refused.
    A sound of another rate, or that is no .wav, is read as a whole. `PIPE` stands for a .wav, or
    int16 samples, least byte first, at standard input.
    """
    for piece in _pieces(path, reading, channels):
        check_channels(piece.name, piece.channels, channels)
        yield piece


def _pieces(path: str | os.PathLike[str], reading: Reading, channels: int) -> Iterator[Recording]:
    if path == PIPE:
        table, sound = _of_pipe(sys.stdin.buffer, reading, channels)
        yield from _of_sound("standard input", table, sound, replace(reading, drop=(), time=None))
        return
    files, names, _ = find_all(path)
    for file, name in zip(files, names, strict=True):
        table = read_recording(file, reading, samples=file.suffix.lower() != ".wav")
        is_other = reading.rate is not None and not alike(table.rate or 0, reading.rate)
        if is_other and table.is_sound and reading.rate:
            table = read_recording(file, reading).at_rate(reading.rate)
        elif file.suffix.lower() == ".wav" and not any(table.columns["channel 1"].strides):
            with file.open("rb") as opened:
                yield from _of_sound(name, table, open_wav(file, opened), reading)
            continue
        yield from _of_table(name, table, reading)


def _of_pipe(file: IO[bytes], reading: Reading, channels: int) -> tuple[Columns, Sound]:
    """Read a header, where there is one; raw samples have the columns of the training, in order."""
    name, begin, names = Path("standard input"), file.read(4), list[str]()
    if begin in (b"RIFF", b"RIFX"):
        sound = open_wav(name, file, begin)
    else:
        begin += file.read(60)
        # Raw samples of a narrow range have printable bytes, too, but few different upper ones.
        is_text = not set(begin) - _TEXT and len(set(begin[1::2])) > 3
        if is_text or begin.startswith(_OTHER_FILES):
            raise FormatError(f"{name}: is neither a .wav nor raw samples; give the file's name")
        names = [*(reading.inputs or ()), *reading.beside]
        sound = Sound(name, file, reading.rate or 0.0, channels, _RAW, begin=begin)
    if len(names) != sound.channels:
        names = [f"channel {i + 1}" for i in range(sound.channels)]
    none = dict.fromkeys(names, np.zeros(0, np.int16))
    return Columns(name, none, rate=sound.rate or None, keeps_type=True, is_sound=True), sound


def _of_sound(name: str, table: Columns, sound: Sound, reading: Reading) -> Iterator[Recording]:
    first = 0
    for X in sound.blocks():
        columns = dict(zip(table.columns, X.T, strict=True))
        spans = None if table.spans is None else within(table.spans, first, first + len(X))
        label = None if table.y is None else of_all(str(table.y[0]), len(X))
        part = replace(table, columns=columns, y=label, group=None, spans=spans)
        track = _track(name, part, table.labels(), reading)
        known = frozenset(table.labels())
        yield replace(track, first=first, follows=first > 0, labels=known)
        first += len(X)


def _of_table(name: str, table: Columns, reading: Reading) -> Iterator[Recording]:
    labels = table.labels()
    track = _track(name, table, labels, reading)
    track.labels = frozenset(labels)
    for first, end in segments_of(track):
        yield track.part(first, end)


def _track(name: str, table: Columns, labels: set[str], reading: Reading) -> Recording:
    """Find channels and labels; what has no label is background, as in `windows` of a stream."""
    still = background_among({*labels, *reading.background}, reading.background) or NO_SPAN
    inputs = list(table.columns) if table.is_sound else None
    if reading.inputs:
        inputs = [*reading.inputs, *reading.beside]
    return read_tracks([table.with_labels(still)], [name], inputs, reading)[0]
