"""How trainers tell how far they are, without knowing who listens.

A trainer calls `report`; whoever wants to show it (the command line, a notebook) subscribes with
`observing`. The subscription is a context variable, so that two fits in two threads keep apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One message of a trainer.

    Parameters
    ----------
    stage : str
        What is going on, in words for the user, e.g. "choosing sigma". A new stage begins when
        this text changes.
    done : int
        Steps of the stage that are finished.
    total : int or None
        Steps of the stage; None where that is not known. A stage may end before it reaches this.
    message : str
        Details, e.g. the objective; may be empty.

    Examples
    --------
    >>> Progress("choosing sigma", 1, 6, "").done
    1
    """

    stage: str
    done: int
    total: int | None
    message: str = ""


Observer = Callable[[Progress], None]

_anywhere: list[Observer] = []
_observer: ContextVar[Observer | None] = ContextVar("tinykernel_training_observer", default=None)


@contextmanager
def observing(observer: Observer | None) -> Iterator[None]:
    """Send the progress of all training inside the ``with`` block to `observer`.

    Parameters
    ----------
    observer : callable taking a Progress, or None
        Called in the thread that trains. What it raises ends the training. None silences.

    Examples
    --------
    >>> with observing(lambda progress: print(progress.stage, progress.done)):
    ...     report("sweeps", 1, 20)
    sweeps 1
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def report(stage: str, done: int, total: int | None, message: str = "") -> None:
    """Tell the observer, if there is one; the arguments are those of `Progress`.

    >>> report("sweeps", 1, 20)
    """
    observer = _observer.get()
    if observer is not None:
        observer(Progress(stage, done, total, message))


@contextmanager
def observing_all_threads(observer: Observer) -> Iterator[None]:
    """Also send `observer` what `report_anywhere` tells, in any thread, in the ``with`` block."""
    _anywhere.append(observer)
    try:
        yield
    finally:
        _anywhere.remove(observer)


def report_anywhere(stage: str, done: int, message: str = "") -> None:
    """Tell the observers of the process what the thread of no fit in particular does.

    As in `Progress`; done is 0 when it begins, 1 when it is over.
    """
    for observer in tuple(_anywhere):
        observer(Progress(stage, done, None, message))
