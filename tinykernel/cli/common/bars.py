"""Show progress on stderr, as bars on a terminal, else as plain lines."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tinykernel.cli.common.output import console
from tinykernel.progress import PLAN, Observer, Progress, observing, observing_all_threads

if TYPE_CHECKING:
    from rich.progress import TaskID

_SECONDS_BETWEEN_LINES, _SECONDS_OF_A_PHASE, _SECONDS_OF_SILENCE = 5.0, 2.0, 15.0


@contextmanager
def showing_progress(quiet: bool) -> Iterator[None]:
    """Show progress within the ``with`` block, unless `quiet`."""
    with _shown(quiet) as show:
        latest: list[Progress] = []

        def show_stage(progress: Progress) -> None:
            latest[:] = [progress] if progress.stage != PLAN else latest
            show(progress)

        def show_compilation(progress: Progress) -> None:
            # When it ends, the stage that it interrupted goes on.
            for shown in latest if progress.done else [progress]:
                show(shown)

        with observing(show_stage), observing_all_threads(show_compilation):
            yield


@contextmanager
def _shown(quiet: bool) -> Iterator[Observer]:
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bars() as observer:
            yield observer
    else:
        lines = PlainLines(lambda line: print(line, file=sys.stderr, flush=True))
        over = threading.Event()

        def run() -> None:
            while not over.wait(1.0):
                lines.tick()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield lines
        finally:
            over.set()
            thread.join()


class PlainLines:
    """An observer that writes a line every few seconds, none for short phases."""

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock
        self._latest: Progress | None = None
        self._lines, self._begun = set[str](), dict[str, float]()  # begun: by stage
        self._entered = self._written = clock()

    def __call__(self, progress: Progress) -> None:
        """Receive a message."""
        if self._latest is None or self._latest.stage != progress.stage:
            self._entered = self._begun.setdefault(progress.stage, self._clock())
        if progress.stage == PLAN:
            self._write(progress.message)
            return
        self._latest = progress
        self.tick()

    def tick(self) -> None:
        """Write a line if it is due; also called by a clock, as long work may be silent."""
        now, latest = self._clock(), self._latest
        if latest is None or now - self._entered < _SECONDS_OF_A_PHASE:
            return
        line, silence = _line(latest), now - self._written
        is_new = line not in self._lines  # data may be read, and code compiled, more than once
        is_first = is_new and self._written <= self._entered
        if is_first or silence >= (_SECONDS_BETWEEN_LINES if is_new else _SECONDS_OF_SILENCE):
            self._lines.add(line)
            self._written = now
            self._write(line if is_new else f"{latest.stage}: {now - self._entered:.0f} s so far")


def _line(progress: Progress) -> str:
    count = str(progress.done or "")
    if progress.total is not None:
        count = f"{progress.done}/{progress.total}"
    return f"{progress.stage}: {count} {progress.message}".replace(":  ", ": ").rstrip(" :")


@contextmanager
def _bars() -> Iterator[Callable[[Progress], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

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
        if progress.stage == PLAN:
            bars.console.print(progress.message)
            return
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
