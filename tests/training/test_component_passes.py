"""The compiled kernels of the trainer against slow and obvious versions."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.linalg import hadamard

from tinykernel.base.compiled import njit
from tinykernel.base.hadamard import LANES
from tinykernel.learn import loss
from tinykernel.learn.components import passes as component_passes

D, M, OUTPUTS, SLOPE = 32, 2, 4, 1.5


def _around(inner):
    """Compile a function around a part that only compiled functions call."""
    return njit()(lambda *arguments: inner(*arguments))


backward_group, forward_group, gather_group, loss_group = (
    _around(inner)
    for inner in (
        component_passes.backward_group,
        component_passes.forward_group,
        component_passes.gather_group,
        loss.loss_group,
    )
)
NAMES = ("diagonal", "rate", "centre", "level", "weights")


def _surrogate(s: np.ndarray) -> np.ndarray:
    """Integral of k / (1 + (k s)^2 / 2)^2."""
    x = SLOPE * s
    return 0.5 * x / (1 + 0.5 * x * x) + np.sqrt(0.5) * np.arctan(np.sqrt(0.5) * x)


def _sums(u, diagonal, rate, centre, level, weights, activation):
    """W z of rows u (LANES, d) in float64; shape (outputs, LANES)."""
    y = np.stack([(u * g) @ hadamard(D).astype(float) for g in diagonal], axis=1)
    s = np.cos(2 * np.pi * (y.reshape(LANES, -1) * rate + centre)) + level
    return weights.T @ activation(s).T


class _Numbers(NamedTuple):
    """What the kernels take of windows and of gradients."""

    diagonal: np.ndarray
    rate: np.ndarray
    centre: np.ndarray
    level: np.ndarray
    weights: np.ndarray = np.zeros((0, 0), dtype=np.float32)


@pytest.fixture
def group():
    """Random parameters and one group of rows."""
    rng = np.random.default_rng(3)
    return {
        "u": rng.standard_normal((LANES, D)),
        "diagonal": rng.standard_normal((M, D)),
        "rate": 0.05 * rng.random(M * D) + 0.02,
        "centre": rng.random(M * D),
        "level": rng.uniform(-1, 1, M * D),
        "weights": rng.standard_normal((M * D, OUTPUTS)),
        "dsums": rng.standard_normal((OUTPUTS, LANES)),
    }


def _forward(group):
    f = {k: v.astype(np.float32) for k, v in group.items()}
    y = np.empty((M, D * LANES), dtype=np.float32)
    sums = np.empty((OUTPUTS, LANES), dtype=np.float32)
    flat = np.ascontiguousarray(f["u"].T).ravel()
    parameters = (flat, _Numbers(*(f[name] for name in NAMES[:4])), f["weights"])
    forward_group(*parameters, y, sums)
    return f, parameters, y, sums


def test_forward_pass_equals_the_formulas(group):
    """Projections, windows and sums are those of the module's docstring."""
    expected = _sums(*[group[k] for k in list(group)[:6]], np.sign)
    np.testing.assert_allclose(_forward(group)[3], expected, rtol=1e-3, atol=1e-3)


def test_gradients_equal_finite_differences(group):
    """The backward pass is the derivative of the forward pass with the surrogate for the sign."""
    f, parameters, y, _ = _forward(group)
    gradients = _Numbers(*(np.zeros_like(f[name]) for name in NAMES))
    backward_group(*parameters, np.float32(SLOPE), y, f["dsums"], gradients)

    def value(changed, activation):
        keys = ("u", *NAMES)
        return float(np.sum(group["dsums"] * _sums(*[changed[k] for k in keys], activation)))

    rng = np.random.default_rng(0)
    for name in NAMES:
        # The sums are linear in W, whose gradient takes the bits themselves.
        activation = np.sign if name == "weights" else _surrogate
        for i in rng.choice(group[name].size, 12, replace=False):
            difference = []
            for step in (1e-5, -1e-5):
                moved = group[name].copy()
                moved.flat[i] += step
                difference.append(value({**group, name: moved}, activation))
            slope = (difference[0] - difference[1]) / 2e-5
            found = getattr(gradients, name).flat[i]
            assert found == pytest.approx(slope, rel=2e-3, abs=2e-2), name


def _loss(sums, targets, losses):
    """Loss of one group in float64, summed over its rows."""
    f = 0.3 * sums + np.arange(sums.shape[0])[:, None] * 0.1
    if losses:
        errors, levels = targets.T - f, np.array(losses)[:, None]
        pinball = np.where(errors > 0, levels, levels - 1) * errors
        return float(np.sum(np.where(levels == 0, errors**2 / 2, pinball)))
    if sums.shape[0] == 1:
        return float(np.sum(np.logaddexp(0, f[0]) - targets[:, 0] * f[0]))
    log_total = np.log(np.exp(f).sum(axis=0))
    return float(np.sum(targets.T * (log_total - f)))


@pytest.mark.parametrize(("n_real", "losses"), [(3, ()), (1, ()), (3, (0.0, 0.1, 0.5))])
def test_loss_gradients_equal_finite_differences(n_real, losses):
    """Softmax cross-entropy and logistic loss, with soft labels; squared and quantile loss."""
    rng = np.random.default_rng(2)
    sums = 3 * rng.standard_normal((OUTPUTS, LANES))
    targets = rng.dirichlet(np.ones(3), LANES)[:, :n_real]
    dsums = np.empty((OUTPUTS, LANES), dtype=np.float32)
    offset = (np.arange(OUTPUTS) * 0.1).astype(np.float32)
    found, d_scale = loss_group(
        sums.astype(np.float32),
        np.float32(0.3),
        offset,
        targets.astype(np.float32),
        np.ones(LANES, dtype=np.float32),
        np.array(losses, dtype=np.float32),
        np.arange(LANES),
        n_real,
        dsums,
        np.zeros(OUTPUTS, dtype=np.float32),
    )
    sums = sums[:n_real]
    assert found == pytest.approx(_loss(sums, targets, losses), rel=1e-4)
    assert d_scale == pytest.approx(float(np.sum(dsums[:n_real] / 0.3 * sums)), rel=1e-3)
    for o, k in ((0, 0), (n_real - 1, 5)):
        moved = [sums.copy(), sums.copy()]
        moved[0][o, k] += 1e-4
        moved[1][o, k] -= 1e-4
        slope = (_loss(moved[0], targets, losses) - _loss(moved[1], targets, losses)) / 2e-4
        assert dsums[o, k] == pytest.approx(slope, rel=1e-2, abs=1e-4)
    assert not dsums[n_real:].any()
