"""Training of kernels of images: what is learned is what the model computes."""

from __future__ import annotations

import numpy as np
import pytest

import tinykernel
from tinykernel import TernaryKernelClassifier
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.stages.components import Components
from tinykernel.training.augment import Augmentation
from tinykernel.training.images.kernels import KernelLearner, KernelPlan
from tinykernel.training.images.learner import as_levels
from tinykernel.training.inputs import choose_scaler
from tinykernel.training.loop import run_epochs
from tinykernel.training.loss import targets_of
from tinykernel.training.readouts.linear import LinearRecipe


def images(rng, shape, plan, n=40):
    """Make a learner on random images that has made a step."""
    height, width, channels = shape
    raw = rng.integers(0, 256, (n, height * width * channels)).astype(np.uint8)
    scaler = choose_scaler(raw.reshape(-1, channels), "uint8", 8, "global")
    targets = targets_of(rng.integers(0, 3, n), 3)
    learner = KernelLearner(
        as_levels(raw, scaler, shape), targets, np.ones(n, np.float32), plan, Augmentation()
    )
    run_epochs(learner, 1, stage=None)
    return raw, scaler, learner


def counts(stages, raw):
    """Run the stages of a model."""
    levels = stages.levels.run(raw, stages.taken)
    return stages.kernels.run(levels, stages.placed)


@pytest.mark.parametrize(
    ("shape", "size", "average", "cells"),
    [((12, 10, 1), 5, 1, (4, 4)), ((9, 14, 2), 3, 2, (3, 4)), ((40, 70, 1), 7, 1, (1, 2))],
)
def test_the_counts_in_training_are_those_of_the_stage(shape, size, average, cells):
    """Protects that thresholds and weights are learned on what the firmware counts."""
    rng = np.random.default_rng(0)
    plan = KernelPlan(
        n_kernels=5, size=size, average=average, cells=cells, linear=LinearRecipe(epochs=1)
    )
    raw, scaler, learner = images(rng, shape, plan)
    stages = learner.counting(scaler, np.arange(5))
    counted = (counts(stages, raw).astype(np.int64) * learner._known.multiplier) >> 16
    assert stages.largest_count <= learner.largest_count
    np.testing.assert_array_equal(learner.seen(learner.inputs), counted)


def test_images_end_to_end(digits, tmp_path):
    """Protects kernels learned for images: accuracy, the integers, the file, the threads."""
    X, X_test, y, y_test = digits
    options = {"image_shape": (8, 8), "n_kernels": 16, "epochs": 15, "random_state": 0}
    model = TernaryKernelClassifier(**options, n_jobs=1).fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    integer = model.quantize()
    np.testing.assert_array_equal(integer.predict(X_test), model.predict(X_test))
    assert integer.input.shape == model.input_shape_[:2] == (8, 8)
    other = TernaryKernelClassifier(**options, n_jobs=2).fit(X.reshape(-1, 8, 8), y)
    assert other.quantize() == integer
    tinykernel.save(model, tmp_path / "m.tkm")
    assert tinykernel.load(tmp_path / "m.tkm").quantize() == integer


def test_a_linear_part_beside_components(digits):
    """Protects joint training: it helps few components."""
    X, X_test, y, y_test = digits
    given = {"n_components": 64, "effort": "quick", "epochs": 30, "random_state": 0}
    alone = TernaryKernelClassifier(**given).fit(X, y)
    both = TernaryKernelClassifier(**given, linear=4).fit(X, y)
    assert both.score(X_test, y_test) > alone.score(X_test, y_test) + 0.03
    integer = both.quantize()
    assert integer.find(Linear) is not None
    assert integer.find(Components) is not None
