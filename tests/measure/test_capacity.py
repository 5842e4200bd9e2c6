"""How many components fit a budget: it fits once trained, and the budget is used."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tinykernel import TernaryKernelClassifier, TinykernelError
from tinykernel.measure import capacity as module
from tinykernel.measure.capacity import capacity, least_size, paper_components_within
from tinykernel.measure.report import report

BUDGET = 6000


@pytest.fixture(scope="module")
def digits():
    """All digits as bytes."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


@pytest.mark.parametrize("n_classes", [2, 10])
def test_trained_models_fit_and_use_the_budget(digits, n_classes):
    """A model trained with the number found keeps to the budget, and little is left over."""
    X, y = digits
    X, y = X[y < n_classes], y[y < n_classes]
    found = capacity(X, y, {}, budget=BUDGET, target="cortex-m4")
    assert list(found) == ["compact", "phases", "pruned"]
    assert found["compact"] > found["phases"]
    for layout, p in found.items():
        model = TernaryKernelClassifier(
            n_components=p, layout=layout, epochs=2, search=False, random_state=0
        ).fit(X[:300], y[:300])
        assert 0.9 * BUDGET < report(model, "cortex-m4").flash <= BUDGET


def test_estimate_without_a_compiler(digits, monkeypatch):
    """Where there is no compiler the estimate decides, with a margin."""
    X, y = digits
    monkeypatch.setattr(module, "find_toolchain", lambda target: None)
    monkeypatch.setattr(
        module, "report", lambda model, target: report(model, target, compiler="none")
    )
    (p,) = capacity(X, y, {"layout": "windows"}, budget=BUDGET, target="cortex-m0").values()
    model = TernaryKernelClassifier(
        n_components=p, layout="windows", epochs=1, search=False, random_state=0
    ).fit(X[:300], y[:300])
    assert 0.9 * BUDGET < report(model, "cortex-m0", compiler="none").flash <= 0.98 * BUDGET


def test_paper(digits):
    """The same for the other method."""
    X, y = digits
    given = {"sigma": 8.0, "regularization": 0.1, "scaler_scope": "global", "max_iter": 2}
    p = paper_components_within(X, y, given, budget=BUDGET, target="cortex-m4")
    model = TernaryKernelClassifier(method="paper", n_components=p, random_state=0, **given)
    assert 0.9 * BUDGET < report(model.fit(X[:300], y[:300]), "cortex-m4").flash <= BUDGET


@pytest.mark.parametrize("layout", ["compact", "phases", "windows", "pruned"])
def test_no_trained_model_is_below_the_least_size(digits, layout):
    """Nothing that would fit is refused before its training."""
    X, y = digits
    given = {"n_components": 1024, "layout": layout}
    least = least_size(X, y, given, target="cortex-m4")
    model = TernaryKernelClassifier(**given, epochs=2, search=False, random_state=0)
    flash = report(model.fit(X[:300], y[:300]), "cortex-m4").flash
    assert least <= flash
    assert layout == "windows" or least > 0.9 * flash


def test_least_size_of_paper(digits):
    """The same for the other method, whose ternary weights may leave components out."""
    X, y = digits
    given = {"method": "paper", "n_components": 1024, "sigma": 8.0, "regularization": 0.1}
    given |= {"max_iter": 2}
    model = TernaryKernelClassifier(**given, random_state=0).fit(X[:300], y[:300])
    assert 2000 < least_size(X, y, given, target="cortex-m4") <= report(model, "cortex-m4").flash
    with pytest.raises(TinykernelError, match="at most 65536"):
        least_size(X, y, given | {"n_components": 65537}, target="cortex-m4")


def test_budgets_that_are_too_small(digits):
    """Formats of which nothing fits are left out; without any, one line says what is needed."""
    X, y = digits
    with pytest.raises(TinykernelError, match="no model for this data fits into 500 bytes"):
        capacity(X, y, {}, budget=500, target="cortex-m4")
    with pytest.raises(TinykernelError, match="give a larger --budget"):
        paper_components_within(X, y, {}, budget=500, target="cortex-m4")
    with pytest.raises(TinykernelError, match="layout: 'tiny'"):
        capacity(X, y, {"layout": "tiny"}, budget=BUDGET, target="cortex-m4")
    with pytest.raises(TinykernelError, match="cortex-m99"):
        capacity(X, y, {}, budget=BUDGET, target="cortex-m99")
