"""Independent trainings in threads of their own; their number does not change what they give."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from tinykernel import progress

_Result = TypeVar("_Result")


def side_by_side(
    tasks: Sequence[Callable[[], _Result]],
    n_threads: int,
    cancelled: threading.Event | None = None,
    stage: str | None = None,
) -> list[_Result]:
    """Return the results of tasks, in their order; `stage` names their progress.

    If one fails or Ctrl-C comes, those that wait are dropped, and `cancelled` tells the running
    ones to end.

    >>> side_by_side([lambda: 1, lambda: 2], 2)
    [1, 2]
    """
    results: list[_Result] = []

    def add(result: _Result) -> None:
        results.append(result)
        if stage is not None:
            progress.report(stage, len(results), len(tasks))

    if min(n_threads, len(tasks)) <= 1:
        for task in tasks:
            add(task())
        return results
    with ThreadPoolExecutor(max_workers=n_threads) as executor:
        try:
            for part in [executor.submit(copy_context().run, task) for task in tasks]:
                add(part.result())
        except BaseException:
            if cancelled is not None:
                cancelled.set()
            executor.shutdown(wait=False, cancel_futures=True)
            raise
    return results
