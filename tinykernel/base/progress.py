"""Progress messages of the trainers: `report` sends them, `observing` receives them.

The receiver is a context variable, so that fits in different threads do not mix.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

_Item = TypeVar("_Item")

#: The stage whose messages say what will be done, and until when: all of them are shown.
PLAN = "plan"


@dataclass(frozen=True)
class Progress:
    """One message of a trainer."""

    stage: str  # e.g. "choosing sigma"; a new text begins a new stage.
    done: int  # finished steps of the stage.
    total: int | None  # steps of the stage at most, where known.
    message: str = ""  # details, e.g. the objective.


Observer = Callable[[Progress], None]

_anywhere: list[Observer] = []
_observer: ContextVar[Observer | None] = ContextVar("tinykernel_training_observer", default=None)
_latest: ContextVar[Progress | None] = ContextVar("tinykernel_latest_progress", default=None)


@contextmanager
def observing(observer: Observer | None) -> Iterator[None]:
    """Send progress within the ``with`` block to `observer`; None silences it.

    It is called in the thread that trains. An exception that it raises ends the training.

    >>> with observing(lambda progress: print(progress.stage, progress.done)):
    ...     report("sweeps", 1, 20)
    sweeps 1
    """
    token, before = _observer.set(observer), _latest.set(None)
    try:
        yield
    finally:
        _observer.reset(token)
        _latest.reset(before)


def report(stage: str, done: int, total: int | None, message: str = "") -> None:
    """Send a `Progress` of these arguments to the observer, if there is one."""
    observer, progress = _observer.get(), Progress(stage, done, total, message)
    if observer is not None:
        _latest.set(progress if stage != PLAN else _latest.get())
        observer(progress)


@contextmanager
def briefly(stage: str) -> Iterator[None]:
    """Report a stage within the ``with`` block; then the one that it interrupted goes on.

    >>> with observing(lambda progress: print(progress.stage)):
    ...     report("comparing", 1, 2)
    ...     with briefly("spectra"):
    ...         pass
    comparing
    spectra
    comparing
    """
    before = _latest.get()
    report(stage, 0, None)
    yield
    if before is not None:
        report(before.stage, before.done, before.total, before.message)


def steps(stage: str, items: Sequence[_Item]) -> Iterator[_Item]:
    """Yield items, report before each one and after the last; a stage without a name is silent."""
    for number, item in enumerate(items):
        if stage:
            report(stage, number, len(items))
        yield item
    if stage:
        report(stage, len(items), len(items))


@contextmanager
def observing_all_threads(observer: Observer) -> Iterator[None]:
    """Also send `observer` the messages of `report_anywhere`, from any thread."""
    _anywhere.append(observer)
    try:
        yield
    finally:
        _anywhere.remove(observer)


def report_anywhere(stage: str, done: int) -> None:
    """Report work that belongs to no fit, such as compiling: done is 0 at its begin, then 1."""
    for observer in tuple(_anywhere):
        observer(Progress(stage, done, None))
