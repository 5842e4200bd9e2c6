"""Windows of samples: as rows, their hop, and the segments whose spectra a stream computes once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: From this rate on a signal is taken for sound.
SOUND_HZ = 4000.0
#: Samples that a segment may have.
SEGMENTS = (64, 128, 256, 512)
#: Segments that a window has at least, as kernels of nine taps need them.
FEWEST_SEGMENTS = 12
_SEGMENT_SECONDS = 0.032


def as_rows(windows: NDArray[Any], n_numbers: int) -> NDArray[Any]:
    """Flatten windows whose last channels are numbers, of which those of the last sample count.

    >>> as_rows(np.arange(8).reshape(1, 2, 4), 1).tolist()  # 3 channels and a number
    [[0, 1, 2, 4, 5, 6, 7]]
    """
    channels = windows.shape[2] - n_numbers
    samples = windows[:, :, :channels].reshape(len(windows), -1)
    return np.hstack([samples, windows[:, -1, channels:]])


def segment_lengths(rate: float, samples: int) -> tuple[int, ...]:
    """Return the lengths of segments, that of about 32 ms first, then shorter ones."""
    wanted = np.clip(rate * _SEGMENT_SECONDS, SEGMENTS[0], SEGMENTS[-1])
    length = min(SEGMENTS, key=lambda n: abs(np.log2(n / wanted)))
    if rate < SOUND_HZ:
        length = 256 if samples >= 2048 else 128
    return SEGMENTS[SEGMENTS.index(length) :: -1]


def segment_hops(length: int, hop: int) -> list[int]:
    """Return the hops that segments may have: divisors of that of windows, nearest to 5/8 first.

    >>> segment_hops(512, 8000)[0], segment_hops(512, 0), segment_hops(64, 1999)
    (320, [320], [])
    """
    wanted = length * 5 // 8
    if not hop:
        return [wanted]
    divisors = [n for n in range(length // 4, length + 1) if hop % n == 0]
    return sorted(divisors, key=lambda n: abs(np.log2(n / wanted)))


def segments_within(lengths: Sequence[int], samples: int, hop: int) -> tuple[int, int] | None:
    """Return the first length and hop of segments of which a window has enough."""
    for length in lengths:
        for step in segment_hops(length, hop):
            if samples >= length + (FEWEST_SEGMENTS - 1) * step:
                return length, step
    return None


def hop_within(rate: float | None, samples: int, seconds: float) -> int | None:
    """Return the longest hop within a time that is an even number of usual segments, if there is.

    Convolutions in a stream decide at every other segment. With segments of 400 in place of 320
    samples they classify words 3 points worse.

    >>> hop_within(16000, 16000, 0.1), hop_within(11025, 11025, 0.1)
    (1280, 960)
    """
    for length in segment_lengths(rate, samples) if rate else ():
        pair = 2 * segment_hops(length, 0)[0]
        hop = int((rate or 0) * seconds) // pair * pair
        if hop and segments_within((length,), samples, hop):
            return hop
    return None
