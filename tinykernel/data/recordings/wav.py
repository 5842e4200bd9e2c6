"""Read sound files: 16 bit PCM in a .wav."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError


def read_wav(path: Path) -> tuple[NDArray[Any], float]:
    """Return the samples of a .wav, int16 of shape (samples, channels), and its rate in Hz."""
    try:
        with wave.open(str(path), "rb") as sound:
            bits, rate = 8 * sound.getsampwidth(), sound.getframerate()
            channels, count = sound.getnchannels(), sound.getnframes()
            # The header may promise more frames than there are: the file's size is the limit.
            frames = sound.readframes(min(count, path.stat().st_size))
    except (wave.Error, EOFError, RuntimeError, ValueError) as error:
        reason = str(error) or "cut short"
        raise TinykernelError(f"{path}: is no 16 bit PCM .wav ({reason})") from None
    if bits != 16:
        raise TinykernelError(
            f"{path}: has {bits} bits a sample; convert it to 16 bit PCM "
            f"(ffmpeg -i {path.name} -c:a pcm_s16le NEW.wav)"
        )
    if rate <= 0 or len(frames) != 2 * channels * count:
        raise TinykernelError(f"{path}: is damaged or cut short")
    return np.frombuffer(frames, dtype="<i2").astype(np.int16).reshape(count, channels), float(rate)
