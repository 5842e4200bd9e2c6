"""Noise of one's own making, mixed into the spectra of sounds.

Levels are logarithms of power, four an octave, so that noise at a distance from a sound is a sum:
its phase, which no level has, is left out. All is done in whole numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.elementary import logs
from tinykernel.pieces.spectrum.spec import Spectrum

#: What a level adds to one that is so much apart: 4 log2(1 + 2**(-d / 4)), rounded.
ADDED = np.array([4, 4, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0], dtype=np.int64)
_LOUDEST = 220
#: Power by level, in whole numbers, up to where sums of 64 bands stay exact.
POWERS = np.array([int(2 ** (level % 4 / 4) * 2 ** (level // 4)) for level in range(_LOUDEST)])
#: Share of the sounds with noise, and how far it is below them: 0 to 40 dB. The softest is like
#: the floor of another room.
_NOISY, _BELOW = 0.85, 54
# From white to brown: the power falls with the frequency by up to its square.
_STEEPEST = 2.0
# Random spectra: levels by which a band differs from that before; blows: how many frames have one,
# levels above the noise, and by how many these fall from frame to frame.
_BY_BAND, _BLOWS, _BLOW, _FALL = 5, 0.03, (8, 32), 4
_VOICES = 5  # of babble, at most.
# Share of the words that stand between voices, and levels that these are softer at most: 12 dB.
_BETWEEN, _MOST_BELOW = 0.5, 16


def mixed_levels(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the levels of two sounds at once."""
    return np.asarray(np.maximum(a, b) + ADDED[np.minimum(np.abs(a - b), len(ADDED) - 1)])


def loudness(planes: NDArray[np.int64], tenths: int) -> NDArray[np.int64]:
    """Return the level of all bands together, (n, 1, 1), that so many tenths of frames are below.

    >>> loudness(np.full((1, 10, 16), 40), 9).tolist()
    [[[56]]]
    """
    powers = POWERS[np.clip(planes, 0, _LOUDEST - 1)].sum(axis=2)
    totals = np.sort(powers, axis=1)[:, planes.shape[1] * tenths // 10]
    return np.asarray(np.searchsorted(POWERS, totals, side="right") - 1).reshape(-1, 1, 1)


@dataclass(frozen=True, eq=False)
class Noises:
    """What is mixed into sounds."""

    widths: NDArray[np.int64]  # of each band, in levels of white noise.
    falls: NDArray[np.int64]  # levels that brown noise is below white one.
    unsteady: NDArray[np.int64]  # most levels that a value of noise is off.
    voices: Sequence[NDArray[np.uint8]]  # spectra (frames, bands) of which babble is made.
    own: Sequence[NDArray[np.uint8]] = ()  # of the user's noise, which one half of the sounds get.

    @staticmethod
    def of(
        spectrum: Spectrum,
        voices: Sequence[NDArray[np.uint8]],
        own: Sequence[NDArray[np.uint8]] = (),
    ) -> "Noises":
        """Return noise of the bands of a spectrum."""
        edges = spectrum.edges.astype(np.float64)
        bins, middle = np.diff(edges), (edges[1:] + edges[:-1]) / 2
        octave = 4 / float(logs(np.array([2.0]))[0])
        falls = np.rint(_STEEPEST * octave * logs(middle / middle[0]))
        unsteady = np.maximum(1, np.rint(10 / np.sqrt(bins)))
        widths, falls, unsteady = (
            part.astype(np.int64) for part in (np.rint(octave * logs(bins)), falls, unsteady)
        )
        return Noises(widths, falls, unsteady, voices, own)

    def mix(self, planes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Mix noise into most of the spectra (n, frames, bands)."""
        n, frames, _ = planes.shape
        noise = self._coloured(n, frames, rng)
        kind = rng.integers(0, 3 + 3 * bool(self.own), n)
        heard = [(0, self.voices, _VOICES)] * bool(self.voices) + [(3, self.own, 1)] * bool(
            self.own
        )
        for first, sounds, most in heard:
            for row in np.flatnonzero((kind == first) | (kind > max(first, 2))):
                noise[row] = self._heard(sounds, most, frames, rng)
        apart = loudness(planes, 9) - loudness(noise, 7) - rng.integers(0, _BELOW + 1, (n, 1, 1))
        chosen = rng.random((n, 1, 1)) < _NOISY
        return np.where(chosen, mixed_levels(planes, noise + apart), planes)

    def between_voices(
        self, planes: NDArray[np.int64], words: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Put voices before and after half of the words (n, frames, bands), not where these are.

        Where only recordings of a word have pauses, the end of a lonely utterance is the word.
        `words` (n, frames) marks them. The loud frames of voices are as loud as those of the word,
        or up to 12 dB softer.
        """
        if not self.voices:
            return planes
        between = planes.copy()
        for row in np.flatnonzero(rng.random(len(planes)) < _BETWEEN):
            voice, word = self._heard(self.voices, 1, planes.shape[1], rng), words[row]
            level = loudness(planes[row, word][None], 9) - loudness(voice[None], 9)
            voice += level[0] - rng.integers(0, _MOST_BELOW + 1)
            between[row, ~word] = np.maximum(voice[~word], 0)
        return between

    def _coloured(self, n: int, frames: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return steady noise of random colours, one half of which has blows in it."""
        bands = self.widths.size
        colour = (rng.integers(0, 257, (n, 1)) * self.falls) >> 8
        walk = rng.integers(-_BY_BAND, _BY_BAND + 1, (n, bands)).cumsum(axis=1)
        walk *= rng.integers(0, 2, (n, 1))
        noise = (100 + self.widths - colour + walk)[:, None]
        noise = noise + rng.integers(-self.unsteady, self.unsteady + 1, (n, frames, bands))
        blows = rng.integers(*_BLOW, (n, frames)) * (rng.random((n, frames)) < _BLOWS)
        blows *= rng.integers(0, 2, (n, 1))
        for _ in range(_BLOW[1] // _FALL):
            blows[:, 1:] = np.maximum(blows[:, 1:], blows[:, :-1] - _FALL)
        return np.asarray(noise + blows[:, :, None])

    @staticmethod
    def _heard(
        sounds: Sequence[NDArray[np.uint8]], most: int, frames: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return some of the sounds at once, each from a random place on, again and again."""
        total: NDArray[np.int64] | None = None
        for number in rng.integers(0, len(sounds), rng.integers(1, most + 1)):
            sound = sounds[number]
            place = (rng.integers(0, len(sound)) + np.arange(frames)) % len(sound)
            one = sound[place].astype(np.int64) - loudness(sound[None].astype(np.int64), 9)[0] + 100
            total = one if total is None else mixed_levels(total, one)
        assert total is not None
        return total
