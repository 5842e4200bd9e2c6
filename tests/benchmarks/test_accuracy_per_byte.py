"""The page of accuracy per byte: what is missed is said, and every row is shown."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> ModuleType:
    """Import the benchmark as its folder runs it."""
    monkeypatch.syspath_prepend(checkout / "benchmarks")
    return importlib.import_module("accuracy_per_byte")


def row(module: ModuleType, kilobytes: int = 8, **changes: Any) -> Any:
    """Return a row of USPS that misses nothing."""
    given = {
        "data": "usps", "kilobytes": kilobytes, "flash": 2000, "source": "linked",
        "layout": "compact", "components": 64, "accuracy": 95.0, "differences": 0,
        "seconds": 1.0, "rows": 9, "test_rows": 9, "measured": "one day, one machine",
    }  # fmt: skip
    return module.Row(**(given | changes))


def test_nothing_fits_is_a_miss_where_a_limit_is_set(module):
    """A row without a model cannot pass its limit; a small budget without a limit may."""
    assert module.missed([row(module)]) == []
    assert module.missed([row(module, components=0)]) == ["usps, 8 KB: nothing fits"]
    assert module.missed([row(module, 2, components=0)]) == []


def test_missing_rows_are_not_called_differing_scores(module):
    """A verification of too few rows says so."""
    (line,) = module.missed([row(module, rows=7)])
    assert "7 rows were verified, 9 are for testing" in line
    assert "differ" not in line


def test_every_budget_is_shown(module):
    """Rows of other budgets than the usual ones are on the page, in order."""
    rows = [row(module, 30), row(module, 12), row(module, 8, data="mnist")]
    ordered = module.in_order(rows)
    assert [(r.data, r.kilobytes) for r in ordered] == [("mnist", 8), ("usps", 12), ("usps", 30)]
    assert "| usps | 12 KB |" in module.page(ordered, {})


def test_rows_keep_when_and_where_they_were_measured(module):
    """A page made of kept rows does not say that they were measured now."""
    rows = [row(module, 8), row(module, 30, measured="another day")]
    text = module.page(rows, {})
    assert "Rows measured on: one day, one machine (usps 8 KB)" in text
    assert "Rows measured on: another day (usps 30 KB)" in text


def test_perceptron_learns_balanced_classes(module):
    """Where accuracies are balanced, the reference sees as many rows of each class."""
    y = np.repeat([0, 1, 2], [900, 90, 10])
    drawn = module.perceptron_rows(y, balanced=True)
    assert np.bincount(y[drawn]).tolist() == [333, 333, 333]
    assert len(np.unique(drawn[y[drawn] == 2])) == 10
    assert sorted(module.perceptron_rows(y, balanced=False)) == list(range(1000))
