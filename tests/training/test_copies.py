"""Varied copies of windows, before and after a spectrum."""

from __future__ import annotations

import numpy as np

from tinykernel.model.grid import Grid
from tinykernel.model.stages.spectrum import Spectrum
from tinykernel.training.options import TrainerOptions
from tinykernel.training.signals.copies import with_spectra
from tinykernel.training.trainset import TrainSet


def test_a_shift_of_samples_became_one_of_a_frame():
    """A shift of less than half a hop moves samples before the spectrum, not frames after it."""
    X = np.random.default_rng(0).integers(-99, 99, (6, 400)).astype(np.int16)
    data = TrainSet(X, np.arange(6) % 2, np.ones(6), ("a", "b"), "int16")
    first, grid = Spectrum(64, 64, np.arange(2, 8), 2, 0), Grid.raw("int16", 400, 1)

    def levels(rows):
        return first.run(rows, grid)

    options = TrainerOptions(augment={"shift": 3}, random_state=0)
    found = with_spectra(data, first, grid, levels, options).X
    place = np.arange(400) + np.arange(-3, 4)[:, np.newaxis]
    moved = [levels(X[:, each]) for each in place.clip(0, 399)]
    assert len(found) == 12
    for row, copy in enumerate(found[6:]):
        assert any(np.array_equal(copy, block[row]) for block in moved)
