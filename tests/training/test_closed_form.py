"""Ridge regression in closed form: against the normal equations, and against leaving rows out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tinykernel.training.readouts.closed_form import fit_ridge, fit_standardised, round_fit


def _slow(
    rows: NDArray[np.int64],
    targets: NDArray[np.float64],
    weight: NDArray[np.float64],
    penalty: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve the normal equations with a column of ones that has no penalty."""
    inputs = np.column_stack([rows, np.ones(len(rows))]).astype(np.float64)
    ridge = penalty * np.eye(inputs.shape[1])
    ridge[-1, -1] = 0
    solved = np.linalg.solve(
        inputs.T @ (weight[:, None] * inputs) + ridge, inputs.T @ (weight[:, None] * targets)
    )
    return solved[:-1], solved[-1]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(4, 14), p=st.integers(1, 20), by_group=st.booleans()
)
def test_fit_and_left_out_rows_are_those_of_the_normal_equations(
    seed: int, n: int, p: int, by_group: bool
) -> None:
    """Weights, offset, and what is said of left-out rows or groups, as by fitting without them."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 256, (n, p))
    targets = rng.standard_normal((n, 2))
    weight = rng.uniform(0.5, 2, n)
    group = rng.permutation(np.arange(n) % 3) if by_group else np.arange(n)
    fit = fit_ridge(rows, targets, weight, group if by_group else None, np.array([0.03]))
    weights, offset = _slow(rows, targets, weight, fit.penalty)
    assert np.allclose(fit.weights, weights, atol=1e-7)
    assert np.allclose(fit.offset, offset, atol=1e-5)
    for out in np.unique(group):
        kept = group != out
        weights, offset = _slow(rows[kept], targets[kept], weight[kept], fit.penalty)
        assert np.allclose(fit.left_out[~kept], rows[~kept] @ weights + offset, atol=1e-5)


def test_penalty_is_that_of_the_least_error_left_out() -> None:
    """Noise gets a large penalty, a clear slope a small one."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (40, 60))
    clear = fit_ridge(rows, rows[:, :1] / 100.0, np.ones(40))
    noise = fit_ridge(rows, rng.standard_normal((40, 1)), np.ones(40))
    assert clear.penalty < noise.penalty
    assert np.square(clear.left_out - rows[:, :1] / 100.0).mean() < 0.5
    assert np.abs(noise.weights).max() == pytest.approx(0, abs=0.01)


def test_rounding_is_not_ruled_by_inputs_that_hardly_vary() -> None:
    """Levels of 4 bits keep a fit whose inputs vary by 1 and by 100; it once lost 45 points."""
    rng = np.random.default_rng(3)
    inputs = np.column_stack([rng.integers(0, 256, (60, 20)), rng.random((60, 20)) < 0.03])
    targets = np.where(inputs[:, :1] + inputs[:, 1:2] > 255, 1.0, -1.0)
    fit, _ = fit_standardised(inputs.astype(np.int16), targets, np.ones(60), None)
    levels, worth, offset = round_fit(fit, inputs.astype(np.int16), 4)
    exact = inputs @ fit.weights + fit.offset
    rounded = worth * (inputs @ levels.T) + offset
    assert np.abs(levels).max() <= 7
    assert np.square(rounded - exact).mean() < 0.05 * np.square(exact).mean()
