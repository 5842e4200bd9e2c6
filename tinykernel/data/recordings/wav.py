"""Read sound files as 16-bit samples, and resample them."""

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import DataError, FormatError, ToolError

_FULL = 1 << 15
# Floats above 1 are clipped; larger ones have another unit and are refused.
_LOUDEST = 4.0


def read_wav(path: Path) -> tuple[NDArray[np.int16], float]:
    """Return samples as int16 (samples, channels), rounded down, and the rate in Hz of a .wav."""
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wavfile.WavFileWarning)  # chunks of other programs
            warnings.filterwarnings("error", message=".*premature", category=UserWarning)
            rate, samples = wavfile.read(path)
    except OSError:
        raise
    except Exception as error:  # scipy raises any exception for damaged bytes
        reason = "cut short" if "premature" in str(error) else str(error) or "damaged"
        raise FormatError(f"{path}: is not a PCM or float WAV file ({reason})") from None
    if rate <= 0 or samples.ndim > 2:
        raise FormatError(f"{path}: is damaged or cut short")
    # Not reshape: a .wav may hold no samples.
    return as_int16(path, samples if samples.ndim == 2 else samples[:, None]), float(rate)


def read_coded(path: Path) -> tuple[NDArray[np.int16], float]:
    """Return samples and rate, as `read_wav`, of a .flac or .ogg, decoded by soundfile."""
    try:
        import soundfile
    except ImportError:
        raise ToolError(
            f"{path}: needs soundfile; install it (pip install soundfile) or save a .wav"
        ) from None
    except OSError as error:  # it may need a library of the system
        raise ToolError(f"{path}: soundfile does not work ({error}); save a .wav") from None
    try:
        samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
    except soundfile.SoundFileError as error:
        raise FormatError(f"{path}: is not a sound that soundfile can read ({error})") from None
    return samples, float(rate)


def resampled(samples: NDArray[np.int16], rate: float, wanted: float) -> NDArray[np.int16]:
    """Resample (n, channels) by ``scipy.signal.resample_poly``, rounded to whole numbers."""
    from scipy.signal import resample_poly

    ratio = Fraction(wanted).limit_denominator(1000) / Fraction(rate).limit_denominator(1000)
    made = resample_poly(samples.astype(np.float64), ratio.numerator, ratio.denominator)
    whole: NDArray[np.int16] = np.clip(np.rint(made), -_FULL, _FULL - 1).astype(np.int16)
    return whole


def as_int16(path: Path, samples: NDArray[Any]) -> NDArray[np.int16]:
    """Convert samples of any width to 16 bits."""
    if samples.dtype == np.uint8:
        return ((samples.astype(np.int16) - 128) << 8).astype(np.int16)
    if samples.dtype.kind == "i":
        return (samples >> (8 * samples.dtype.itemsize - 16)).astype(np.int16)
    loudest = float(np.abs(samples).max(initial=0))
    if not np.isfinite(loudest):
        raise DataError(f"{path}: holds NaN or infinite samples; correct it")
    if loudest > _LOUDEST:
        raise DataError(f"{path}: has floats up to {loudest:g}; scale it to -1 to 1")
    whole = np.floor(samples.astype(np.float64) * _FULL)
    return np.clip(whole, -_FULL, _FULL - 1).astype(np.int16)
