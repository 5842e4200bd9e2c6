"""The size of pictures is chosen on held-out pictures, by the rule of every other choice."""

from types import SimpleNamespace

import numpy as np
import pytest

from tinykernel.budget import picture_size
from tinykernel.budget.picture_size import _resized, choose_side
from tinykernel.errors import TinykernelError
from tinykernel.resizing import resized

RNG = np.random.default_rng(0)
LABELS = np.tile(["a", "b"], 150)
IMAGES = RNG.integers(0, 256, (300, 48, 48, 1), np.uint8)
IMAGES[..., 0, 0, 0] = 40 * (LABELS == "b")  # the trainings below tell labels by this pixel


@pytest.fixture
def trained(monkeypatch):
    """Trainings of which a side of 24 and more tells all labels, and 48 is over the budget."""
    monkeypatch.setattr(picture_size, "_resized", lambda images, side: images[:, :side, :side])

    def train(X, y, *, image_shape, **given):
        assert (given["effort"], given["epochs"], given["link"]) == ("quick", 16, False)
        assert X.shape[1] == np.prod(image_shape)
        if image_shape[0] == 48:
            raise TinykernelError("too large")

        def scores(rows):
            return np.where(rows[:, :1] > 0, 9, -9) if image_shape[0] > 16 else 0 * rows[:, :1]

        return SimpleNamespace(
            model=SimpleNamespace(scores=scores, decision_scale=1.0), interrupted=False
        )

    monkeypatch.setattr(picture_size, "train", train)


def test_the_smallest_of_the_best_sizes_is_chosen(trained):
    """32 is as good as 24 and costs more; 16 is worse; 48 does not fit."""
    side, reason = choose_side(IMAGES, LABELS, (16, 24, 32, 48))
    assert side == 24
    assert reason.startswith("24 x 24 chosen over 16 x 16 and 32 x 32 on held-out rows")


def test_few_pictures_decide_nothing(trained):
    """Below 200 pictures, or with one size, there is no choice."""
    assert choose_side(IMAGES[:150], LABELS[:150], (16, 24)) is None
    assert choose_side(IMAGES, LABELS, (24,)) is None
    assert choose_side(IMAGES, LABELS, (24, 48)) is None


def test_resized_arrays_are_resized_pictures():
    """The trials see what reading at that size gives, but for the rounding at 48 x 48."""
    small = _resized(IMAGES[:3], 32)
    for image, got in zip(IMAGES, small, strict=False):
        np.testing.assert_array_equal(got, resized(lambda a, b: image[a:b], 48, 48, 32, 32))  # noqa: B023
