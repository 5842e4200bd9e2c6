"""What is said with 95 % confidence holds as often, by the simulations of the benchmark."""

from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def drawn(import_benchmark) -> ModuleType:
    return import_benchmark("interval_coverage")


@pytest.mark.parametrize("kind", ["equal", "drawn", "half"])
def test_intervals_hold_and_are_not_wide(drawn, kind) -> None:
    """Of twenty persons, alike or not, at least 90 % hold, at 1.6 times the ideal width or less."""
    for name, width in (("correlation 0 to 0.1", 1.6), ("correlation 0.2", 1.6), ("RMSE", 1.9)):
        found = [drawn.coverage(kind, 20, law, 100) for law in drawn.LAWS[name][::2]]
        assert np.mean([held for held, _ in found]) >= 0.92
        assert max(wide for _, wide in found) <= width


@pytest.mark.parametrize("groups", [5, 40])
def test_a_promise_by_groups_holds(drawn, groups) -> None:
    """Five persons of whom a quarter is bad promise nothing; forty keep what they promise."""
    for bad in (0.1, 0.25):
        for made, broken in (
            drawn.promise(groups, bad, 0.5, 60),
            drawn.alarm_promise(groups, bad, 60),
        ):
            assert broken <= 0.1
            assert not made or groups > 5


def test_false_alarms_of_one_class_are_as_promised(drawn) -> None:
    """Of many trainings at most about 5 % break their promise, and it is made at all."""
    made, broken = drawn.one_class_promise(400, 60)
    assert made == 1
    assert broken <= 0.1
