"""Coordinate descent against a slow, obvious version, and its promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinykernel.papers.descent import Problem, learn_output, scaled, visit


def slow_objective(problem, weights, penalty, alpha, beta):
    """Formula (7), everything recomputed."""
    f = alpha * (weights @ problem.signs.astype(float)) + beta
    losses = np.maximum(0, 1 - problem.y * f) ** 2
    return np.sum(problem.share * losses) + penalty * alpha**2 * np.sum(weights**2.0)


def make(seed, n, p):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n)
    y[:2] = -1, 1
    share = rng.uniform(0.2, 3.0, n)
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), (p, n))
    return Problem(signs, y, share / share.sum()), rng


_PENALTY = st.sampled_from([0.0, 0.001, 0.03, 0.3])


@settings(max_examples=60, deadline=None)
@given(_PENALTY, st.integers(2, 12), st.integers(2, 40), st.integers(1, 12), st.integers(0, 99))
def test_no_sweep_raises_the_objective(penalty, sweeps, n, p, seed):
    """Protects the convergence proof (Lemma 2)."""
    problem, _ = make(seed, n, p)
    before, after = (
        slow_objective(problem, found.weights, penalty, found.alpha, found.beta)
        for found in (learn_output(problem, penalty, most, seed) for most in (1, sweeps))
    )
    assert after <= before + 1e-12 * max(1, before)


@settings(max_examples=60, deadline=None)
@given(_PENALTY, st.integers(2, 30), st.integers(1, 10), st.integers(0, 99))
def test_one_sweep_equals_the_slow_version(penalty, n, p, seed):
    """Protects (10)-(11): each weight takes the best of its values, and h_i is kept right."""
    problem, rng = make(seed, n, p)
    weights = rng.choice(np.array([-1, 0, 1], dtype=np.int8), p)
    sums = (weights.astype(np.int32) @ problem.signs).astype(np.int32)
    order, alpha, beta, swept = rng.permutation(p), 0.2, 0.1, weights.copy()
    slope, short = alpha * problem.y, 1 - problem.y * (alpha * sums + beta)
    price = penalty * alpha**2
    visit(problem.signs, slope, problem.share, order, price, short, swept, sums)
    slow = weights.astype(float)
    for j in order:
        values = {}
        for value in (-1, 0, 1):
            slow[j] = value
            values[value] = slow_objective(problem, slow, penalty, alpha, beta)
        # Near ties either value is right.
        assert values[swept[j]] <= min(values.values()) + 1e-12
        slow[j] = swept[j]
    assert np.array_equal(sums, swept.astype(int) @ problem.signs)
    assert short == pytest.approx(1 - problem.y * (alpha * sums + beta))
    assert problem.objective(sums, penalty * np.count_nonzero(swept), alpha, beta) == pytest.approx(
        slow_objective(problem, swept, penalty, alpha, beta)
    )


def test_scale_is_the_minimum_of_8():
    """Protects the solution of (8): no alpha and no intercept nearby is better."""
    problem, rng = make(3, 60, 9)
    weights = rng.choice(np.array([-1, 0, 1], dtype=np.int8), 9)
    sums = (weights.astype(np.int32) @ problem.signs).astype(np.int32)
    alpha, beta = scaled(problem, sums, 0.01 * np.count_nonzero(weights), 0.3, 0.0)
    best = slow_objective(problem, weights, 0.01, alpha, beta)
    for factor in (0.9, 0.999, 1.001, 1.1):
        for a, b in ((alpha * factor, beta), (alpha, beta + factor - 1)):
            assert best <= slow_objective(problem, weights, 0.01, a, b) + 1e-12
