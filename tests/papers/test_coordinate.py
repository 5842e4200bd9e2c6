"""Coordinate descent against a slow, obvious version, and its promises."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinykernel.papers.bits import pack_features
from tinykernel.papers.descent import sweep
from tinykernel.papers.outputs import PaperOptions, fit_outputs, stratified_rows


def slow_objective(signs, y, share, weights, alpha, beta, options):
    """Formula (7), everything recomputed."""
    losses = np.maximum(0, 1 - y * (alpha * (signs @ weights) + beta)) ** 2
    return np.sum(share * losses) + options.regularization * alpha**2 * np.sum(weights**2.0)


def make(seed, n, p, n_classes=2):
    rng = np.random.default_rng(seed)
    signs = (2 * rng.integers(0, 2, (n, p)) - 1).astype(np.int8)
    codes = rng.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)
    return signs, codes.astype(np.int64), rng.uniform(0.2, 3.0, n), rng


def pack(signs):
    return pack_features(lambda rows: rows > 0, signs, signs.shape[1])


def combinations():
    return st.builds(
        PaperOptions,
        n_components=st.just(12),
        regularization=st.sampled_from([0.0, 0.001, 0.03, 0.3]),
        max_iter=st.integers(1, 12),
        tol=st.just(0.0),
    )


@settings(max_examples=60, deadline=None)
@given(options=combinations(), n=st.integers(2, 40), p=st.integers(1, 12), seed=st.integers(0, 99))
def test_objective_never_rises_and_is_the_one_of_the_paper(options, n, p, seed):
    """Protects the convergence proof (Lemma 2): no sweep raises (7), and (7) is what is counted."""
    signs, codes, sample_weight, _ = make(seed, n, p)
    first, outputs = (
        fit_outputs(pack(signs), codes, sample_weight, 2, replace(options, **more, seed=seed))
        for more in ({"max_iter": 1}, {})
    )
    assert outputs.objective[0] <= first.objective[0] + 1e-12 * max(1, first.objective[0])
    share = sample_weight / sample_weight.sum()
    y = np.where(codes == 1, 1.0, -1.0)
    slow = slow_objective(
        signs, y, share, outputs.weights[0], outputs.alpha[0], outputs.beta[0], options
    )
    assert outputs.objective[0] == pytest.approx(slow, rel=1e-9)
    assert outputs.alpha[0] > 0
    assert set(np.unique(outputs.weights)) <= {-1, 0, 1}


@settings(max_examples=60, deadline=None)
@given(options=combinations(), n=st.integers(2, 30), p=st.integers(1, 10), seed=st.integers(0, 99))
def test_one_sweep_equals_the_slow_version(options, n, p, seed):
    """Protects (10)-(11): each weight takes the best of its values, h_i and r are kept right."""
    signs, codes, sample_weight, rng = make(seed, n, p)
    share = sample_weight / sample_weight.sum()
    y = np.where(codes == 1, 1.0, -1.0)
    weights = rng.choice(np.array([-1, 0, 1], dtype=np.int8), p)
    packed = pack(signs)
    sums = np.zeros(8 * packed[0].size, np.int32)
    sums[:n] = signs @ weights.astype(np.int64)
    order, scale, swept = rng.permutation(p), np.array([0.2, 0.1]), weights.copy()
    before = slow_objective(signs, y, share, weights, *scale, options)
    objective, n_changes = sweep(
        packed,
        (y > 0).astype(np.int8),
        share,
        order,
        options.regularization,
        swept,
        scale,
        sums,
    )
    slow = weights.copy()
    for j in order:
        values = {}
        for value in (-1, 0, 1):
            slow[j] = value
            values[value] = slow_objective(signs, y, share, slow, *scale, options)
        # The compiled version looks at the same three numbers; near ties either value is right.
        assert values[swept[j]] <= min(values.values()) + 1e-5
        slow[j] = swept[j]
    assert n_changes == np.count_nonzero(swept != weights)
    assert np.array_equal(sums[:n], signs @ swept.astype(np.int64))
    slow_value = slow_objective(signs, y, share, swept, *scale, options)
    assert objective == pytest.approx(slow_value, rel=1e-9)
    assert objective <= before + 1e-12 * max(1, before)


def test_scale_is_the_minimum_of_8():
    """Protects the exact solution of (8): no alpha and no intercept nearby is better."""
    signs, codes, sample_weight, _ = make(3, 60, 9)
    options = PaperOptions(9, regularization=0.01, max_iter=50, tol=0.0)
    outputs = fit_outputs(pack(signs), codes, sample_weight, 2, options)
    share, y = sample_weight / sample_weight.sum(), np.where(codes == 1, 1.0, -1.0)
    alpha, beta, weights = outputs.alpha[0], outputs.beta[0], outputs.weights[0]
    best = slow_objective(signs, y, share, weights, alpha, beta, options)
    for factor in (0.9, 0.999, 1.001, 1.1):
        for a, b in ((alpha * factor, beta), (alpha, beta + factor - 1)):
            assert best <= slow_objective(signs, y, share, weights, a, b, options) + 1e-8


def test_stratified_rows_keep_every_class():
    """Protects the start and the subsets: a rare class is never lost, shares stay."""
    codes = np.array([0] * 900 + [1] * 99 + [2])
    rows = stratified_rows(codes, 100, np.random.default_rng(0))
    counts = np.bincount(codes[rows])
    assert counts.sum() == 100
    assert counts[2] == 1
    assert abs(counts[1] - 10) <= 1
