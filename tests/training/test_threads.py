"""Trainings side by side."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from tinykernel.base.progress import observing
from tinykernel.learn.choice import side_by_side
from tinykernel.learn.folds import trial_folds
from tinykernel.learn.trainset import prepare
from tinykernel.learn.trees.forest import Room, TreeOptions
from tinykernel.learn.trees.search import TreeData, tried


@pytest.mark.parametrize("n_threads", [1, 2])
def test_results_have_the_order_of_the_tasks(n_threads):
    """A first task that takes longest is still the first, and progress counts to the total."""
    second = threading.Event()
    waits = (lambda: second.wait(5) or True) if n_threads == 2 else lambda: True
    told = []
    with observing(lambda progress: told.append((progress.done, progress.total))):
        assert side_by_side([waits, second.set], n_threads, stage="both") == [True, None]
    assert told == [(1, 2), (2, 2)]


def test_a_failure_ends_the_others():
    """A running task is told to end, and those that wait are dropped."""
    cancelled, begun, late = threading.Event(), threading.Event(), []

    def fails():
        begun.wait(5)
        raise KeyboardInterrupt

    def runs():
        begun.set()
        return cancelled.wait(5)

    with pytest.raises(KeyboardInterrupt):
        side_by_side([fails, runs, lambda: late.append(1)] * 9, 2, cancelled)
    assert cancelled.is_set()
    assert len(late) < 9


def test_trees_are_the_same_with_one_thread_and_two():
    """Options that are behind outside the first fold have no second fold, whatever has begun."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    _, data = prepare(X, y)
    rows = TreeData.of(data, Room(500), 1)
    folds = trial_folds(data.codes, None, 0)
    for limit in (np.inf, 0.01):
        one, two = (
            tried(replace(rows, n_threads=n), TreeOptions(leaves=8), folds, limit=limit)
            for n in (1, 2)
        )
        assert vars(one) == vars(two)
        assert np.isinf(one.log_loss) == (limit < 1)
