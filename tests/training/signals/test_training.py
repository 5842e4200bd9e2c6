"""Training on windows of signals: what is learned is what the model computes."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import tinykernel
from tests.refusals import refused
from tinykernel import Classifier
from tinykernel.base import progress
from tinykernel.base.errors import OptionError
from tinykernel.kinds.kind import Problem
from tinykernel.kinds.pace import Pace
from tinykernel.learn.inputs import choose_scaler
from tinykernel.learn.linear.training import TrainingRows
from tinykernel.learn.loss import targets_of
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.signals.kind import KernelsKind, KernelsSpec
from tinykernel.learn.signals.pool import SignalPlan, SignalPool
from tinykernel.learn.signals.spectrum import spectrum_of
from tinykernel.learn.trainset import prepare
from tinykernel.pieces.kernels.spec import Kernels

pytestmark = pytest.mark.usefixtures("page")


@pytest.fixture(scope="module")
def waves():
    """Windows of two channels: three kinds of oscillation with a random phase."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    t = np.arange(64) + 40 * rng.random((240, 1))
    frequency = np.array([0.03, 0.07, 0.15])[y][:, np.newaxis]
    first = np.sin(2 * np.pi * frequency * t)
    X = np.stack([first, 0.5 * first + y[:, np.newaxis] * 0.2], axis=2)
    X += 0.1 * rng.standard_normal(X.shape)
    return np.rint(1000 * X).astype(np.int16), y


def counts(stages, raw):
    """Run the stages of a model."""
    levels = stages.levels.run(raw, stages.grid)
    return stages.kernels.run(levels, stages.placed)


@pytest.mark.parametrize("cells", [1, 3])
def test_the_counts_of_a_pool_are_those_of_the_stage(waves, cells):
    """Protects the same for signals, for every kind of kernel and after some are chosen."""
    X, y = waves
    rows = X.reshape(len(X), -1)
    scaler = choose_scaler(rows.reshape(-1, 2), "int16", 16, "feature")
    windows = TrainingRows(rows, targets_of(y, 3), np.ones(len(y), np.float32))
    plan = SignalPlan(n_kernels=20, n_pool=90, cells=cells)
    pool = SignalPool(windows, (64, 2), scaler, plan)
    np.testing.assert_array_equal(pool.counts(rows), counts(pool.stages, rows))
    kept, stages = pool.reduced(pool.ranked())
    assert kept.size == 20
    columns = pool.columns(kept)
    np.testing.assert_array_equal(pool.counts(rows)[:, columns], counts(stages, rows))


def places(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return windows with a beat that is early, on time or late, and groups."""
    rng = np.random.default_rng(0)
    y, group = np.arange(n) % 3, np.arange(n) % 7
    X = 30 * rng.standard_normal((n, 256, 1))
    for row, label in zip(X[:, :, 0], y, strict=True):
        row[100 + 20 * label + rng.integers(-2, 3) + np.arange(4)] += 1000
    return np.rint(X).astype(np.int16), y, group


def cells_of(X: np.ndarray, y: np.ndarray, *weight: np.ndarray, **rows: object) -> int:
    """Return how many cells short fits choose, of those that compete."""
    data = prepare(X.reshape(len(X), -1), y, *weight, **rows)[1]
    problem = Problem(data, TrainerOptions(random_state=0), X.shape[1:])
    specs = [KernelsSpec(n_kernels=64 // cells, cells=cells) for cells in (1, 16)]
    trials = [trial for best in KernelsKind().tune(specs, problem, Pace()) for trial in best]
    return trials[0].spec.cells if trials else 1


@pytest.mark.slow
def test_cells_are_chosen_where_the_place_matters(waves):
    """Protects that `train` finds by groups left out when counts need cells, and what is refused.

    The option has to reach the models by which the size is told, or those trained are too large.
    """
    X, y, group = places(1002)
    trained = tinykernel.train(X, y, groups=group, random_state=0, budget="4KB", link=False)
    assert trained.model.find(Kernels).cells == (16, 1)
    assert trained.trainings == 1
    assert trained.sizes.flash > 3500
    assert cells_of(waves[0], waves[1]) == 1
    later = waves[1] > 0  # nothing can be held out of two groups of a class each
    assert cells_of(waves[0], later, groups=later) == 1
    heavy = np.full(len(X), 1e6)  # once an error
    assert cells_of(X, y, heavy, groups=group) == 16
    for cells in (121, 256):
        refused(OptionError, Classifier(cells=cells).fit, X, y)
    refused(OptionError, Classifier(cells=4).fit, *load_iris(return_X_y=True))


def chirps(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return tones that rise or fall, at any loudness and phase, in noise; 0.2 s at 8 kHz."""
    rng = np.random.default_rng(seed)
    y, t = np.arange(n) % 2, np.arange(1600) / 8000
    slope = np.where(y, 1, -1) * 6000
    start = 1600 - 0.1 * slope + rng.uniform(-200, 200, n)
    phase = 2 * np.pi * (start[:, None] * t + slope[:, None] * t**2 / 2)
    tones = np.sin(phase + rng.uniform(0, 7, (n, 1))) * 10 ** rng.uniform(2.5, 4, (n, 1))
    return np.rint(tones + 30 * rng.standard_normal((n, 1600))).astype(np.int16)[:, :, None], y


def test_sounds_end_to_end():
    """Protects spectra in training: accuracy at any loudness, and what cannot be."""
    X, y = chirps(160, 0)
    options = {"rate": 8000.0, "spectrum": "128/64/10", "hop": 640, "n_kernels": 20}
    model = Classifier(**options, random_state=0).fit(X, y)
    assert model.score(*chirps(100, 1)) > 0.9
    integer = model.quantize()
    moved = Classifier(**options, augment={"shift": 200}, random_state=0).fit(X, y)
    assert moved.score(*chirps(100, 1)) > 0.9
    assert moved.quantize() != integer
    assert [stage.KIND for stage in integer.stages] == ["spectrum", "levels", "kernels", "scale"]
    assert (integer.input.shape, integer.hop) == ((1600, 1), 640)
    for change in (
        {"hop": 100},
        {"rate": None},
        {"spectrum": "100/50/5"},
        {"spectrum": "512/320/5"},
        {"spectrum": "128/0/5"},
        {"spectrum": "128/64/10", "cells": 30},
        {"augment": {"affine": 1}, "spectrum": "off"},
    ):
        refused(OptionError, Classifier(**options | change).fit, X, y)
    refused(OptionError, Classifier(**options, augment={"rotate": 0.1}).fit, X.repeat(3, axis=2), y)


@pytest.mark.parametrize(
    ("change", "samples", "said"),
    [
        ({}, 500, "$"),
        ({"rate": 50.0}, 8000, "$"),
        ({"rate": None}, 8000, "$"),
        ({"spectrum": "off"}, 8000, "$"),
        ({"hop": 1999}, 4000, "no spectrum: a hop of 1999 samples .* give a hop of 2000"),
        ({"augment": {"rotate": 0.1}}, 8000, "no spectrum: augment rotate"),
        ({"augment": {"noise": 0.1}}, 8000, (256, 160)),
        ({"hop": 500}, 1000, (128, 50)),
        ({"hop": 1000}, 2000, (256, 125)),
        ({"augment": {"shift": 1}}, 8000, (256, 160)),
    ],
)
def test_a_spectrum_that_is_not_used_is_told(change, samples, said):
    """Windows of sound whose hop, length or added noise forbid one are told so.

    Slow signals, short windows and floats keep their kernels on samples.
    """
    options = TrainerOptions(**{"rate": 8000.0} | change)
    assert spectrum_of(options, (samples, 1), "float32")[0] is None
    found, why = spectrum_of(options, (samples, 1), "int16")
    if isinstance(said, str):
        assert found is None
        assert re.match(said, why)
        return
    assert why == ""
    assert (found.length, found.hop) == said
    assert found.frames(samples) >= 12


def test_chosen_kernels_do_not_hide_that_labels_are_random():
    """Their own error left out is that of a guess, 1, so that the penalty is large enough."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 50, (60, 64)).astype(np.int16)
    model = Classifier(window_shape=(64, 1), n_kernels=128, random_state=0)
    assert model.fit(X, rng.integers(0, 2, 60)).history_["loss"][-1] > 0.8


@pytest.mark.parametrize(
    ("stage", "number", "keeps"),
    [("choosing kernels", 1, False), ("rounding", 0, False), ("rounding", 3, True)],
)
def test_ctrl_c_in_closed_form_leaves_a_model(waves, stage, number, keeps):
    """The best levels until then are kept, with a warning; before there are any, the fit ends."""
    X, y = (np.repeat(part, 6 if stage == "rounding" else 1, axis=0) for part in waves)
    X = X + np.arange(len(X))[:, None, None].astype(X.dtype) % 7
    model = Classifier(n_kernels=16, random_state=0)

    def interrupt(message):
        if (message.stage, message.done) == (stage, number):
            raise KeyboardInterrupt

    with progress.observing(interrupt):
        if keeps:
            with pytest.warns(ConvergenceWarning):
                model.fit(X, y)
            assert model.interrupted_
            assert model.score(X, y) > 0.8
        else:
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, y)


def test_rows_for_validation_choose_the_penalty(waves):
    """They need no gradients; labels that are noise get a large penalty."""
    X, y = waves
    fits = []
    for labels in (y[160:], np.random.default_rng(0).integers(0, 2, len(y) - 160)):
        model = Classifier(n_kernels=16, random_state=0)
        fits.append(model.fit(X[:160], y[:160], validation=(X[160:], labels)))
    losses = [model.history_["loss"][-1] for model in fits]
    assert losses[0] < 0.6 < losses[1]
    assert fits[0].quantize() != fits[1].quantize()
