"""Ensembles that teach a model: what is mixed, what is learned, and Ctrl-C before the lesson."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from tests.training.signals.test_planes import OPTIONS, SOUND
from tests.training.signals.test_training import chirps
from tinykernel import Classifier
from tinykernel.base import progress
from tinykernel.learn.signals.planes import mixed

SHORT = SOUND | OPTIONS | {"n_channels": 8, "epochs": 6}


@settings(max_examples=20)
@given(seed=st.integers(0, 99), n=st.integers(1, 6))
def test_mixed_spectra_are_mostly_their_own(seed, n):
    """Protects the mixture: each is itself, or rounded between itself and another, up to half."""
    rng = np.random.default_rng(seed)
    planes, others = rng.integers(0, 256, (2, n, 3, 2), np.uint8)
    wide = others.astype(int)
    for plane, result in zip(planes.astype(int), mixed(planes, others, rng), strict=True):
        between = ((w * plane + (256 - w) * wide + 128) // 256 for w in range(128, 257))
        assert any((each == result).all(axis=(1, 2)).any() for each in between)


def test_a_taught_model_is_reproducible_and_no_worse():
    """Protects the lesson: the same bytes with any number of threads, and classes are learned."""
    X, y = chirps(160, 0)
    taught = Classifier(**SHORT, teachers=2).fit(X, y)
    assert Classifier(**SHORT, teachers=2, n_jobs=1).fit(X, y).quantize() == taught.quantize()
    assert taught.quantize() != Classifier(**SHORT).fit(X, y).quantize()
    assert taught.score(*chirps(100, 1)) > 0.75


@pytest.mark.parametrize(
    ("last", "done", "epochs"),
    [
        ("teacher 1 of 2", 2, 2),
        ("teacher 2 of 2", 0, 6),
        ("teacher 2 of 2", 2, 6),
        ("what the teachers say", 0, 6),
        ("training", 0, 6),
    ],
)
def test_interrupted_teachers_give_the_first_one(last, done, epochs):
    """Ctrl-C keeps the first teacher: in a first epoch it lost all, and told another's epochs."""

    def interrupt(step):
        if (step.stage, step.done) == (last, done) and "stopped" not in step.message:
            raise KeyboardInterrupt

    X, y = chirps(160, 0)
    told = pytest.warns(ConvergenceWarning, match=f"after {epochs} epochs")
    with progress.observing(interrupt), told:
        model = Classifier(**SHORT, teachers=2).fit(X, y)
    assert [stage.KIND for stage in model.quantize().stages][-2] == "separable"
    assert model.n_iter_ == epochs


def test_ctrl_c_in_the_first_epoch_of_all_is_passed_on():
    """Before any teacher has learned an epoch there is no model to keep."""

    def interrupt(step):
        if step.stage == "teacher 1 of 1":
            raise KeyboardInterrupt

    with progress.observing(interrupt), pytest.raises(KeyboardInterrupt):
        Classifier(**SHORT, teachers=1).fit(*chirps(160, 0))
