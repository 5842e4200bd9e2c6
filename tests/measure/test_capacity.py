"""How many components fit a budget: with and without a compiler, never too few."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tinykernel import TernaryKernelClassifier, report
from tinykernel.budget.untrained import untrained
from tinykernel.measure import capacity
from tinykernel.training.layouts import LAYOUTS


@pytest.fixture(scope="module")
def digits():
    """300 digits as bytes."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8)[:300], y[:300]


def trained(digits, layout, p):
    """Train a little."""
    model = TernaryKernelClassifier(
        n_components=p, layout=layout, epochs=2, search=False, random_state=0
    )
    return model.fit(*digits)


def test_estimate_without_a_compiler(digits, monkeypatch):
    """Where there is no compiler the estimate decides, with a margin."""
    monkeypatch.setattr(capacity, "find_toolchain", lambda target: None)
    monkeypatch.setattr(
        capacity, "report", lambda model, target: report(model, target, compiler="none")
    )
    machine = untrained(*capacity.some_rows(*digits), {}, "windows", 1024)
    p, _ = capacity.most_components(machine, LAYOUTS["windows"], 6000, "cortex-m0")
    flash = report(trained(digits, "windows", p), "cortex-m0", compiler="none").flash
    assert 0.9 * 6000 < flash <= 0.98 * 6000


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_trained_model_is_below_the_least_size(digits, layout):
    """Nothing that would fit is refused before its training."""
    machine = untrained(*capacity.some_rows(*digits), {}, layout, 1024)
    least = capacity.least_size(machine, LAYOUTS[layout], 1024, "cortex-m4")
    flash = report(trained(digits, layout, 1024), "cortex-m4").flash
    assert least <= flash
    assert layout == "windows" or least > 0.9 * flash


def test_rows_that_decide_the_scaler(digits):
    """A few rows of every class, and the extremes of every input."""
    X, y = digits
    rows, labels = capacity.some_rows(X, y)
    assert set(labels) == set(y)
    assert np.array_equal(rows.max(axis=0), X.max(axis=0))
    assert len(rows) < len(X)
