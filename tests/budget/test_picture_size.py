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
    """Trainings that tell all labels from a side on, of which 48 may be over the budget.

    They return the sides that were trained.
    """
    monkeypatch.setattr(picture_size, "_resized", lambda images, side: images[:, :side, :side])
    sides: list[int] = []
    known = SimpleNamespace(sides=sides, least=24, fits=48)

    def train(X, y, *, image_shape, **given):
        assert (given["effort"], given["epochs"], given["link"]) == ("quick", 16, False)
        assert X.shape[1] == np.prod(image_shape)
        sides.append(image_shape[0])
        if image_shape[0] > known.fits:
            raise TinykernelError("too large")

        def scores(rows):
            return np.where(rows[:, :1] > 0, 9, -9) * (image_shape[0] >= known.least)

        return SimpleNamespace(
            model=SimpleNamespace(scores=scores, decision_scale=1.0), interrupted=False
        )

    monkeypatch.setattr(picture_size, "train", train)
    return known


@pytest.mark.parametrize(
    ("least", "fits", "tried", "best"),
    [
        (24, 48, [24, 32, 16], 24),
        (16, 48, [24, 32, 16], 16),
        (32, 48, [24, 32, 48], 32),
        (48, 48, [24, 32, 16], None),
        (32, 32, [24, 32, 48], 32),
    ],
)
def test_the_smallest_of_the_best_sizes_is_chosen(trained, least, fits, tried, best):
    """Larger sizes are tried where they help, and smaller ones where they are as good."""
    trained.least, trained.fits = least, fits
    found = choose_side(IMAGES, LABELS, (16, 24, 32, 48))
    assert trained.sides == tried
    assert (found and found[0]) == best
    if found:
        assert found[1].startswith(f"{best} x {best} chosen over ")


def test_few_pictures_decide_nothing(trained):
    """Below 200 pictures, or with one size, there is no choice."""
    assert choose_side(IMAGES[:150], LABELS[:150], (16, 24)) is None
    assert choose_side(IMAGES, LABELS, (24,)) is None
    trained.fits = 32
    assert choose_side(IMAGES, LABELS, (24, 48)) is None


def test_resized_arrays_are_resized_pictures():
    """The trials see what reading at that size gives, but for the rounding at 48 x 48."""
    small = _resized(IMAGES[:3], 32)
    for image, got in zip(IMAGES, small, strict=False):
        np.testing.assert_array_equal(got, resized(lambda a, b: image[a:b], 48, 48, 32, 32))  # noqa: B023
