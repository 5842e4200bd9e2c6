"""Separable convolutions on spectra: how these are varied, and which layers suit them.

Levels are logarithms, so that a factor of loudness is a sum, and noise in a band counts where it is
louder. All is done in whole numbers, the same on every processor.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.grid import Grid
from tinykernel.model.stage import Stage
from tinykernel.model.stages.spectrum import Spectrum
from tinykernel.training.augment import Augmentation
from tinykernel.training.images.separable import SeparableLearner, SeparablePlan
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.linear_training import linear_recipe

# Epochs for 60,000 windows.
_EPOCHS = 10
# Of each block the channels as shares of the last one's, and the strides of segments and of bands.
_BLOCKS = ((5, 2, 2), (8, 1, 1), (11, 1, 1), (16, 2, 2), (16, 1, 1))
# Those of a stream, which can decide at every other segment.
_OF_STREAMS = ((5, 2, 2), (8, 1, 2), (11, 1, 1), (16, 1, 2), (16, 1, 1))
EVERY = 2
_PARTS = 16
_MOST_FRAMES = 192
# How much spectra are varied at strength 1: a share of the frames and of the bands that they are
# moved by, levels of loudness, frames that are masked in all, and the parts of bands.
_MOVED, _LOUDER, _MASKED, _MASKED_BANDS = 0.1, 14, 8, 6
# Noise, in one half of the copies: levels below the loud ones, by band and by value.
_BELOW, _BY_BAND, _BY_VALUE = (10, 40), 6, 4
# What a level of noise adds to a level that is so much apart: 4 log2(1 + 2**(-d / 4)), rounded.
_ADDED = np.array([4, 4, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0], dtype=np.int64)

# Augmentations of samples, which only kernels have.
_OF_SAMPLES = ("scale", "noise", "rotate")


def variation_of(options: TrainerOptions, first: Spectrum, frames: int) -> Augmentation:
    """Return what the options say, in frames; without any, a tenth of a window and strength 1."""
    if options.augment is None:
        return Augmentation(affine=1.0, shift=round(frames * _MOVED))
    amounts = Augmentation.of(options.augment)
    return Augmentation(amounts.affine, round(amounts.shift / first.hop))


def varied(
    planes: NDArray[np.uint8], augmentation: Augmentation, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return copies of spectra (n, frames, bands), varied by `affine` and `shift`."""
    n, frames, bands = planes.shape
    strength, values = augmentation.affine, planes.astype(np.int64)
    across = round(strength * bands / 20)
    places = _moved(rng, n, frames, augmentation.shift), _moved(rng, n, bands, across)
    values = values[np.arange(n)[:, None, None], places[0][:, :, None], places[1][:, None, :]]
    if strength > 0:
        louder = round(strength * _LOUDER)
        values += rng.integers(-louder, louder + 1, (n, 1, 1))
        values = _noisy(values, rng)
        mean = values.reshape(n, -1).sum(axis=1).reshape(n, 1, 1) // (frames * bands)
        hidden = _hidden(rng, n, frames, round(strength * frames / _MASKED))[:, :, None]
        hidden = hidden | _hidden(rng, n, bands, round(strength * bands / _MASKED_BANDS))[:, None]
        values = np.where(hidden, mean, values)
    return np.clip(values, 0, 255).astype(np.uint8)


def _moved(rng: np.random.Generator, n: int, size: int, most: int) -> NDArray[np.int64]:
    """Return from which place each one comes; the first and the last are repeated."""
    away = rng.integers(-most, most + 1, (n, 1))
    place: NDArray[np.int64] = np.clip(np.arange(size) + away, 0, size - 1)
    return place


def _noisy(values: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Add noise to one half of the spectra."""
    n, frames, bands = values.shape
    loud = np.sort(values.reshape(n, -1), axis=1)[:, frames * bands * 9 // 10]
    noise = (loud - rng.integers(_BELOW[0], _BELOW[1] + 1, n)).reshape(n, 1, 1)
    noise = noise + rng.integers(-_BY_BAND, _BY_BAND + 1, (n, 1, bands))
    noise = noise + rng.integers(-_BY_VALUE, _BY_VALUE + 1, values.shape)
    apart = np.minimum(np.abs(values - noise), len(_ADDED) - 1)
    chosen = rng.integers(0, 2, (n, 1, 1)) == 1
    return np.where(chosen, np.maximum(values, noise) + _ADDED[apart], values)


def _hidden(rng: np.random.Generator, n: int, size: int, most: int) -> NDArray[np.bool_]:
    """Mark up to so many places in a row."""
    count = rng.integers(0, most + 1, (n, 1))
    begin = rng.integers(0, size - count + 1)
    place = np.arange(size)
    return (place >= begin) & (place < begin + count)


class PlaneLearner(SeparableLearner):
    """Separable convolutions on spectra, uint8 (n, 1, frames, bands)."""

    def varied_maps(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return varied spectra of a batch as maps."""
        planes = varied(self.inputs[rows, 0], self.augmentation, self.rng)
        return self._maps(planes[:, None], np.arange(rows.size))


def plane_plan(
    options: TrainerOptions, n: int, n_rows: int, bits: int, losses: tuple[float, ...] = ()
) -> SeparablePlan:
    """Return the plan of convolutions whose last block has n channels."""
    linear = linear_recipe(options, n_rows, bits, _EPOCHS, losses)
    streams = options.streaming == "on"
    parts, down, across = zip(*(_OF_STREAMS if streams else _BLOCKS), strict=True)
    channels = [max(4, 4 * round(part * n / _PARTS / 4)) for part in parts[:-1]]
    rows = down if streams else None
    return SeparablePlan((*channels, n), across, linear=linear, row_strides=rows)


def no_planes(grid: Grid, first: Stage | None, augment: Any) -> str:
    """Say why windows have no convolutions on their spectra; or nothing."""
    if not isinstance(first, Spectrum):
        return "convolutions of windows look at a spectrum, and these have none; give spectrum=on"
    frames = first.gives(grid).rows
    if grid.channels > 1 or frames > _MOST_FRAMES:
        return (
            f"windows of {grid.channels} channels and {frames} segments; they take one channel and "
            f"up to {_MOST_FRAMES} segments"
        )
    refused = [key for key, amount in (augment or {}).items() if amount and key in _OF_SAMPLES]
    return f"augment {refused[0]} is for kernels; give affine or shift" if refused else ""
