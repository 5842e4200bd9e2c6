"""Which spectrum suits a signal: the frames, their hop, and the bands."""

import re

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import OptionError, TinykernelError
from tinykernel.base.windows import (
    FEWEST_SEGMENTS,
    SEGMENTS,
    SOUND_HZ,
    segment_hops,
    segment_lengths,
    segments_within,
)
from tinykernel.learn.options import TrainerOptions
from tinykernel.pieces.spectrum.spec import Spectrum

BANDS = 12
# Convolutions make use of more bands than kernels, of which each looks at two.
BANDS_OF_PLANES = 20
_LOWEST_HZ, _HIGHEST = 100.0, 0.975
#: 0.75 dB per level; what is taken off is the noise of 16-bit samples.
_LOG_BITS, _FLOOR = 2, 80
_ASKED = re.compile(r"(\d+)/(\d+)/(\d+)")


def band_edges(rate: float, length: int, bands: int) -> NDArray[np.int64]:
    """Return the first bin of each band, and the end of the last; a band has at least one bin.

    Of sounds by equal steps of mel from 100 Hz to nearly half of the rate: ``1127 ln(1 + f / 700)``
    (O'Shaughnessy, Speech Communication, 1987). Of slower signals all bands are alike, from bin 2
    to half of the rate.

    >>> band_edges(16000, 512, 12).tolist()
    [3, 9, 16, 24, 34, 46, 61, 79, 101, 128, 161, 201, 250]
    >>> band_edges(1000, 64, 5).tolist()
    [2, 8, 14, 20, 26, 32]
    """
    if bands > length // 2 - 2:
        raise OptionError(
            f"spectrum: {bands} bands of a segment of {length} samples are too many; give fewer"
        )
    if rate >= SOUND_HZ:
        top = _HIGHEST * rate / 2
        mel = np.linspace(np.log1p(_LOWEST_HZ / 700), np.log1p(top / 700), bands + 1)
        edges = np.rint(700 * np.expm1(mel) * length / rate).astype(np.int64)
    else:
        edges = np.rint(np.linspace(2, length // 2, bands + 1)).astype(np.int64)
    steps = np.arange(bands + 1)
    up = np.maximum.accumulate(np.maximum(edges, 2) - steps) + steps
    return np.minimum(up, length // 2 - steps[::-1])


def spectrum_for(
    wanted_form: str, rate: float, samples: int, hop: int, bands: int = BANDS, every: int = 1
) -> Spectrum:
    """Return the spectrum of windows of so many samples, one every `hop` in a stream (or 0).

    `asked` is "on", "auto", or "LENGTH/HOP/BANDS" of the frames, the rate in samples a second;
    `bands` are those of the first two. Windows begin with one of `every` so many frames.
    Frames that would not fall on those of the windows of a stream, or too few, are a
    TinykernelError.
    """
    numbers = _ASKED.fullmatch(wanted_form)
    if numbers:
        length, step, bands = map(int, numbers.groups())
        if length not in SEGMENTS:
            lengths = ", ".join(map(str, SEGMENTS[:-1])) + f" or {SEGMENTS[-1]}"
            raise OptionError(f"spectrum: segments have {lengths} samples, not {length}")
        if not 1 <= step <= length or not 1 <= bands <= 64:
            raise OptionError(
                f"spectrum: segments of {length} have a hop of 1 to {length} and 1 to 64 bands"
            )
        if hop and hop % (every * step):
            raise OptionError(
                f"spectrum: the hop of windows, {hop} samples, is no multiple of that of segments, "
                f"{step}{f', times {every}' * (every > 1)}"
            )
    elif hop % every:
        raise OptionError(f"spectrum: a hop of {hop} samples is no multiple of {every}")
    else:
        length, step = _frames_for(rate, samples, hop // every)
    edges = band_edges(rate, length, bands).astype(np.uint16)
    stage = Spectrum(length, step, edges, _LOG_BITS, _FLOOR)
    if samples < length or stage.frames(samples) < FEWEST_SEGMENTS:
        raise OptionError(
            f"spectrum: a window of {samples} samples has too few segments of {length}; give a "
            "longer window, or shorter segments, as {spectrum}",
            spectrum="LENGTH/HOP/BANDS",
        )
    return stage


def spectrum_within(length: int, samples: int, hop: int, bands: int) -> Spectrum | None:
    """Return a spectrum with enough segments of this length; None where windows are too short.

    Its bands are alike. The segments of a stream, with a `hop` of windows, are those of windows.
    """
    apart = (samples - length) // (FEWEST_SEGMENTS - 1)
    steps = segment_hops(length, hop) if hop else [min(length * 5 // 8, apart)]
    step = next((step for step in steps if length // 4 <= step <= apart), None)
    if step is None:
        return None
    edges = band_edges(0, length, bands).astype(np.uint16)
    return Spectrum(length, step, edges, _LOG_BITS, 0)


def spectrum_of(
    options: TrainerOptions,
    shape: tuple[int, ...],
    raw_dtype: str,
    bands: int = BANDS,
    every: int = 1,
) -> tuple[Spectrum | None, str]:
    """Return the spectrum of windows; where "auto" finds none for sound, a line that says why.

    `bands` are those of a spectrum whose bands the options do not say; `every` as above.
    """
    if not options.has_spectrum(shape, raw_dtype):
        return None, ""
    assert options.rate is not None
    if options.spectrum == "auto" and (options.augment or {}).get("rotate"):
        return None, "no spectrum: augment rotate goes with none; leave it out to have one"
    try:
        stage = spectrum_for(options.spectrum, options.rate, shape[0], options.hop, bands, every)
    except TinykernelError as error:
        if options.spectrum != "auto":
            raise
        return None, f"no {error}"
    return stage, ""


def _frames_for(rate: float, samples: int, hop: int) -> tuple[int, int]:
    """Return the length and the hop of frames: about 32 ms, shorter where these are too few."""
    shorter = segment_lengths(rate, samples)
    frames = segments_within(shorter, samples, hop)
    if frames is not None:
        return frames
    if any(segment_hops(length, hop) for length in shorter):
        return shorter[-1], segment_hops(shorter[-1], 0)[0]  # refused, for too few frames
    near = sorted(range(1, samples + 1), key=lambda n: (abs(n - hop), -n))
    other = next((n for n in near if segments_within(shorter, samples, n)), SEGMENTS[0])
    raise OptionError(
        f"spectrum: a hop of {hop} samples has no divisor of {SEGMENTS[0] // 4} to {shorter[0]}, "
        f"for the hop of segments; give a hop of {other}"
    )
