"""Convolutions on spectra: how these are varied, what is learned, and when they are chosen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinykernel
from tests.training.signals.test_training import chirps
from tinykernel import Classifier
from tinykernel.learn.augment import Augmentation
from tinykernel.learn.signals.noises import ADDED
from tinykernel.learn.signals.planes import _noisy, masked, moved, varied

SOUND = {"rate": 8000.0, "hop": 640, "random_state": 0}
OPTIONS = {"spectrum": "128/64/10", "model": "separable"}


@settings(max_examples=20)
@given(seed=st.integers(0, 99), n=st.integers(1, 4), frames=st.integers(2, 9))
def test_each_variation_is_the_described_one(seed, n, frames):
    """Protects the parts of a variation against slow versions: moves, noise, what is hidden."""
    rng = np.random.default_rng(seed)
    planes = rng.integers(0, 256, (n, frames, 4), np.uint8)
    np.testing.assert_array_equal(varied(planes, Augmentation(), rng), planes)
    for places in moved(rng, n, frames, 2):
        assert any(
            places.tolist() == [min(max(i + away, 0), frames - 1) for i in range(frames)]
            for away in range(-2, 3)
        )
    for marks in masked(rng, n, frames, 2):
        assert marks.sum() <= 2
        assert np.count_nonzero(np.diff(marks)) <= 2
    before = planes.astype(np.int64)
    after = _noisy(before, rng)
    assert (after >= before).all()
    exact = 4 * np.log2(1 + 2 ** (-np.arange(len(ADDED)) / 4))
    assert ADDED.tolist() == np.rint(exact).tolist()


@pytest.mark.parametrize("streaming", ["off", "on"])
def test_convolutions_on_spectra_end_to_end(tmp_path, streaming):
    """Protects what is learned: accuracy, the same with any number of threads, the file."""
    X, y = chirps(160, 0)
    options = SOUND | OPTIONS | {"n_channels": 8, "epochs": 12, "streaming": streaming}
    model = Classifier(**options).fit(X, y)
    assert model.score(*chirps(100, 1)) > 0.75
    integer = model.quantize()
    kinds = [stage.KIND for stage in integer.stages]
    assert kinds == ["spectrum", "plane", "separable", "scale"]
    assert integer.stages[2].step == {"off": 1, "on": 2}[streaming]
    assert Classifier(**options, n_jobs=1).fit(X, y).quantize() == integer
    tinykernel.save(integer, tmp_path / "m.tkm")
    assert tinykernel.load(tmp_path / "m.tkm") == integer
