"""The smooth fit: its errors on held-out rows, what it learns from, and directions that matter."""

import numpy as np
import pytest

from tinykernel.learn import smooth
from tinykernel.learn.choice import trial_folds
from tinykernel.learn.linear.ridge import Ridge, WeightedRows
from tinykernel.learn.loop import Recipe
from tinykernel.learn.options import RegressorOptions
from tinykernel.learn.smooth import directions
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
    loss, explained = fit.judge(data, folds)
    noise = 0.5 * (0.3 / data.quantity.units.scale[0]) ** 2
    assert 0.9 * noise < loss < 2 * noise
    constant = np.mean([data.truth[fold.outside].var() / 2 for fold in folds])
    assert explained == pytest.approx(1 - loss / constant, abs=0.05)


def drawn(values, n=160, d=6):
    """Return rows with the values that a function gives, and a little noise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d))
    y = values(X)[:, None] + 0.1 * rng.normal(size=(n, 1))
    return WeightedRows(X, y, np.ones(n), np.arange(n))


def test_the_direction_that_matters_is_found():
    """Values of one oblique direction among six inputs are fitted along it, with less error."""
    along = np.array([1.0, -1.0, 0.5, 0, 0, 0]) / 1.5
    rows, new = (drawn(lambda X: np.sin(2 * X @ along), n) for n in (160, 200))
    view, fit, _ = directions(rows)
    leading = np.linalg.svd(view)[0][:, 0]
    assert abs(leading @ along) > 0.98
    assert np.square(view).sum() == pytest.approx(6)
    errors = [
        np.abs(each.values(X) - new.targets).mean()
        for each, X in ((fit, new.X @ view), (Ridge(rows), new.X))
    ]
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize("values", [lambda X: np.square(X).sum(axis=1), lambda X: 0 * X[:, 0]])
def test_without_such_directions_inputs_stay_as_they_are(values):
    """Where all inputs matter alike, or none does, no direction is learned of noise."""
    view, *_ = directions(drawn(values))
    np.testing.assert_array_equal(view, np.eye(6))
