"""What is said with 95 % confidence holds as often, by the simulations of the benchmark."""

from types import ModuleType

import pytest


@pytest.fixture
def drawn(import_benchmark) -> ModuleType:
    return import_benchmark("interval_coverage")


@pytest.mark.parametrize("groups", [8, 20])
@pytest.mark.parametrize("kind", ["equal", "drawn", "half"])
def test_intervals_held_in_half_of_the_cases(drawn, groups, kind) -> None:
    """Bad persons who were not drawn, and persons of unequal rows: at least 90 % hold."""
    for bad in (0.05, 0.1, 0.25):
        assert drawn.accuracy_holds(kind, groups, bad, (0.98, 0.5), 100) >= 0.9
        assert drawn.rmse_holds(kind, groups, bad, 2.0, 100) >= 0.9


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
