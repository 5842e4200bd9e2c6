"""Kernel ridge regression: its errors on held-out rows, and its gradients."""

import numpy as np
import pytest

from tinykernel.learn.linear import ridge


def drawn(n=30, d=2, size=1):
    """Return rows of different weights, in groups of a size, with values that bend."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, :1]) + 0.2 * rng.normal(size=(n, 1))
    return ridge.WeightedRows(X, y, np.sqrt(rng.uniform(0.5, 2, n)), np.arange(n) // size)


@pytest.mark.parametrize("size", [1, 5])
def test_width_and_penalty_have_the_least_error_on_what_is_left_out(size):
    """The short formula of errors left out is that of fitting without the group."""
    rows = drawn(size=size)
    y, group = rows.targets * rows.weight[:, None], rows.group
    best = (np.inf, 0.0, 0.0)
    for width in ridge._WIDTHS:
        gram = ridge._kernel(rows.X, rows.X, width) * np.outer(rows.weight, rows.weight)
        for penalty in ridge._PENALTIES:
            error = 0.0
            for number in np.unique(group):
                out = group == number
                inside = gram[np.ix_(~out, ~out)] + penalty * np.eye((~out).sum())
                found = gram[np.ix_(out, ~out)] @ np.linalg.solve(inside, y[~out])
                error += np.square(y[out] - found).sum()
            best = min(best, (error, width, penalty))
    fit = ridge.Ridge(rows.of(np.random.default_rng(2).permutation(30)))
    assert (fit.width, fit.penalty) == best[1:]
    near = ridge.Ridge(rows, near=fit)
    assert (near.width, near.penalty) == best[1:]


def test_slopes_are_those_of_the_values():
    """The outer products of the gradients are those of small steps, but for one factor."""
    rows = drawn(d=3)
    fit = ridge.Ridge(rows)
    steps = 1e-5 * np.eye(3)
    gradients = np.stack(
        [(fit.values(rows.X + step) - fit.values(rows.X - step))[:, 0] for step in steps], axis=1
    )
    gradients *= rows.weight[:, None]
    wanted, found = gradients.T @ gradients, fit.slopes()
    np.testing.assert_allclose(found / np.trace(found), wanted / np.trace(wanted), atol=1e-6)
