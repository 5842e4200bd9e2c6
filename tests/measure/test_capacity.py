"""How many components fit a budget: with and without a compiler, never too few."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.random_models import random_model
from tinykernel import TernaryKernelClassifier, TinykernelError, report
from tinykernel.budget.standins import Asked
from tinykernel.measure import capacity
from tinykernel.training.layouts import layout_of
from tinykernel.training.options.forms import PRESETS


@pytest.fixture(scope="module")
def digits():
    """300 digits as bytes."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8)[:300], y[:300]


def trained(digits, layout, p):
    """Train a little."""
    model = TernaryKernelClassifier(
        n_components={layout: p}, epochs=2, effort="quick", random_state=0
    )
    return model.fit(*digits)


def test_the_estimate_decides(digits):
    """What is found needs no compiler, and leaves a margin for every one."""
    machine = Asked(*capacity.some_rows(*digits)).components("windows", 1024)
    p, _ = capacity.most_components(machine, layout_of("windows"), 6000, "cortex-m0")
    flash = report(trained(digits, "windows", p), "cortex-m0", compiler="none").flash
    assert 0.9 * 6000 < flash <= 0.98 * 6000


def test_code_that_was_not_measured_is_linked(monkeypatch, require_toolchain):
    """A target or a form that the table of code sizes lacks is no reason to refuse a budget."""
    require_toolchain("cortex-m4")
    model, real = random_model(1, n_features=8, n_classes=2), report

    def no_table(model, target, budget=None, *, compiler="auto"):
        if compiler == "none":
            raise TinykernelError("not measured")
        return real(model, target, budget, compiler=compiler)

    monkeypatch.setattr(capacity, "report", no_table)
    assert capacity.decisive_report(model, "cortex-m4").source == "linked"


@pytest.mark.parametrize("layout", PRESETS)
def test_no_trained_model_is_below_the_least_size(digits, layout):
    """Nothing that would fit is refused before its training."""
    machine = Asked(*capacity.some_rows(*digits)).components(layout, 1024)
    least = capacity.least_size(machine, layout_of(layout), 1024, "cortex-m4")
    sizes = capacity.decisive_report(trained(digits, layout, 1024).quantize(), "cortex-m4")
    needed = capacity.needed_bytes(sizes)
    assert least <= needed
    assert layout == "windows" or least > 0.9 * needed


def test_few_rows_tell_the_size_of_models_of_images():
    """Rows with the extremes of a channel do, in place of those of every pixel."""
    X = np.random.default_rng(0).integers(0, 256, (400, 48)).astype(np.uint8)
    few, _ = capacity.some_rows(X, np.arange(400) % 2, n_channels=3)
    assert len(few) < 40 < len(capacity.some_rows(X, np.arange(400) % 2)[0])
    for channel in range(3):
        whole = X[:, channel::3]
        assert (few[:, channel::3].min(), few[:, channel::3].max()) == (whole.min(), whole.max())
