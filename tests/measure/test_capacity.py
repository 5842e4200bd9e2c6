"""How many components fit a budget: with and without a compiler, never too few."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.random_models import random_model
from tinykernel import TinykernelError, report
from tinykernel.base.checks import PRESETS
from tinykernel.kinds.kind import Problem
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.planning import size_specs
from tinykernel.learn.components.kind import ComponentsKind
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.trainset import prepare
from tinykernel.run import report as sizes
from tinykernel.run.limits import parse_limits


@pytest.fixture(scope="module")
def digits():
    """300 digits as bytes."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8)[:300], y[:300]


def problem_of(digits, budget, layout, target="cortex-m4"):
    """Return the problem of components of a layout within a budget."""
    options = TrainerOptions(layout=layout, effort="quick", epochs=2, random_state=0)
    return Problem(prepare(*digits)[1], options, None, parse_limits(budget), target)


@pytest.mark.parametrize("layout", PRESETS)
def test_the_estimate_decides(digits, layout):
    """What is found needs no compiler, and leaves a margin for every one."""
    problem, kind = problem_of(digits, "6000", layout, "cortex-m0"), ComponentsKind()
    (spec,) = size_specs(kind, problem).specs
    model = kind.fit(spec, problem, Pace()).machine
    flash = report(model, "cortex-m0", compiler="none").flash
    assert 0.88 * 6000 < flash <= 0.98 * 6000


def test_code_that_was_not_measured_is_linked(monkeypatch, require_toolchain):
    """A target or a form that the table of code sizes lacks is no reason to refuse a budget."""
    require_toolchain("cortex-m4")
    model, real = random_model(1, n_features=8, n_classes=2), report

    def no_table(model, target, budget=None, *, compiler="auto"):
        if compiler == "none":
            raise TinykernelError("not measured")
        return real(model, target, budget, compiler=compiler)

    monkeypatch.setattr(sizes, "report", no_table)
    assert sizes.decisive_report(model, "cortex-m4").source == "linked"


def test_few_rows_tell_the_size_of_models_of_images():
    """Rows with the extremes of a channel do, in place of those of every pixel."""
    X = np.random.default_rng(0).integers(0, 256, (400, 48)).astype(np.uint8)
    few = X[sizes.some_rows(X, np.arange(400) % 2, n_channels=3)]
    assert len(few) < 40 < len(sizes.some_rows(X, np.arange(400) % 2))
    for channel in range(3):
        whole = X[:, channel::3]
        assert (few[:, channel::3].min(), few[:, channel::3].max()) == (whole.min(), whole.max())
