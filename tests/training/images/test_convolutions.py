"""Convolutions of images: the integers of the stages, the gradients, the whole training."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from tinykernel.kinds.estimators.supervised import Classifier
from tinykernel.learn.augment import Augmentation
from tinykernel.learn.convolutions import chains
from tinykernel.learn.inputs import choose_scaler
from tinykernel.learn.linear.training import LinearRecipe, TrainingRows, round_linear
from tinykernel.learn.loop import run_epochs
from tinykernel.learn.loss import targets_of
from tinykernel.pieces.convolutions.spec import Convolutions
from tinykernel.pieces.grid import Grid


def learner_of(rng, shape, plan, n=64):
    """Make a learner on random strokes that has made a step."""
    raw = rng.integers(0, 256, (n, shape[0] * shape[1])).astype(np.uint8)
    raw[rng.random(raw.shape) < 0.6] = 0
    scaler = choose_scaler(raw.reshape(-1, 1), "uint8", 8, "global")
    targets = targets_of(rng.integers(0, 3, n), 3)
    images = chains.as_levels(raw, scaler, (*shape, 1))
    weight = rng.uniform(0.5, 1.5, n).astype(np.float32)
    learner = chains.ConvolutionLearner(TrainingRows(images, targets, weight), plan, Augmentation())
    run_epochs(learner, 1, stage=None)
    return raw, scaler, learner


@settings(max_examples=4)
@given(
    seed=st.integers(0, 99),
    height=st.integers(13, 31),
    width=st.integers(13, 20),
    average=st.integers(1, 2),
    channels=st.integers(1, 5),
)
def test_hidden_values_in_training_are_those_of_the_stages(seed, height, width, average, channels):
    """Protects that all is learned on what the firmware computes, odd rows and pools included."""
    rng = np.random.default_rng(seed)
    pools = chains.pools_for(min(height, width) // average + 2)
    plan = chains.ConvolutionPlan(channels, 7, average, 1, pools, LinearRecipe(epochs=1))
    raw, scaler, learner = learner_of(rng, (height, width), plan)
    values, grid = raw, Grid.raw("uint8", height, width, 1)
    for stage in learner.stages(scaler):
        values, grid = stage.run(values, grid), stage.gives(grid)
    np.testing.assert_array_equal(learner.features(learner.inputs), values.astype(np.int64) + 128)


def slow_gradients(learner, row):
    """Compute the gradients of one row step by step, straight through what has no derivative."""
    taps, biases, hidden, hidden_biases = learner._numbers()
    levels, step = round_linear(learner.linear, learner.recipe.bits)
    n_layers, n_channels = biases.shape
    maps, responses, features = {}, {}, []
    given = learner.inputs[row : row + 1].astype(np.int64)
    image = chains.padded_levels(given, learner.plan.average, learner.plan.padding)[0, 0]
    for c in range(n_channels):
        f = image
        for layer in range(n_layers):
            windows = sliding_window_view(f, (3, 3))
            a = np.einsum("yxij,ij->yx", windows, taps[layer, c].reshape(3, 3)) + biases[layer, c]
            maps[layer, c], responses[layer, c] = f, np.clip(np.floor(a), 0, 255)
            f = responses[layer, c]
            if learner.plan.pools[layer] == 2:
                y, x = f.shape[0] // 2, f.shape[1] // 2
                f = f[: 2 * y, : 2 * x].reshape(y, 2, x, 2).max(axis=(1, 3))
        features.append(f.ravel())
    v = np.concatenate(features)
    h = np.clip(np.floor(v @ hidden + hidden_biases), 0, 255)
    u = (h - learner.mean) * learner.unit
    scores = learner.scale() * (u @ (levels * step)) + learner.offset
    share = np.exp(scores - scores.max())
    d = (share / share.sum() - learner.targets[row]) * learner.weight[row] * learner.scale()
    du = (levels * step) @ d * learner.unit * ((h > 0) & (h < 255))
    found = {"linear": np.outer(u, d), "hidden": np.outer(v - learner.centre, du)}
    df = (hidden @ du).reshape(n_channels, -1)
    found["taps"] = np.zeros(taps.shape)
    for c in range(n_channels):
        g = df[c]
        for layer in reversed(range(n_layers)):
            f, a = maps[layer, c], responses[layer, c]
            below = np.zeros(a.shape)
            pool = learner.plan.pools[layer]
            g = g.reshape(a.shape[0] // pool, a.shape[1] // pool)
            for y, x in np.ndindex(g.shape):
                part = a[pool * y : pool * y + pool, pool * x : pool * x + pool]
                i, j = np.unravel_index(part.argmax(), part.shape)
                below[pool * y + i, pool * x + j] = g[y, x] * (0 < part.max() < 255)
            windows = sliding_window_view(f, (3, 3))
            found["taps"][layer, c] = np.einsum("yxij,yx->ij", windows, below).ravel()
            g = np.zeros(f.shape)
            for y, x in np.ndindex(below.shape):
                g[y : y + 3, x : x + 3] += below[y, x] * taps[layer, c].reshape(3, 3)
    return found


def test_gradients_are_those_of_the_steps_one_by_one():
    """Protects the way back through hidden layer, pooling, clipping and three layers."""
    plan = chains.ConvolutionPlan(3, 6, 1, 1, (1, 2, 2), LinearRecipe(epochs=1))
    _, _, learner = learner_of(np.random.default_rng(1), (15, 14), plan)
    rows = np.arange(32)
    learner.accumulate(rows)
    slow = [slow_gradients(learner, row) for row in rows]
    for name in ("linear", "hidden", "taps"):
        expected = sum(each[name] for each in slow)
        fast = learner.gradients[name][0]  # 32 rows fill the first slot; others are not read
        np.testing.assert_allclose(fast, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
        assert np.abs(expected).max() > 0


def strokes(n, seed):
    """Return bars that stand or lie, anywhere in a noisy image of 14 x 16."""
    rng = np.random.default_rng(seed)
    images, y = rng.integers(0, 60, (n, 14, 16)), np.arange(n) % 2
    for image, lies in zip(images, y, strict=True):
        i, j = rng.integers(2, 7, 2)
        image[i : i + (2 if lies else 6), j : j + (6 if lies else 2)] += 150
    return images.astype(np.uint8), y


def test_convolutions_end_to_end():
    """Protects accuracy, and the choice by rows left out."""
    X, y = strokes(600, 0)
    options = {"image_shape": (14, 16), "epochs": 8, "random_state": 0}
    model = Classifier(**options, model="chains", n_channels=6).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.95
    assert model.quantize().find(Convolutions).n_channels == 6
    chosen = Classifier(**options, n_channels=4).fit(X[:400], y[:400])
    assert chosen.score(X[400:], y[400:]) > 0.9
    assert chosen.search_["contest"]
