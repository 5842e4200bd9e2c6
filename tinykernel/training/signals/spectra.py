"""Training of separable convolutions on the spectra of signals."""

from dataclasses import dataclass
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
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.linear_training import split_rows
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
