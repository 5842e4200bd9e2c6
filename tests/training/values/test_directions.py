"""Directions along which values change: found where there are some, and not where chance is."""

import numpy as np
import pytest

from tinykernel.learn.linear.ridge import Ridge, WeightedRows
from tinykernel.learn.smooth import directions


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
