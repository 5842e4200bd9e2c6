"""Show how far long work is: bars on a terminal, plain lines otherwise, always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import TaskID

    from tinykernel.progress import Progress

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def showing_progress(quiet: bool) -> Iterator[None]:
    """Show the progress of all training inside the ``with`` block.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """
    from tinykernel.progress import observing

    if quiet:
        with observing(None):
            yield
    elif sys.stderr.isatty():
        with _bars() as observer, observing(observer):
            yield
    else:
        lines = PlainLines(lambda line: print(line, file=sys.stderr, flush=True))
        with observing(lines):
            yield
        lines.finish()


class PlainLines:
    """An observer that writes a line at most every few seconds, and one when a stage ends.

    Parameters
    ----------
    write : callable taking a str
        Takes the lines.
    clock : callable, default=time.monotonic
        Gives seconds.
    """

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._last = clock()
        self._waiting: Progress | None = None
        self._begun = False

    def __call__(self, progress: Progress) -> None:
        """Take one message of a trainer."""
        late = self._clock() - self._last >= _SECONDS_BETWEEN_LINES
        if self._waiting is not None and self._waiting.stage != progress.stage:
            self.finish()
        self._waiting = progress
        # The first line at once: a sign of life.
        first = not self._begun and progress.done == 0
        self._begun = True
        if late or first or progress.done == progress.total:
            self.finish()

    def finish(self) -> None:
        """Write the last message, if it was not written yet."""
        if self._waiting is None:
            return
        seen, self._waiting = self._waiting, None
        self._last = self._clock()
        count = f"{seen.done or ''}" if seen.total is None else f"{seen.done}/{seen.total}"
        self._write(f"{seen.stage}: {count} {seen.message}".replace(":  ", ": ").rstrip(" :"))


@contextmanager
def _bars() -> Iterator[Callable[[Progress], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from tinykernel.cli.common.output import console

    bars = Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[message]}", markup=False),
        console=console(stderr=True),
        transient=True,
    )
    stages: dict[str, TaskID] = {}

    def observe(progress: Progress) -> None:
        if progress.stage not in stages:
            for task in bars.tasks:  # a stage may end before its total
                bars.update(task.id, total=task.completed)
            stages[progress.stage] = bars.add_task(progress.stage, total=None, message="")
        bars.update(
            stages[progress.stage],
            completed=progress.done,
            total=progress.total,
            message=progress.message,
        )

    with bars:
        yield observe
