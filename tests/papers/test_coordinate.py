"""Ternary weights by coordinate descent, against a slow, obvious version, and its promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_circles
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from tinykernel.papers import ternary
from tinykernel.papers.maps import BinaryCodes, Fastfood


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
    return ternary.TernaryProblem(signs, y, share / share.sum(), *kind), rng


_PENALTY = st.sampled_from([0.0, 0.001, 0.03, 0.3])
_KIND = st.tuples(
    st.sampled_from(ternary.LOSSES), st.sampled_from(ternary.PENALTIES), st.booleans()
)


@settings(max_examples=60)
@given(_KIND, _PENALTY, st.integers(2, 40), st.integers(1, 12), st.integers(0, 99))
def test_no_sweep_raises_the_objective(kind, penalty, n, p, seed):
    """Protects the convergence proof (Lemma 2)."""
    problem, _ = make(seed, n, p, kind)
    learned = ternary.learn_output(problem, penalty, 12, seed)
    assert np.all(np.diff(learned.objectives) <= 1e-12 * learned.objectives[0])
    slow = slow_objective(problem, learned.weights, penalty, learned.alpha, learned.beta)
    assert learned.objectives[-1] == pytest.approx(slow, abs=1e-12)


@settings(max_examples=60)
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
    ternary.visit(constants, order, price, short, swept, sums)
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


@pytest.mark.parametrize("loss", ternary.LOSSES)
@pytest.mark.parametrize("penalty", ternary.PENALTIES)
def test_scale_is_the_minimum_of_8(loss, penalty):
    """Protects the solution of (8): no alpha and no intercept nearby is better."""
    problem, rng = make(3, 60, 9, (loss, penalty, False))
    weights = rng.choice(np.array([-1, 0, 1], dtype=np.int8), 9)
    sums = (weights.astype(np.int32) @ problem.signs).astype(np.int32)
    alpha, beta = ternary.minimise_scale(problem, sums, 0.01 * np.count_nonzero(weights), 0.3, 0.0)
    best = slow_objective(problem, weights, 0.01, alpha, beta)
    for factor in (0.9, 0.999, 1.001, 1.1):
        for a, b in ((alpha * factor, beta), (alpha, beta + factor - 1)):
            assert best <= slow_objective(problem, weights, 0.01, a, b) + (loss == "hinge") * 1e-5


def codes_of(n_components, n=300):
    X, y = load_digits(n_class=3, return_X_y=True)
    map = Fastfood(n_components=n_components, sigma=20.0, random_state=0)
    return BinaryCodes(map, random_state=0).fit_transform(X[:n]), y[:n]


@pytest.mark.parametrize("loss", ternary.LOSSES)
@pytest.mark.parametrize("penalty", ternary.PENALTIES)
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("start", ["svm", "random"])
def test_every_loss_penalty_and_start_learns(loss, penalty, binary, start) -> None:
    """No sweep raises the objective (Lemma 2), and the labels are learned."""
    Z, y = codes_of(128)
    how = {"loss": loss, "penalty": penalty, "binary": binary, "start": start}
    model = ternary.TernaryLinearClassifier(regularization=0.01, random_state=0, **how).fit(Z, y)
    assert model.score(Z, y) > 0.97
    assert set(np.unique(model.coef_)) == ({-1, 1} if binary else {-1, 0, 1})
    for output in model.objectives_:
        assert np.all(np.diff(output) <= 1e-12)


def test_the_start_is_12() -> None:
    """w has the signs of a linear SVM's weights, and alpha is their mean magnitude."""
    Z, y = codes_of(32)
    model = ternary.TernaryLinearClassifier(random_state=0)
    problem = ternary.TernaryProblem(
        np.ascontiguousarray(Z.T), np.where(y == 1, 1.0, -1.0), np.full(300, 1 / 300)
    )
    w, alpha = model._start(problem, np.random.RandomState(0))
    svm = LinearSVC(C=1 / 32, random_state=9).fit(Z, problem.y).coef_[0]
    assert np.mean(w == np.sign(svm)) > 0.95
    assert alpha == pytest.approx(np.abs(svm).sum() / 32, rel=0.01)


def test_circles_are_told_apart() -> None:
    """001, figure 3: the boundary is not linear, with ternary and with binary weights."""
    X, y = make_circles(400, noise=0.1, factor=0.4, random_state=0)
    for binary in (False, True):
        map = BinaryCodes(Fastfood(n_components=256, sigma=0.5, random_state=0), random_state=0)
        model = ternary.TernaryLinearClassifier(binary=binary, random_state=0)
        assert make_pipeline(map, model).fit(X, y).score(X, y) > 0.95
