"""Training of separable convolutions on the spectra of signals."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tinykernel import progress
from tinykernel.model.grid import Grid
from tinykernel.model.stage import Stage
from tinykernel.model.stages import Plane, Spectrum
from tinykernel.training.augment import Augmentation
from tinykernel.training.images.convolutions import ImageLearner
from tinykernel.training.images.separable import SeparablePlan
from tinykernel.training.images.training import ImageSettings, PreparedConvolutions
from tinykernel.training.loop import Replan, run_epochs
from tinykernel.training.options import TrainerOptions
from tinykernel.training.options.recipe import seed_of
from tinykernel.training.readouts.linear_training import run_training, split_rows
from tinykernel.training.result import TrainingResult
from tinykernel.training.signals.ensemble import LONGER, Succession, lesson, taught_plan
from tinykernel.training.signals.planes import (
    EVERY,
    PlaneLearner,
    no_planes,
    plane_plan,
    variation_of,
)
from tinykernel.training.signals.spectrum import BANDS_OF_PLANES, spectrum_of
from tinykernel.training.trainset import TrainSet


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
                teacher = self._shortened(self._of_seed(number).learner(settings), share)
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
            rows = lesson(self.rows, teachers, augmentation, epochs, seed)
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
