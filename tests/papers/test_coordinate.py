"""Coordinate descent against a slow, obvious version, and its promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinykernel.papers.ternary import LOSSES, PENALTIES, TernaryProblem, learn_output, scaled, visit


def slow_objective(problem, weights, penalty, alpha, beta):
    """Formula (7), everything recomputed."""
    margin = problem.y * (alpha * (weights @ problem.signs.astype(float)) + beta)
    losses = {
        "squared_hinge": np.maximum(0, 1 - margin) ** 2,
        "hinge": np.maximum(0, 1 - margin),
        "logistic": np.log1p(np.exp(-margin)),
        "squared": (1 - margin) ** 2,
    }[problem.loss]
    price = (
        alpha**2 * np.sum(weights**2.0)
        if problem.penalty == "l2"
        else alpha * np.abs(weights).sum()
    )
    return np.sum(problem.share * losses) + penalty * price


def make(seed, n, p, kind=("squared_hinge", "l2", False)):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n)
    y[:2] = -1, 1
    share = rng.uniform(0.2, 3.0, n)
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), (p, n))
    return TernaryProblem(signs, y, share / share.sum(), *kind), rng


_PENALTY = st.sampled_from([0.0, 0.001, 0.03, 0.3])
_KIND = st.tuples(st.sampled_from(LOSSES), st.sampled_from(PENALTIES), st.booleans())


@settings(max_examples=60, deadline=None)
@given(_KIND, _PENALTY, st.integers(2, 40), st.integers(1, 12), st.integers(0, 99))
def test_no_sweep_raises_the_objective(kind, penalty, n, p, seed):
    """Protects the convergence proof (Lemma 2)."""
    problem, _ = make(seed, n, p, kind)
    learned = learn_output(problem, penalty, 12, seed)
    assert np.all(np.diff(learned.objectives) <= 1e-12 * learned.objectives[0])
    slow = slow_objective(problem, learned.weights, penalty, learned.alpha, learned.beta)
    assert learned.objectives[-1] == pytest.approx(slow, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(_KIND, _PENALTY, st.integers(2, 30), st.integers(1, 10), st.integers(0, 99))
def test_one_sweep_equals_the_slow_version(kind, penalty, n, p, seed):
    """Protects (10)-(11): each weight takes the best of its values, and h_i is kept right."""
    problem, rng = make(seed, n, p, kind)
    allowed = (-1, 1) if problem.binary else (-1, 0, 1)
    weights = rng.choice(np.array(allowed, dtype=np.int8), p)
    sums = (weights.astype(np.int32) @ problem.signs).astype(np.int32)
    order, alpha, beta, swept = rng.permutation(p), 0.2, 0.1, weights.copy()
    slope, short = alpha * problem.y, 1 - problem.y * (alpha * sums + beta)
    price = penalty * alpha**problem.power
    constants = problem.kind, problem.binary, problem.signs, slope, problem.share
    visit(constants, order, price, short, swept, sums)
    slow = weights.astype(float)
    for j in order:
        values = {}
        for value in allowed:
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


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_scale_is_the_minimum_of_8(loss, penalty):
    """Protects the solution of (8): no alpha and no intercept nearby is better."""
    problem, rng = make(3, 60, 9, (loss, penalty, False))
    weights = rng.choice(np.array([-1, 0, 1], dtype=np.int8), 9)
    sums = (weights.astype(np.int32) @ problem.signs).astype(np.int32)
    alpha, beta = scaled(problem, sums, 0.01 * np.count_nonzero(weights), 0.3, 0.0)
    best = slow_objective(problem, weights, 0.01, alpha, beta)
    for factor in (0.9, 0.999, 1.001, 1.1):
        for a, b in ((alpha * factor, beta), (alpha, beta + factor - 1)):
            assert best <= slow_objective(problem, weights, 0.01, a, b) + (loss == "hinge") * 1e-5
