"""Training of separable convolutions on the spectra of signals, and what teaches them.

Levels are logarithms, so that a factor of loudness is a sum, and noise in a band counts where it is
louder. All is done in whole numbers, the same on every processor.

A training on few windows depends on its seed, and the mean of several ones is surer of what belongs
to no class. One model learns that mean (Hinton, Vinyals & Dean 2015, section 2, with temperature 1)
on many varied copies, half of which are mixed of two windows: function matching (Beyer et al., CVPR
2022, arXiv 2106.05237).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base import progress
from tinykernel.base.elementary import exps
from tinykernel.learn.augment import Augmentation
from tinykernel.learn.convolutions.chains import ImageLearner
from tinykernel.learn.convolutions.separable import SeparableLearner, SeparablePlan
from tinykernel.learn.convolutions.training import ImageSettings, PreparedConvolutions
from tinykernel.learn.linear.training import TrainingRows, linear_recipe, run_training, split_rows
from tinykernel.learn.loop import Replan, TrainingResult, run_epochs, seed_of
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.signals.noises import mixed_levels
from tinykernel.learn.signals.spectrum import BANDS_OF_PLANES, spectrum_of
from tinykernel.learn.trainset import TrainSet
from tinykernel.model.answers import softmax
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.plane.spec import Plane
from tinykernel.pieces.spectrum.spec import Spectrum

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
    places = moved(rng, n, frames, augmentation.shift), moved(rng, n, bands, across)
    values = values[np.arange(n)[:, None, None], places[0][:, :, None], places[1][:, None, :]]
    if strength > 0:
        louder = round(strength * _LOUDER)
        values += rng.integers(-louder, louder + 1, (n, 1, 1))
        values = _noisy(values, rng)
        mean = values.reshape(n, -1).sum(axis=1).reshape(n, 1, 1) // (frames * bands)
        hidden = masked(rng, n, frames, round(strength * frames / _MASKED))[:, :, None]
        hidden = hidden | masked(rng, n, bands, round(strength * bands / _MASKED_BANDS))[:, None]
        values = np.where(hidden, mean, values)
    return np.clip(values, 0, 255).astype(np.uint8)


def moved(rng: np.random.Generator, n: int, size: int, most: int) -> NDArray[np.int64]:
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
    chosen = rng.integers(0, 2, (n, 1, 1)) == 1
    return np.where(chosen, mixed_levels(values, noise), values)


def masked(rng: np.random.Generator, n: int, size: int, most: int) -> NDArray[np.bool_]:
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
    options: TrainerOptions,
    n: int,
    n_rows: int,
    bits: int,
    losses: tuple[float, ...] = (),
    epochs: int = _EPOCHS,
) -> SeparablePlan:
    """Return the plan of convolutions whose last block has n channels."""
    linear = linear_recipe(options, n_rows, bits, epochs, losses)
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


# Copies of each window, fewer of very many windows, which are kept in memory; and passes through
# them, unless each has one copy.
_COPIES, _MOST_WINDOWS, _FEWEST_PASSES = 16, 1 << 16, 8
#: Windows that are varied at once, which takes 48 times their bytes.
AT_ONCE = 4096
# How much longer the model learns than each teacher, in windows.
LONGER = 3.0
_WHOLE = 256  # of a window that is not mixed.


def distillation_rows(
    rows: TrainingRows,
    teachers: Sequence[PlaneLearner],
    augmentation: Augmentation,
    epochs: int,
    seed: int,
) -> TrainingRows:
    """Return varied copies of spectra, with the mean answers of teachers in place of labels."""
    rng, planes = np.random.default_rng([seed, 6]), rows.inputs[:, 0]
    copies = copies_for(epochs, len(planes))
    inputs = varied_copies(planes, augmentation, copies, rng)[:, np.newaxis]
    decisions = [teacher.decide(teacher.features(inputs)) for teacher in teachers]
    answers = _answers(np.mean(decisions, axis=0, dtype=np.float64), teachers[0].plan)
    weight = np.tile(rows.weight, copies)
    return replace(rows, inputs=inputs, targets=answers, weight=weight, groups=None)


def varied_copies(
    planes: NDArray[np.uint8], augmentation: Augmentation, n: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return n varied copies of all spectra, one after the other, each mixed with another."""
    parts = np.split(planes, range(AT_ONCE, len(planes), AT_ONCE)) * n
    return np.concatenate(
        [
            mixed(varied(part, augmentation, rng), varied(part, augmentation, rng), rng)
            for part in parts
        ]
    )


def copies_for(epochs: int, n_windows: int) -> int:
    """Return the copies of each window, so few that whole passes are about as long as epochs."""
    return max(1, min(_COPIES, _MOST_WINDOWS // n_windows, math.ceil(epochs / _FEWEST_PASSES)))


def taught_plan(plan: SeparablePlan, epochs: int, n_windows: int) -> SeparablePlan:
    """Return the plan of the model: labels are soft by themselves, and an epoch has all copies.

    >>> taught_plan(SeparablePlan((8,), (2,)), 90, 1000).linear.epochs
    8
    """
    passes = math.ceil(epochs / copies_for(epochs, n_windows))
    return replace(plan, linear=replace(plan.linear, epochs=passes), smoothing=0.0)


class Succession:
    """Trainings one after the other: where the time is short, all that is left gets shorter.

    >>> trainings = Succession([10, 10, 20], lambda done, total, seconds: total // 2)
    >>> trainings.begin(), trainings.replan(4, 10, 0.1), trainings.following
    (10, 6, [4, 8])
    """

    def __init__(self, epochs: Sequence[int], replan: Replan) -> None:
        self.following, self._replan = list(epochs), replan
        self.done, self._planned = 0, 0

    def begin(self) -> int:
        """Return the epochs of the next training."""
        self.done += self._planned
        self._planned = self.following.pop(0)
        return self._planned

    def replan(self, done: int, total: int, seconds: float) -> int:
        """Return the epochs of this training in all; see `Replan`."""
        left, done_of_all = total - done + sum(self.following), self.done + done
        fewer = self._replan(done_of_all, done_of_all + left, seconds) - done_of_all
        self.following = [max(1, epochs * fewer // left) for epochs in self.following]
        self._planned = done + max(1, (total - done) * fewer // left)
        return self._planned


def mixed(
    planes: NDArray[np.uint8], others: NDArray[np.uint8], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return spectra of which about half have up to a half of one of the others.

    Each is ``(w a + (256 - w) b + 128) >> 8``, w from 128 to 256.
    """
    n = len(planes)
    part = rng.integers(_WHOLE // 2, _WHOLE + 1, (n, 1, 1))
    part = np.where(rng.integers(0, 2, (n, 1, 1)) == 1, part, _WHOLE)
    whole = part * planes + (_WHOLE - part) * others[rng.permutation(n)].astype(np.int64)
    return ((whole + _WHOLE // 2) // _WHOLE).astype(np.uint8)


def _answers(decisions: NDArray[np.float64], plan: SeparablePlan) -> NDArray[np.float32]:
    """Return values as they are, and decisions of classes as probabilities."""
    if plan.linear.losses:
        answers = decisions
    elif decisions.shape[1] == 1:
        answers = 1 / (1 + exps(-decisions))
    else:
        answers = softmax(decisions)
    return answers.astype(np.float32)


def spectrum_of_planes(
    options: TrainerOptions, shape: tuple[int, ...], raw_dtype: str
) -> tuple[Spectrum | None, str]:
    """Return the spectrum of windows of (samples, channels), or why they have no convolutions."""
    every = EVERY if options.streaming == "on" else 1
    first, refused = spectrum_of(options, shape, raw_dtype, BANDS_OF_PLANES, every)
    grid = Grid.raw(raw_dtype, shape[0], 1, shape[1])
    if options.beside:
        refused = "numbers beside a window go with kernels only"
    return first, refused or no_planes(grid, first, options.augment)


@dataclass(frozen=True, eq=False)
class PreparedPlanes(PreparedConvolutions):
    """Spectra of windows as images."""

    spectrum: Spectrum
    LEARNERS: ClassVar[dict[bool, type[ImageLearner]]] = {True: PlaneLearner}

    @staticmethod
    def of(data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]) -> "PreparedPlanes":
        """Compute the spectra of windows of (samples, channels)."""
        grid = Grid.raw(data.raw_dtype, shape[0], 1, shape[1])
        spectrum, _ = spectrum_of_planes(options, shape, data.raw_dtype)
        assert spectrum is not None
        segments = spectrum.gives(grid)
        planes = -1, 1, segments.rows, segments.channels
        with progress.briefly("spectra"):
            rows = split_rows(data.map_rows(lambda raw: spectrum.run(raw, grid)), options)
            rows = rows.map_rows(lambda levels: levels.astype(np.uint8).reshape(planes))
        return PreparedPlanes(data, rows, options, grid, spectrum)

    def epochs(self, settings: ImageSettings) -> int:
        """Return the epochs, also those of teachers."""
        usual, n_teachers = super().epochs(settings), self.options.teachers
        return math.ceil(usual * (n_teachers + LONGER)) if n_teachers else usual

    def fit(
        self, settings: ImageSettings, share: float = 1.0, replan: Replan | None = None
    ) -> TrainingResult:
        """Learn convolutions, for a share of the epochs; with teachers, what these say."""
        n = self.options.teachers
        if not n:
            return super().fit(settings, share, replan)
        usual = math.ceil(super().epochs(settings) * share)
        planned = [*[usual] * n, math.ceil(usual * LONGER)]
        trainings = Succession(planned, replan or (lambda _, total, __: total))
        teachers, first = list[PlaneLearner](), None
        try:
            for number in range(1, n + 1):
                teacher = self._shorten(self._of_seed(number).learner(settings), share)
                assert isinstance(teacher, PlaneLearner)
                self.stages(teacher)  # as without teachers
                stage, epochs = f"teacher {number} of {n}", trainings.begin()
                history = run_epochs(teacher, epochs, stage=stage, replan=trainings.replan)
                teachers.append(teacher)
                if first is None:  # the first one has learned longest.
                    ended = replace(history, interrupted=True)
                    first = TrainingResult(self.model(teacher), teacher.plan, ended)
                if history.interrupted:
                    return first
            return self._taught(teachers, self.augmentation(settings), trainings)
        except KeyboardInterrupt:  # in a first epoch, or between trainings.
            if first is None:
                raise
            return first

    def _taught(
        self, teachers: list[PlaneLearner], augmentation: Augmentation, trainings: Succession
    ) -> TrainingResult:
        """Learn what the teachers say."""
        seed, epochs = seed_of(self.options), trainings.begin()
        with progress.briefly("what the teachers say"):
            rows = distillation_rows(self.rows, teachers, augmentation, epochs, seed)
        plan = taught_plan(teachers[0].plan, epochs, len(self.rows.inputs))
        plan = replace(plan, linear=replace(plan.linear, seed=seed))
        learner = PlaneLearner(rows, plan, Augmentation())
        history = run_training(learner, rows, trainings.replan)
        return TrainingResult(self.model(learner), learner.plan, history)

    def _of_seed(self, number: int) -> "PreparedPlanes":
        seed = seed_of(self.options) + number
        return replace(self, options=replace(self.options, random_state=seed))

    def plan(self, settings: ImageSettings, n_rows: int) -> SeparablePlan:
        """Return the layers and how they are trained, with the epochs for so many rows."""
        size = settings.n_channels, n_rows, settings.bits
        return plane_plan(self.options, *size, self.data.losses)

    def augmentation(self, settings: ImageSettings) -> Augmentation:
        """Return how much spectra are varied."""
        return variation_of(self.options, self.spectrum, self.rows.inputs.shape[2])

    def stages(self, learner: ImageLearner) -> tuple[Stage, ...]:
        """Return the spectrum, and the convolutions on it."""
        assert isinstance(learner, PlaneLearner)
        return self.spectrum, Plane(), *learner.layers_and_scale()
