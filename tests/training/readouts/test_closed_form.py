"""Ridge regression in closed form: against the normal equations, and against leaving rows out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from tinykernel.base import progress
from tinykernel.learn.choice import Fold, trial_folds
from tinykernel.learn.linear import normal_equations as equations
from tinykernel.learn.linear.ridge import fit_ridge


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


@settings(max_examples=30)
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


def _many(
    seed: int, n: int, p: int
) -> tuple[NDArray[np.int16], NDArray[np.float32], NDArray[np.float32]]:
    """Draw counts, targets -1 and 1 of three classes, and weights that are multiples of 2**-12."""
    rng = np.random.default_rng(seed)
    inputs = rng.integers(0, rng.integers(1, 256, p) + 1, (n, p)).astype(np.int16)
    inputs[:3], inputs[3:6] = 0, 1  # none is constant where a third is left out
    said = inputs @ rng.standard_normal((p, 3)) + rng.standard_normal((n, 3))
    targets = (2.0 * (said.argmax(axis=1)[:, None] == np.arange(3)) - 1).astype(np.float32)
    return inputs, targets, (rng.integers(1 << 11, 3 << 11, n) / 2.0**12).astype(np.float32)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6), n=st.integers(6, 150), p=st.integers(1, 150), aside=st.booleans()
)
def test_levels_of_many_rows_are_those_of_the_normal_equations(
    seed: int, n: int, p: int, aside: bool
) -> None:
    """With 8 bits what is said, and the error of the folds left out, are as by solving slowly."""
    inputs, targets, weight = _many(seed, n, p)
    out = np.arange(n) % 3
    folds = [Fold(np.flatnonzero(out != f), np.flatnonzero(out == f)) for f in range(3)]

    def said(inside: NDArray[np.int64], share: float) -> NDArray[np.float64]:
        z, w = inputs[inside].astype(np.float64), weight[inside].astype(np.float64)
        spread = np.sqrt(w @ z**2 / w.sum() - (w @ z / w.sum()) ** 2)
        unit = np.maximum(spread, 0.25 * np.median(spread[spread > 1e-9]))
        diagonal = np.mean((spread / unit) ** 2) * w.sum()
        solved = _slow(z / unit, targets[inside].astype(np.float64), w, share * diagonal)
        return (inputs / unit) @ solved[0] + solved[1]

    learned = np.arange(n)
    if aside:  # what is left out is never learned
        learned = np.arange(2 * n // 3)
        folds = [Fold(learned, np.arange(len(learned), n))]
    errors = []
    for share in equations.PENALTIES:
        left = [(said(f.inside, share) - targets)[f.outside] for f in folds]
        each = zip(left, folds, strict=True)
        errors.append(sum(float((weight[f.outside] @ e**2).sum()) for e, f in each))
    (levels, worth, offset), error, _ = equations.fit_levels(
        inputs, targets, weight, folds, 8, n_learned=len(learned)
    )
    judged = sum(weight[f.outside].sum() for f in folds)
    assert error == pytest.approx(min(errors) / (3 * judged), rel=1e-6)
    exact = said(learned, equations.PENALTIES[int(np.argmin(errors))])
    rounded = worth * (inputs @ levels.T.astype(np.float64)) + offset
    assert np.square(rounded - exact).mean() < 2e-2 * max(np.square(exact).mean(), 0.1)


def test_sums_of_shaded_targets_do_not_depend_on_the_order() -> None:
    """BLAS adds in an order of its own: targets between 0 and 1 must have few bits, too."""
    inputs, targets, weight = _many(11, 300, 30)
    shaded = targets * np.random.default_rng(0).random(targets.shape, dtype=np.float32) ** 9
    folds = trial_folds(targets.argmax(axis=1), None, 0)
    back = [Fold(299 - fold.inside, 299 - fold.outside) for fold in folds]
    (levels, worth, offset), error, _ = equations.fit_levels(inputs, shaded, weight, folds, 8)
    turned, same, _ = equations.fit_levels(inputs[::-1], shaded[::-1], weight[::-1], back, 8)
    assert np.array_equal(levels, turned[0])
    assert np.array_equal(offset, turned[2])
    assert (worth, error) == (turned[1], same)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), n=st.integers(9, 60), p=st.integers(1, 6), both=st.booleans())
def test_steps_end_at_the_largest_likelihood(seed: int, n: int, p: int, both: bool) -> None:
    """As a general minimiser finds it, of two classes and of three, with weights of rows."""
    inputs, targets, weight = _many(seed, n, p)
    if both:
        targets = targets[:, :1]
    targets[:3], share = (2.0 * np.eye(3) - 1)[:, : targets.shape[1]], weight.astype(np.float64)
    share /= share.sum()
    mean, penalty = share @ inputs, 0.2
    unit = np.maximum(np.sqrt(share @ (inputs - mean) ** 2), 1e-3)
    z, truth = (inputs - mean) / unit, (targets + 1) / 2

    def loss(flat: NDArray[np.float64]) -> float:
        w = flat.reshape(p + 1, -1)
        f = z @ w[:p] + w[p]
        f = np.hstack([f, 0 * f]) if both else f
        y = np.hstack([truth, 1 - truth]) if both else truth
        size = (0.25 if both else 0.5) * penalty * np.square(w[:p]).sum() / 2
        return float(share @ (logsumexp(f, axis=1) - (y * f).sum(axis=1)) + size)

    upper = np.linalg.cholesky((z * share[:, None]).T @ z + penalty * np.eye(p)).T.copy()
    weights, offset, ended = equations.likeliest(
        inputs, targets, share, equations.Standard(mean, unit, upper, penalty)
    )
    best = minimize(loss, np.zeros((p + 1) * targets.shape[1]))
    assert not ended
    assert loss(np.vstack([weights, offset]).ravel()) < best.fun + 1e-3


def test_ctrl_c_keeps_the_weights_of_the_last_step() -> None:
    """Before there are any, it is passed on."""
    inputs, targets, weight = _many(1, 200, 9)

    def interrupted_at(step: int) -> equations.LevelFit:
        def interrupt(message: progress.Progress) -> None:
            if (message.stage, message.done) == ("weighing", step):
                raise KeyboardInterrupt

        with progress.observing(interrupt):
            return equations.fit_levels(inputs, targets, weight, [], 8, likely=equations.LIKELY)

    with pytest.raises(KeyboardInterrupt):
        interrupted_at(0)
    fit = interrupted_at(9)
    assert fit.interrupted
    said = inputs @ fit.stored[0].T.astype(np.float64) * fit.stored[1] + fit.stored[2]
    assert (said.argmax(axis=1) == targets.argmax(axis=1)).mean() > 0.8
