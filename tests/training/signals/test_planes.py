"""Convolutions on spectra: how these are varied, what is learned, and when they are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinykernel
from tests.training.signals.test_training import chirps
from tinykernel import TernaryKernelClassifier, TinykernelError
from tinykernel.budget.ceilings import share_used
from tinykernel.budget.contenders import sizes_that_fit
from tinykernel.budget.standins import Asked
from tinykernel.measure.limits import parse_limits
from tinykernel.model.stages.separable import Separable
from tinykernel.training.augment import Augmentation
from tinykernel.training.options import TrainerOptions
from tinykernel.training.signals.planes import _ADDED, _hidden, _moved, _noisy, varied
from tinykernel.training.signals.spectra import better, fit_planes
from tinykernel.training.trainset import prepare

SOUND = {"rate": 8000.0, "hop": 640, "random_state": 0}
OPTIONS = {"spectrum": "128/64/10", "convolutions": "mixed"}


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), n=st.integers(1, 4), frames=st.integers(2, 9))
def test_each_variation_is_the_described_one(seed, n, frames):
    """Protects the parts of a variation against slow versions: moves, noise, what is hidden."""
    rng = np.random.default_rng(seed)
    planes = rng.integers(0, 256, (n, frames, 4), np.uint8)
    np.testing.assert_array_equal(varied(planes, Augmentation(), rng), planes)
    for places in _moved(rng, n, frames, 2):
        assert any(
            places.tolist() == [min(max(i + away, 0), frames - 1) for i in range(frames)]
            for away in range(-2, 3)
        )
    for marks in _hidden(rng, n, frames, 2):
        assert marks.sum() <= 2
        assert np.count_nonzero(np.diff(marks)) <= 2
    before = planes.astype(np.int64)
    after = _noisy(before, rng)
    assert (after >= before).all()
    exact = 4 * np.log2(1 + 2 ** (-np.arange(len(_ADDED)) / 4))
    assert _ADDED.tolist() == np.rint(exact).tolist()


def test_convolutions_on_spectra_end_to_end(tmp_path):
    """Protects what is learned: accuracy, the same with any number of threads, the file."""
    X, y = chirps(160, 0)
    model = TernaryKernelClassifier(**SOUND, **OPTIONS, n_kernels=8, epochs=12).fit(X, y)
    assert model.score(*chirps(100, 1)) > 0.75
    integer = model.quantize()
    kinds = [stage.KIND for stage in integer.stages]
    assert kinds == ["spectrum", "plane", "separable", "scale"]
    same = TernaryKernelClassifier(**SOUND, **OPTIONS, n_kernels=8, epochs=12, n_jobs=1)
    assert same.fit(X, y).quantize() == integer
    tinykernel.save(integer, tmp_path / "m.tkm")
    assert tinykernel.load(tmp_path / "m.tkm") == integer


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"spectrum": "off"}, "these have none; give spectrum=on"),
        ({"convolutions": "deep"}, "deep is for images"),
        ({"augment": {"noise": 0.1}}, "augment noise is for kernels"),
        ({"n_kernels": 300}, "300 channels; give at most 256"),
    ],
)
def test_what_spectra_cannot_have_is_refused(change, said):
    """Each ends in one line that says what to change."""
    with pytest.raises(TinykernelError, match=said):
        TernaryKernelClassifier(**SOUND | OPTIONS | change).fit(*chirps(24, 0))


def test_the_better_of_kernels_and_convolutions_is_trained():
    """Protects the choice on groups left out, and what `train` lets compete."""
    X, y = chirps(120, 0)
    _, data = prepare(X[:, :, 0], y, groups=np.arange(120) % 12)
    options = TrainerOptions(
        **SOUND, spectrum="128/64/10", n_kernels={"kernels": 8, "mixed": 8}, epochs=4
    )

    def told(part, one, shape):
        """Train kernels for convolutions, and untrained convolutions for kernels."""
        one = TrainerOptions(
            **SOUND, spectrum="128/64/10", convolutions="mixed", n_kernels=8, epochs=12
        )
        return fit_planes(part, one, shape, untrained=told.calls.append(0) or len(told.calls) == 1)

    told.calls = []
    chosen, choice = better(data, options, (1600, 1), told)
    assert chosen.convolutions == "mixed"
    assert "convolutions chosen over kernels on held-out rows" in choice.in_words
    X, y = chirps(640, 0)
    shared = {"rate": 8000.0, "hop": 640, "spectrum": "128/64/10", "random_state": 0}
    trained = tinykernel.train(
        X, y, budget="6KB", link=False, epochs=1, convolutions="mixed", **shared
    )
    assert trained.model.find(Separable).channels[-1] >= 16
    assert trained.sizes.flash <= 6144


@pytest.mark.slow
def test_limits_of_time_leave_room_for_convolutions():
    """Convolutions on spectra compete within a limit of instructions, with fewer channels."""
    X, y = chirps(640, 0)
    given = {"rate": 8000.0, "hop": 640, "spectrum": "128/64/10", "random_state": 0}
    channels = []
    for budget in ("8KB", "flash=8KB,instructions=900k"):
        limits = parse_limits(budget)
        asked = Asked.few(X, y, given, limits=limits, shape=(1600, 1))
        channels.append(sizes_that_fit(asked)["n_kernels"]["mixed"])
    assert 16 <= channels[1] < channels[0]
    model = asked.but(convolutions="mixed").integers(n_kernels=channels[1])
    assert share_used(model, limits, "cortex-m4")[0] <= 1
