"""Training of separable convolutions: the integers of the stage, and that it learns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinykernel.kinds.estimators.supervised import Classifier
from tinykernel.learn.augment import Augmentation
from tinykernel.learn.convolutions import separable_passes as passes
from tinykernel.learn.convolutions.chains import as_levels
from tinykernel.learn.convolutions.separable import SeparableLearner, SeparablePlan
from tinykernel.learn.inputs import choose_scaler
from tinykernel.learn.linear.training import LinearRecipe, TrainingRows
from tinykernel.learn.loop import run_epochs
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.layers import SINGLE, size_after
from tinykernel.pieces.separable.spec import Separable

OPTIONS = {"model": "separable", "linear": 4, "random_state": 0}


def colours(n, side=12, seed=0):
    """Make pictures of two classes: red stands left of green, or right of it."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 60, (n, side, side, 3)).astype(np.uint8)
    y = np.arange(n) % 2
    for picture, label in zip(X, y, strict=True):
        row, column = rng.integers(1, side - 4, 2)
        first, second = (0, 1) if label else (1, 0)
        picture[row : row + 3, column : column + 2, first] += 150
        picture[row : row + 3, column + 2 : column + 4, second] += 150
    return X, y


@pytest.mark.parametrize(("average", "row_strides"), [(1, None), (2, None), (1, (2, 1, 1))])
def test_training_sees_what_the_stages_compute(average, row_strides):
    """Protects that the linear part is learned on the integers of the firmware, odd sides too."""
    X, y = colours(64, 13)
    raw = X.reshape(64, -1)
    scaler = choose_scaler(raw.reshape(-1, 3), "uint8", 8, "channel")
    plan = SeparablePlan(
        *((5, 8, 6), (1, 2, 2), average),
        linear=LinearRecipe(epochs=2, batch_rows=32),
        row_strides=row_strides,
    )
    images = as_levels(raw, scaler, (13, 13, 3))
    rows = TrainingRows(images, np.eye(2, dtype=np.float32)[y], np.ones(64, np.float32))
    learner = SeparableLearner(rows, plan, Augmentation(affine=0.5))
    run_epochs(learner, 2, stage=None)
    ports, values = Grid.raw("uint8", 13, 13, 3), raw
    for stage in learner.stages(scaler)[:2]:
        stage.ranges(ports)
        values, ports = stage.run(values, ports), stage.gives(ports)
    assert values.tolist() == learner.features(images).tolist()
    assert values.std() > 0


@given(
    st.tuples(*[st.integers(3, 9)] * 2),
    st.sampled_from([1, 4, 8, 11]),
    st.tuples(*[st.integers(1, 2)] * 2, st.integers(0, 1)),
    st.integers(0, 2**32 - 1),
)
def test_passes_add_up_like_loops_over_positions(sides, n_channels, steps, seed):
    """Sums of kernels and both gradients are those of obvious loops, bit for bit."""
    rng, (down, across, above) = np.random.default_rng(seed), steps
    rows, columns = size_after(SINGLE, steps[:2], (above, 1), *sides)
    maps = rng.integers(0, 256, (2, *sides, n_channels)).astype(np.float32)
    weights = rng.integers(-7, 8, (9, n_channels)).astype(np.float32)
    d = rng.standard_normal((2, rows, columns, n_channels), dtype=np.float32)
    seen = np.zeros((*d.shape[:3], 9, n_channels), np.float32)
    d_maps, d_weights = np.zeros_like(maps), np.zeros((2, 9, n_channels), np.float32)
    for b, y, x, k in np.ndindex(seen.shape[:4]):
        v, u = y * down + k // 3 - above, x * across + k % 3 - 1
        if 0 <= v < sides[0] and 0 <= u < sides[1]:
            seen[b, y, x, k] = maps[b, v, u]
            d_maps[b, v, u] += weights[k] * d[b, y, x]
            d_weights[b, k] += maps[b, v, u] * d[b, y, x]
    out = np.full((*d.shape[:3], 9 * n_channels), np.nan, np.float32)
    passes.patches(0, 2, maps, steps, out)
    assert out.tobytes() == seen.tobytes()
    sums, back, gradients = np.full_like(d, np.nan), np.full_like(maps, 9), d_weights + 1
    passes.single_sums(0, 2, maps, weights, steps, sums)
    assert np.array_equal(sums, (seen * weights).sum(axis=3))
    passes.single_back(0, 2, maps, weights, steps, d, back, gradients)
    assert np.array_equal(back, d_maps)
    assert np.array_equal(gradients, d_weights)


def test_pictures_that_only_their_channels_tell_apart():
    """Colours side by side are learned; each channel alone says nothing of the class."""
    X, y = colours(400)
    machine = Classifier(n_channels=8, epochs=12, **OPTIONS).fit(X, y)
    model = machine.quantize()
    assert model.find(Separable) is not None
    test, truth = colours(200, seed=1)
    assert (model.predict(test) == truth).mean() > 0.8
