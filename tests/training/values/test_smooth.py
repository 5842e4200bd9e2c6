"""The smooth fit: its errors on held-out rows, and when rows of it are learned from."""

import numpy as np
import pytest

from tinykernel.learn import smooth
from tinykernel.learn.choice import trial_folds
from tinykernel.learn.loop import Recipe
from tinykernel.learn.options import RegressorOptions
from tinykernel.learn.trainset import prepare_values

RECIPE = Recipe(losses=(0.0,))


def prepared(n=80, dtype=np.float32, groups=None, loss="squared"):
    """Return noisy values of a sine, prepared, and options."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, 2)).astype(dtype)
    y = np.sin(X[:, :1].astype(np.float64)) + rng.normal(0, 0.3, (n, 1))
    options = RegressorOptions(n_components=64, loss=loss)
    return prepare_values(X, y, np.ones(n), options, ("y",), groups=groups), options


def test_the_fit_is_nearer_to_the_truth_than_the_rows():
    """What is learned has less noise than what was given."""
    data, options = prepared()
    learned, recipe, _fit = smooth.smooth_rows(data, options, RECIPE)
    assert len(learned.X) == 16 * 80
    assert recipe.noise == 0
    truth = np.sin(learned.X[:, 0])
    units = data.quantity.units
    errors = [
        np.abs(units.offset + units.scale * each.quantity.targets[:80, 0] - truth[:80]).mean()
        for each in (learned, data)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_a_fit_is_judged_on_rows_left_out():
    """Its loss there is that of the noise, at least, while it follows the rows that it knows."""
    data, options = prepared()
    fit = smooth.smooth_rows(data, options, RECIPE)[2]
    folds = trial_folds(data.codes, None, 0)
    loss, explained = fit.judged(data, folds)
    noise = 0.5 * (0.3 / data.quantity.units.scale[0]) ** 2
    assert 0.9 * noise < loss < 2 * noise
    constant = np.mean([data.truth[fold.outside].var() / 2 for fold in folds])
    assert explained == pytest.approx(1 - loss / constant, abs=0.05)
