"""Training of a perceptron: the integers of the stages, its gradients, and the levels of inputs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinykernel.learn.linear.training import LEVEL_STEPS, TrainingRows, round_linear
from tinykernel.learn.loop import run_epochs
from tinykernel.learn.perceptron.kind import PerceptronLearner, PerceptronRecipe, levels_stage
from tinykernel.pieces.grid import Grid

N = 96  # rows


def rows_of(seed, n_inputs=5, n_outputs=3):
    """Return levels of inputs, the second of which never varies, and values that they tell."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, 256, (N, n_inputs)).astype(np.uint8)
    levels[:, 1] = 77
    bent = np.sin(levels[:, :1] / 40) * np.arange(1, n_outputs + 1)
    return TrainingRows(levels, bent.astype(np.float32), np.ones(N, np.float32))


def recipe_of(widths, bits, n_outputs=3, **settings):
    """Return a recipe of values."""
    losses = (0.0,) * n_outputs
    usual = {"epochs": 3, "batch_rows": 32, "losses": losses} | settings
    return PerceptronRecipe(widths=widths, layer_bits=bits, **usual)


FORMS = st.lists(st.tuples(st.integers(1, 9), st.sampled_from([2, 4, 8])), min_size=1, max_size=2)


@settings(max_examples=20)
@given(FORMS, st.integers(0, 99), st.sampled_from([0.0, 0.4]))
def test_training_sees_what_the_stages_compute(form, seed, dropout):
    """Protects that the linear part is learned on the units of the firmware."""
    widths, bits = zip(*form, strict=True)
    rows = rows_of(seed)
    learner = PerceptronLearner(rows, recipe_of(widths, bits, dropout=dropout))
    run_epochs(learner, 3, stage=None)
    values, grid = rows.inputs, Grid(1, 1, 5, "uint8", 0, 255)
    for stage, width in zip(learner.layers(), bits, strict=True):
        stage.ranges(grid)
        values, grid = stage.run(values, grid), stage.gives(grid)
        assert np.abs(stage.weights.astype(int)).max() < 2 ** (width - 1)
    assert values.tolist() == learner.features(rows.inputs).tolist()
    assert not np.any(learner.layers()[0].weights[:, 1])


def slow_gradients(learner, rows, recipe):
    """Return the gradients of shadows and starts by slow, obvious code in float64."""
    values = rows.inputs.astype(np.float64)
    shadows, starts, passed, begin, unit = [], [], [], 0, 0
    for number, (before, width) in enumerate(pairwise((5, *recipe.widths))):
        shadow = learner.shadow[begin : begin + before * width].reshape(before, width)
        bits = recipe.layer_bits[number]
        step, most = LEVEL_STEPS.get(bits, 4 / 127), 2 ** (bits - 1) - 1
        levels = np.clip(np.rint(shadow / np.float32(step)), -most, most)
        sums = values @ levels
        start = 64.0 * learner.starts[unit : unit + width]
        exact = (sums - sums.mean(axis=0)) / 2.0 ** learner._shifts[number] + start
        passed.append((values, levels, exact, step, learner._shifts[number]))
        values = np.clip(np.rint(exact), 0, 255)
        begin, unit = begin + before * width, unit + width
    weights, step = round_linear(learner.linear, recipe.bits)
    weights = (weights * step).astype(np.float64)
    scaled = (values - learner.mean) * learner.unit
    errors = learner.scale() * (scaled @ weights) + learner.offset - rows.targets
    d = errors @ weights.T * learner.scale() * learner.unit
    for values, levels, exact, step, shift in passed[::-1]:
        d = d * ((exact > 0) & (exact < 255))
        starts.append(64 * d.sum(axis=0))
        d = d - d.mean(axis=0)
        shadows.append(values.T @ d / 2.0**shift / step)
        d = d @ levels.T / 2.0**shift
    return [np.concatenate([part.ravel() for part in parts[::-1]]) for parts in (shadows, starts)]


@settings(max_examples=20)
@given(FORMS, st.integers(0, 99))
def test_gradients_are_those_of_slow_code(form, seed):
    """Rounding passes gradients, clipped units and the mean of the batch do not."""
    widths, bits = zip(*form, strict=True)
    rows, recipe = rows_of(seed), recipe_of(widths, bits)
    learner = PerceptronLearner(rows, recipe)
    learner.linear[:] = learner.rng.standard_normal(learner.linear.shape)
    learner.accumulate(np.arange(N))
    for name, slow in zip(("shadow", "starts"), slow_gradients(learner, rows, recipe), strict=True):
        found = learner.gradients[name][0]
        np.testing.assert_allclose(found, slow, rtol=1e-3, atol=1e-3 * np.abs(slow).max())


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int32"])
def test_levels_are_fine_where_values_are_dense(dtype):
    """One value far away does not squeeze all others into a few levels; constants are taken."""
    rng = np.random.default_rng(0)
    rows = rng.normal(100, 10, (500, 3)).astype(dtype)
    rows[0, 0], rows[:, 2] = 255, 9
    stage = levels_stage(rows, dtype)
    levels = stage.run(rows, Grid.table(dtype, 3))
    assert levels[:, 0].std() > 25
    assert np.ptp(levels[:, 2]) == 0
