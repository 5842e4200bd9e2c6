"""Kernel alignment: the optimum of the ball, and the features chosen with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import RidgeClassifier

from tinykernel.errors import TinykernelError
from tinykernel.papers.features import KernelAlignment, gaussian_kernel, maximise_alignment
from tinykernel.papers.features.alignment import label_matrix


def alignment_scores(features: Any, y: Any) -> Any:
    """How well each feature matches the labels, v of 000 (20) and (27): ``q . v`` aligns k_Q."""
    return ((features.T @ label_matrix(np.asarray(y))) ** 2).sum(axis=1)


SMALL: dict[str, Any] = {"n_components": 40, "n_candidates": 300, "random_state": 0}


def labelled(n: int = 300, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose class depends on two of the features."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, (np.cos(2 * X[:, 0]) + X[:, 1] > 0).astype(int)


@given(
    scores=st.lists(st.floats(0, 100, width=32), min_size=2, max_size=9), rho=st.floats(0.01, 10)
)
@settings(max_examples=150, deadline=None)
def test_is_feasible_and_optimal(scores: list[float], rho: float) -> None:
    """q lies in the simplex and the ball, and the duality gap proves that nothing is better."""
    best = maximise_alignment(scores, rho)
    q, v = best.probabilities, np.array(scores)
    n = v.size
    assert q.min() >= 0
    assert q.sum() == pytest.approx(1)
    assert best.divergence == pytest.approx(n * (q @ q) - 1, abs=1e-9)
    assert best.divergence <= rho * (1 + 1e-9) + 1e-12
    assert best.gap <= 1e-6
    # Weak duality, recomputed: for any lambda >= 0, max over the simplex of the Lagrangian.
    spread = np.ptp(v)
    assert q @ v >= v.mean() - 1e-9 * max(1, spread)
    order = np.argsort(v)
    assert np.all(np.diff(q[order]) >= -1e-9)


@pytest.mark.parametrize(("rho", "seed"), [(0.05, 0), (0.5, 1), (2.0, 2)])
def test_agrees_with_a_general_solver(rho: float, seed: int) -> None:
    """SLSQP on the same problem finds the same value and the same q."""
    v = np.random.default_rng(seed).exponential(size=7)
    n = v.size
    slow = minimize(
        lambda q: -q @ v,
        np.full(n, 1 / n),
        jac=lambda q: -v,
        bounds=[(0, 1)] * n,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1},
            {"type": "ineq", "fun": lambda q: rho - (n * q @ q - 1)},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    best = maximise_alignment(v, rho)
    assert best.probabilities @ v == pytest.approx(-slow.fun, abs=1e-6)
    np.testing.assert_allclose(best.probabilities, slow.x, atol=1e-4)


def test_stationarity() -> None:
    """q is max(0, v / (2 lambda N) + tau), formula (23), with the multiplier returned."""
    v = np.random.default_rng(5).exponential(size=500)
    best = maximise_alignment(v, 20.0)
    q = best.probabilities
    assert best.divergence == pytest.approx(20.0, rel=1e-9)
    tau = q - v / (2 * best.multiplier * v.size)
    np.testing.assert_allclose(tau[q > 0], tau[np.argmax(q)], atol=1e-9)
    assert np.all(tau[q == 0] >= tau[np.argmax(q)] - 1e-9)
    assert 10 < np.count_nonzero(q) < 120


@given(
    scores=st.lists(st.integers(0, 50), min_size=3, max_size=12, unique=True),
    shift=st.integers(-100, 100),
    factor=st.sampled_from([1e-9, 0.5, 1e9]),
)
@settings(max_examples=50, deadline=None)
def test_shift_and_scale_of_the_scores_do_not_matter(
    scores: list[int], shift: int, factor: float
) -> None:
    """The maximiser depends on the scores only up to a shift and a positive factor."""
    v = np.array(scores, dtype=float)
    expected = maximise_alignment(v, 0.7).probabilities
    np.testing.assert_allclose(
        maximise_alignment(factor * (v + shift), 0.7).probabilities, expected, atol=1e-6
    )


def test_extreme_radii_and_ties() -> None:
    """A huge ball gives all weight to the best, equal scores equal weight, a tiny ball uniform."""
    np.testing.assert_array_equal(maximise_alignment([1, 3, 2], 2.0).probabilities, [0, 1, 0])
    np.testing.assert_array_equal(maximise_alignment([3, 1, 3], 9.0).probabilities, [0.5, 0, 0.5])
    np.testing.assert_allclose(maximise_alignment([2, 2], 0.1).probabilities, [0.5, 0.5])
    np.testing.assert_allclose(maximise_alignment([5], 1.0).probabilities, [1])
    tiny = maximise_alignment([1, 2, 3], 1e-8).probabilities
    np.testing.assert_allclose(tiny, 1 / 3, atol=1e-4)
    assert tiny[2] > tiny[1] > tiny[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], 0.0), "rho"),
        (([1.0, np.nan], 1.0), "finite"),
        (([], 1.0), "finite"),
        (([[1.0]], 1.0), "finite"),
    ],
)
def test_refuses_bad_problems(arguments: tuple[Any, Any], message: str) -> None:
    """A wrong radius or wrong scores are one line."""
    with pytest.raises(TinykernelError, match=message):
        maximise_alignment(*arguments)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_scores_are_the_alignment_of_the_kernel(n_classes: int) -> None:
    """q . v is sum_ij k_Q(x_i, x_j) ybar_i . ybar_j, written out, for +-1 and for (25)-(27)."""
    rng = np.random.default_rng(n_classes)
    y = np.array(["a", "b", "c", "d", "e"])[rng.permutation(np.arange(30) % n_classes)]
    features, q = rng.standard_normal((30, 8)), rng.dirichlet(np.ones(8))
    classes = np.unique(y)
    if n_classes == 2:
        labels = np.where(y == classes[1], 1, -1)[:, None]
    else:
        labels = np.where(y[:, None] == classes, 1, -1)
    kernel = (features * q) @ features.T
    assert alignment_scores(features, y) @ q == pytest.approx((kernel * (labels @ labels.T)).sum())


@pytest.mark.parametrize(
    ("selection", "binary"),
    [("sample", True), ("support", False), ("sample", False), ("support", True)],
)
def test_every_option(selection: str, binary: bool) -> None:
    """Each option gives features of the right type that tell the classes apart."""
    X, y = labelled()
    aligned = KernelAlignment(**SMALL, selection=selection, binary=binary, sigma=1.0).fit(X, y)
    q = aligned.distribution_.probabilities
    assert np.all(q[aligned.selected_] > 0)
    Z = aligned.transform(X)
    assert Z.shape == (300, aligned.selected_.size)
    assert len(aligned.get_feature_names_out()) == Z.shape[1]
    if binary:
        assert Z.dtype == np.int8
        assert set(np.unique(Z)) == {-1, 1}
    else:
        assert aligned.transform(X.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(aligned.transform(X.astype(np.float32)), Z, atol=1e-4)
    assert RidgeClassifier().fit(Z, y).score(Z, y) > 0.8


def test_support_features_are_the_aligned_kernel() -> None:
    """With weights sqrt(q) the product z . z' is 2 sum_l q_l phi_l phi_l', formula (18)."""
    X, y = labelled(60)
    aligned = KernelAlignment(
        n_components=300, n_candidates=300, selection="support", binary=False, random_state=0
    ).fit(X, y)
    q = aligned.distribution_.probabilities[aligned.selected_]
    phi = np.cos(X @ aligned.weights_ + aligned.offset_)
    Z = aligned.transform(X)
    np.testing.assert_allclose(Z @ Z.T, 2 * (phi * q) @ phi.T, atol=1e-12)


def test_fitted_scores_are_those_of_the_features() -> None:
    """The estimator weighs exactly the candidates it draws; recomputed by public functions."""
    X, y = labelled(120)
    everything = KernelAlignment(
        n_components=200,
        n_candidates=200,
        selection="support",
        rho=1e-6,
        binary=False,
        random_state=3,
    ).fit(X, y)
    assert everything.selected_.size == 200
    phi = np.cos(X @ everything.weights_ + everything.offset_)
    expected = maximise_alignment(alignment_scores(phi, y), 5.0).probabilities
    chosen = KernelAlignment(n_candidates=200, rho=5.0, random_state=3).fit(X, y)
    np.testing.assert_allclose(chosen.distribution_.probabilities, expected, atol=1e-9)


def test_a_small_ball_gives_the_gaussian_kernel() -> None:
    """As rho falls to 0 the sampled features approximate the kernel they were drawn from."""
    X, y = labelled(30)
    aligned = KernelAlignment(
        n_components=20000, n_candidates=20000, rho=1e-6, sigma=2.0, binary=False, random_state=0
    ).fit(X, y)
    Z = aligned.transform(X)
    np.testing.assert_allclose(Z @ Z.T, gaussian_kernel(X, sigma=2.0), atol=0.06)


def test_alignment_rises_with_the_radius() -> None:
    """The larger the ball, the better the kernel matches the labels and the fewer the features."""
    X, y = labelled()
    scores = alignment_scores(np.cos(X @ np.random.default_rng(0).standard_normal((6, 400))), y)
    found = [maximise_alignment(scores, rho) for rho in (0.1, 1.0, 10.0, 100.0)]
    values = [best.probabilities @ scores for best in found]
    sizes = [np.count_nonzero(best.probabilities) for best in found]
    assert values == sorted(values)
    assert sizes == sorted(sizes, reverse=True)
    assert values[-1] > 2 * scores.mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_candidates": 0}, "n_candidates"),
        ({"rho": 0}, "rho"),
        ({"sigma": 0}, "sigma"),
        ({"selection": "all"}, "selection"),
        ({"binary": 2}, "binary"),
    ],
)
def test_refuses_bad_parameters(options: dict[str, Any], message: str) -> None:
    """A wrong parameter is one line that names it."""
    X, y = labelled(20)
    with pytest.raises(TinykernelError, match=message):
        KernelAlignment(**options).fit(X, y)


def test_needs_classes() -> None:
    """One class is refused, and so is a call without labels."""
    with pytest.raises(TinykernelError, match="one class"):
        KernelAlignment(**SMALL).fit(np.zeros((3, 2)), [1, 1, 1])
    with pytest.raises(ValueError, match="requires y"):
        KernelAlignment(**SMALL).fit(np.zeros((3, 2)))
