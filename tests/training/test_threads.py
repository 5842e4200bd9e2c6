"""Trainings side by side."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tinykernel.base.progress import observing
from tinykernel.learn.choice import side_by_side
from tinykernel.learn.loop import one_blas_thread


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


def test_blas_has_its_threads_again_after_trainings_that_overlap() -> None:
    """The first to end leaves the limit to the other; the last one lifts it."""

    def threads() -> list[int]:
        return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        one_blas_thread.__enter__()
        one_blas_thread.__enter__()
        one_blas_thread.__exit__()
        assert set(threads()) == {1}
        one_blas_thread.__exit__()
        assert threads() == before
    assert set(before) == {2}
