"""Read sound files as 16-bit samples, whole or in pieces, and resample them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, FormatError, ToolError

_FULL = 1 << 15
# Floats above 1 are clipped; larger ones have another unit and are refused.
_LOUDEST = 4.0
_PCM, _FLOATS, _EXTENSIBLE = 1, 3, 0xFFFE
_BYTES_AT_ONCE = 1 << 20
_CHUNK = 8  # bytes of the name and length of a chunk
_USUAL_CHUNKS = (b"LIST", b"fact", b"cue ", b"bext", b"iXML", b"id3 ", b"ID3 ", b"PEAK", b"JUNK")
# What soundfile decodes: formats (ADPCM, A-law, mu-law, GSM), and the beginnings of long files.
_CODES, _CODED = (2, 6, 7, 17, 49), (b"RF64", b"riff")
_CONVERT = "convert it, as by ffmpeg -i FILE -c:a pcm_s16le new.wav"
_BEYOND = "the header of a .wav says a shorter length: {n} samples behind it are read"
_CLIPPED = "clipped, as louder than full scale: {n} samples"
# From this size on a header says that it does not know.
_ENDLESS = 0x7FFFF000


class CodedError(ValueError):
    """The format of a .wav is one that soundfile has to decode."""


@dataclass(frozen=True, eq=False)
class Sound:
    """The samples of an open file or pipe, which are still to be read."""

    name: object  # for errors
    file: IO[bytes]
    rate: float
    channels: int
    sample: np.dtype[Any]  # of one sample; three bytes as "V3"
    size: int | None = None  # bytes of samples; None up to the end
    beyond: int = 0  # bytes of them that are behind the end that the header says
    begin: bytes = b""  # samples that are read already

    @property
    def frame(self) -> int:
        """Bytes of a sample of all channels."""
        return self.sample.itemsize * self.channels

    def blocks(self) -> Iterator[NDArray[np.int16]]:
        """Yield samples as int16 (samples, channels), rounded down, as soon as there are any."""
        read, left, rest = getattr(self.file, "read1", self.file.read), self.size, self.begin
        frame = self.frame
        while left is None or left:
            data = read(_BYTES_AT_ONCE if left is None else min(left, _BYTES_AT_ONCE))
            if not data:
                break
            left = None if left is None else left - len(data)
            data = rest + data
            whole = len(data) // frame * frame
            rest = data[whole:]
            if whole:
                samples = np.frombuffer(data[:whole], self.sample).reshape(-1, self.channels)
                yield _as_int16(self.name, samples)
        if left and self.file.seekable():  # a pipe may be interrupted
            raise FormatError(f"{self.name}: is not a PCM or float WAV file (cut short)")


def open_wav(name: object, file: IO[bytes], begin: bytes = b"") -> Sound:
    """Read the header of a .wav, of which `begin` is read already."""
    try:
        return _header(name, file, begin)
    except CodedError:
        if file.seekable():
            raise
        raise FormatError(f"{name}: has coded samples; {_CONVERT}") from None
    except (ValueError, TypeError) as error:
        raise FormatError(f"{name}: is not a PCM or float WAV file ({error})") from None


def _header(name: object, file: IO[bytes], begin: bytes) -> Sound:
    """Read chunks up to the samples; a ValueError says what is wrong."""
    head = begin + _exactly(file, 12 - len(begin))
    order = {b"RIFF": "<", b"RIFX": ">"}.get(head[:4])
    if order is None or head[8:] != b"WAVE":
        raise ValueError("no RIFF header")
    form: tuple[int, ...] | None = None
    while True:
        chunk, size = _exactly(file, 4), int(np.frombuffer(_exactly(file, 4), f"{order}u4")[0])
        if chunk == b"data":
            break
        content = b""
        for at in range(0, size + size % 2, _BYTES_AT_ONCE):
            content = _exactly(file, min(size + size % 2 - at, _BYTES_AT_ONCE))
        if chunk == b"fmt ":
            form = tuple(np.frombuffer(content[:16], f"{order}u2").tolist())
            if form[0] == _EXTENSIBLE and size >= 40:
                form = (*np.frombuffer(content[24:26], f"{order}u2").tolist(), *form[1:])
    if form is None or len(form) < 8:
        raise ValueError("no format before the samples")
    tag, channels, bits = form[0], form[1], form[7]
    rate = form[2] | form[3] << 16 if order == "<" else form[3] | form[2] << 16
    width = -(-bits // 8)
    is_whole = rate and channels and form[6] == channels * width
    if not is_whole and tag not in _CODES:
        raise ValueError("damaged")
    kinds = {(_PCM, 1): "u1", (_PCM, 2): "i2", (_PCM, 3): "V3", (_PCM, 4): "i4"}
    kinds |= {(_FLOATS, 4): "f4", (_FLOATS, 8): "f8"}
    if (tag, width) not in kinds:
        wrong = CodedError if tag in _CODES else ValueError
        raise wrong(f"format {tag} of {bits} bits; {_CONVERT}")
    kind = kinds[tag, width]
    if kind == "V3" and order == ">":
        raise ValueError("24 bits of RIFX")
    # Other chunks may follow. A header of 32 bits does not know the length of a long recording.
    length, beyond = size if size < _ENDLESS else None, 0
    if file.seekable():
        there = os.fstat(file.fileno()).st_size - file.tell()
        if length is not None and there < length:
            raise ValueError("cut short")
        # A recorder that loses its power leaves the length of the beginning in the header.
        if length is not None and not _ends_at(file, length, there, order):
            beyond, length = there - length, None
        length = there if length is None else length
    elif not size:  # of a recording whose length was not known at its beginning
        length = None
    return Sound(name, file, float(rate), channels, np.dtype(order + kind), length, beyond)


def _ends_at(file: IO[bytes], size: int, there: int, order: str) -> bool:
    """Whether the samples end after `size` bytes, at the end of the file or before a chunk."""
    at, begin = size + size % 2, file.tell()
    if there - at < _CHUNK:
        return True
    file.seek(at, os.SEEK_CUR)
    name, length = file.read(4), int(np.frombuffer(file.read(4), f"{order}u4")[0])
    file.seek(begin)
    is_name = all(0x20 <= byte < 0x7F for byte in name)
    return name in _USUAL_CHUNKS or (is_name and length <= there - at - _CHUNK)


def _exactly(file: IO[bytes], n: int) -> bytes:
    """Read n bytes, also from a pipe."""
    data = b""
    while len(data) < n:
        more = file.read(n - len(data))
        if not more:
            raise ValueError("cut short")
        data += more
    return data


def read_sound(path: Path, samples: bool = True) -> tuple[NDArray[np.int16], float, dict[str, int]]:
    """Return samples as int16 (samples, channels), the rate in Hz, and notes on changes.

    Samples of a .wav are rounded down; without `samples` they are 0, in constant memory.
    """
    if path.suffix.lower() != ".wav":
        return _read_coded(path)
    with path.open("rb") as file:
        begin = file.read(4)
        if begin in _CODED:
            return _read_coded(path)
        try:
            sound = open_wav(path, file, begin)
        except CodedError:
            return _read_coded(path)
        shape = (sound.size or 0) // sound.frame, sound.channels
        notes = {_BEYOND: sound.beyond // sound.frame} if sound.beyond else {}
        if not samples:
            return np.broadcast_to(np.zeros(1, np.int16), shape), sound.rate, notes
        none = np.zeros((0, sound.channels), np.int16)
        return np.concatenate([none, *sound.blocks()]), sound.rate, notes


def _read_coded(path: Path) -> tuple[NDArray[np.int16], float, dict[str, int]]:
    """Decode a sound by soundfile."""
    try:
        import soundfile
    except ImportError:
        raise ToolError(
            f"{path}: needs soundfile; install it (pip install soundfile), or {_CONVERT}"
        ) from None
    except OSError as error:  # it may need a library of the system
        raise ToolError(f"{path}: soundfile does not work ({error}); save a .wav") from None
    try:
        with soundfile.SoundFile(path) as file:
            # As integers it would wrap what is louder than 1.
            kind = "int16" if "PCM" in file.subtype or "LAW" in file.subtype else "float32"
            parts = list(file.blocks(_BYTES_AT_ONCE, dtype=kind, always_2d=True))
            none, rate = np.zeros((0, file.channels), np.int16), float(file.samplerate)
    except soundfile.SoundFileError as error:
        raise FormatError(f"{path}: is not a sound that soundfile can read ({error})") from None
    n_loud = sum(int((np.abs(part) > 1).sum()) for part in parts if part.dtype.kind == "f")
    read = [_as_int16(path, part) for part in parts]
    return np.concatenate([none, *read]), rate, {_CLIPPED: n_loud} if n_loud else {}


def resampled(samples: NDArray[np.int16], rate: float, wanted: float) -> NDArray[np.int16]:
    """Resample (n, channels) by ``scipy.signal.resample_poly``, rounded to whole numbers."""
    from scipy.signal import resample_poly

    ratio = Fraction(wanted).limit_denominator(1000) / Fraction(rate).limit_denominator(1000)
    samples_at_rate = resample_poly(samples.astype(np.float64), ratio.numerator, ratio.denominator)
    whole: NDArray[np.int16] = np.clip(np.rint(samples_at_rate), -_FULL, _FULL - 1).astype(np.int16)
    return whole


def _as_int16(path: object, samples: NDArray[Any]) -> NDArray[np.int16]:
    """Convert samples of any width to 16 bits."""
    if samples.dtype == np.uint8:
        return ((samples.astype(np.int16) - 128) << 8).astype(np.int16)
    if samples.dtype.kind == "V":  # three bytes, the least one first
        octets = samples.view(np.uint8).reshape(*samples.shape, 3).astype(np.int16)
        return octets[..., 1] | (octets[..., 2] << 8)
    if samples.dtype.kind == "i" and samples.dtype.itemsize == 2:
        return samples.astype(np.int16, copy=False)
    if samples.dtype.kind == "i":
        return (samples >> (8 * samples.dtype.itemsize - 16)).astype(np.int16)
    loudest = float(np.abs(samples).max(initial=0))
    if not np.isfinite(loudest):
        raise DataError(f"{path}: holds NaN or infinite samples; correct it")
    if loudest > _LOUDEST:
        raise DataError(f"{path}: has floats up to {loudest:g}; scale it to -1 to 1")
    whole = np.floor(samples.astype(np.float64) * _FULL)
    return np.clip(whole, -_FULL, _FULL - 1).astype(np.int16)
