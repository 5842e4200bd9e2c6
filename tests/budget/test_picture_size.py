"""The size of pictures is chosen on held-out pictures, by the rule of every other choice."""

from types import SimpleNamespace

import numpy as np
import pytest

from tinykernel.base.errors import TinykernelError
from tinykernel.kinds.train import picture_size
from tinykernel.kinds.train.picture_size import choose_side

RNG = np.random.default_rng(0)
LABELS = np.tile(["a", "b"], 150)
IMAGES = RNG.integers(0, 256, (300, 48, 48, 1), np.uint8)
IMAGES[..., 0, 0, 0] = 40 * (LABELS == "b")  # the trainings below tell labels by this pixel


@pytest.fixture
def trained(monkeypatch):
    """Trainings that tell all labels from a side on, of which 48 may be over the budget.

    They return the sides that were trained.
    """
    monkeypatch.setattr(picture_size, "_resize", lambda image, side: image[:side, :side])
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
        (32, 32, [24, 32, 48], 32),
    ],
)
def test_the_smallest_of_the_best_sizes_is_chosen(trained, least, fits, tried, best):
    """Larger sizes are tried where they help, and smaller ones where they are as good."""
    trained.least, trained.fits = least, fits
    side, reason = choose_side(IMAGES, LABELS, (16, 24, 32, 48), 32)
    assert trained.sides == tried
    assert side == best
    assert reason.startswith(f"{best} x {best} chosen over ")


def test_the_only_size_within_the_budget_is_taken(trained):
    """The usual size is over the budget."""
    trained.fits = 16
    side, _ = choose_side(IMAGES, LABELS, (16, 24, 32, 48), 32)
    assert side == 16


def test_what_decides_nothing_leaves_the_usual_size(trained):
    """Few pictures, little time, a single size, and trainings that learned nothing."""
    assert choose_side(IMAGES, LABELS, (16, 24), 24, max_time=60.0) == (24, "")
    assert trained.sides == []
    assert choose_side(IMAGES[:150], LABELS[:150], (16, 24), 24) == (24, "")
    assert choose_side(IMAGES, LABELS, (16,), 16) == (16, "")
    trained.least = 99
    assert choose_side(IMAGES, LABELS, (16, 24, 32, 48), 32) == (32, "")
