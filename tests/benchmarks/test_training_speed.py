"""The speed of training: limits that are missed, and rows from a process of their own."""

from types import ModuleType

import pytest


@pytest.fixture
def module(import_benchmark) -> ModuleType:
    return import_benchmark("training_speed")


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
