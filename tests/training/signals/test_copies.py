"""Varied copies of windows, before and after a spectrum."""

import numpy as np
import pytest

from tinykernel.learn.augment import with_spectra, with_windows
from tinykernel.learn.linear.training import split_rows
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.trainset import TrainSet
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.spectrum.spec import Spectrum

SPECTRUM, GRID = Spectrum(64, 64, np.arange(2, 8), 2, 0), Grid.raw("int16", 800, 1)


def levels(rows):
    """Return the spectra of windows."""
    return SPECTRUM.run(rows, GRID)


def windows(n):
    """Return windows of noise, of two classes in turn."""
    X = np.random.default_rng(0).integers(-99, 99, (n, 800)).astype(np.int16)
    return TrainSet(X, np.arange(n) % 2, np.ones(n), ("a", "b"), "int16")


def varied(data, augment, **more):
    """Return windows and their copies as levels, and the options."""
    options = TrainerOptions(augment=augment, random_state=0, **more)
    return with_spectra(data, SPECTRUM, GRID, levels, options), options


@pytest.mark.parametrize("spectrum", [True, False])
def test_rows_kept_aside_included_varied_copies(spectrum):
    """A model is neither judged by copies that no device will see, nor learns from these."""
    data = windows(20)
    copies, options = varied(data, {"noise": 0.5}, validation_fraction=0.25)
    if not spectrum:
        copies = with_windows(data, GRID, options)
    rows = split_rows(copies, options)
    held = {row.tobytes() for row in rows.validation[0]}
    originals = {row.tobytes(): number for number, row in enumerate(copies.X[:20])}
    assert held <= originals.keys()
    assert len(held) == 5
    assert len(rows.inputs) == 2 * 15
    kept = {originals[row] for row in held}
    learned = {row.tobytes() for row in rows.inputs}
    assert not learned & {copies.X[20 + number].tobytes() for number in kept}
