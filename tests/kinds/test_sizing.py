"""Sizes of specs: the largest within the limits, found with few untrained models."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.training.signals.test_training import chirps
from tinykernel.kinds.kind import Problem
from tinykernel.kinds.planning import size_specs, usage
from tinykernel.kinds.selection import KINDS
from tinykernel.learn.components.kind import ComponentsKind
from tinykernel.learn.convolutions.kind import SeparableKind
from tinykernel.learn.linear.kind import LinearKind, LinearSpec
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.perceptron.kind import PerceptronKind
from tinykernel.learn.signals.kind import KernelsKind
from tinykernel.learn.trainset import prepare
from tinykernel.pieces.separable.spec import Separable
from tinykernel.run.limits import parse_limits

BY_NAME = {kind.name: kind for kind in KINDS}


def problem_of(X, y, budget, shape=None, **options):
    """Return a problem within a budget."""
    data = prepare(X.reshape(len(X), -1), y)[1]
    return Problem(data, TrainerOptions(random_state=0, **options), shape, parse_limits(budget))


def images(side, channels=1, n=40):
    """Return random images of ten classes."""
    X = np.random.default_rng(0).integers(0, 256, (n, side, side, channels), np.uint8)
    return X, np.arange(n) % 10


@pytest.mark.parametrize("budget", ["3KB", "8KB", "flash=8KB,instructions=60k"])
def test_each_form_of_components_uses_the_budget(budget):
    """Layouts compete, with a linear part and without; nothing larger would fit."""
    X, y = load_digits(return_X_y=True)
    problem, kind = problem_of(X[:300].astype(np.uint8), y[:300], budget), ComponentsKind()
    found = size_specs(kind, problem).specs
    forms = [(spec.layout, spec.linear_bits) for spec in found]
    assert forms == [(name, bits) for name in ("full", "windows") for bits in (None, 4)]
    for spec in found:
        known = problem.limits, problem.target
        share = usage(kind.skeleton(spec, problem), *known, slack=True).share
        assert 0.9 < share <= 1


def test_a_linear_part_over_the_budget_becomes_narrower():
    """Then it has one scale for all inputs; with a width that is fixed, only that."""
    X, y = load_digits(return_X_y=True)
    problem, kind = problem_of(X[:300], y[:300], "8KB"), LinearKind()
    model = kind.skeleton(LinearSpec(4), problem)
    assert kind.smaller(LinearSpec(4), 10, model, problem) == LinearSpec(2)
    assert kind.smaller(LinearSpec(2), 10, model, problem).scaler_scope == "global"
    fixed = problem_of(X[:300], y[:300], "8KB", linear=8)
    assert kind.smaller(LinearSpec(8), 10, model, fixed).scaler_scope == "global"


@pytest.mark.parametrize("budget", ["2KB", "flash=8KB,instructions=20k", "flash=30KB,ram=1KB"])
def test_hidden_layers_fill_the_budget(budget):
    """Two layers compete with one; one unit more would be over a limit."""
    X, y = load_digits(return_X_y=True)
    problem, kind = problem_of(X[:300].astype(np.uint8), y[:300], budget), PerceptronKind()
    found = size_specs(kind, problem).specs
    assert [spec.n_layers for spec in found] == [2, 1]
    for spec in found:
        known = problem.limits, problem.target
        assert usage(kind.skeleton(spec, problem), *known, slack=True).share <= 1
        wider = kind.resize(spec, round(1.05 * spec.n_units) + 2, problem)
        assert usage(kind.skeleton(wider, problem), *known, slack=True).share > 1


def test_channels_of_convolutions_fill_the_budget():
    """Separable convolutions take colours, chains greys only; coarse ones where RAM is short."""
    X, y = images(24, 3)
    problem = problem_of(X, y, "12KB", (24, 24, 3), image_shape=(24, 24, 3))
    assert BY_NAME["chains"].applies(problem) == "images have 3 channels, and chains take one"
    (fine,) = size_specs(SeparableKind(), problem).specs
    assert fine.n_channels > 32
    short = problem_of(X, y, "flash=12KB,ram=6KB", (24, 24, 3), image_shape=(24, 24, 3))
    less, coarse = size_specs(SeparableKind(), short).specs
    assert (less.is_coarse, coarse.is_coarse) == (False, True)
    assert less.n_channels < coarse.n_channels <= fine.n_channels + 16
    blocks = SeparableKind().skeleton(coarse, short).find(Separable)
    assert blocks.strides.tolist() == [1, 2, 1, 2, 1, 2, 1]


@pytest.mark.parametrize("budget", ["2KB", "30KB", "flash=30KB,instructions=700k"])
def test_chains_do_not_take_long(budget):
    """A small model of large images has few channels; limits of time hold."""
    X, y = images(28)
    problem = problem_of(X, y, budget, (28, 28, 1), image_shape=(28, 28))
    (spec,) = size_specs(BY_NAME["chains"], problem).specs
    assert spec.n_channels >= 4
    model = BY_NAME["chains"].skeleton(spec, problem)
    assert usage(model, problem.limits, problem.target).share <= 1


def test_few_windows_have_weights_of_eight_bits_where_as_many_kernels_fit():
    """Weights of 1024 kernels have 8 bits where the budget has room."""
    rng, y = np.random.default_rng(0), np.arange(24) % 2
    X = rng.normal(0, 50, (24, 48)).cumsum(axis=1) + 9 * np.arange(48) * y[:, None]
    for budget, bits in (("16KB", 8), ("4KB", 4)):
        problem = problem_of(X.astype(np.int16), y, budget, (48, 1), window_shape=(48, 1))
        (spec,) = size_specs(KernelsKind(), problem).specs
        assert spec.bits == bits
        assert (spec.n_kernels == 1024) == (bits == 8)


def test_a_spectrum_that_leaves_no_room_is_left_out():
    """Kernels on samples fit where the code of a spectrum does not, and a warning says so."""
    rng, y = np.random.default_rng(0), np.arange(24) % 2
    X = (1000 * rng.standard_normal((24, 1024, 1)) * (1 + y[:, None, None])).astype(np.int16)
    problem = problem_of(X, y, "2KB", (1024, 1), rate=1000.0)
    with pytest.warns(UserWarning, match="no spectrum: the budget leaves room for fewer than 16"):
        (spec,) = size_specs(KernelsKind(), problem).specs
    assert not spec.on_spectrum
    larger = problem_of(X, y, "4KB", (1024, 1), rate=1000.0)
    assert size_specs(KernelsKind(), larger).specs[0].on_spectrum


def test_convolutions_of_spectra_compete_with_fewer_channels_in_less_time():
    """16 channels or more, of 600 windows or more."""
    X, y = chirps(640, 0)
    shared = {"rate": 8000.0, "hop": 640, "spectrum": "128/64/10"}
    channels = []
    for budget in ("8KB", "flash=8KB,instructions=900k"):
        problem = problem_of(X, y, budget, (1600, 1), **shared)
        assert SeparableKind().applies(problem) == ""
        (spec,) = size_specs(SeparableKind(), problem).specs
        channels.append(spec.n_channels)
    assert 16 <= channels[1] < channels[0]
    few = problem_of(X[:599], y[:599], "8KB", (1600, 1), **shared)
    assert SeparableKind().applies(few)
