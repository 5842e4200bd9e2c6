"""Training on whole clips: a label is somewhere in a clip, and nowhere in one of background.

Multiple-instance learning (Dietterich, Lathrop & Lozano-Perez 1997): of a clip of a word the
position counts where the model hears it best, of a clip of background those where it would most
easily be taken for a word. The convolutions of a stream go over the whole clip, so that training
sees what a stream computes.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base import progress
from tinykernel.base.elementary import logs
from tinykernel.base.errors import OptionError
from tinykernel.base.text import count, join
from tinykernel.learn.augment import Augmentation
from tinykernel.learn.convolutions.chains import ImageLearner
from tinykernel.learn.convolutions.separable import SeparablePlan
from tinykernel.learn.convolutions.training import ImageSettings
from tinykernel.learn.linear.training import TrainingRows
from tinykernel.learn.loss import targets_of
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.signals.noises import POWERS, Noises
from tinykernel.learn.signals.planes import (
    EVERY,
    PlaneLearner,
    PreparedPlanes,
    masked,
    moved,
    plane_plan,
    spectrum_of_planes,
)
from tinykernel.learn.trainset import TrainSet
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.spectrum.spec import Spectrum

#: Positions of a clip of background that count.
PEAKS = 4
# Levels that a clip is softer or louder by: -12 to 6 dB. Parts of a window and of the bands that
# are masked at most.
_SOFTER, _LOUDER, _MASKED, _MASKED_BANDS = -16, 8, 8, 6
# A word is in no window with less than this part of the power of another one: 12 dB. From 9 dB on
# `judge.events` warns of it.
_SOFTEST = 16
_BESIDE = 3  # frames beside the loud ones that are the word's, too.
_CLICK = 5  # frames that are left out, at most, where the loudest ones are looked for.
_MEASURED = 256  # clips by which sums are normalised, with noise
# When background is listened to, as shares of the epochs; peaks that join each time, as a part of
# the clips; the weight that they have in the end; most clips of background for one of a word.
_ROUNDS, _MINED, _HEAVIEST, _MOST_OTHERS = (1 / 3, 2 / 3), 8, 20.0, 10


@dataclass(frozen=True, eq=False)
class Clips:
    """Whole recordings of one channel, each with its label, and those of noise."""

    samples: Sequence[NDArray[Any]]
    labels: Sequence[Any]
    words: frozenset[str]  # labels that are somewhere in their recordings; the others are not.
    noise: Sequence[NDArray[Any]] | None = ()  # beside what is made; None mixes none in.

    def in_order(self) -> list[tuple[NDArray[Any], Any]]:
        """Return them in an order that depends on the recordings alone, equal ones once."""
        pairs = zip(self.samples, self.labels, strict=True)
        keyed = {(_digest(each), str(label)): (each, label) for each, label in pairs}
        return [keyed[key] for key in sorted(keyed)]

    def noises(self) -> list[NDArray[Any]]:
        """Return the noise, in an order of its own."""
        keyed = {_digest(each): each for each in self.noise or ()}
        return [keyed[key] for key in sorted(keyed)]


def _digest(samples: NDArray[Any]) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(samples).tobytes(), digest_size=16).digest()


@dataclass(frozen=True, eq=False)
class ClipRows:
    """Spectra of whole clips, as rows to learn."""

    rows: TrainingRows  # inputs (n, 1, frames, bands), the last frame repeated where one is shorter
    counts: NDArray[np.int64]  # (n,): windows of each.
    word_frames: NDArray[np.bool_]  # (n, frames): from the first loud one to the last.
    soft: NDArray[np.bool_]  # (n, windows): far softer than another one, or beside the word.
    words: NDArray[np.bool_]  # of each class: whether it is no background.
    window: int  # frames of a window.
    codes: NDArray[np.int64]
    joined: NDArray[np.uint8]  # (frames, bands): all background, one after the other.
    joined_codes: NDArray[np.int64]  # of each of these frames.
    names: tuple[str, ...]  # of the classes

    @property
    def rows_mined(self) -> int:
        """Peaks of background that join the training in each round."""
        codes = self.codes[: len(self.rows.inputs)]
        n_words = int(self.words[codes].sum())
        most = _MOST_OTHERS * n_words - (len(codes) - n_words)
        return max(0, min(len(codes) // _MINED, most // len(_ROUNDS)))


class ClipLearner(PlaneLearner):
    """Separable convolutions of a stream on whole clips."""

    def __init__(
        self,
        clips: ClipRows,
        plan: SeparablePlan,
        augmentation: Augmentation,
        noises: Noises | None,
    ) -> None:
        self.clips, self.noises = clips, noises
        assert plan.row_strides is not None
        self.step_rows, self.window_rows = 1, clips.window
        for stride in plan.row_strides:
            self.step_rows *= stride
            self.window_rows = (self.window_rows - 3) // stride + 1
        self.apart = max(1, clips.window // self.step_rows // 2)
        self._mined = list[tuple[slice, float]]()  # rows, and the share of the epochs before
        self._taken = np.zeros(len(clips.words), np.int64)  # peaks, by what they were taken for
        super().__init__(clips.rows, plan, augmentation)

    def draw(self) -> None:
        """Draw all that is learned."""
        super().draw()
        self._measured = np.sort(self.rng.permutation(len(self.inputs))[:_MEASURED])
        rng = np.random.default_rng([self.recipe.seed, 8])
        self._heard = self._varied(self._measured, rng)
        self._folded = None

    def epoch(self, number: int) -> float:
        """Learn all clips once, from a third and two thirds of the epochs on false peaks, too."""
        share, done = number / self.schedule.total, len(self._mined)
        if done < len(_ROUNDS) and share >= _ROUNDS[done]:
            first = len(self.inputs)
            self._mine()
            self._mined.append((slice(first, len(self.inputs)), share))
        for rows, began in self._mined:
            self.weight[rows] = 1 + (_HEAVIEST - 1) * (share - began) / (1 - began)
        loss: float = super().epoch(number)
        return loss

    def _mine(self) -> None:
        """Listen to all background, and let its highest peaks, half a window apart, join."""
        clips, length, window = self.clips, self.inputs.shape[2], self.clips.window
        step = ((length - window) // self.step_rows + 1) * self.step_rows
        firsts = np.arange(0, len(clips.joined) - window + 1, step)
        frames = np.minimum(firsts[:, None] + np.arange(length), len(clips.joined) - 1)
        features = self.features(clips.joined[frames][:, None], self.window_means)
        heard = self._of_classes(self.decide(features.reshape(-1, features.shape[2])))
        margin = self._over_background(heard)
        margin[(len(clips.joined) - window) // self.step_rows + 1 :] = -np.inf
        words, starts = np.flatnonzero(clips.words), list[int]()
        for _ in range(clips.rows_mined):
            place = int(margin.argmax())
            if margin[place] == -np.inf:
                break
            self._taken[words[heard[place, words].argmax()]] += margin[place] > 0
            starts.append(place * self.step_rows)
            margin[max(0, place - self.apart) : place + self.apart + 1] = -np.inf
        self._join(np.array(starts, np.int64))
        pairs = zip(clips.names, self._taken.tolist(), strict=True)
        taken = join([f"{n} for {name}" for name, n in pairs if n]) or "none for a word"
        n = len(self.inputs) - len(clips.rows.inputs)
        self.remarks = (
            f"{count(n, 'peak')} of the background, where it is most like a word, joined the "
            f"training; until then it took {taken}",
        )

    def _join(self, starts: NDArray[np.int64]) -> None:
        """Let parts of the background join, with the windows that begin there in the middle."""
        clips, length, n = self.clips, self.inputs.shape[2], len(starts)
        first = np.clip(starts - (length - clips.window) // 2, 0, len(clips.joined) - length)
        frames = first[:, None] + np.arange(length)
        codes = clips.joined_codes[starts + clips.window // 2]
        counts = np.full(n, (length - clips.window) // self.step_rows + 1)
        self.inputs = np.concatenate([self.inputs, clips.joined[frames][:, None]])
        self.targets = np.concatenate([self.targets, targets_of(codes, len(clips.words))])
        self.weight = np.concatenate([self.weight, np.ones(n, np.float32)])
        self.clips = replace(
            clips,
            counts=np.concatenate([clips.counts, counts]),
            codes=np.concatenate([clips.codes, codes]),
        )

    def stored(self) -> tuple[NDArray[np.int8], float, NDArray[np.float64]]:
        """Return the linear part, with words as likely as background, whatever its peaks weigh.

        The odds are divided by those of training (Saerens et al., Neural Computation 14, 2002).
        """
        levels, worth, offset = super().stored()
        is_word = self.clips.words[self.clips.codes]
        words, rest = (self.weight[part].sum(dtype=np.float64) for part in (is_word, ~is_word))
        lift = self.clips.words * logs(np.array([rest / words]))
        return levels, worth, offset + (lift if self.n_outputs > 1 else lift[1] - lift[0])

    def measured_maps(self) -> NDArray[np.float32]:
        """Return maps of some clips as they are varied in training."""
        if not hasattr(self, "_heard"):
            return super().measured_maps()
        return self._maps(self._heard[:, None], np.arange(len(self._heard)))

    def varied_maps(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return varied spectra of a batch as maps."""
        return self._maps(self._varied(rows, self.rng)[:, None], np.arange(rows.size))

    def _varied(self, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.uint8]:
        planes = self.inputs[rows, 0].astype(np.int64)
        if self.noises is not None:
            words = np.flatnonzero(self.clips.words[self.clips.codes[rows]])
            where = self.clips.word_frames[rows[words]]
            planes[words] = self.noises.between_voices(planes[words], where, rng)
        n, frames, bands = planes.shape
        strength = self.augmentation.affine
        places = moved(rng, n, frames, 1), moved(rng, n, bands, round(strength * bands / 20))
        planes = planes[np.arange(n)[:, None, None], places[0][:, :, None], places[1][:, None, :]]
        if self.noises is not None:
            planes = self.noises.mix(planes, rng)
            planes = planes + rng.integers(_SOFTER, _LOUDER + 1, (n, 1, 1))
        if strength > 0:
            mean = planes.reshape(n, -1).sum(axis=1).reshape(n, 1, 1) // (frames * bands)
            most = self.clips.window // _MASKED, bands // _MASKED_BANDS
            frame, band = (round(strength * each) for each in most)
            gone = masked(rng, n, frames, frame)[:, :, None] | masked(rng, n, bands, band)[:, None]
            planes = np.where(gone, mean, planes)
        return np.asarray(np.clip(planes, 0, 255), dtype=np.uint8)

    def map_gradients(
        self, rows: NDArray[np.int64], maps: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Learn from the windows that count, and return the gradients of the last maps."""
        n, n_rows, n_columns, channels = maps.shape
        features = self.window_means(maps)
        decided = self.decide(features.reshape(-1, channels)).reshape(n, -1, self.n_outputs)
        places, targets = self.chosen(rows, decided)
        features = features[np.arange(n)[:, None], places].reshape(-1, channels)
        batch = self.batch(np.repeat(rows, PEAKS))._replace(
            rows=np.arange(n * PEAKS),
            target=targets,
            weight=np.repeat(self.weight[rows] / np.float32(PEAKS), PEAKS),
        )
        d_features = self.learn_means(batch, features).reshape(n, PEAKS, channels)
        d_features /= np.float32(self.window_rows * n_columns)
        d_rows = np.zeros((n, n_rows, channels), dtype=np.float32)
        for row, of_row in enumerate(places.tolist()):
            for peak, place in enumerate(of_row):
                d_rows[row, place : place + self.window_rows] += d_features[row, peak]
        d = np.empty_like(maps)
        d[...] = d_rows[:, :, None, :]
        return d

    def _of_classes(self, decided: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return one value of each class, also of two that have one output."""
        return decided if self.n_outputs > 1 else np.concatenate([0 * decided, decided], axis=1)

    def _over_background(self, heard: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return by how much a word is heard more than background, (windows,)."""
        words = self.clips.words
        return np.asarray(heard[:, words].max(axis=1) - heard[:, ~words].max(axis=1))

    def window_means(self, maps: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what the linear part sees of each window of clips, (n, windows, channels)."""
        size = self.window_rows
        sums = maps.sum(axis=2, dtype=np.float64).astype(np.int64)
        sums = np.pad(sums, ((0, 0), (1, 0), (0, 0))).cumsum(axis=1)
        sums = sums[:, size:] - sums[:, :-size]
        means = sums * (65536 // (size * maps.shape[2])) >> 16
        return np.asarray(means, dtype=np.float32)

    def chosen(
        self, rows: NDArray[np.int64], decided: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the windows of each clip that count, (n, PEAKS), and their targets."""
        words, codes = self.clips.words, self.clips.codes[rows]
        n, n_windows, _ = decided.shape
        beyond = np.arange(n_windows) >= self.clips.counts[rows][:, None]
        places = np.empty((n, PEAKS), dtype=np.int64)
        for row, code in enumerate(codes.tolist()):
            heard = self._of_classes(decided[row])
            if words[code]:
                margin = heard[:, code] - np.delete(heard, code, axis=1).max(axis=1)
                beyond[row] |= self.clips.soft[rows[row]]
            else:
                margin = self._over_background(heard)
            margin = np.where(beyond[row], -np.inf, margin)
            for peak in range(PEAKS):
                place = int(margin.argmax())
                places[row, peak] = place if margin[place] > -np.inf else places[row, 0]
                if not words[code]:
                    margin[max(0, place - self.apart) : place + self.apart + 1] = -np.inf
        return places, np.repeat(self.targets[rows], PEAKS, axis=0)


# Epochs for 60,000 clips, and for how many few clips stand, by more epochs; clips of a batch; how
# often each clip of a word is in an epoch, always in other noise; windows of a part of a longer
# recording of background.
_EPOCHS, _ENOUGH, _BATCH, _TIMES, _PART = 7, 50_000, 32, 2, 3


@dataclass(frozen=True, eq=False)
class PreparedClips(PreparedPlanes):
    """Spectra of whole clips, of which windows are learned."""

    clips: ClipRows
    noises: Noises | None
    LEARNERS: ClassVar[dict[bool, type[ImageLearner]]] = {True: ClipLearner}

    @staticmethod
    def of_clips(
        data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], clips: Clips
    ) -> "PreparedClips":
        """Compute the spectra of clips, for windows of (samples, channels)."""
        grid = Grid.raw(data.raw_dtype, shape[0], 1, shape[1])
        spectrum, _ = spectrum_of_planes(options, shape, data.raw_dtype)
        assert spectrum is not None
        window = spectrum.gives(grid).rows
        codes = {str(label): code for code, label in enumerate(data.classes)}
        words = np.array([str(label) in clips.words for label in data.classes])
        with progress.briefly("spectra"):
            heard = [
                (_levels(spectrum, samples, shape[0]), codes[str(label)])
                for samples, label in clips.in_order()
            ]
            noise = [_levels(spectrum, samples, shape[0]) for samples in clips.noises()]
        longest = max([len(levels) for levels, code in heard if words[code]], default=0)
        length = max(longest, _PART * window)
        parts = [
            (part, code)
            for each, code in heard
            for part in _parts(each, length, window) * (_TIMES if words[code] else 1)
        ]
        of_part = np.array([code for _, code in parts])
        counts = np.array([(len(part) - window) // EVERY + 1 for part, _ in parts])
        planes = np.stack([np.pad(p, ((0, length - len(p)), (0, 0)), "edge") for p, _ in parts])
        weight = _even(of_part, words)
        rows = TrainingRows(planes[:, None], targets_of(of_part, len(words)), weight)
        voices = [part for part, code in parts if not words[code]]
        noises = None if clips.noise is None else Noises.of(spectrum, voices, noise)
        still = [(levels, code) for levels, code in heard if not words[code]]
        joined = np.concatenate([levels for levels, _ in still])
        of_frames = np.concatenate([np.full(len(levels), code) for levels, code in still])
        lacking = max(0, length - len(joined))
        joined = np.pad(joined, ((0, lacking), (0, 0)), "edge")
        of_frames = np.pad(of_frames, (0, lacking), "edge")
        names = tuple(map(str, data.classes))
        most = (length - window) // EVERY + 1
        in_parts = [_word_frames(part) for part, _ in parts]
        word_frames = np.stack([np.pad(each, (0, length - len(each))) for each in in_parts])
        by_part = [
            _soft(part, window) | ~_touch(frames, window)
            for (part, _), frames in zip(parts, in_parts, strict=True)
        ]
        soft = np.stack([np.pad(each, (0, most - len(each))) for each in by_part])
        of_clips = ClipRows(
            rows, counts, word_frames, soft, words, window, of_part, joined, of_frames, names
        )
        return PreparedClips(data, rows, options, grid, spectrum, of_clips, noises)

    def learner(self, settings: ImageSettings, rows: TrainingRows | None = None) -> ClipLearner:
        """Begin with convolutions."""
        plan = self.plan(settings, len(self.rows.inputs))
        return ClipLearner(self.clips, plan, self.augmentation(settings), self.noises)

    def plan(self, settings: ImageSettings, n_rows: int) -> SeparablePlan:
        """Return the layers and how they are trained; labels that are found are not smoothed."""
        n_rows += len(_ROUNDS) * self.clips.rows_mined
        size = settings.n_channels, n_rows, settings.bits
        plan = plane_plan(self.options, *size, (), _EPOCHS)
        epochs = self.options.epochs or max(plan.linear.epochs, _ENOUGH // n_rows)
        linear = replace(plan.linear, batch_rows=_BATCH, epochs=epochs)
        return replace(plan, smoothing=0.0, linear=linear)


def check_options(options: TrainerOptions) -> None:
    """Refuse options that have no effect on whole clips."""
    for name in ("teachers", "validation_fraction", "class_weight"):
        if getattr(options, name):
            raise OptionError(f"{name}: not for whole clips; leave it out, or give clips=windows")


def _levels(spectrum: Spectrum, samples: NDArray[Any], window: int) -> NDArray[np.uint8]:
    """Return the levels (frames, bands) of a recording; the last ones are repeated up to a window.

    A recording that is shorter than a segment is padded with zeros.
    """
    padded = np.pad(samples, ((0, max(0, spectrum.length - len(samples))), (0, 0)))
    grid = Grid.raw(str(samples.dtype), len(padded), 1, samples.shape[1])
    levels = spectrum.run(padded.reshape(1, -1), grid).reshape(-1, spectrum.n_bands)
    lacking = max(0, spectrum.frames(window) - len(levels))
    return np.pad(levels.astype(np.uint8), ((0, lacking), (0, 0)), "edge")


def _parts(levels: NDArray[np.uint8], length: int, window: int) -> list[NDArray[np.uint8]]:
    """Cut a recording into parts that have each window once, as far as they are of one length."""
    last, step = max(0, len(levels) - length), length - window + 1
    firsts = [*range(0, last, step), last]
    return [levels[first : first + length] for first in firsts]


def _soft(levels: NDArray[np.uint8], window: int) -> NDArray[np.bool_]:
    """Mark the windows of a recording that have less than a part of the power of the loudest one.

    A pause that is in all recordings of a word, and in none of background, was taken for the word.
    """
    power = np.append(0, POWERS[np.minimum(levels, len(POWERS) - 1)].sum(axis=1).cumsum())
    power = (power[window:] - power[:-window])[::EVERY]
    return np.asarray(power * _SOFTEST < power.max())


def _word_frames(levels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Mark the frames from the first loud one to the last, and three beside them.

    Loud is what is nearer to the loudest frames than to the softest ones.

    >>> levels = np.full((40, 16), 8, dtype=np.uint8)
    >>> levels[10:20] = 80
    >>> np.flatnonzero(_word_frames(levels))[[0, -1]].tolist()
    [7, 22]
    """
    power = POWERS[np.minimum(levels, len(POWERS) - 1)].sum(axis=1)
    level = np.searchsorted(POWERS, power)
    # A word is no longer in a longer recording: a few frames are the loudest ones of any.
    above = min(len(level) // 20, _CLICK)
    softest, loudest = np.sort(level)[[len(level) // 10, -1 - above]]
    loud = np.flatnonzero(2 * level >= softest + loudest)
    place = np.arange(len(level))
    return np.asarray((place >= loud[0] - _BESIDE) & (place <= loud[-1] + _BESIDE))


def _touch(frames: NDArray[np.bool_], window: int) -> NDArray[np.bool_]:
    """Mark the windows of a recording that have some of these frames."""
    n = np.append(0, frames.cumsum())
    return np.asarray((n[window:] > n[:-window])[::EVERY])


def _even(codes: NDArray[np.int64], words: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return weights of the mean 1: each word has the same, all of them as much as background."""
    counts, n_words = np.bincount(codes, minlength=words.size), int(words.sum())
    even = np.where(words, counts[~words].sum() / (n_words * np.maximum(counts, 1)), 1.0)[codes]
    return np.asarray(even / even.mean(), dtype=np.float32)
