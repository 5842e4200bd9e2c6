"""Training of separable convolutions: the integers of the stage, and that it learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tinykernel.budget.contenders import Asked, sizes_that_fit
from tinykernel.errors import TinykernelError
from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.measure.limits import parse_limits
from tinykernel.model.grid import Grid
from tinykernel.model.stages.separable import Separable
from tinykernel.training.augment import Augmentation
from tinykernel.training.images.convolutions import as_levels
from tinykernel.training.images.separable import SeparableLearner, SeparablePlan, size_of
from tinykernel.training.inputs import choose_scaler
from tinykernel.training.loop import run_epochs
from tinykernel.training.readouts.linear import LinearRecipe

MIXED = {"convolutions": "mixed", "linear": 4, "random_state": 0}


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


@pytest.mark.parametrize("average", [1, 2])
def test_training_sees_what_the_stages_compute(average):
    """Protects that the linear part is learned on the integers of the firmware, odd sides too."""
    X, y = colours(64, 13)
    raw = X.reshape(64, -1)
    scaler = choose_scaler(raw.reshape(-1, 3), "uint8", 8, "channel")
    plan = SeparablePlan(
        (5, 8, 6), (1, 2, 2), average, linear=LinearRecipe(epochs=2, batch_rows=32)
    )
    images = as_levels(raw, scaler, (13, 13, 3))
    targets, weight = np.eye(2, dtype=np.float32)[y], np.ones(64, np.float32)
    learner = SeparableLearner(images, targets, weight, plan, Augmentation(affine=0.5))
    run_epochs(learner, 2, stage=None)
    given, values = Grid.raw("uint8", 13, 13, 3), raw
    for stage in learner.stages(scaler)[:2]:
        stage.ranges(given)
        values, given = stage.run(values, given), stage.gives(given)
    assert values.tolist() == learner.seen(images).tolist()
    assert values.std() > 0


def test_gradients_of_a_smooth_layer_are_those_of_differences():
    """The way back through normalised sums, against differences where nothing is rounded."""
    X, y = colours(32, 8)
    plan = SeparablePlan((4, 6), (1, 1), linear=LinearRecipe(epochs=1, batch_rows=32), smoothing=0)
    images = np.ascontiguousarray(X.transpose(0, 3, 1, 2))
    targets, weight = np.eye(2, dtype=np.float32)[y], np.ones(32, np.float32)
    learner = SeparableLearner(images, targets, weight, plan, Augmentation())
    rows = np.arange(32)

    def loss():
        learner.accumulate(rows)
        return float(learner.totals[:, 0].sum())

    loss()
    gradient = learner.gradients["shift_of"].sum(axis=0)
    units = np.argsort(-np.abs(gradient))[:3]
    for unit in units:
        before = learner.shift_of[unit]
        ends = []
        for step in (0.4, -0.4):  # many levels of a byte, so that rounding averages out
            learner.shift_of[unit] = before + np.float32(step)
            ends.append(loss())
        learner.shift_of[unit] = before
        assert (ends[0] - ends[1]) / 0.8 == pytest.approx(gradient[unit], rel=0.5)


def test_pictures_that_only_mixed_channels_tell_apart():
    """Colours side by side are learned; each channel alone says nothing of the class."""
    X, y = colours(400)
    machine = TernaryKernelClassifier(n_kernels=8, epochs=12, **MIXED).fit(X, y)
    model = machine.quantize()
    assert model.find(Separable) is not None
    test, truth = colours(200, seed=1)
    assert (model.predict(test) == truth).mean() > 0.8


@pytest.mark.slow
def test_the_budget_chooses_the_channels():
    """As many channels as fit; greys may have chains instead, colours may not."""
    X, y = colours(40, 24)
    told = {"image_shape": (24, 24, 3), "effort": "normal"}
    rows, limits = X.reshape(40, -1), parse_limits("12KB")
    asked = Asked(rows, y, told, limits, shape=(24, 24, 3), n_rows=2000)
    found = sizes_that_fit(asked)["n_kernels"]
    assert set(found) == {"mixed"}
    assert found["mixed"] > 32
    assert sizes_that_fit(asked.but(convolutions="mixed"))["n_kernels"] == found["mixed"]
    grey = replace(asked.but(image_shape=(24, 24)), rows=rows[:, :576], shape=(24, 24, 1))
    assert set(sizes_that_fit(grey)["n_kernels"]) == {"deep", "mixed"}
    short = sizes_that_fit(replace(asked, limits=parse_limits("flash=12KB,ram=6KB")))["n_kernels"]
    assert set(short) == {"mixed", "coarse"}
    assert short["mixed"] < short["coarse"] <= found["mixed"] + 16
    with pytest.raises(TinykernelError, match=r"the last one tried needs .* of RAM"):
        sizes_that_fit(replace(asked, limits=parse_limits("flash=12KB,ram=200B")))


def test_coarse_convolutions_keep_their_form_in_a_smaller_model():
    """Rows and columns are halved once more, also when trained again."""
    X, y = colours(60, 24)
    machine = TernaryKernelClassifier(
        n_kernels=8, epochs=1, convolutions="coarse", linear=4, random_state=0
    ).fit(X, y)
    assert machine.quantize().find(Separable).strides.tolist() == [1, 2, 1, 2, 1, 2, 1]
    assert size_of(machine.quantize()) == (8, "coarse")


@pytest.mark.parametrize(
    ("shape", "words"),
    [((3, 20, 1), "give 4 to 192 rows and columns"), ((12, 12, 17), "take up to 16")],
)
def test_images_without_mixed_convolutions(shape, words):
    """What has no network is refused in one line before the training."""
    X = np.zeros((8, *shape), np.uint8)
    X[::2] += 3
    with pytest.raises(TinykernelError, match=words):
        TernaryKernelClassifier(n_kernels=8, **MIXED).fit(X, np.arange(8) % 2)
