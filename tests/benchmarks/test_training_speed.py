"""The speed of training: limits that are missed, and means of the seeds."""

from types import ModuleType, SimpleNamespace

import pytest


@pytest.fixture
def module(import_benchmark) -> ModuleType:
    return import_benchmark("training_speed")


@pytest.mark.parametrize(("seconds", "status"), [(9.0, 0), (19.0, 1)])
def test_a_missed_limit_is_status_1(module, monkeypatch, tmp_path, capsys, seconds, status):
    """The benchmark fails where a figure misses its limit; seeds are one row of the page."""

    def table(name, seed):
        return {"rows": "1 x 1", "normal": (seconds + seed / 5, 90.0), "quick": (1.0, 80.0)}

    monkeypatch.setattr(module, "table", table)
    arguments = ["training_speed.py", "--sets", "made 3", "--into", str(tmp_path)]
    monkeypatch.setattr("sys.argv", arguments)
    assert module.main() == status
    out = capsys.readouterr().out
    assert f"| made 3 | 1 x 1 | 3 | {seconds + 0.2:.1f} s, 90.0 | 1.0 s, 80.0 | - | - | - |" in out
    assert "Not measured: made 2, made 4, made 10, made 26" in out


@pytest.mark.parametrize(("passed", "holds"), [(22.0, True), (24.0, False)])
def test_a_limit_of_time_is_kept_within_15_percent(module, monkeypatch, passed, holds):
    """A row has the seconds by the clock, the accuracy, and whether the limit was kept."""
    clock = iter(range(1000))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock) * passed)
    monkeypatch.setattr(module, "train", lambda *rows, **options: SimpleNamespace(score=_score))
    monkeypatch.setattr(module, "split", lambda name, seed: [None] * 4)
    first, *others = module.limited()
    assert first == ("digits in 20 s", f"{passed:.1f} s, accuracy 90.0 %", "23 s", holds)
    assert all(row[3] for row in others if "in 20 s" not in row[0])


def _score(X, y):
    return 0.9
