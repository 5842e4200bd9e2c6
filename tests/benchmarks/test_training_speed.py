"""The speed of training: limits that are missed, and rows from a process of their own."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> ModuleType:
    """Import the benchmark as its folder runs it."""
    monkeypatch.syspath_prepend(checkout / "benchmarks")
    return importlib.import_module("training_speed")


def test_memory_is_told_as_a_ratio_and_limited(module, monkeypatch):
    """Each data set prints its ratio to X in float32, and more than the limit is a miss."""
    report = module.Report()
    X = np.zeros((2**18, 4), dtype=np.uint8)  # 4 MB in float32
    for added in (8.0, 20.0):
        monkeypatch.setattr(module, "peak", lambda added=added: 100.0 + added)
        module.add_memory(report.add, "set", 100.0, X)
    assert "8 MB over 4 MB = 2.0 | 4 |" in report.lines[-2]
    assert len(report.missed) == 1
    assert "20 MB over 4 MB = 5.0, the limit is 4" in report.missed[0]


@pytest.mark.parametrize(("held", "status"), [(True, 0), (False, 1)])
def test_a_missed_limit_is_status_1(module, monkeypatch, tmp_path, held, status):
    """The benchmark fails where a figure misses its limit."""
    measured = []

    def apart(name, report, folder, threads):
        measured.append(name)
        report.add(name, "5 s", "3 s", held)

    monkeypatch.setattr(module, "measure_apart", apart)
    monkeypatch.setattr("sys.argv", ["training_speed.py", "--data", str(tmp_path)])
    assert module.main() == status
    assert measured == ["covtype", "mnist"]
