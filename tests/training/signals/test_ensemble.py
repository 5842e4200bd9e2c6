"""Ensembles that teach a model: what is mixed, what is learned, and Ctrl-C before the lesson."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from tests.training.signals.test_planes import OPTIONS, SOUND
from tests.training.signals.test_training import chirps
from tinykernel import Classifier, Regressor, train
from tinykernel.base import progress
from tinykernel.compile.enums import consists_of
from tinykernel.learn.augment import Augmentation
from tinykernel.learn.convolutions.separable import SeparablePlan
from tinykernel.learn.signals.planes import (
    AT_ONCE,
    Succession,
    copies_for,
    mixed,
    taught_plan,
    varied_copies,
)

SHORT = SOUND | OPTIONS | {"n_channels": 8, "epochs": 6}


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), n=st.integers(1, 6))
def test_mixed_spectra_are_mostly_their_own(seed, n):
    """Protects the mixture: each is itself, or rounded between itself and another, up to half."""
    rng = np.random.default_rng(seed)
    planes, others = rng.integers(0, 256, (2, n, 3, 2), np.uint8)
    wide = others.astype(int)
    for plane, result in zip(planes.astype(int), mixed(planes, others, rng), strict=True):
        between = ((w * plane + (256 - w) * wide + 128) // 256 for w in range(128, 257))
        assert any((each == result).all(axis=(1, 2)).any() for each in between)


def test_copies_follow_the_windows_in_any_number():
    """Many are varied part by part, which takes less memory; a part is mixed within itself."""
    planes = np.repeat(np.uint8([9, 90, 200]), [AT_ONCE, AT_ONCE, 1])[:, None, None]
    copies = varied_copies(planes, Augmentation(), 2, np.random.default_rng(0))
    assert copies.tolist() == [*planes.tolist()] * 2


@given(epochs=st.integers(1, 300), n=st.integers(1, 1 << 18))
def test_a_lesson_is_as_long_as_planned(epochs, n):
    """Few epochs, of a time limit, had a lesson of whole passes of 16 copies: up to six times."""
    copies = copies_for(epochs, n)
    total = copies * taught_plan(SeparablePlan((8,), (2,)), epochs, n).linear.epochs
    assert epochs <= total <= epochs * 9 / 8 + 1
    assert copies == 1 or copies * n <= 1 << 16


def test_a_taught_model_is_reproducible_and_no_worse():
    """Protects the lesson: the same bytes with any number of threads, and classes are learned."""
    X, y = chirps(160, 0)
    taught = Classifier(**SHORT, teachers=2).fit(X, y)
    assert Classifier(**SHORT, teachers=2, n_jobs=1).fit(X, y).quantize() == taught.quantize()
    assert taught.quantize() != Classifier(**SHORT).fit(X, y).quantize()
    assert taught.score(*chirps(100, 1)) > 0.75


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.data())
def test_trainings_of_a_succession_end_as_planned(planned, data):
    """Cuts anywhere leave each training an epoch, and otherwise as many in all as were told."""
    told = []

    def replan(done, total, seconds):
        told.append(data.draw(st.integers(done + 1, total)))
        return told[-1]

    trainings, done_in_all = Succession(planned, replan), 0
    for _ in planned:
        done, total = 0, trainings.begin()
        while (done := done + 1) < total:
            total = trainings.replan(done, total, 0.1)
            assert done < total
        done_in_all += done
    assert len(planned) <= done_in_all <= min([sum(planned), *(t + len(planned) for t in told)])


def test_a_cut_shortens_all_that_follows():
    """Teachers that took longer than planned left a lesson of two passes."""
    steps = {}

    def note(step):
        steps[step.stage] = step.total

    with progress.observing(note):
        model = Classifier(**SHORT, teachers=2, effort="1/all/1+1-12").fit(*chirps(160, 0))
    assert [steps[f"teacher {k} of 2"] for k in (1, 2)] == [2, 2]  # of 6, 6, and 18 of the lesson
    assert steps["training"] == model.n_iter_ == 6


def test_a_training_names_teachers_and_streams():
    """What is said of a model had neither."""
    found = train(*chirps(80, 0), **SHORT | {"epochs": 1}, teachers=2, streaming="on", link=False)
    assert ", 2 teachers, " in repr(found)
    assert "separable convolutions that stream, 8 channels" in consists_of(found.model)


def test_two_classes_and_values_are_taught():
    """Protects the answers of one output: a probability of two classes, and a value."""
    X, y = chirps(160, 0)
    is_first = y == y[0]
    assert Classifier(**SHORT, teachers=1).fit(X, is_first).score(X, is_first) > 0.8
    values = Regressor(**SHORT, teachers=1).fit(X, is_first.astype(float)).predict(X)
    assert values[is_first].mean() > values[~is_first].mean() + 0.2


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
